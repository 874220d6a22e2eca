"""The ledger of a study: which trial is next, which worker holds it, how it ended. Safe against kill -9 at any point.

Every decision is made under the study's mutex from what the storage holds, so that a worker that dies leaves nothing
but a RUNNING trial, which the next one finds and runs again with the same parameters.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.console import say
from paribus.sweeps.search.storage import Place
from paribus.sweeps.space import Choice, Dimension
from paribus.sweeps.sweep import quoted

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

DRAWS = 20  # draws before parameters that were drawn before are accepted, in a space that cannot be listed
WORKER, OVERRIDES, KIND, REASON = "worker", "overrides", "kind", "reason"
RETRY_OF, ATTEMPT, SAMPLER_SEED = "retry_of", "attempt", "sampler_seed"
FAILED, DIED, OVERDUE, VOID = "failed", "died", "overdue", "void"  # kinds of FAIL


class Claim(NamedTuple):
    """A trial that this worker is to run."""

    trial: Trial
    overrides: tuple[str, ...]


class Counts(NamedTuple):
    """Trials that count towards n_trials, by how they ended; `open` ones are not over."""

    complete: int
    pruned: int
    failed: int
    open: int

    @property
    def finished(self) -> int:
        return self.complete + self.pruned + self.failed


@dataclass
class Ledger:
    """One worker's hold on a study.

    Args:
        sampler: makes the sampler of one draw from its seed.
        conditional: adds parameters to a trial (`custom_search_space`).
        trials: how many are to finish; retries of a failed or reclaimed trial do not count.
        retries: how often a failed trial is run again.
        seed: of the sampler.
        ordered: whether a finite space is gone through in its order, without a sampler.
    """

    study: Study
    place: Place
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

    def claim(self) -> Claim | None:
        """The next trial for this worker; None where all that is left is with other workers, or nothing is left."""
        from optuna.trial import TrialState

        with self.place.mutex():
            self._reclaim()
            self._retry()
            found = self._trials()
            counts = counted(found, self.retries)
            if any(trial.state == TrialState.WAITING for trial in found):
                return self._held(self._draw(len(found)))
            if counts.finished + counts.open >= self.trials:
                return None
            return self._held(self._new(found))

    def over(self) -> bool:
        """Whether as many trials have finished as are wanted."""
        return self.counts().finished >= self.trials

    def counts(self) -> Counts:
        return counted(self._trials(), self.retries)

    def complete(self, claim: Claim, values: Sequence[float], kept: Mapping[str, Any]) -> None:
        """Tell the values; the trial failed where one is no number."""
        if not all(math.isfinite(value) for value in values):
            self.fail(claim, f"the objective is {list(values)}")
            return
        with _ours(claim):
            for key, value in kept.items():
                claim.trial.set_user_attr(key, value)
            self.study.tell(claim.trial.number, list(values), skip_if_finished=True)

    def prune(self, claim: Claim, reason: str) -> None:
        from optuna.trial import TrialState

        with _ours(claim):
            claim.trial.set_user_attr(REASON, reason)
            self.study.tell(claim.trial.number, state=TrialState.PRUNED, skip_if_finished=True)

    def fail(self, claim: Claim, reason: str, kind: str = FAILED) -> None:
        """Tell a failure; `claim` gives the same parameters again where retries are left."""
        say(f"✗ trial {claim.trial.number} {kind}: {reason}")
        with _ours(claim):
            self._fail(claim.trial._trial_id, reason, kind)

    def _fail(self, trial_id: int, reason: str, kind: str) -> None:
        from optuna.trial import TrialState

        storage = self.place.storage
        storage.set_trial_user_attr(trial_id, REASON, reason[:1000])
        storage.set_trial_user_attr(trial_id, KIND, kind)
        storage.set_trial_state_values(trial_id, TrialState.FAIL)

    def _trials(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def _reclaim(self) -> None:
        """End what dead workers left RUNNING. Under the mutex a trial without a worker has lost the one it was for."""
        from optuna.trial import TrialState

        for trial in self._trials():
            if trial.state != TrialState.RUNNING:
                continue
            worker = trial.user_attrs.get(WORKER)
            if worker is None:
                kind = DIED if "fixed_params" in trial.system_attrs else VOID
                self._fail(trial._trial_id, "its worker died before it began", kind)
            elif not self.place.alive(worker):
                say(f"trial {trial.number} was left by a worker that died; it is run again")
                self._fail(trial._trial_id, f"its worker {worker} died", DIED)

    def _retry(self) -> None:
        """Queue each trial that is to run again and has no successor yet."""
        from optuna.trial import TrialState

        found = self._trials()
        followed = {trial.user_attrs[RETRY_OF] for trial in found if RETRY_OF in trial.user_attrs}
        for trial in found:
            if trial.state == TrialState.FAIL and trial.number not in followed and again(trial, self.retries):
                parameters = trial.system_attrs.get("fixed_params", trial.params)
                attempt = trial.user_attrs.get(ATTEMPT, 0) + (trial.user_attrs[KIND] == FAILED)
                self.study.enqueue_trial(parameters, user_attrs={RETRY_OF: trial.number, ATTEMPT: attempt})

    def _draw(self, number: int) -> Trial:
        """Ask Optuna; its seed follows from ours and the number of trials, so that no restart repeats a draw."""
        self.study.sampler = self.sampler(self.seed + number)
        trial = self.study.ask({key: part.distribution() for key, part in self.space.items()})
        if self.conditional is not None:
            self.conditional(trial)
        trial.set_user_attr(SAMPLER_SEED, self.seed + number)
        return trial

    def _new(self, found: Sequence[FrozenTrial]) -> Trial:
        """A trial whose parameters no other has, as far as the space gives one."""
        taken = {
            tuple(t.user_attrs[OVERRIDES])
            for t in found
            if OVERRIDES in t.user_attrs and t.user_attrs.get(KIND) != VOID
        }
        if self.ordered:
            self._queue_unseen(taken, len(found))
        for draw in range(DRAWS):
            trial = self._draw(len(found) + draw)
            if self._overrides(trial) not in taken:
                return trial
            self._fail(trial._trial_id, "these parameters were drawn before", VOID)
            if self._grid:
                self._queue_unseen(taken, trial.number)
        return self._draw(len(found) + DRAWS)

    def _queue_unseen(self, taken: set[tuple[str, ...]], number: int) -> None:
        free = [texts for texts in self._grid if texts not in taken]
        texts = free[0] if self.ordered else random.Random(self.seed + number).choice(free)
        self.study.enqueue_trial({key: text.partition("=")[2] for key, text in zip(self.space, texts, strict=True)})

    def _overrides(self, trial: Trial) -> tuple[str, ...]:
        own = [f"{key}={part.text(trial.params[key])}" for key, part in self.space.items()]
        return (*own, *(f"{key}={_written(value)}" for key, value in trial.params.items() if key not in self.space))

    def _held(self, trial: Trial) -> Claim:
        overrides = self._overrides(trial)
        trial.set_user_attr(OVERRIDES, list(overrides))
        trial.set_user_attr(WORKER, self.worker)
        return Claim(trial, overrides)


def counted(found: Sequence[FrozenTrial], retries: int) -> Counts:
    """How the trials of a study ended; those that were run again, or drawn twice, count once."""
    from optuna.trial import TrialState

    ended = [trial.state for trial in found]
    failed = sum(trial.state == TrialState.FAIL and not again(trial, retries) for trial in found)
    void = sum(trial.user_attrs.get(KIND) == VOID for trial in found)
    left = sum(not state.is_finished() for state in ended)
    return Counts(ended.count(TrialState.COMPLETE), ended.count(TrialState.PRUNED), failed - void, left)


def again(trial: FrozenTrial, retries: int) -> bool:
    """Whether a FAIL trial is to be, or was, run again."""
    kind = trial.user_attrs.get(KIND)
    return kind == DIED or (kind == FAILED and trial.user_attrs.get(ATTEMPT, 0) < retries)


@contextmanager
def _ours(claim: Claim) -> Iterator[None]:
    """Leave a trial alone that another worker has taken over, this one having seemed dead."""
    from optuna.exceptions import UpdateFinishedTrialError

    try:
        yield
    except UpdateFinishedTrialError:
        say(f"trial {claim.trial.number} was taken over by another worker")


def _written(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)
