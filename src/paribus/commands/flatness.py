"""`paribus flatness`: measure and draw the training loss around fine-tuned weights."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.core.arguments import Arguments, Option, Verb, path, text, whole
from paribus.core.config_names import choices
from paribus.sweeps.request import CACHE, RESULTS, RUNS, SCALE, STUDY, SWEEP
from paribus.sweeps.sweep_file import load

TASK: Option[str | None] = Option(
    "task", "the fine-tuned task", None, text, shown="the first by name", choices=lambda: choices("task")
)
EXAMPLES = Option("examples", "training examples to average the loss over", 256, whole(1))
POINTS = Option("points", "losses per unit of length, an even number", 10, whole(2, step=2))
DIRECTIONS = Option("directions", "random directions", 2, whole(1))
OUT: Option[Path | None] = Option("out", "folder of the figure", None, path, shown="reports/<study>/<scale>")


@click.command(
    cls=Verb,
    params=[SWEEP, SCALE, STUDY, TASK, EXAMPLES, POINTS, DIRECTIONS, OUT, RUNS, RESULTS, CACHE],
    example="paribus flatness pretraining_helps scale=cpu",
)
def flatness(given: Arguments) -> int:
    """Measure and draw the training loss around fine-tuned weights. The sweep must have run with
    finetune.keep=true.
    """
    from paribus.reports.flatness import FlatnessOptions, draw
    from paribus.reports.tables.build import REPORTS

    sweep, scale = load(given[SWEEP]), given[SCALE]
    sweep.seeds_at(scale)  # refuses an unknown scale
    study = given[STUDY] or sweep.study
    roots = (given[RUNS], given[RESULTS] / scale)
    out = given[OUT] or REPORTS / study / scale
    numbers = (given[EXAMPLES], given[POINTS], given[DIRECTIONS])
    draw(FlatnessOptions(sweep, scale, study, given[TASK], roots, given[CACHE], out, *numbers))
    return 0
