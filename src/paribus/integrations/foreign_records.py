"""Foreign rows as the records that tables read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from paribus.core.errors import UserError, suggest
from paribus.integrations.source import DONE, ForeignRow, ForeignSource
from paribus.runs.record import Record
from paribus.verdict.metrics import MEAN, metric
from paribus.verdict.statistics import is_number

_MISSING = ("", "na", "n/a", "nan", "none", "null", "-")
_ANSWERS = {"true": 1.0, "false": 0.0}
_UNNAMED = re.compile(r"[^\w.+-]+")  # what a claim cannot hold in the name of an arm


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What to judge.

    Args:
        arm: the columns whose values together name an arm; seed: that of the seed.
        metrics: columns, or metrics such as `acc` for `TASK/acc` of every task, or `mean` for the mean over these.
        claims: an arm whose name has spaces or other signs is quoted.
        lower, higher: metrics for which lower, or higher, is better, whatever their names suggest.
        step: the column of the step; the last row of each run counts.
        where: {column: value} of the rows that count.
        pattern: reads columns off the name of each run, such as `{arm}-s{seed}`.
    """

    metrics: tuple[str, ...]
    baseline: str
    claims: tuple[str, ...] = ()
    arm: tuple[str, ...] = ("arm",)
    seed: str = "seed"
    lower: tuple[str, ...] = ()
    higher: tuple[str, ...] = ()
    step: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    pattern: str | None = None


class ForeignRuns(NamedTuple):
    """Records of a study, its arms (also those whose runs were all left out), its columns, and notes on what was left
    out or renumbered.
    """

    records: tuple[Record, ...]
    arms: tuple[str, ...]
    columns: tuple[str, ...]
    notes: tuple[str, ...]


def name_arm(text: str) -> str:
    """An arm's name as claims and tables write it."""
    return _UNNAMED.sub("_", text.strip())


def collect_runs(source: ForeignSource, options: JudgeOptions, study: str) -> ForeignRuns:
    """One record per arm and seed.

    Parts of a run are put together. A run with contradicting rows is left out; so is a row without arm or seed. Raises
    UserError for columns that no row has, and if nothing remains.
    """
    notes: list[str] = []
    source = _filter_rows(replace(source, rows=read_names(source, options, notes)), options.where)
    known = source.columns
    for option, names in (("arm", options.arm), ("seed", (options.seed,)), ("step", filter(None, (options.step,)))):
        for column in names:
            _require(column, known, source.name, f"--{option} COLUMN names another one; ")
    columns = find_columns(options.metrics, known, source)
    if left := [column for column in known if source.parts.get(column) in columns and column not in columns]:
        more = f" and {len(left) - 1} more parts of groups" if len(left) > 1 else ""
        part = f"{left[0]}, a part of {source.parts[left[0]]}{more}"
        notes.append(f"No column of their own: {part}; --metric takes the name.")
    measured = tuple(column for column in columns if column in known)
    groups = _group_rows(source, options, notes)
    made = [_make_record(study, arm, seed, group, options, measured, notes) for (arm, seed), group in groups.items()]
    records = tuple(record for record in made if record is not None)
    if measured and not any(is_number(value) for record in records for value in record.metrics.values()):
        raise UserError(f"no run of {source.name} has a number in {', '.join(columns)}", " ".join(notes[:3]))
    return ForeignRuns(records, tuple(dict.fromkeys(arm for arm, _ in groups)), columns, tuple(notes))


def read_names(source: ForeignSource, options: JudgeOptions, notes: list[str]) -> list[ForeignRow]:
    """The rows with what their names say; those whose names do not fit the pattern are left out and noted."""
    if options.pattern is None:
        return list(source.rows)
    pattern, rows, odd = _read_pattern(options.pattern, options.seed), [], []
    for row in source.rows:
        if match := pattern.fullmatch(row.name):
            rows.append(ForeignRow(row.place, {**row.values, **match.groupdict()}, row.name, row.status))
        else:
            odd.append(row.name or row.place)
    if not rows:
        raise UserError(f"no name in {source.name} matches {options.pattern}", f"the first is '{odd[0]}'")
    if odd:
        notes.append(f"Left out, because their names do not match {options.pattern}: {', '.join(odd)}.")
    return rows


def _read_pattern(text: str, seed: str) -> re.Pattern[str]:
    """Such as `{arm}-s{seed}`, for a name or the last part of a path."""
    parts = re.split(r"\{([^{}]*)\}", text)
    names = parts[1::2]
    if not names or len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise UserError(f"the pattern {text} cannot be read", "name each column once, as in {arm}-s{seed}")
    groups = [f"(?P<{name}>{r'[0-9]+' if name == seed else '.+?'})" for name in names]
    texts = [re.escape(part) + group for part, group in zip(parts[::2], [*groups, ""], strict=True)]
    return re.compile(f"(?:.*/)?{''.join(texts)}")


def _filter_rows(source: ForeignSource, where: Mapping[str, str]) -> ForeignSource:
    """The rows with these values. Raises UserError if there are none, and for an unknown column."""
    for column in where:
        _require(column, source.columns, source.name)
    rows = [row for row in source.rows if all(str(row.values.get(key, "")) == value for key, value in where.items())]
    if not rows:
        raise UserError(f"no row of {source.name} has {' and '.join(map('='.join, where.items()))}", "change --where")
    return replace(source, rows=rows)


def _require(column: str, known: Sequence[str], source: str, mend: str = "") -> None:
    if column not in known:
        raise UserError(f"{source} has no column '{column}'", mend + suggest(column, known))


def find_columns(metrics: Sequence[str], known: Sequence[str], source: ForeignSource) -> tuple[str, ...]:
    """The columns of the metrics that were asked for.

    Raises UserError for one that no row has, and for one of the source that has the name of the mean over tasks.
    """
    if MEAN in metrics and MEAN in known:
        raise UserError(f"{source.name} has a column '{MEAN}', a name of the mean over tasks", "rename that column")
    columns: dict[str, None] = {}
    whole = [column for column in known if column not in source.parts]
    for name in metrics:
        named = [name] if name in known else [column for column in whole if metric(column) == name]
        if not named and name != MEAN:
            _require(name, known, source.name)
        columns |= dict.fromkeys(named or [MEAN])
    return tuple(columns)


def _group_rows(
    source: ForeignSource, options: JudgeOptions, notes: list[str]
) -> dict[tuple[str, int], list[ForeignRow]]:
    """{(arm, seed): its rows}; seeds that are not whole numbers are numbered in the order of their names.

    Raises UserError if no row has an arm and a seed.
    """
    keys = (*options.arm, options.seed)
    named: dict[tuple[str, str], list[ForeignRow]] = {}
    always = set(keys)  # what every row lacks
    for row in source.rows:
        cells = [str(row.values.get(column, "")).strip() for column in keys]
        lacking = [column for column, cell in zip(keys, cells, strict=True) if cell.lower() in _MISSING]
        always &= set(lacking)
        if lacking:
            notes.append(f"{row.place} is left out: it has no {' and no '.join(lacking)}.")
        else:
            named.setdefault(("+".join(cells[:-1]), cells[-1]), []).append(row)
    if not named:
        empty = [column for column in keys if column in always] or keys
        mend = f"fill it in, or name other columns with --arm and --seed; known: {', '.join(source.columns)}"
        raise UserError(f"no row of {source.name} has {' and '.join(f'a value in {column}' for column in empty)}", mend)
    seeds = _number_seeds(list(dict.fromkeys(seed for _, seed in named)), notes)
    arms = {text: name_arm(text) for text in dict.fromkeys(arm for arm, _ in named)}
    if twice := [text for text, name in arms.items() if list(arms.values()).count(name) > 1]:
        raise UserError(f"the arms {' and '.join(map(repr, twice[:2]))} would have the same name", "rename one of them")
    groups: dict[tuple[str, int], list[ForeignRow]] = {}
    for (arm, seed), group in named.items():
        groups.setdefault((arms[arm], seeds[seed]), []).extend(group)
    return groups


def _number_seeds(texts: Sequence[str], notes: list[str]) -> dict[str, int]:
    """Whole numbers, such as 3 or 3.0, as they are; other names in their order."""
    with suppress(ValueError):
        numbers = {text: float(text) for text in texts}
        if all(number.is_integer() for number in numbers.values()):
            return {text: int(number) for text, number in numbers.items()}
    numbered = {text: at for at, text in enumerate(sorted(texts))}
    notes.append(f"Seeds are numbered: {', '.join(f'{at} is {text}' for text, at in numbered.items())}.")
    return numbered


def _make_record(
    study: str,
    arm: str,
    seed: int,
    rows: Sequence[ForeignRow],
    options: JudgeOptions,
    columns: Sequence[str],
    notes: list[str],
) -> Record | None:
    label = f"{arm}/seed{seed}"
    done = [row for row in rows if row.status == DONE]
    if not done:
        return _record(study, arm, seed, rows[-1], status="failed", error=rows[-1].status)
    if options.step is not None:
        done = [max(done, key=lambda row: read_number(row.values.get(options.step or ""), -math.inf))]
    values: dict[str, list[float]] = {}
    for column in columns:
        numbers = [read_number(row.values.get(column)) for row in done]
        values[column] = [number for number in numbers if not math.isnan(number)]
    if odd := [column for column, numbers in values.items() if len(set(numbers)) > 1]:
        places = ", ".join(row.place for row in done)
        notes.append(f"{label} is left out: its rows differ in {odd[0]} ({places}); with --step the last one counts.")
        return None
    if len(done) > 1 and max(map(len, values.values()), default=0) > 1:
        notes.append(f"{label} counts once: {', '.join(row.place for row in done)} have the same numbers.")
    metrics = {column: numbers[0] if numbers else math.nan for column, numbers in values.items()}
    return _record(study, arm, seed, done[0], status="done", metrics=metrics)


def _record(study: str, arm: str, seed: int, row: ForeignRow, **more: Any) -> Record:
    return Record(signature=row.place, study=study, arm=arm, seed=seed, scale="", **more)


def read_number(value: object, otherwise: float = math.nan) -> float:
    """The number in a cell; 85.2% is 0.852, and true is 1. `otherwise` if it is not a number."""
    text = str(value).strip()
    if (answer := _ANSWERS.get(text.lower())) is not None:
        return answer
    try:
        return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        return otherwise
