"""Equal tuning: what a sweep file says under `tune`, and which values are tried."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.core.errors import UserError
from paribus.sweeps.space import Dimension, grid

SAMPLERS = ("grid", "tpe", "random")
SEEDS = (100,)  # of the trials where the sweep file names none
KEYS = ("trials", "space", "on", "seeds", "sampler")

Values = dict[str, str]  # {key: the text of its value}


@dataclass(frozen=True)
class Tune:
    """Each arm is searched with `trials` over the same `space`, by the mean of column `on` over `seeds`.

    `sampler`: grid (the default: evenly spaced, the ends included), tpe (one after the other, each knowing those
    before it) or random. `texts`: the space as the sweep file writes it.
    """

    trials: int
    space: Mapping[str, Dimension]
    on: str
    seeds: tuple[int, ...]
    sampler: str
    texts: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"tune.trials={self.trials} is below 1", "give the trials of each arm")
        if self.sampler not in SAMPLERS:
            raise UserError(f"tune.sampler={self.sampler} is unknown", f"use {', '.join(SAMPLERS)}")
        if budget := [key for key in self.space if key.startswith("trainer.max_")]:
            raise UserError(f"tune.space names the budget '{budget[0]}'", "trials of unlike budget are no fair search")
        if self.sampler == "grid":
            grid(self.space, self.trials)

    def record(self) -> dict[str, Any]:
        """As plain data."""
        plain = {"trials": self.trials, "space": dict(self.texts), "on": self.on}
        return {**plain, "seeds": list(self.seeds), "sampler": self.sampler}

    def rounds(self, seed: int) -> Generator[list[Values], Sequence[float], None]:
        """Batches of values to try at once; takes the losses of each batch (inf for what failed), lower is better."""
        if self.sampler == "grid":
            yield grid(self.space, self.trials)
        else:
            yield from self._sampled(seed)

    def _sampled(self, seed: int) -> Generator[list[Values], Sequence[float], None]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        startup = max(2, self.trials // 3)  # random ones before the estimator has something to stand on
        tpe = self.sampler == "tpe"
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup) if tpe else None
        study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=seed))
        distributions = {key: part.distribution() for key, part in self.space.items()}
        for size in [1] * self.trials if tpe else [self.trials]:
            asked = [study.ask(distributions) for _ in range(size)]
            losses = yield [{key: part.text(trial.params[key]) for key, part in self.space.items()} for trial in asked]
            for trial, loss in zip(asked, losses, strict=True):
                study.tell(trial, loss)
