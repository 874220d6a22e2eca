"""Foreign rows as the records that tables read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from paribus.core.errors import UserError, suggest
from paribus.integrations.source import DONE, Row, Source
from paribus.runs.record import Record
from paribus.verdict.metrics import MEAN, metric
from paribus.verdict.statistics import is_number

_MISSING = ("", "na", "n/a", "nan", "none", "null", "-")
_ANSWERS = {"true": 1.0, "false": 0.0}
_UNNAMED = re.compile(r"[^\w.+-]+")  # what a claim cannot hold in the name of an arm


@dataclass(frozen=True, kw_only=True)
class Asked:
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


class Runs(NamedTuple):
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


def collect_runs(source: Source, asked: Asked, study: str) -> Runs:
    """One record per arm and seed.

    Parts of a run are put together. A run with contradicting rows is left out; so is a row without arm or seed. Raises
    UserError for columns that no row has, and if nothing remains.
    """
    notes: list[str] = []
    source = _choose(replace(source, rows=read_names(source, asked, notes)), asked.where)
    known = source.columns
    for option, names in (("arm", asked.arm), ("seed", (asked.seed,)), ("step", filter(None, (asked.step,)))):
        for column in names:
            _require(column, known, source.name, f"--{option} COLUMN names another one; ")
    columns = find_columns(asked.metrics, known, source)
    notes += _note_parts(columns, known, source.parts)
    measured = tuple(column for column in columns if column in known)
    groups = _group(source, asked, notes)
    records = [_make_record(study, arm, seed, group, asked, measured, notes) for (arm, seed), group in groups.items()]
    found = tuple(record for record in records if record is not None)
    if measured and not any(is_number(value) for record in found for value in record.metrics.values()):
        raise UserError(f"no run of {source.name} has a number in {', '.join(columns)}", " ".join(notes[:3]))
    return Runs(found, tuple(dict.fromkeys(arm for arm, _ in groups)), columns, tuple(notes))


def read_names(source: Source, asked: Asked, notes: list[str]) -> list[Row]:
    """The rows with what their names say; those whose names do not fit the pattern are left out and noted."""
    if asked.pattern is None:
        return list(source.rows)
    pattern, found, odd = _read_pattern(asked.pattern, asked.seed), [], []
    for row in source.rows:
        if match := pattern.fullmatch(row.name):
            found.append(Row(row.place, {**row.values, **match.groupdict()}, row.name, row.status))
        else:
            odd.append(row.name or row.place)
    if not found:
        raise UserError(f"no name in {source.name} matches {asked.pattern}", f"the first is '{odd[0]}'")
    if odd:
        notes.append(f"Left out, because their names do not match {asked.pattern}: {', '.join(odd)}.")
    return found


def _read_pattern(text: str, seed: str) -> re.Pattern[str]:
    """Such as `{arm}-s{seed}`, for a name or the last part of a path."""
    parts = re.split(r"\{([^{}]*)\}", text)
    names = parts[1::2]
    if not names or len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise UserError(f"the pattern {text} cannot be read", "name each column once, as in {arm}-s{seed}")
    groups = [f"(?P<{name}>{r'[0-9]+' if name == seed else '.+?'})" for name in names]
    texts = [re.escape(part) + group for part, group in zip(parts[::2], [*groups, ""], strict=True)]
    return re.compile(f"(?:.*/)?{''.join(texts)}")


def _choose(source: Source, where: Mapping[str, str]) -> Source:
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


def find_columns(asked: Sequence[str], known: Sequence[str], source: Source) -> tuple[str, ...]:
    """The columns of the metrics that were asked for.

    Raises UserError for one that no row has, and for one of the source that has the name of the mean over tasks.
    """
    if MEAN in asked and MEAN in known:
        raise UserError(f"{source.name} has a column '{MEAN}', a name of the mean over tasks", "rename that column")
    found: dict[str, None] = {}
    whole = [column for column in known if column not in source.parts]
    for name in asked:
        named = [name] if name in known else [column for column in whole if metric(column) == name]
        if not named and name != MEAN:
            _require(name, known, source.name)
        found |= dict.fromkeys(named or [MEAN])
    return tuple(found)


def _note_parts(columns: Sequence[str], known: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    left = [column for column in known if parts.get(column) in columns and column not in columns]
    more = f" and {len(left) - 1} more parts of groups" if len(left) > 1 else ""
    return (
        [f"No column of their own: {left[0]}, a part of {parts[left[0]]}{more}; --metric takes the name."]
        if left
        else []
    )


def _group(source: Source, asked: Asked, notes: list[str]) -> dict[tuple[str, int], list[Row]]:
    """{(arm, seed): its rows}; seeds that are not whole numbers are numbered in the order of their names.

    Raises UserError if no row has an arm and a seed.
    """
    keys = (*asked.arm, asked.seed)
    named: dict[tuple[str, str], list[Row]] = {}
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
    seeds = _number_seeds(dict.fromkeys(seed for _, seed in named), notes)
    arms = _name_arms(dict.fromkeys(arm for arm, _ in named))
    groups: dict[tuple[str, int], list[Row]] = {}
    for (arm, seed), group in named.items():
        groups.setdefault((arms[arm], seeds[seed]), []).extend(group)
    return groups


def _name_arms(texts: Iterable[str]) -> dict[str, str]:
    arms = {text: name_arm(text) for text in texts}
    if twice := [text for text, name in arms.items() if list(arms.values()).count(name) > 1]:
        raise UserError(f"the arms {' and '.join(map(repr, twice[:2]))} would have the same name", "rename one of them")
    return arms


def _number_seeds(texts: Iterable[str], notes: list[str]) -> dict[str, int]:
    found = list(texts)
    try:
        numbers = {text: _whole(text) for text in found}
    except ValueError:
        numbers = {text: at for at, text in enumerate(sorted(found))}
        notes.append(f"Seeds are numbered: {', '.join(f'{at} is {text}' for text, at in numbers.items())}.")
    return numbers


def _whole(text: str) -> int:
    """Raises ValueError unless it is a whole number, such as 3 or 3.0."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def _make_record(
    study: str, arm: str, seed: int, rows: Sequence[Row], asked: Asked, columns: Sequence[str], notes: list[str]
) -> Record | None:
    label = f"{arm}/seed{seed}"
    done = [row for row in rows if row.status == DONE]
    if not done:
        return _record(study, arm, seed, rows[-1], status="failed", error=rows[-1].status)
    if asked.step is not None:
        done = [max(done, key=lambda row: read_number(row.values.get(asked.step or ""), -math.inf))]
    values = {column: _list_numbers(done, column) for column in columns}
    if odd := [column for column, numbers in values.items() if len(set(numbers)) > 1]:
        places = ", ".join(row.place for row in done)
        notes.append(f"{label} is left out: its rows differ in {odd[0]} ({places}); with --step the last one counts.")
        return None
    if len(done) > 1 and max(map(len, values.values()), default=0) > 1:
        notes.append(f"{label} counts once: {', '.join(row.place for row in done)} have the same numbers.")
    metrics = {column: numbers[0] if numbers else math.nan for column, numbers in values.items()}
    return _record(study, arm, seed, done[0], status="done", metrics=metrics)


def _record(study: str, arm: str, seed: int, row: Row, **more: Any) -> Record:
    return Record(signature=row.place, study=study, arm=arm, seed=seed, scale="", **more)


def _list_numbers(rows: Iterable[Row], column: str) -> list[float]:
    found = (read_number(row.values.get(column)) for row in rows)
    return [number for number in found if not math.isnan(number)]


def read_number(value: object, otherwise: float = math.nan) -> float:
    """The number in a cell; 85.2% is 0.852, and true is 1. `otherwise` if it is not a number."""
    text = str(value).strip()
    if (answer := _ANSWERS.get(text.lower())) is not None:
        return answer
    try:
        return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        return otherwise
