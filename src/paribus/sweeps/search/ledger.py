"""The ledger of a study: which trial is next, which worker runs it, how it ended. Safe against kill -9 at any point.

Every decision is made under the study's mutex from what the storage holds. A worker that dies leaves only a RUNNING
trial, which the next worker finds and runs again with the same parameters.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from paribus.core.console import say
from paribus.sweeps.search.space import Choice, Dimension
from paribus.sweeps.search.storage import StudyStorage
from paribus.sweeps.sweep import quote

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

DRAWS = 20  # draws before a repeated set of parameters is accepted, in a space that cannot be listed
WORKER, OVERRIDES, KIND, REASON = "worker", "overrides", "kind", "reason"
RETRY_OF, ATTEMPT, SAMPLER_SEED = "retry_of", "attempt", "sampler_seed"
FAILED, DIED, OVERDUE, VOID = "failed", "died", "overdue", "void"  # kinds of FAIL


class ClaimedTrial(NamedTuple):
    """A trial that this worker runs."""

    trial: Trial
    overrides: tuple[str, ...]


class TrialCounts(NamedTuple):
    """Trials that count towards n_trials, by how they ended; `open` ones have not ended."""

    complete: int
    pruned: int
    failed: int
    open: int

    @property
    def finished(self) -> int:
        return self.complete + self.pruned + self.failed


@dataclass
class Ledger:
    """One worker's view of a study.

    Args:
        sampler: makes the sampler of one draw from its seed.
        trials: how many should finish; retries of a failed or reclaimed trial do not count.
        retries: how often a failed trial is run again.
        seed: of the sampler.
        conditional: adds parameters to a trial (`custom_search_space`).
        ordered: whether a finite space is run in its order, without a sampler.
    """

    study: Study
    storage: StudyStorage
    worker: str
    space: Mapping[str, Dimension]
    sampler: Callable[[int], BaseSampler]
    trials: int
    retries: int = 0
    seed: int = 0
    conditional: Callable[[Trial], None] | None = None
    ordered: bool = False
    _grid: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = list(self.space.values())
        finite = all(isinstance(part, Choice) for part in parts) and self.conditional is None
        size = math.prod(len(part.values) for part in parts if isinstance(part, Choice))
        if finite and size <= max(self.trials, 10_000):
            axes = [[f"{key}={value}" for value in part.values] for key, part in self.space.items()]  # type: ignore[union-attr]
            self._grid = list(itertools.product(*axes))
            self.trials = min(self.trials, size)

    def claim(self) -> ClaimedTrial | None:
        """The next trial for this worker; None if nothing is left, or other workers have all that is left."""
        with self.storage.mutex():
            self._end_trials_of_dead_workers()
            self._queue_retries()
            trials = self._trials()
            counts = count_trials(trials, self.retries)
            if any(trial.state == TrialState.WAITING for trial in trials):
                return self._take(self._draw(len(trials)))
            if counts.finished + counts.open >= self.trials:
                return None
            return self._take(self._draw_unseen(trials))

    def over(self) -> bool:
        """Whether enough trials have finished."""
        return self.counts().finished >= self.trials

    def counts(self) -> TrialCounts:
        return count_trials(self._trials(), self.retries)

    def complete(self, claim: ClaimedTrial, values: Sequence[float], kept: Mapping[str, Any]) -> None:
        """Record the values of a trial; it failed if one of them is not finite."""
        if not all(math.isfinite(value) for value in values):
            self.fail(claim, f"the objective is {list(values)}")
            return
        with _skip_if_taken_over(claim):
            for key, value in kept.items():
                claim.trial.set_user_attr(key, value)
            self.study.tell(claim.trial.number, list(values), skip_if_finished=True)

    def prune(self, claim: ClaimedTrial, reason: str) -> None:
        with _skip_if_taken_over(claim):
            claim.trial.set_user_attr(REASON, reason)
            self.study.tell(claim.trial.number, state=TrialState.PRUNED, skip_if_finished=True)

    def fail(self, claim: ClaimedTrial, reason: str, kind: str = FAILED) -> None:
        """Record a failure; `claim` returns the same parameters again if retries are left."""
        say(f"✗ trial {claim.trial.number} {kind}: {reason}")
        with _skip_if_taken_over(claim):
            self._fail(claim.trial._trial_id, reason, kind)

    def _fail(self, trial_id: int, reason: str, kind: str) -> None:
        backend = self.storage.backend
        backend.set_trial_user_attr(trial_id, REASON, reason[:1000])
        backend.set_trial_user_attr(trial_id, KIND, kind)
        backend.set_trial_state_values(trial_id, TrialState.FAIL)

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _end_trials_of_dead_workers(self) -> None:
        """Under the mutex, a RUNNING trial without a worker has lost it."""
        for trial in self._trials():
            if trial.state != TrialState.RUNNING:
                continue
            worker = trial.user_attrs.get(WORKER)
            if worker is None:
                kind = DIED if "fixed_params" in trial.system_attrs else VOID
                self._fail(trial._trial_id, "its worker died before the trial started", kind)
            elif not self.storage.alive(worker):
                say(f"the worker of trial {trial.number} died; the trial runs again")
                self._fail(trial._trial_id, f"its worker {worker} died", DIED)

    def _queue_retries(self) -> None:
        """Queue each trial that should run again and has no successor yet."""
        trials = self._trials()
        followed = {trial.user_attrs[RETRY_OF] for trial in trials if RETRY_OF in trial.user_attrs}
        for trial in trials:
            if trial.state == TrialState.FAIL and trial.number not in followed and is_retried(trial, self.retries):
                parameters = trial.system_attrs.get("fixed_params", trial.params)
                attempt = trial.user_attrs.get(ATTEMPT, 0) + (trial.user_attrs[KIND] == FAILED)
                self.study.enqueue_trial(parameters, user_attrs={RETRY_OF: trial.number, ATTEMPT: attempt})

    def _draw(self, number: int) -> Trial:
        """Ask Optuna. Its seed is ours plus the number of trials, so that no restart repeats a draw."""
        self.study.sampler = self.sampler(self.seed + number)
        trial = self.study.ask({key: part.distribution() for key, part in self.space.items()})
        if self.conditional is not None:
            self.conditional(trial)
        trial.set_user_attr(SAMPLER_SEED, self.seed + number)
        return trial

    def _draw_unseen(self, trials: Sequence[FrozenTrial]) -> Trial:
        """A trial with parameters that none of these trials has, if the space has any left."""
        taken = {
            tuple(trial.user_attrs[OVERRIDES])
            for trial in trials
            if OVERRIDES in trial.user_attrs and trial.user_attrs.get(KIND) != VOID
        }
        if self.ordered:
            self._queue_unseen(taken, len(trials))
        for draw in range(DRAWS):
            trial = self._draw(len(trials) + draw)
            if self._overrides(trial) not in taken:
                return trial
            self._fail(trial._trial_id, "these parameters were drawn before", VOID)
            if self._grid:
                self._queue_unseen(taken, trial.number)
        return self._draw(len(trials) + DRAWS)

    def _queue_unseen(self, taken: set[tuple[str, ...]], number: int) -> None:
        free = [texts for texts in self._grid if texts not in taken]
        texts = free[0] if self.ordered else random.Random(self.seed + number).choice(free)
        values = {
            key: part.number(text.partition("=")[2])  # type: ignore[union-attr]
            for (key, part), text in zip(self.space.items(), texts, strict=True)
        }
        self.study.enqueue_trial(values)

    def _overrides(self, trial: Trial) -> tuple[str, ...]:
        overrides = [f"{key}={part.text(trial.params[key])}" for key, part in self.space.items()]
        for key, value in trial.params.items():
            if key not in self.space:  # of `conditional`
                text = str(value).lower() if isinstance(value, bool) else repr(value)
                overrides.append(f"{key}={quote(value) if isinstance(value, str) else text}")
        return tuple(overrides)

    def _take(self, trial: Trial) -> ClaimedTrial:
        overrides = self._overrides(trial)
        trial.set_user_attr(OVERRIDES, list(overrides))
        trial.set_user_attr(WORKER, self.worker)
        return ClaimedTrial(trial, overrides)


def count_trials(trials: Sequence[FrozenTrial], retries: int) -> TrialCounts:
    """How the trials of a study ended. A trial that was run again, or drawn twice, counts once."""
    states = [trial.state for trial in trials]
    failed = sum(trial.state == TrialState.FAIL and not is_retried(trial, retries) for trial in trials)
    void = sum(trial.user_attrs.get(KIND) == VOID for trial in trials)
    unfinished = sum(not state.is_finished() for state in states)
    return TrialCounts(states.count(TrialState.COMPLETE), states.count(TrialState.PRUNED), failed - void, unfinished)


def is_retried(trial: FrozenTrial, retries: int) -> bool:
    """Whether a FAIL trial was run again or should be."""
    kind = trial.user_attrs.get(KIND)
    return kind == DIED or (kind == FAILED and trial.user_attrs.get(ATTEMPT, 0) < retries)


@contextmanager
def _skip_if_taken_over(claim: ClaimedTrial) -> Iterator[None]:
    """Skip the rest of the block if another worker has taken the trial over because this one seemed dead."""
    try:
        yield
    except UpdateFinishedTrialError:
        say(f"trial {claim.trial.number} was taken over by another worker")
