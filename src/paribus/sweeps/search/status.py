"""The trials of a search as a table: state, objectives, tokens, time, parameters; the best ones and the time left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import optuna

from paribus.core.console import duration
from paribus.core.errors import UserError
from paribus.sweeps.search.findings import describe_best, describe_importances, name_objectives
from paribus.sweeps.search.ledger import KIND, OVERRIDES, REASON, RETRY_OF, VOID, WORKER, TrialCounts, count_trials
from paribus.sweeps.search.storage import StudyFile, StudyStorage, local_file, open_storage
from paribus.sweeps.status_table import MARKS, StatusTable

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

STATES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed", "WAITING": "waiting", "RUNNING": "running"}
NO_TRIALS = TrialCounts(0, 0, 0, 0)


class TrialRow(NamedTuple):
    """One trial. `values`: its objectives, or the last reported one; `seconds`: so far; `note`: why it failed."""

    number: int
    state: str
    values: Sequence[float]
    tokens: int | None
    seconds: float | None
    parameters: Mapping[str, str]
    note: str


@dataclass
class SearchStatus(StatusTable):
    """`trials`: how many should finish; `counts`: those that count towards them; `best`: lines about the best ones."""

    title: str
    trials: int
    objectives: Sequence[str]
    rows: Sequence[TrialRow] = ()
    counts: TrialCounts = NO_TRIALS
    best: Sequence[str] = field(default_factory=list)

    def count(self, *states: str) -> int:
        return sum(row.state in states for row in self.rows)

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """One row per trial; the columns of its parameters come last."""
        keys = list(dict.fromkeys(key for row in self.rows for key in row.parameters))
        noted = any(row.note for row in self.rows)
        header = ["trial", "state", *self.objectives, "tokens", "time", *keys, *(["note"] if noted else [])]
        lines = []
        for row in self.rows:
            values = [f"{value:.4g}" for value in row.values]
            lines.append([
                str(row.number),
                f"{MARKS[row.state]} {row.state}",
                *values,
                *[""] * (len(self.objectives) - len(values)),
                "" if row.tokens is None else f"{row.tokens:,}",
                "" if row.seconds is None else duration(row.seconds),
                *(row.parameters.get(key, "") for key in keys),
                *([row.note[:60]] if noted else []),
            ])  # fmt: skip
        return header, lines

    def below(self) -> list[str]:
        return [self.summary(), *self.best]

    def summary(self) -> str:
        return self.summarize(self.counts.finished, self.trials, "pruned", "failed", "running", "stale")

    def seconds_left(self) -> float | None:
        ended = [row.seconds for row in self.rows if row.seconds is not None and row.state in ("done", "pruned")]
        if not ended:
            return None
        mean, running = sum(ended) / len(ended), [row for row in self.rows if row.state == "running"]
        begun = sum(min(1.0, (row.seconds or 0.0) / mean) for row in running) if mean else 0.0
        return mean * max(0.0, self.trials - self.counts.finished - begun) / max(1, len(running))


def status_reader(folder: Path) -> Callable[[], SearchStatus]:
    """A function that reads the trials of the search in a folder, which it opens once. It raises UserError if the
    storage cannot be opened.
    """
    opened: list[_OpenStudy] = []
    importances: dict[int, list[str]] = {}

    def read() -> SearchStatus:
        if not opened:
            if (file := StudyFile.read(folder)) is None:
                return SearchStatus(f"search {folder}: not started", 0, ())
            opened.append(_open(file))
        status = _read_status(folder, opened[0])
        if (done := status.count("done")) not in importances:  # they take a moment, and a live table is drawn often
            importances[done] = describe_importances(opened[0].study, opened[0].file.objective)
        return replace(status, best=[*status.best, *importances[done]])

    return read


def open_search(folder: Path) -> tuple[SearchStatus, Study]:
    """The trials of the search in a folder, and its study.

    Raises UserError if its storage cannot be opened.
    """
    file = StudyFile.read(folder)
    if file is None:
        raise UserError(f"there is no search in {folder}", "give the folder that holds its study.json")
    opened = _open(file)
    return _read_status(folder, opened), opened.study


class _OpenStudy(NamedTuple):
    file: StudyFile
    study: Study
    storage: StudyStorage


def _open(file: StudyFile) -> _OpenStudy:
    """Raises UserError if the storage cannot be opened or does not hold the study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if (path := local_file(file.storage)) is not None and not path.is_file():
        raise UserError(f"{path}, which holds the search, does not exist", "run this in the folder of the search")
    backend = open_storage(file.storage)
    try:
        study = optuna.load_study(study_name=file.study, storage=backend)
    except KeyError as error:
        raise UserError(f"{file.storage} holds no search {file.study}", "start the search again") from error
    return _OpenStudy(file, study, StudyStorage(file.storage, file.study, backend))


def _read_status(folder: Path, opened: _OpenStudy) -> SearchStatus:
    file, study, storage = opened
    trials = study.get_trials(deepcopy=False)
    return SearchStatus(
        f"search {folder.name.removesuffix('.search')} ({file.study})",
        file.trials,
        name_objectives(study, file.objective),
        [_read_row(trial, storage) for trial in trials if trial.user_attrs.get(KIND) != VOID],
        count_trials(trials, file.retries),
        describe_best(study, file.objective),
    )


def _read_row(trial: FrozenTrial, storage: StudyStorage) -> TrialRow:
    attributes, state = trial.user_attrs, STATES[trial.state.name]
    if state == "running" and WORKER in attributes and not storage.alive(attributes[WORKER]):
        state = "stale"
    values = list(trial.values or [trial.intermediate_values[step] for step in sorted(trial.intermediate_values)[-1:]])
    seconds = None
    if trial.datetime_start is not None:
        seconds = ((trial.datetime_complete or datetime.now()) - trial.datetime_start).total_seconds()
    pairs = (text.partition("=") for text in attributes.get(OVERRIDES, []))
    parameters = {key: value for key, _, value in pairs}
    notes = [f"retry of {attributes[RETRY_OF]}"] if RETRY_OF in attributes else []
    if state in ("failed", "pruned") and (reason := str(attributes.get(REASON, ""))):
        notes.append(reason)
    return TrialRow(trial.number, state, values, attributes.get("tokens"), seconds, parameters, "; ".join(notes))
