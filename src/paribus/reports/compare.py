"""Two models compared on the same examples, one by one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from paribus.core.checksums import matches
from paribus.core.errors import UserError, suggest
from paribus.integrations import lm_eval
from paribus.integrations.column_kinds import AT
from paribus.integrations.delimited import read as read_table
from paribus.integrations.foreign_records import filter_rows, write_name
from paribus.integrations.numbers import fill, find_percents, has_numbers, is_missing, read_columns
from paribus.integrations.source import ForeignRow, ForeignSource
from paribus.reports.compare_arms import ArmComparison, Scores, compare_arms
from paribus.reports.tables.blocks import format_p
from paribus.reports.tables.markdown import render_grid
from paribus.runs.folder import CONFIG, GOLD, RECORD, RunFolder
from paribus.runs.gold import read_gold
from paribus.runs.record import read_record
from paribus.verdict.statistics import holm, is_number, mcnemar, mean_sd, rounded, summarize, t_test

_KEYS = ("id", "doc_id", "example_id", "example", "index")
_NOT_SCORES = {  # columns of numbers that say nothing about how good a model is
    *_KEYS, "idx", "seed", "label", "labels", "pred", "preds", "prediction", "predictions", "predicted", "target",
    "targets", "gold", "y_true", "y_pred",
}  # fmt: skip
_TEXTS = ("doc_hash", "target_hash")  # lm-eval's, of which each example has one
_MEANING = (
    "n counts examples. The interval says how these two models differ on examples like these, not how two recipes "
    "differ: that takes several seeds of each, and `paribus table` or `paribus judge`."
)

Values = Mapping[str, float]  # {example: its value}


class Answers(NamedTuple):
    """A model's results on each example: {column: {example: value}}; `about`: {column: what the examples are}.

    `numbered`: examples are identified only by their order; `settings`: {column: those of the evaluation}, if known;
    `notes`: on how its numbers are read.
    """

    name: str
    columns: Mapping[str, Values]
    about: Mapping[str, Any]
    numbered: bool = False
    settings: Mapping[str, Mapping[str, Any]] = {}
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairRow:
    """One column of both models. `first`, `second`: their means; `difference` with its 95% t interval over examples.

    `only_first`, `only_second`: how many examples only one of them gets right; None if the values are not 0 and 1.
    `p`: of McNemar's exact test if they are, else of the paired t-test; `p_holm`: among all columns.
    """

    column: str
    n: int
    first: float
    second: float
    difference: float
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None = None
    only_first: int | None = None
    only_second: int | None = None


@dataclass(frozen=True)
class Comparison:
    """Two models on the same examples; `str()` is the table for a terminal."""

    first: str
    second: str
    rows: tuple[PairRow, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        header = ["column", "n", "A", "B", "A - B [95%]", "A alone right", "B alone right", "p"]
        header += ["p (Holm)"] * (len(self.rows) > 1)
        lines = []
        for row in self.rows:
            ends = "" if row.ci_low is None else f" [{row.ci_low:+.4g}, {row.ci_high:+.4g}]"
            means = [f"{row.first:.4g}", f"{row.second:.4g}", f"{row.difference:+.4g}{ends}"]
            alone = ["-" if count is None else str(count) for count in (row.only_first, row.only_second)]
            line = [row.column, str(row.n), *means, *alone, format_p(row.p), format_p(row.p_holm)]
            lines.append(line[: len(header)])
        names = [f"A: {self.first}", f"B: {self.second}", ""]
        return "\n".join([*names, render_grid(header, lines), "", *(f"- {note}" for note in self.notes)]) + "\n"


@dataclass(frozen=True)
class FileOptions:
    """How files are read. `key`: the column that identifies the examples, if it is not one of the usual ones.

    `seed`: the column of the seed, if a file has the rows of several runs. `where`: {column: value} of the rows that
    count; `decimal`: the decimal mark, if the numbers do not tell it.
    """

    key: str | None = None
    seed: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None


def compare_runs(
    first: str, second: str, metrics: Sequence[str] = (), options: FileOptions = FileOptions()
) -> Comparison | ArmComparison:
    """Compare two finished runs, two files with one row per example, or two folders of samples of lm-eval.

    If both are several runs (the folder of an arm, or a file with a column of the seed), compare the arms over seeds
    and examples.

    For a run: whether it gave each right answer (`TASK/right`) and with which probability (`TASK/gold`), as means over
    its fine-tunings. For a file: its columns of numbers, or `metrics`.

    Raises UserError if one is not finished or has no such answers, or if the examples or the settings of their
    evaluation are not the same.
    """
    ours, theirs = (read_seeds(name, metrics, options) for name in (first, second))
    if len(ours) > 1 or len(theirs) > 1:
        return _compare_seeds(first, second, ours, theirs, metrics)
    one, other = (next(iter(seeds.values())) for seeds in (ours, theirs))
    wanted = _choose_columns(first, second, one.columns, other.columns, metrics)
    rows = [_compare_column(column, one, other) for column in wanted]
    notes = dict.fromkeys((*one.notes, *other.notes, *_note_choice(wanted, metrics)))
    adjusted = holm([1.0 if row.p is None else row.p for row in rows])
    rows = [replace(row, p_holm=None if row.p is None else rounded(p)) for row, p in zip(rows, adjusted, strict=True)]
    return Comparison(first, second, tuple(rows), (*notes, *_note_unpaired(wanted, one, other), _MEANING))


def _choose_columns(
    first: str, second: str, one: Collection[str], other: Collection[str], metrics: Sequence[str]
) -> list[str]:
    """The columns that were asked for, or all that both have. Raises UserError for one that either lacks."""
    shared = [column for column in one if column in other]
    wanted = list(metrics) or shared
    for column in wanted:
        if column not in shared:
            filtered = [name for name in shared if name.partition(AT)[0] == column]
            mend = f"write {' or '.join(filtered)}" if filtered else suggest(column, shared)
            raise UserError(f"'{column}' has no numbers in both {first} and {second}", mend)
    if not wanted:
        raise UserError(
            f"{first} and {second} have no column of numbers in common",
            "name the same columns in both, or choose with --metric",
        )
    return wanted


def _compare_seeds(
    first: str, second: str, one: Mapping[str, Answers], other: Mapping[str, Answers], metrics: Sequence[str]
) -> ArmComparison:
    start = next(iter(one.values()))
    every = [*one.values(), *other.values()]
    columns = [column for column in start.columns if all(column in answers.columns for answers in every)]
    wanted = _choose_columns(first, second, columns, columns, metrics)
    for answers in every[1:]:
        for column in wanted:
            _require_same_examples(column, start, answers)
    scores = {
        column: tuple({seed: answers.columns[column] for seed, answers in arm.items()} for arm in (one, other))
        for column in wanted
    }
    notes = dict.fromkeys(note for answers in every for note in answers.notes)
    notes |= dict.fromkeys(_note_choice(wanted, metrics))
    return compare_arms(first, second, cast("dict[str, tuple[Scores, Scores]]", scores), tuple(notes))


def _note_choice(columns: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """Which columns share the error rate, if nobody chose them."""
    if metrics or len(columns) < 2:
        return []
    return [f"Compared, since both have them: {', '.join(columns)}; --metric chooses, and fewer share the error rate."]


def read_seeds(name: str, metrics: Sequence[str], options: FileOptions) -> dict[str, Answers]:
    """{seed: its answers} of the finished runs of an arm's folder, or of a file with a column of the seed; else one.

    Raises UserError as `compare_runs`.
    """
    path = Path(name).expanduser()
    folders = sorted(record.parent for record in path.glob(f"seed*/{RECORD}"))
    if folders:
        by_seed = {folder.name.removeprefix("seed").partition("-")[0]: folder for folder in folders}
        if len(by_seed) < len(folders):
            raise UserError(f"{name} has several runs of one seed", "give single runs, or move the others away")
        return {seed: _read_run(str(folder), folder) for seed, folder in by_seed.items()}
    if options.seed is None or not path.is_file():
        return {"": read_answers(name, metrics, options)}
    source = read_table(name)
    if options.seed not in source.columns:
        raise UserError(f"{name} has no column '{options.seed}'", suggest(options.seed, source.columns))
    seeds = dict.fromkeys(write_name(row.values.get(options.seed)) for row in filter_rows(source, options.where))
    runs = dict[str, Answers]()
    for seed in seeds:
        answers = read_answers(name, metrics, replace(options, where={**options.where, options.seed: seed}))
        columns = {column: values for column, values in answers.columns.items() if column != options.seed}
        runs[seed] = answers._replace(columns=columns)
    return runs


def read_answers(name: str, metrics: Sequence[str], options: FileOptions) -> Answers:
    """The answers of a run, given by its folder or a file in it, or of a file, or of the samples in a folder.

    Raises UserError as `compare_runs`.
    """
    path = Path(name).expanduser()
    path = path.parent if path.name in (CONFIG, GOLD, RECORD) else path
    if path.is_file():
        return _read_file(path, metrics, options)
    if path.is_dir() and (files := sorted(path.glob(lm_eval.SAMPLES))):
        return _read_folder(name, files, metrics, options)
    return _read_run(name, _find_run(path))


def _find_run(path: Path) -> Path:
    """The folder of a run; its signature may be left out."""
    folders = [path] if path.is_dir() else sorted(path.parent.glob(f"{path.name}-*"))
    if len(folders) == 1:
        return folders[0]
    mend = f"give one of {', '.join(map(str, folders))}" if folders else "give a run's folder, or a file of examples"
    raise UserError(f"{path} is {'several runs' if folders else 'neither a run nor a file'}", mend)


def _read_run(name: str, folder: Path) -> Answers:
    record, why = read_record(folder / RECORD)
    if record is None or not record.done:
        state = why if record is None else record.status
        raise UserError(f"{folder} is not a finished run ({state})", "give the folder of one, such as STUDY/ARM/seed0")
    if not matches(folder / GOLD, (record.gold or {}).get("hash")):
        raise UserError(f"{folder / GOLD} is damaged or of another run", "copy it again, or run the same command again")
    values: dict[str, list[Sequence[float]]] = defaultdict(list)
    for label, answers in read_gold(folder).items():
        task = label.rpartition("/seed")[0]
        values[f"{task}/right"].append(answers.right.astype(float).tolist())
        values[f"{task}/gold"].append(answers.gold.astype(float).tolist())
    if not values:
        raise UserError(f"{folder} has no answers to single examples", "only tasks with classes keep them (gold.npz)")
    tasks = (RunFolder(folder).read_config() or {}).get("tasks") or {}
    columns = {
        column: {str(at): math.fsum(one) / len(one) for at, one in enumerate(zip(*runs, strict=True))}
        for column, runs in sorted(values.items(), key=lambda item: (not item[0].endswith("/right"), item[0]))
    }
    return Answers(name, columns, {column: tasks.get(column.partition("/")[0]) for column in columns}, True)


def _read_folder(name: str, files: Sequence[Path], metrics: Sequence[str], options: FileOptions) -> Answers:
    """The columns of all tasks as `TASK/METRIC`. Raises UserError for a task of which there are several files."""
    columns: dict[str, Values] = {}
    about, settings, notes = dict[str, Any](), dict[str, Any](), list[str]()
    for path in files:
        samples = lm_eval.read_samples(path)
        task = samples.task if samples else path.name
        own = [column.removeprefix(f"{task}/") for column in metrics]
        answers = _read_file(path, own, options)
        if any(f"{task}/{column}" in columns for column in answers.columns):
            raise UserError(f"{name} has several files of {task}", f"give one, such as {path}")
        columns |= {f"{task}/{column}": values for column, values in answers.columns.items()}
        about |= {f"{task}/{column}": texts for column, texts in answers.about.items()}
        settings |= {f"{task}/{column}": given for column, given in answers.settings.items()}
        notes += [f"{task}/{note}" for note in answers.notes]
    return Answers(name, columns, about, settings=settings, notes=tuple(notes))


def _read_file(path: Path, metrics: Sequence[str], options: FileOptions) -> Answers:
    """The columns of a file; those of several filters of lm-eval are `METRIC@FILTER`."""
    source = read_table(str(path))
    rows = tuple(filter_rows(source, options.where))
    usual = [options.key] if options.key else _KEYS
    keys = [one for one in usual if one in source.columns]
    if not keys:
        wanted = (
            f"column '{options.key}'" if options.key else f"column that tells its examples apart ({', '.join(_KEYS)})"
        )
        raise UserError(f"{path} has no {wanted}", f"give --id; its columns: {', '.join(source.columns[:12])}")
    columns: dict[str, Values] = {}
    about, notes = dict[str, Any](), list[str]()
    listed = any(isinstance(row.values.get("metrics"), list) for row in rows)
    filters = lm_eval.split_filters(rows) if listed else {lm_eval.NO_FILTER: rows}
    for kind, part in filters.items():
        suffix = f"{AT}{kind}"
        named = len(filters) > 1 or any(column.endswith(suffix) for column in metrics)
        suffix = suffix if named and kind != lm_eval.NO_FILTER else ""
        examples = _name_examples(str(path), part, keys[0])
        wanted_here = [column.removesuffix(suffix) for column in metrics]
        found, said = _read_values(source, examples, wanted_here, keys[0], options.decimal)
        columns |= {column + suffix: values for column, values in found.items()}
        texts = {example: [row.values.get(part) for part in _TEXTS] for example, row in examples.items()}
        about |= {column + suffix: texts for column in found}
        notes += said
    samples = lm_eval.read_samples(path) if listed else None
    settings = dict.fromkeys(columns, samples.settings if samples else {})
    return Answers(str(path), columns, about, settings=settings, notes=tuple(dict.fromkeys(notes)))


def _name_examples(name: str, rows: Sequence[ForeignRow], key: str) -> dict[str, ForeignRow]:
    examples = {write_name(row.values.get(key)): row for row in rows}
    if len(examples) < len(rows):
        mend = "keep one row per example, choose rows with --where COLUMN=VALUE, or give --id or --seed"
        raise UserError(f"{name} has several rows with the same {key}", mend)
    return examples


def _read_values(
    source: ForeignSource, examples: Mapping[str, ForeignRow], metrics: Sequence[str], key: str, decimal: str | None
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """{column: {example: number}} of the columns that were asked for or, if none were, of all that hold numbers."""
    rows: list[ForeignRow] = list(examples.values())
    notes: list[str] = []
    wanted = [column for column in metrics if column in source.columns] or _find_measured(rows, key)
    known = read_columns(rows, dict.fromkeys(wanted), source, decimal, notes)
    percents = find_percents(rows, known, notes)
    filled = {example: fill(row, known, percents) for example, row in examples.items()}
    columns = {}
    for column in known:
        numbers = {example: row.values.get(column) for example, row in filled.items()}
        if values := {example: number for example, number in numbers.items() if is_number(number)}:
            columns[column] = values
            empty = [row.place for example, row in examples.items() if example not in values]
            if empty:
                more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
                notes.append(f"{column} has no usable number in {empty[0]}{more} of {source.name}: left out.")
    return columns, notes


def _find_measured(rows: Sequence[ForeignRow], key: str) -> list[str]:
    """The metrics that lm-eval lists in each row, or the columns of scores in which every cell is a number or empty."""
    if listed := list(lm_eval.list_metrics(tuple(rows))):
        return listed
    columns = dict.fromkeys(column for row in rows for column in row.values if column != key)
    scores = [column for column in columns if column.lower() not in _NOT_SCORES]
    cells = {column: [row.values.get(column) for row in rows] for column in scores}
    return [column for column in scores if has_numbers([cell for cell in cells[column] if not is_missing(cell)])]


def _compare_column(column: str, one: Answers, other: Answers) -> PairRow:
    first, second = one.columns[column], other.columns[column]
    _require_same_examples(column, one, other)
    _require_same_settings(column, one, other)
    keys = [key for key in first if key in second]
    if not keys:
        raise UserError(
            f"{one.name} and {other.name} share no example of {column}", "give files about the same examples"
        )
    pairs = [(first[key], second[key]) for key in keys]
    differences = [a - b for a, b in pairs]
    binary = all(value in (0.0, 1.0) for pair in pairs for value in pair)
    alone = (sum(d > 0 for d in differences), sum(d < 0 for d in differences)) if binary else None
    summary = summarize(differences)
    assert summary.mean is not None
    return PairRow(
        column=column,
        n=len(keys),
        first=rounded(mean_sd([a for a, _ in pairs])[0]),
        second=rounded(mean_sd([b for _, b in pairs])[0]),
        difference=summary.mean,
        ci_low=summary.ci_low,
        ci_high=summary.ci_high,
        p=mcnemar(*alone) if alone else t_test(differences),
        only_first=alone[0] if alone else None,
        only_second=alone[1] if alone else None,
    )


def _require_same_examples(column: str, one: Answers, other: Answers) -> None:
    """Raises UserError if the examples differ, according to the runs' tasks or the files' hashes."""
    first, second = one.about.get(column), other.about.get(column)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        odd = [key for key in first if key in second and first[key] != second[key]]
        if odd:
            mend = "compare runs with the same tasks on the same data"
            raise UserError(f"{one.name} and {other.name} have different examples: {column} differs in {odd[0]}", mend)


def _require_same_settings(column: str, one: Answers, other: Answers) -> None:
    """Raises UserError if the results beside the answers say that they were evaluated with different settings."""
    first, second = one.settings.get(column, {}), other.settings.get(column, {})
    for key in first:
        if key in second and first[key] != second[key]:
            cause = f"{column} has {key} {first[key]} in {one.name} and {second[key]} in {other.name}"
            raise UserError(cause, "evaluate both in the same way")


def _note_unpaired(columns: Sequence[str], one: Answers, other: Answers) -> list[str]:
    notes = []
    for column in columns:
        alone = len(one.columns[column].keys() ^ other.columns[column].keys())
        if alone and (one.numbered or other.numbered):
            cause = f"{one.name} and {other.name} have different numbers of examples of {column}"
            raise UserError(cause, "compare them on the same data")
        left = f"{alone} examples are" if alone > 1 else "1 example is"
        notes += [f"{column}: {left} left out, since only one of the two has a number."] * bool(alone)
    return notes
