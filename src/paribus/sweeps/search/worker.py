"""The search: claims trials, launches them, tells how they ended, and writes what was found."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_json, write_text
from paribus.sweeps.search.ledger import OVERDUE, Claim, Counts, Ledger
from paribus.sweeps.search.settings import Settings
from paribus.sweeps.search.storage import RENEWED, Place, open_storage, this_worker
from paribus.sweeps.search.trial import PRUNER
from paribus.sweeps.sweep import quoted

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from optuna import Study
    from optuna.trial import FrozenTrial

SIGNATURE = "signature"
RESULTS = "optimization_results.yaml"  # the name that Hydra's own sweeper gives it
STUDY = "study.json"  # in the folder of a search: where its trials are
POLL = 0.2  # seconds between looks at the study where all that is left is with other workers


class Overdue(Exception):
    """A trial took longer than `trial_timeout`."""


Track = Callable[[Mapping[str, Any], str, str, Path, "Study"], None]  # logger, name, signature, folder, study
Returns = dict[int, list["JobReturn"]]  # of the trials that ran here, by number: one a seed


def search(settings: Settings, launcher: Any, returns: Returns | None = None, track: Track | None = None) -> Counts:
    """Run trials until `n_trials` have finished, beside any other workers of the study.

    Fills `returns`. At the end `track` tells the tracker how the search stands, if a logger is set.
    """
    ledger = open_study(settings)
    state = ledger.counts()
    say(
        f"study {settings.study}: {state.finished} of {ledger.trials} trials finished, sampler seed {settings.seed}, "
        f"{settings.url}"
    )
    _describe(settings, ledger)
    returns = {} if returns is None else returns
    with _leased(ledger):
        if _in_process(launcher) or settings.jobs == 1:
            _one_by_one(settings, ledger, launcher, returns)
        else:
            _side_by_side(settings, ledger, launcher, returns)
    return _ended(settings, ledger, track)


def _describe(settings: Settings, ledger: Ledger) -> None:
    """Leave beside the results what `paribus status` needs to find the study."""
    known = {"storage": settings.url, "study": settings.study, "trials": ledger.trials, "retries": settings.retries}
    write_json(settings.folder / STUDY, {**known, "objective": list(settings.on)})


def open_study(settings: Settings) -> Ledger:
    """Create or load the study. Raises UserError where it must not go on."""
    import optuna
    from optuna.study import StudyDirection

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = open_storage(settings.url)
    place = Place(settings.url, settings.study, storage)
    with place.mutex():
        directions = [StudyDirection[name.upper()] for name in settings.directions]
        study = optuna.create_study(
            storage=storage, study_name=settings.study, directions=directions, load_if_exists=True
        )
        _check(settings, study)
    conditional = settings.conditional
    return Ledger(
        study, place, this_worker(), settings.space, settings.build_sampler, settings.trials, settings.retries,
        settings.seed, None if conditional is None else lambda trial: conditional(None, trial), settings.ordered,
    )  # fmt: skip


def _check(settings: Settings, study: Study) -> None:
    before = study.user_attrs.get(SIGNATURE)
    if before is not None and before != settings.signature and settings.resume != "force":
        cause = f"study {settings.study} has another search space or base config ({before}, now {settings.signature})"
        raise UserError(cause, "give another hydra.sweeper.study_name, or hydra.sweeper.resume=force")
    if settings.resume is False and study.get_trials(deepcopy=False):
        raise UserError(f"study {settings.study} has trials", "leave hydra.sweeper.resume=false out to go on")
    known = {SIGNATURE: settings.signature, "sampler": dict(settings.sampler) | {"seed": settings.seed}}
    if settings.pruner is not None:
        known[PRUNER] = json.dumps(dict(settings.pruner))
    for key, value in known.items():
        if study.user_attrs.get(key) != value:
            study.set_user_attr(key, value)


def _in_process(launcher: Any) -> bool:
    """Whether jobs run in this very process, one at a time: Hydra's state is global there."""
    return type(launcher).__name__ == "BasicLauncher"


@contextmanager
def _leased(ledger: Ledger) -> Iterator[None]:
    """Renew this worker's lease while the block runs."""
    over = threading.Event()
    ledger.place.renew(ledger.worker)

    def renew() -> None:
        while not over.wait(RENEWED):
            ledger.place.renew(ledger.worker)

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _one_by_one(settings: Settings, ledger: Ledger, launcher: Any, returns: Returns) -> None:
    if settings.jobs > 1:
        say("hydra/launcher=basic runs one trial at a time; start the same command again for a second worker")
    while not ledger.over():
        if (claim := ledger.claim()) is None:
            time.sleep(POLL)
            continue
        with _alarm(settings.timeout):
            _run(settings, ledger, launcher, claim, returns)


def _side_by_side(settings: Settings, ledger: Ledger, launcher: Any, returns: Returns) -> None:
    """A thread a slot; a slot that is free claims at once, whatever the others do."""
    running: dict[threading.Thread, tuple[Claim, float]] = {}
    changed = threading.Event()

    def work(claim: Claim) -> None:
        _run(settings, ledger, launcher, claim, returns)
        changed.set()

    while running or not ledger.over():
        while len(running) < settings.jobs and (claim := ledger.claim()) is not None:
            thread = threading.Thread(target=work, args=(claim,), daemon=True)
            running[thread] = (claim, time.monotonic())
            thread.start()
        changed.wait(POLL)
        changed.clear()
        for thread, (claim, start) in list(running.items()):
            if settings.timeout is not None and time.monotonic() - start > settings.timeout and thread.is_alive():
                ledger.fail(claim, f"over trial_timeout={settings.timeout} s", OVERDUE)
                del running[thread]
            elif not thread.is_alive():
                del running[thread]


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raise Overdue inside the block after so many seconds, where signals can be handled (the main thread)."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def overdue(number: int, frame: object) -> None:
        raise Overdue(f"over trial_timeout={seconds} s")

    before = signal.signal(signal.SIGALRM, overdue)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run(settings: Settings, ledger: Ledger, launcher: Any, claim: Claim, returns: Returns) -> None:
    """One trial: all its seeds, told to the study."""
    from optuna import TrialPruned

    start = time.monotonic()
    try:
        jobs = returns.setdefault(claim.trial.number, [])
        values = _values(settings, launcher, claim, jobs)
        mean = [math.fsum(column) / len(column) for column in zip(*values, strict=True)]
        ledger.complete(claim, mean, {"values": values, "seconds": time.monotonic() - start, **_spent(jobs)})
    except TrialPruned as error:
        ledger.prune(claim, str(error))
    except Overdue as error:
        ledger.fail(claim, str(error), OVERDUE)
    except Exception as error:
        ledger.fail(claim, f"{type(error).__name__}: {' '.join(str(error).split())}")


def _values(settings: Settings, launcher: Any, claim: Claim, returns: list[JobReturn]) -> list[list[float]]:
    """The objectives of each seed. With a pruner a seed is run after the other, so that a pruned trial ends early."""
    number, seeds = claim.trial.number, settings.seeds or (None,)
    jobs = [_overrides(settings, claim, seed, at == 0) for at, seed in enumerate(seeds)]
    first = number * len(jobs)
    batches = [[job] for job in jobs] if settings.pruner is not None else [jobs]
    found: list[list[float]] = []
    for batch in batches:
        results = launcher.launch(batch, initial_job_idx=first + len(found))
        returns += results
        found += [_objectives(settings, _returned(result)) for result in results]
    return found


def _spent(jobs: Sequence[JobReturn]) -> dict[str, int]:
    """The tokens of a trial's runs, where they say."""
    told = [job.return_value for job in jobs]
    known = [int(each["input_tokens"]) for each in told if isinstance(each, Mapping) and "input_tokens" in each]
    return {"tokens": sum(known)} if known else {}


def _returned(result: Any) -> Any:
    """What a job returned. Raises what it raised, without the launcher's own note of it."""
    if isinstance(error := result._return_value, BaseException):
        raise error
    return result.return_value


def _overrides(settings: Settings, claim: Claim, seed: int | None, reports: bool) -> list[str]:
    own = [*settings.fixed, *claim.overrides, *([] if seed is None else [f"seed={seed}"])]
    if not settings.told:
        return own
    metric = quoted(settings.on[0] if settings.on else "value") if settings.pruner is not None and reports else "null"
    place = f"storage:{quoted(settings.url)},study:{quoted(settings.study)}"
    return [*own, f"++trial={{{place},id:{claim.trial._trial_id},metric:{metric}}}"]


def _objectives(settings: Settings, returned: Any) -> list[float]:
    """What a job returned, as numbers: a number, a tuple, or a dict of which `objective` names the ones that count."""
    if isinstance(returned, Mapping):
        if missing := [name for name in settings.on if not isinstance(returned.get(name), int | float)]:
            raise UserError(f"the run has no {missing[0]}", f"it has {', '.join(sorted(returned))}")
        returned = [returned[name] for name in settings.on]
    values = list(returned) if isinstance(returned, Sequence) and not isinstance(returned, str) else [returned]
    if len(values) != len(settings.directions):
        raise UserError(
            f"{len(values)} objectives for {len(settings.directions)} directions",
            "name them in hydra.sweeper.objective",
        )
    return [float(value) for value in values]


def _ended(settings: Settings, ledger: Ledger, track: Track | None) -> Counts:
    """Write the best trial, or the Pareto front, and say how it went."""
    import yaml

    counts = ledger.counts()
    text = yaml.safe_dump(results(settings, ledger.study, counts), sort_keys=False, allow_unicode=True)
    write_text(settings.folder / RESULTS, text)
    if track is not None and settings.logger is not None:
        track(settings.logger, settings.study, settings.signature, settings.folder, ledger.study)
    say(f"study {settings.study}: {counts.complete} complete, {counts.pruned} pruned, {counts.failed} failed")
    for line in best_lines(ledger.study, settings.on):
        say(line)
    say(str(settings.folder / RESULTS))
    if counts.failed > settings.max_failure_rate * max(1, counts.finished):
        raise UserError(
            f"{counts.failed} of {counts.finished} trials of {settings.study} failed",
            "see their reason, or raise hydra.sweeper.max_failure_rate",
        )
    return counts


def results(settings: Settings, study: Study, counts: Counts) -> dict[str, Any]:
    """`best_params` and `best_value` of one objective, `solutions` (the Pareto front) of several, in Hydra's format."""
    from optuna.trial import TrialState

    head: dict[str, Any] = {"name": "optuna", "study": settings.study, "trials": counts._asdict()}
    if len(settings.directions) > 1:
        return head | {"solutions": [{"params": _chosen(t), "values": list(t.values)} for t in study.best_trials]}
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return head
    best = study.best_trial
    return head | {"best_params": _chosen(best), "best_value": best.value, "best_trial": best.number}


def best_lines(study: Study, names: Sequence[str]) -> list[str]:
    """The best trial, or the Pareto front by its first objective, each with the overrides that make it."""
    from optuna.trial import TrialState

    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return []
    several = len(study.directions) > 1
    found = sorted(study.best_trials, key=lambda trial: trial.values) if several else [study.best_trial]
    head = [f"Pareto front of {' and '.join(names) or 'the objectives'}:"] if several else []
    word = " " if several else "best:"
    return head + [f"{word} trial {t.number}: {_shown(names, t)}  {' '.join(t.user_attrs['overrides'])}" for t in found]


def _shown(names: Sequence[str], trial: FrozenTrial) -> str:
    known = names or [""] * len(trial.values)
    return ", ".join(f"{name} {value:.6g}".strip() for name, value in zip(known, trial.values, strict=True))


def _chosen(trial: FrozenTrial) -> dict[str, str]:
    """The overrides of a trial, as {key: value}."""
    pairs = (text.partition("=") for text in trial.user_attrs["overrides"])
    return {key: value for key, _, value in pairs}
