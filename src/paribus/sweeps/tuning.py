"""Equal tuning of the arms: the settings in a sweep file (`Tune`), and what was tried and chosen (`Tuning`)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from paribus.core.errors import UserError
from paribus.sweeps.search.space import Dimension, grid

SAMPLERS = ("grid", "tpe", "random")
SEEDS = (100,)  # of the trials, if the sweep file names none

Values = dict[str, str]  # {key: the text of its value}
Rounds = Generator[list[Values], Sequence[float], None]


@dataclass(frozen=True)
class Tune:
    """Each arm is tuned with `trials` trials over the same `space`, by the mean of the column `on` over `seeds`.

    `sampler`: grid (the default: evenly spaced points, both ends included), tpe (sequential; each trial learns from
    those before it) or random. `texts`: the space as the sweep file writes it.
    """

    trials: int
    space: Mapping[str, Dimension]
    on: str
    seeds: tuple[int, ...]
    sampler: str
    texts: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"tune.trials={self.trials} is below 1", "give the number of trials per arm")
        if self.sampler not in SAMPLERS:
            raise UserError(f"tune.sampler={self.sampler} is unknown", f"use {', '.join(SAMPLERS)}")
        if budget := [key for key in self.space if key.startswith("trainer.max_")]:
            cause = f"tune.space names the budget '{budget[0]}'"
            raise UserError(cause, "remove it: trials with different budgets cannot be compared")
        if self.sampler == "grid":
            grid(self.space, self.trials)

    def to_json(self) -> dict[str, Any]:
        plain = {"trials": self.trials, "space": dict(self.texts), "on": self.on}
        return {**plain, "seeds": list(self.seeds), "sampler": self.sampler}

    def rounds(self, seed: int) -> Rounds:
        """Batches of values to try together. Send the losses of each batch (inf for a failed trial) for the next."""
        if self.sampler == "grid":
            yield grid(self.space, self.trials)
            return
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        startup = max(2, self.trials // 3)  # random trials before the first estimate
        tpe = self.sampler == "tpe"
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup) if tpe else None
        study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=seed))
        distributions = {key: part.distribution() for key, part in self.space.items()}
        for size in [1] * self.trials if tpe else [self.trials]:
            batch = [study.ask(distributions) for _ in range(size)]
            losses = yield [{key: part.text(trial.params[key]) for key, part in self.space.items()} for trial in batch]
            for trial, loss in zip(batch, losses, strict=True):
                study.tell(trial, loss)


@dataclass(frozen=True)
class TrialRun:
    """One run of a trial. `value`: the tuned column; None if the run has no finite one."""

    seed: int
    signature: str
    status: str
    value: float | None


@dataclass(frozen=True)
class Trial:
    """One set of values for an arm. `value`: the mean over `runs`, one per seed; None if a run has no value."""

    number: int
    values: Values
    runs: list[TrialRun] = field(default_factory=list)
    value: float | None = None


@dataclass(frozen=True)
class ArmTuning:
    """`chosen`: the values of the best of the `trials`."""

    chosen: Values
    trials: list[Trial]

    @property
    def edges(self) -> Values:
        """The chosen numbers below or above which nothing was tried, of the keys with several values."""
        found = {}
        for key, text in sorted(self.chosen.items()):
            tried = {number for trial in self.trials if (number := _number(trial.values[key])) is not None}
            if len(tried) > 1 and _number(text) in (min(tried), max(tried)):
                found[key] = text
        return found

    @property
    def at_end(self) -> list[str]:
        """What `edges` says, in words."""
        return [f"{key} = {text} is the lowest or highest value tried" for key, text in self.edges.items()]

    @property
    def faults(self) -> list[str]:
        """What `at_end` says, and how many trials have no number."""
        failed = sum(trial.value is None for trial in self.trials)
        return [*self.at_end, *([f"{failed} of {len(self.trials)} trials have no number"] if failed else [])]


@dataclass(frozen=True)
class Tuning:
    """What tuning found: `spec`, the `Tune` as JSON, and {arm: its trials}. Both are empty if nothing was tuned."""

    spec: Mapping[str, Any] = field(default_factory=dict)
    arms: Mapping[str, ArmTuning] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Tuning:
        """Read the key `tuning` of a manifest or a table."""
        arms = {}
        for arm, tuned in content.get("arms", {}).items():
            trials = [
                Trial(**{**trial, "runs": [TrialRun(**run) for run in trial["runs"]]}) for trial in tuned["trials"]
            ]
            arms[arm] = ArmTuning(tuned["chosen"], trials)
        return cls(content.get("spec", {}), arms)

    def to_json(self) -> dict[str, Any]:
        """{} if nothing was tuned."""
        return asdict(self) if self.spec else {}

    def overrides(self) -> dict[str, tuple[str, ...]]:
        """{arm: the overrides that its tuning chose}."""
        return {arm: value_overrides(tuned.chosen) for arm, tuned in self.arms.items()}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def value_overrides(values: Values) -> tuple[str, ...]:
    return tuple(f"{key}={text}" for key, text in values.items())


def trial_name(arm: str, number: int) -> str:
    """The name of a trial as an arm of the study of trials."""
    return f"{arm}.trial{number}"
