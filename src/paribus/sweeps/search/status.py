"""The trials of a search as a table: state, objectives, tokens, time, parameters; the best ones and the time left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import optuna

from paribus.core.console import duration
from paribus.core.errors import UserError
from paribus.sweeps.search.findings import describe_importances, name_objectives
from paribus.sweeps.search.ledger import KIND, OVERRIDES, REASON, RETRY_OF, VOID, WORKER, Counts, count_trials
from paribus.sweeps.search.storage import STUDY, Place, local_file, open_storage
from paribus.sweeps.search.worker import best_lines
from paribus.sweeps.status import MARKS, Sheet

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

STATES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed", "WAITING": "waiting", "RUNNING": "running"}
NOTHING = Counts(0, 0, 0, 0)


class Row(NamedTuple):
    """One trial. `values`: its objectives, or the last reported one; `seconds`: so far; `note`: why it failed."""

    number: int
    state: str
    values: Sequence[float]
    tokens: int | None
    seconds: float | None
    parameters: Mapping[str, str]
    note: str


@dataclass
class TrialBoard(Sheet):
    """`trials`: how many should finish; `counts`: those that count towards them; `best`: lines about the best ones."""

    title: str
    trials: int
    objectives: Sequence[str]
    rows: Sequence[Row] = ()
    counts: Counts = NOTHING
    best: Sequence[str] = field(default_factory=list)

    def count(self, *states: str) -> int:
        return sum(row.state in states for row in self.rows)

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """One row per trial; the columns of its parameters come last."""
        keys = list(dict.fromkeys(key for row in self.rows for key in row.parameters))
        noted = ["note"] if any(row.note for row in self.rows) else []
        header = ["trial", "state", *self.objectives, "tokens", "time", *keys, *noted]
        return header, [_cells(row, len(self.objectives), keys, bool(noted)) for row in self.rows]

    def below(self) -> list[str]:
        return [self.summary(), *self.best]

    def summary(self) -> str:
        return self.summarize(self.counts.finished, self.trials, "pruned", "failed", "running", "stale")

    def left(self) -> float | None:
        over = [row.seconds for row in self.rows if row.seconds is not None and row.state in ("done", "pruned")]
        if not over:
            return None
        mean, running = sum(over) / len(over), [row for row in self.rows if row.state == "running"]
        begun = sum(min(1.0, (row.seconds or 0.0) / mean) for row in running) if mean else 0.0
        return mean * max(0.0, self.trials - self.counts.finished - begun) / max(1, len(running))


def watch(folder: Path) -> Callable[[], TrialBoard]:
    """A function that reads the board of the study in a folder. It raises UserError if the storage cannot be opened."""
    opened: list[tuple[_Known, Study, Place]] = []
    ranked: dict[int, list[str]] = {}

    def look() -> TrialBoard:
        if not opened:
            if (known := _read_known(folder)) is None:
                return TrialBoard(f"search {folder}: not started", 0, ())
            opened.append((known, *_open(known)))
        board, (known, study, _) = _board(folder, *opened[0]), opened[0]
        if (done := board.count("done")) not in ranked:  # they take a moment, and a live board is drawn often
            ranked[done] = describe_importances(study, known.objective)
        return replace(board, best=[*board.best, *ranked[done]])

    return look


class _Known(NamedTuple):
    """The content of STUDY."""

    storage: str
    study: str
    trials: int
    retries: int
    objective: list[str]


def _read_known(folder: Path) -> _Known | None:
    try:
        return _Known(**json.loads((folder / STUDY).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder / STUDY} cannot be read", "start the search again to rewrite it") from error


def _open(known: _Known) -> tuple[Study, Place]:
    """Raises UserError if the storage cannot be opened or does not hold the study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if (file := local_file(known.storage)) is not None and not file.is_file():
        raise UserError(f"{file}, which holds the search, does not exist", "run this in the folder of the search")
    storage = open_storage(known.storage)
    try:
        return optuna.load_study(study_name=known.study, storage=storage), Place(known.storage, known.study, storage)
    except KeyError as error:
        raise UserError(f"{known.storage} holds no search {known.study}", "start the search again") from error


def open_search(folder: Path) -> tuple[TrialBoard, Study]:
    """The trials of the search in a folder, and its study.

    Raises UserError if its storage cannot be opened.
    """
    known = _read_known(folder)
    if known is None:
        raise UserError(f"there is no search in {folder}", "give the folder that holds its study.json")
    opened = _open(known)
    return _board(folder, known, *opened), opened[0]


def _board(folder: Path, known: _Known, study: Study, place: Place) -> TrialBoard:
    found = study.get_trials(deepcopy=False)
    names = name_objectives(study, known.objective)
    rows = [_row(trial, place) for trial in found if trial.user_attrs.get(KIND) != VOID]
    title = f"search {folder.name.removesuffix('.search')} ({known.study})"
    best = best_lines(study, known.objective)
    return TrialBoard(title, known.trials, names, rows, count_trials(found, known.retries), best)


def _row(trial: FrozenTrial, place: Place) -> Row:
    kept, state = trial.user_attrs, STATES[trial.state.name]
    if state == "running" and WORKER in kept and not place.alive(kept[WORKER]):
        state = "stale"
    values = list(trial.values or [trial.intermediate_values[step] for step in sorted(trial.intermediate_values)[-1:]])
    pairs = (text.partition("=") for text in kept.get(OVERRIDES, []))
    note = str(kept.get(REASON, "")) if state in ("failed", "pruned") else ""
    again = [f"retry of {kept[RETRY_OF]}"] if RETRY_OF in kept else []
    note = "; ".join([*again, *([note] if note else [])])
    return Row(trial.number, state, values, kept.get("tokens"), _seconds(trial), {k: v for k, _, v in pairs}, note)


def _seconds(trial: FrozenTrial) -> float | None:
    if trial.datetime_start is None:
        return None
    return ((trial.datetime_complete or datetime.now()) - trial.datetime_start).total_seconds()


def _cells(row: Row, objectives: int, keys: Sequence[str], noted: bool) -> list[str]:
    values = [f"{value:.4g}" for value in row.values]
    tokens = "" if row.tokens is None else f"{row.tokens:,}"
    time = "" if row.seconds is None else duration(row.seconds)
    own = [row.parameters.get(key, "") for key in keys]
    padded = [*values, *[""] * (objectives - len(values))]
    state = f"{MARKS[row.state]} {row.state}"
    return [str(row.number), state, *padded, tokens, time, *own, *([row.note[:60]] if noted else [])]
