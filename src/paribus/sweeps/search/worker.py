"""One worker of a search: claims trials, runs them through Hydra's launcher, records how they ended."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
import yaml
from optuna.study import StudyDirection

from paribus.core.config import job_overrides
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.sweeps.launchers.base import Ended, Events, Work, failure_reason
from paribus.sweeps.launchers.local import Slots, machine_slots
from paribus.sweeps.request import SearchRequest
from paribus.sweeps.search.ledger import OVERDUE, OVERRIDES, ClaimedTrial, Ledger, TrialCounts
from paribus.sweeps.search.pruning import PRUNER, UnknownObjective
from paribus.sweeps.search.settings import Settings, try_sampler
from paribus.sweeps.search.status import describe_best, describe_importances, list_complete, status_reader
from paribus.sweeps.search.storage import RENEWED, StudyFile, StudyStorage, open_storage, this_worker
from paribus.sweeps.status import read_live
from paribus.sweeps.sweep import quote

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.plugins.launcher import Launcher
    from optuna import Study
    from optuna.trial import FrozenTrial

SIGNATURE = "signature"
RESULTS = "optimization_results.yaml"  # the name that Hydra's own sweeper uses
POLL = 0.2  # seconds between two looks at the study while other workers have the last trials


class Overdue(Exception):
    """A trial took longer than `trial_timeout`."""


Track = Callable[[Mapping[str, Any], str, str, Path, "Study"], None]  # logger, name, signature, folder, study
Returns = dict[int, list["JobReturn"]]  # {trial number: its jobs, one per seed} of the trials that ran here


def search(
    settings: Settings, launcher: Launcher, returns: Returns | None = None, track: Track | None = None
) -> TrialCounts:
    """Run trials until `n_trials` have finished, together with any other workers of the study.

    Fills `returns`. At the end, `track` reports the study to the tracker if a logger is set.

    Raises UserError if more than `max_failure_rate` of the trials failed, and as `open_study` does.
    """
    ledger = open_study(settings)
    say(
        f"study {settings.study}: {ledger.counts().finished} of {ledger.trials} trials finished, "
        f"sampler seed {settings.seed}, {settings.url}"
    )
    file = StudyFile(settings.url, settings.study, ledger.trials, settings.retries, list(settings.objectives))
    file.write(settings.folder)  # `paribus status` finds the study by it
    with _renew_lease(ledger):
        _Worker(settings, ledger, launcher, {} if returns is None else returns).run()
    counts = ledger.counts()
    text = yaml.safe_dump(_summarize(settings, ledger.study, counts), sort_keys=False, allow_unicode=True)
    write_text(settings.folder / RESULTS, text)
    if track is not None and settings.logger is not None:
        track(settings.logger, settings.study, settings.signature, settings.folder, ledger.study)
    say(f"study {settings.study}: {counts.complete} complete, {counts.pruned} pruned, {counts.failed} failed")
    for describe in (describe_best, describe_importances):
        for line in describe(ledger.study, settings.objectives):
            say(line)
    say(f"results: {settings.folder / RESULTS}")
    if counts.failed > settings.max_failure_rate * max(1, counts.finished):
        raise UserError(
            f"{counts.failed} of {counts.finished} trials of {settings.study} failed",
            "see their reasons above, or raise hydra.sweeper.max_failure_rate",
        )
    return counts


def _summarize(settings: Settings, study: Study, counts: TrialCounts) -> dict[str, Any]:
    """In the format of Hydra's sweeper: `best_params` and `best_value`, or `solutions` for several objectives."""

    def params(trial: FrozenTrial) -> dict[str, str]:
        pairs = (text.partition("=") for text in trial.user_attrs[OVERRIDES])
        return {key: value for key, _, value in pairs}

    head: dict[str, Any] = {"name": "optuna", "study": settings.study, "trials": counts._asdict()}
    if len(settings.directions) > 1:
        solutions = [{"params": params(trial), "values": list(trial.values)} for trial in study.best_trials]
        return head | {"solutions": solutions}
    if not list_complete(study):
        return head
    best = study.best_trial
    return head | {"best_params": params(best), "best_value": best.value, "best_trial": best.number}


def open_study(settings: Settings) -> Ledger:
    """Create or load the study. Raises UserError if the study belongs to a different search, or `resume` forbids it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = StudyStorage(settings.url, settings.study, open_storage(settings.url))
    with storage.mutex():
        directions = [StudyDirection[name.upper()] for name in settings.directions]
        study = optuna.create_study(
            storage=storage.backend, study_name=settings.study, directions=directions, load_if_exists=True
        )
        before = study.user_attrs.get(SIGNATURE)
        if before is not None and before != settings.signature and settings.resume != "force":
            hashes = f"{before}, now {settings.signature}"
            cause = f"study {settings.study} has another search space or base config ({hashes})"
            raise UserError(cause, "give another hydra.sweeper.study_name, or hydra.sweeper.resume=force")
        if settings.resume is False and study.get_trials(deepcopy=False):
            raise UserError(f"study {settings.study} has trials", "remove hydra.sweeper.resume=false to resume it")
        known = {SIGNATURE: settings.signature, "sampler": dict(settings.sampler) | {"seed": settings.seed}}
        if settings.pruner is not None:
            known[PRUNER] = json.dumps(dict(settings.pruner))
        for key, value in known.items():
            if study.user_attrs.get(key) != value:
                study.set_user_attr(key, value)
    return Ledger(
        study, storage, this_worker(), settings.space, settings.build_sampler, settings.trials, settings.retries,
        settings.seed, settings.conditional, settings.ordered,
    )  # fmt: skip


@contextmanager
def _renew_lease(ledger: Ledger) -> Iterator[None]:
    """Renew this worker's lease every few seconds during the block."""
    over = threading.Event()
    ledger.storage.renew(ledger.worker)

    def renew() -> None:
        while not over.wait(RENEWED):
            ledger.storage.renew(ledger.worker)

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raise Overdue inside the block after `seconds`, if this is the main thread, which alone handles signals."""
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


@dataclass
class _Worker:
    settings: Settings
    ledger: Ledger
    launcher: Launcher
    returns: Returns
    unknown: UnknownObjective | None = None  # ends the search

    def run(self) -> None:
        # the basic launcher runs jobs in this very process, where Hydra's state is global
        basic = type(self.launcher).__name__ == "BasicLauncher"
        if basic and self.settings.jobs > 1:
            say("hydra/launcher=basic runs one trial at a time; start the same command again for a second worker")
        if not basic and self.settings.jobs > 1:
            self._run_side_by_side()
            return
        while not self.ledger.over():
            if (claim := self.ledger.claim()) is None:
                time.sleep(POLL)
                continue
            with _alarm(self.settings.timeout):
                self._run_trial(claim)
            if self.unknown is not None:
                raise self.unknown

    def _run_side_by_side(self) -> None:
        """One thread per slot; a free slot claims a trial at once."""
        timeout, changed = self.settings.timeout, threading.Event()
        running: dict[threading.Thread, tuple[ClaimedTrial, float]] = {}

        def work(claim: ClaimedTrial) -> None:
            self._run_trial(claim)
            changed.set()

        while running or not self.ledger.over():
            while len(running) < self.settings.jobs and (claim := self.ledger.claim()) is not None:
                thread = threading.Thread(target=work, args=(claim,), daemon=True)
                running[thread] = (claim, time.monotonic())
                thread.start()
            changed.wait(POLL)
            changed.clear()
            if self.unknown is not None:
                raise self.unknown
            for thread, (claim, start) in list(running.items()):
                overdue = timeout is not None and time.monotonic() - start > timeout and thread.is_alive()
                if overdue:
                    self.ledger.fail(claim, f"over trial_timeout={timeout} s", OVERDUE)
                if overdue or not thread.is_alive():
                    del running[thread]

    def _run_trial(self, claim: ClaimedTrial) -> None:
        start = time.monotonic()
        try:
            jobs = self.returns.setdefault(claim.trial.number, [])
            values = self._run_seeds(claim, jobs)
            mean = [math.fsum(column) / len(column) for column in zip(*values, strict=True)]
            spent: dict[str, Any] = {"values": values, "seconds": time.monotonic() - start}
            returned = [job.return_value for job in jobs]
            reports = [each for each in returned if isinstance(each, Mapping) and "input_tokens" in each]
            if reports:
                spent["tokens"] = sum(int(each["input_tokens"]) for each in reports)
            self.ledger.complete(claim, mean, spent)
        except optuna.TrialPruned as error:
            self.ledger.prune(claim, str(error))
        except Overdue as error:
            self.ledger.fail(claim, str(error), OVERDUE)
        except UnknownObjective as error:
            self.unknown = error
            self.ledger.fail(claim, str(error))
        except Exception as error:
            self.ledger.fail(claim, f"{type(error).__name__}: {' '.join(str(error).split())}")

    def _run_seeds(self, claim: ClaimedTrial, returns: list[JobReturn]) -> list[list[float]]:
        """The objectives of each seed. With a pruner, seeds run one by one, so that a pruned trial stops early."""
        settings = self.settings
        metric = quote((settings.objectives or ("value",))[0]) if settings.pruner is not None else "null"
        place = f"storage:{quote(settings.url)},study:{quote(settings.study)},id:{claim.trial._trial_id}"
        jobs: list[list[str]] = []
        for seed in settings.seeds or (None,):
            overrides = [*settings.fixed, *claim.overrides, *([] if seed is None else [f"seed={seed}"])]
            overrides = job_overrides(overrides) if settings.ours else overrides
            if settings.reports:  # the job of the first seed reports to the pruner
                overrides = [*overrides, f"++trial={{{place},metric:{'null' if jobs else metric}}}"]
            jobs.append(overrides)
        first = claim.trial.number * len(jobs)
        batches = [[job] for job in jobs] if settings.pruner is not None else [jobs]
        values: list[list[float]] = []
        for batch in batches:
            results = self.launcher.launch(batch, initial_job_idx=first + len(values))
            returns += results
            for result in results:
                if isinstance(error := result._return_value, BaseException):
                    raise error  # without the note that Hydra's property prints
                values.append(_read_objectives(settings, result.return_value))
        return values


def _read_objectives(settings: Settings, returned: object) -> list[float]:
    """What a job returned, as numbers: a number, a sequence, or a dict from which `objective` selects."""
    if isinstance(returned, Mapping):
        if missing := [name for name in settings.objectives if not isinstance(returned.get(name), int | float)]:
            raise UnknownObjective(missing[0], returned)
        returned = [returned[name] for name in settings.objectives]
    values: list[Any] = (
        list(returned) if isinstance(returned, Sequence) and not isinstance(returned, str) else [returned]
    )
    if len(values) != len(settings.directions):
        cause = f"{len(values)} objectives for {len(settings.directions)} directions"
        raise UserError(cause, "name them in hydra.sweeper.objective")
    return [float(value) for value in values]


def run_search(request: SearchRequest) -> int:
    """Search with one worker per slot, all on one study. Returns 1 if a worker failed.

    Raises Stopped if the user stops it; the same command resumes the search. Raises UserError as `try_sampler` does.
    """
    try_sampler(request.settings["sampler"], request.settings["direction"])
    read, slots = status_reader(request.folder), machine_slots(sys.maxsize, request.slots)
    search = (sys.executable, "-m", "paribus", "train", "-m", f"search={request.name}", *request.overrides)
    own_threads = any(text.startswith("profile.threads=") for text in request.overrides)
    workers = []
    for number, slot in enumerate(slots, 1):  # each runs trials until the study is complete
        command = search if own_threads else (*search, f"profile.threads={slot.threads}")
        workers.append(Work(f"worker {number}", command, request.folder / f"worker{number}.log"))
    ended: list[Ended] = []
    if sys.stderr.isatty():
        with read_live(read, sys.stderr) as read_again:
            Slots(slots).run(workers, Events(ended=ended.append, idle=read_again))
    else:
        events = Events(lambda begun, place: say(f"▶ {begun.label}, log: {begun.log}"), ended=ended.append)
        Slots(slots).run(workers, events)
    for end in ended:
        if end.status:
            say(f"✗ {end.work.label} failed: {failure_reason(end)} (log: {end.work.log})")
    print(read().text())
    return 1 if any(end.status for end in ended) else 0
