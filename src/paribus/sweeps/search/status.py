"""The trials of a search as a table, and what it has found: the best trials, and which parameters matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import optuna

from paribus.core.console import duration
from paribus.core.errors import UserError
from paribus.sweeps.search.ledger import KIND, OVERRIDES, REASON, RETRY_OF, VOID, WORKER, TrialCounts, count_trials
from paribus.sweeps.search.storage import StudyFile, StudyStorage, local_file, open_storage
from paribus.sweeps.status import MARKS, StatusTable

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

STATES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed", "WAITING": "waiting", "RUNNING": "running"}
NO_TRIALS = TrialCounts(0, 0, 0, 0)


def describe_best(study: Study, names: Sequence[str]) -> list[str]:
    """A line with values and overrides: the best trial, or the Pareto front in the order of its first objective."""
    if not list_complete(study):
        return []
    if len(study.directions) == 1:
        best, lines, head = [study.best_trial], list[str](), "best:"
    else:
        best = sorted(study.best_trials, key=lambda trial: trial.values)
        lines, head = [f"Pareto front of {' and '.join(names) or 'the objectives'}:"], " "
    for trial in best:
        pairs = zip(names or [""] * len(trial.values), trial.values, strict=True)
        values = ", ".join(f"{name} {value:.6g}".strip() for name, value in pairs)
        lines.append(f"{head} trial {trial.number}: {values}  {' '.join(trial.user_attrs['overrides'])}")
    return lines


def describe_importances(study: Study, names: Sequence[str]) -> list[str]:
    """A line for each objective, such as `importance for mlm_loss: optimizer.lr 82%, masking.rate 18%`."""
    ranked = {name: rank_importances(study, at) for at, name in enumerate(name_objectives(study, names))}
    return [
        f"importance for {name}: {', '.join(f'{key} {share:.0%}' for key, share in shares.items())}"
        for name, shares in ranked.items()
        if shares
    ]


def name_objectives(study: Study, names: Sequence[str]) -> Sequence[str]:
    """The names of a study's objectives; `value`, `value 2`, ... if they have none."""
    return names or ["value", *(f"value {at}" for at in range(2, len(study.directions) + 1))]


def rank_importances(study: Study, objective: int = 0) -> dict[str, float]:
    """{parameter: its share of the variance of an objective}; empty if there are too few trials."""
    import optuna

    trials = list_complete(study)
    if len(trials) < 2 or len({trial.values[objective] for trial in trials}) < 2:
        return {}
    try:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        importances = optuna.importance.get_param_importances(
            study, evaluator=evaluator, target=lambda trial: float(trial.values[objective])
        )
    except (ValueError, RuntimeError):  # no parameter that all trials share
        return {}
    return {name: float(share) for name, share in importances.items()}


def list_complete(study: Study) -> list[FrozenTrial]:
    """The trials that ended with values."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def list_history(study: Study) -> list[tuple[int, float, float]]:
    """(trial, its value, the best so far) of the trials that ended with one."""
    better = min if study.directions[0].name == "MINIMIZE" else max
    rows: list[tuple[int, float, float]] = []
    for trial in sorted(list_complete(study), key=lambda trial: trial.number):
        value = float(trial.values[0])
        rows.append((trial.number, value, better(value, rows[-1][2]) if rows else value))
    return rows


def list_pareto(study: Study) -> list[tuple[int, float, float, bool]]:
    """(trial, first and second value, whether no other trial is better in all objectives)."""
    front = {trial.number for trial in study.best_trials}
    points = [(trial.number, float(trial.values[0]), float(trial.values[1])) for trial in list_complete(study)]
    return [(*point, point[0] in front) for point in points]


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
    opened: tuple[StudyFile, Study, StudyStorage] | None = None
    importances: dict[int, list[str]] = {}

    def read() -> SearchStatus:
        nonlocal opened
        if opened is None:
            if (written := StudyFile.read(folder)) is None:
                return SearchStatus(f"search {folder}: not started", 0, ())
            opened = _open(written)
        file, study, _ = opened
        status = _read_status(folder, *opened)
        if (done := status.count("done")) not in importances:  # they take a moment, and a live table is drawn often
            importances[done] = describe_importances(study, file.objective)
        return replace(status, best=[*status.best, *importances[done]])

    return read


def open_search(folder: Path) -> tuple[SearchStatus, Study]:
    """The trials of the search in a folder, and its study.

    Raises UserError if its storage cannot be opened.
    """
    file = StudyFile.read(folder)
    if file is None:
        raise UserError(f"there is no search in {folder}", "give the folder that holds its study.json")
    file, study, storage = _open(file)
    return _read_status(folder, file, study, storage), study


def _open(file: StudyFile) -> tuple[StudyFile, Study, StudyStorage]:
    """What the file of a search names. Raises UserError if the storage cannot be opened or does not hold the study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if (path := local_file(file.storage)) is not None and not path.is_file():
        raise UserError(f"{path}, which holds the search, does not exist", "run this in the folder of the search")
    backend = open_storage(file.storage)
    try:
        study = optuna.load_study(study_name=file.study, storage=backend)
    except KeyError as error:
        raise UserError(f"{file.storage} holds no search {file.study}", "start the search again") from error
    return file, study, StudyStorage(file.storage, file.study, backend)


def _read_status(folder: Path, file: StudyFile, study: Study, storage: StudyStorage) -> SearchStatus:
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
