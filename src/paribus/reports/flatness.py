"""The training loss around the fine-tuned weights of a sweep, measured and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.console import progress, say
from paribus.core.errors import UserError
from paribus.reports.plots import landscape
from paribus.reports.plots.figure import make_figure, render_png, render_svg
from paribus.reports.tables.files import write_files
from paribus.runs.folder import RunFolder
from paribus.runs.record import Record
from paribus.runs.store import find_records, find_stored
from paribus.sweeps.sweep import Sweep
from paribus.training.reproduce import read_stored_config
from paribus.verdict.statistics import rounded

NAME = "flatness"
LINE = (-1.0, 2.0)  # from start (0) to end (1), and as far beyond
PLANE = (-0.5, 1.5)
RADII = (-1.0, 1.0)  # in lengths of the weights' rows
DIGITS = 6  # significant digits of a loss


class FlatnessOptions(NamedTuple):
    """What to measure.

    task: None for the first that was fine-tuned.
    roots: folders with the runs. cache: of prepared text, None for that of the runs.
    examples: of the training split. points: losses per unit of length. directions: random ones.
    """

    sweep: Sweep
    scale: str
    study: str
    task: str | None
    roots: tuple[Path, ...]
    cache: Path | None
    out: Path
    examples: int
    points: int
    directions: int


class TunedRun(NamedTuple):
    """A finished run that kept its fine-tunings, and their seeds."""

    record: Record
    folder: Path
    config: dict[str, Any]
    seeds: tuple[int, ...]


def draw(options: FlatnessOptions) -> None:
    """Measure, and write flatness.{json,svg,png}. Raises UserError if a run or its fine-tuned weights are missing."""
    task, runs = find_runs(options)
    measured = measure(options, task, runs)
    heading = f"{options.study} at {options.scale} scale: {task}, training loss"
    figure = make_figure(landscape.draw_landscape(measured), heading, columns=2)
    content = {
        landscape.FILE: (json.dumps(measured, sort_keys=True, allow_nan=False) + "\n").encode(),
        f"{NAME}.svg": render_svg(figure).encode(),
        f"{NAME}.png": render_png(figure),
    }
    write_files(options.out, content)
    say(f"written to {options.out}: {', '.join(sorted(content))}")


def find_runs(options: FlatnessOptions) -> tuple[str, list[TunedRun]]:
    """(the task, the runs by arm and seed). Raises UserError if no finished run kept fine-tuned weights of the task."""
    listed = find_records(options.study, options.scale, options.roots).records
    done = [record for record in listed if record.done and record.arm in options.sweep.arms]
    if not done:
        raise UserError(
            f"no finished run of {options.study} at scale={options.scale}",
            f"run `paribus run {options.sweep.path.stem} scale={options.scale}` first",
        )
    tasks = sorted({one.task for record in done for one in record.task_runs})
    task = options.task or next(iter(tasks), "")
    if task not in tasks:
        cause = f"the task '{task}' was not fine-tuned" if task else "no task was fine-tuned"
        raise UserError(
            f"{cause} in {options.study} at scale={options.scale}", f"choose {' or '.join(tasks) or 'a task'}"
        )
    return task, [_find_run(options, record, task) for record in done]


def _find_run(options: FlatnessOptions, record: Record, task: str) -> TunedRun:
    """Raises UserError if the run's folder does not hold its weights."""
    from paribus.core.hub import WEIGHTS
    from paribus.training.finetune import tuned_path

    stored, label = find_stored(record, options.roots), record.label
    folder = stored.folder if isinstance(stored, RunFolder) else None
    if stored is None or folder is None or not (folder / "model" / WEIGHTS).is_file():
        raise UserError(f"{label} has no checkpoint", "set runs= to the folder where it was trained")
    seeds = tuple(one.seed for one in record.task_runs if one.task == task)
    if missing := [seed for seed in seeds if not tuned_path(folder, task, seed).is_file()]:
        raise UserError(
            f"{label} did not keep the fine-tuning {task}-{missing[0]}",
            "run the sweep again with finetune.keep=true and a new runs=FOLDER",
        )
    config = read_stored_config(stored)
    if options.cache:
        config["paths"]["cache"] = str(options.cache)
    return TunedRun(record, folder, config, seeds)


def measure(options: FlatnessOptions, task: str, runs: Sequence[TunedRun]) -> dict[str, Any]:
    """The content of flatness.json: for each arm, lists over its runs. Losses are in nats; None if not finite.

    `line`: at start + place (end - start). `around`: at end + radius times random directions as long as the weights,
    mean over directions. `plane`: of the first run, one row per place toward the end of the second fine-tuning.
    """
    places = {
        "line": _grid(LINE, options.points),
        "around": _grid(RADII, options.points),
        "plane": _grid(PLANE, options.points),
    }
    arms: dict[str, dict[str, Any]] = {}
    for run in progress(runs, "runs", unit="run"):
        arm = arms.setdefault(run.record.arm, {"runs": [], "line": [], "around": [], "distance": [], "length": []})
        arm["runs"].append(f"seed{run.record.seed}-{run.record.signature}")
        for key, value in _measure_run(options, task, run, places, "plane" not in arm).items():
            arm[key] = value if key == "plane" else [*arm[key], value]
    return {
        "study": options.study, "scale": options.scale, "task": task, "examples": options.examples, "places": places,
        "directions": options.directions, "arms": {arm: arms[arm] for arm in options.sweep.arms if arm in arms},
    }  # fmt: skip


def _measure_run(
    options: FlatnessOptions, task: str, run: TunedRun, places: dict[str, list[float]], plane: bool
) -> dict[str, Any]:
    from paribus.training import description
    from paribus.training.flatness import Tunings, norm

    tunings = Tunings(description.Run.of(run.config), run.folder, task, options.examples)
    surface = tunings.surface(run.seeds[0])
    measured: dict[str, Any] = {
        "line": _round_losses(surface.line(places["line"])),
        "around": _round_losses(surface.around(places["around"], options.directions)),
        "distance": rounded(surface.distance()),
        "length": rounded(norm(surface.start)),
    }
    if plane and len(run.seeds) > 1:
        other = tunings.end(run.seeds[1])
        measured["plane"] = [_round_losses(row) for row in surface.plane(other, places["plane"])]
    return measured


def _grid(ends: tuple[float, float], points: int) -> list[float]:
    """Evenly spaced places that include 0 and 1."""
    low, high = ends
    return [round(at / points, 6) for at in range(round(low * points), round(high * points) + 1)]


def _round_losses(losses: Sequence[float]) -> list[float | None]:
    return [float(f"{loss:.{DIGITS}g}") if loss < float("inf") else None for loss in losses]
