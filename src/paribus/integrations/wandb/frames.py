"""The runs of a study as frames, the same from our records, from offline W&B runs and from a W&B server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from paribus.runs.manifest import Manifest
from paribus.runs.wandb_tracker import FINETUNE, STATUS, STEP

if TYPE_CHECKING:
    from pandas import DataFrame

OVER = ("done", "diverged")
Curve = dict[tuple[str, int], float]  # {(metric, step): value}


class Frames(NamedTuple):
    """`runs`: one row per ended run: arm, seed, signature, status, its metrics and its budget (`budget/...`).

    `curves`: one row per point of pre-training: arm, seed, step, metric, value.
    """

    runs: DataFrame
    curves: DataFrame


class LoggedRun(NamedTuple):
    """A run as its source has it."""

    arm: str
    seed: int
    signature: str
    status: str
    values: Mapping[str, float]
    curve: Curve


class RunSource(Protocol):
    """Where runs are read from. Raises UserError if it cannot be read."""

    def runs(self, study: str, scale: str) -> Iterable[LoggedRun]:
        """The runs of a study at a scale, in any order."""


def load(source: RunSource, study: str, scale: str) -> Frames:
    """The runs of a study at a scale that are over; `source`: Records, Offline or Online."""
    import pandas

    runs = sorted(source.runs(study, scale), key=lambda run: run[:3])
    names = sorted({name for run in runs for name in run.values})
    rows = [[*run[:4], *(run.values.get(name) for name in names)] for run in runs]
    points = [[*run[:2], step, metric, run.curve[metric, step]] for run in runs for metric, step in sorted(run.curve)]
    columns = ["arm", "seed", "signature", STATUS]
    return Frames(
        pandas.DataFrame(rows, columns=[*columns, *names]).astype(dict.fromkeys(names, "float64")),
        pandas.DataFrame(points, columns=["arm", "seed", "step", "metric", "value"]),
    )


@dataclass
class StageLog:
    """A stage as W&B has it, assembled from its segments."""

    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int, str]:
        return str(self.config["arm"]), int(self.config["seed"]), str(self.config["signature"])

    def values(self) -> dict[str, float]:
        """The final numbers: those that are not curves."""
        curves = {name for row in self.history for name in row}
        return {name: value for name, value in pick_numbers(self.summary).items() if name not in curves}

    def curve(self) -> Curve:
        """If a step was repeated after an interruption, its last values count."""
        return {
            (name, int(row[STEP])): value
            for row in self.history
            if STEP in row
            for name, value in pick_numbers(row).items()
        }


def pick_numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row that we logged."""
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name != STEP and not name.startswith("_")
    }


def join_stages(stages: Sequence[StageLog], manifest: Manifest | None) -> list[LoggedRun]:
    """Runs from their stages; those that are not over, and those that are not on the manifest, are left out."""
    known = [stage for stage in stages if {"arm", "seed", "signature"} <= stage.config.keys()]
    finetunings = {stage.key: stage for stage in known if stage.config.get("stage") == FINETUNE}
    runs = []
    for stage in known:
        arm, seed, signature = stage.key
        listed = manifest is None or manifest.holds(f"{arm}/seed{seed}", signature)
        if stage.config.get("stage") == FINETUNE or not listed:
            continue
        tuned = finetunings.get(stage.key)
        status = str(stage.summary.get(STATUS, "open"))
        if status == "done" and stage.config.get("tasks"):
            # a fine-tuning that is missing or running leaves the whole run open
            status = "open" if tuned is None else str(tuned.summary.get(STATUS, "open"))
        if status in OVER:
            values = {**stage.values(), **(tuned.values() if tuned else {})} if status == "done" else {}
            runs.append(LoggedRun(arm, seed, signature, status, values, stage.curve()))
    return runs
