"""Foreign rows as the records that tables read."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from paribus.core.errors import UserError, suggest
from paribus.integrations.column_kinds import AT, is_lower_better, split_words
from paribus.integrations.numbers import fill, find_percents, has_numbers, read_columns
from paribus.integrations.source import BLANKS, DONE, ForeignRow, ForeignSource
from paribus.integrations.steps import (
    BEST,
    LAST,
    STEPS,
    Contradiction,
    StepChoice,
    choose,
    find_step,
    list_points,
    read_choice,
)
from paribus.runs.record import Record
from paribus.verdict.metrics import MEAN, metric

NO_SEED = "none"  # instead of a seed's column: the runs share no seeds
_EXACT = 2**53  # from here on, a float does not hold every whole number
_UNNAMED = re.compile(r"[^\w.+-]+")  # what a claim cannot hold in the name of an arm
_SPENT = re.compile(
    r"\b(?:steps?|epochs?|iterations?|tokens?|batch|batches|params?|parameters|flops|gpus?|hardware|device|machine"
    r"|versions?|commit)\b"
)
_SHOWN_COLUMNS, _SHOWN_VALUES = 5, 3

RunKey = tuple[str, int]  # arm and seed


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What to judge.

    Args:
        arm: the columns whose values together name an arm; seed: that of the seed, or `none`: each run has its own.
        metrics: columns, or metrics such as `acc` for `TASK/acc` of every task, or `mean` for the mean over these.
        claims: an arm whose name has spaces or other signs is quoted.
        lower, higher: metrics for which lower, or higher, is better, whatever their names suggest.
        step: the column of the step; `last`, `best` or steps such as `500,1000`; or `COLUMN=best` and the like.
        where: {column: value} of the rows that count.
        pattern: reads columns off the name of each run, such as `{arm}-s{seed}`.
        group: a column whose values are judged apart, each as a task of that name.
        decimal: the decimal mark of all columns; None: each column tells.
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
    group: str | None = None
    decimal: str | None = None


class ForeignRuns(NamedTuple):
    """Records of a study, its arms (also those whose runs were all left out), its columns, and notes on what was left
    out or renumbered. `shared`: whether the seeds mean the same in all arms.
    """

    records: tuple[Record, ...]
    arms: tuple[str, ...]
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    shared: bool


def name_arm(text: str) -> str:
    """An arm's name as claims and tables write it."""
    return _UNNAMED.sub("_", unicodedata.normalize("NFC", text.strip(BLANKS)))


def collect_runs(source: ForeignSource, options: JudgeOptions, study: str) -> ForeignRuns:
    """One record per arm and seed; a metric without a number is absent from it, NaN and infinities are numbers.

    Parts of a run are put together. A run with contradicting rows is left out; so is a row without arm or seed. Raises
    UserError for columns that no row has, for numbers and names that can be read in two ways, for arms whose
    evaluations had different settings, and if nothing remains.
    """
    notes = list(source.notes)
    source = replace(source, rows=read_names(source, options, notes))
    shared = options.seed != NO_SEED or NO_SEED in source.columns
    _require_columns(source, options, shared)
    kept = replace(source, rows=filter_rows(source, options.where))
    found = find_columns(options.metrics, kept.columns, kept)
    notes += _note_parts(kept, found)
    measured = [column for column in found if column in kept.columns]
    choice = read_choice(options.step, source, notes)
    numbers = read_columns(kept.rows, filter(None, (*measured, choice.column)), source, options.decimal, notes)
    percents = find_percents(kept.rows, {column: numbers[column] for column in measured}, notes)
    rows = [fill(row, numbers, percents) for row in kept.rows]
    if options.group is not None:
        rows, measured = split_groups(rows, options.group, measured, source.name, notes)
    groups = _group_rows(replace(source, rows=rows), options, shared, notes)
    if choice.column is None and not source.whole and _differ(groups.values(), measured):
        taken = (*options.arm, options.seed, options.group, *found)
        choice = StepChoice(find_step(source, taken, notes))
        steps = read_columns(kept.rows, filter(None, (choice.column,)), source, options.decimal, notes)
        groups = {key: [fill(row, steps) for row in of_run] for key, of_run in groups.items()}
    if choice.rule == BEST:
        lower = {name: is_lower_better(name, source, options.lower, options.higher) for name in measured}
        choice = choice._replace(lower=lower)
        notes.append(f"The best value of each run by {choice.column} counts: it was selected on the judged metric.")
    _require_equal_settings(groups, measured)
    notes += _note_unequal(groups, source.columns, (*options.arm, options.seed, choice.column, *found, *options.where))
    if choice.column is not None and choice.rule == LAST and not choice.at:
        notes += _note_early_ends(groups, measured, choice.column)
    made = []
    for key, of_run in groups.items():
        expected = measured if shared else [name for name in measured if any(name in row.values for row in of_run)]
        made.append(_make_record(study, key, of_run, expected, choice, notes))
    records = tuple(record for record in made if record is not None)
    columns = tuple(name for column in measured for name in choice.name_columns(column))
    columns += (MEAN,) * (MEAN in found)
    if measured and not any(record.metrics for record in records):
        raise UserError(f"no run of {source.name} has a number in {', '.join(columns)}", " ".join(notes[-3:]))
    return ForeignRuns(records, tuple(dict.fromkeys(arm for arm, _ in groups)), columns, tuple(notes), shared)


def _require_columns(source: ForeignSource, options: JudgeOptions, shared: bool) -> None:
    known = source.columns
    for column in options.arm:
        more = " or --name '{arm}-s{seed}' reads it from run names;" if any(row.name for row in source.rows) else ";"
        _require(column, known, source.name, f"--arm COLUMN names another one{more} ")
    if shared and options.seed not in known:
        mend = f"name it with --seed COLUMN, or write --seed {NO_SEED} if the runs share no seeds; "
        _require(options.seed, known, source.name, mend)
    if options.group is not None:
        _require(options.group, known, source.name, "--group COLUMN names another one; ")


def _require(column: str, known: Sequence[str], source: str, mend: str = "") -> None:
    if column not in known:
        raise UserError(f"{source} has no column '{column}'", mend + suggest(column, known))


def read_names(source: ForeignSource, options: JudgeOptions, notes: list[str]) -> list[ForeignRow]:
    """The rows with what their names say; those whose names do not fit the pattern are left out and noted."""
    if options.pattern is None:
        return list(source.rows)
    pattern, rows, odd = _read_pattern(options.pattern, options.seed), [], []
    for row in source.rows:
        if match := next(filter(None, map(pattern.fullmatch, (row.name, *row.aliases))), None):
            rows.append(replace(row, values={**row.values, **match.groupdict()}))
        else:
            odd.append(row.name or row.place)
    odd = list(dict.fromkeys(odd))
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
    groups = [f"(?P<{name}>{r'[0-9]+(?:[.]0+)?' if name == seed else '.+?'})" for name in names]
    texts = [re.escape(part) + group for part, group in zip(parts[::2], [*groups, ""], strict=True)]
    return re.compile(f"(?:.*/)?{''.join(texts)}")


def filter_rows(source: ForeignSource, where: Mapping[str, str]) -> list[ForeignRow]:
    """The rows with these values. Raises UserError if there are none, and for an unknown column."""
    for column in where:
        _require(column, source.columns, source.name)
    rows = [row for row in source.rows if all(write_name(row.values.get(key)) == value for key, value in where.items())]
    if not rows:
        raise UserError(f"no row of {source.name} has {' and '.join(map('='.join, where.items()))}", "change --where")
    return rows


def write_name(cell: object) -> str:
    """A cell as a name: a text without blanks around it, `true` and `1.0` as JSON writes them; empty if missing."""
    if isinstance(cell, str):
        return cell.strip(BLANKS)
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return json.dumps(cell) if isinstance(cell, bool | int | float) else str(cell)


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
            if filtered := [column for column in known if metric(column).partition(AT)[0] == metric(name)]:
                raise UserError(f"{source.name} has {name} of filters only", f"write {' or '.join(filtered[:3])}")
            _require(name, known, source.name)
        columns |= dict.fromkeys(named or [MEAN])
    return tuple(columns)


def _note_parts(source: ForeignSource, columns: Sequence[str]) -> list[str]:
    left = [name for name in source.columns if source.parts.get(name) in columns and name not in columns]
    if not left:
        return []
    more = f" and {len(left) - 1} more parts of groups" if len(left) > 1 else ""
    part = f"{left[0]}, a part of {source.parts[left[0]]}{more}"
    return [f"No column of their own: {part}; --metric takes the name."]


def _differ(groups: Any, columns: Sequence[str]) -> bool:
    """Whether some run has rows with different numbers of a metric."""
    return any(
        len({repr(point.number) for point in list_points(rows, column, None)}) > 1
        for rows in groups
        for column in columns
    )


def split_groups(
    rows: Sequence[ForeignRow], column: str, metrics: Sequence[str], source: str, notes: list[str]
) -> tuple[list[ForeignRow], list[str]]:
    """The rows with a column `GROUP/METRIC` in place of each metric, and these columns in their order.

    Raises UserError if two groups would have the same name.
    """
    texts = {text: name_arm(text) for row in rows if (text := write_name(row.values.get(column)))}
    _require_distinct({(text,): name for text, name in texts.items()}, "values of --group")
    columns: dict[str, None] = {}
    split = []
    for row in rows:
        text = write_name(row.values.get(column))
        if not text:
            notes.append(f"{row.place} is left out: it has no {column}.")
            continue
        own = {f"{texts[text]}/{name}": row.values[name] for name in metrics if name in row.values}
        columns |= dict.fromkeys(own)
        others = {key: value for key, value in row.values.items() if key not in metrics}
        split.append(replace(row, values={**others, **own}))
    if not split:
        raise UserError(f"no row of {source} has a value in {column}", "name another column with --group")
    return split, list(columns)


def _require_distinct(names: Mapping[tuple[str, ...], str], what: str) -> None:
    """Raises UserError if two cells, or lists of cells, would have the same name."""
    first: dict[str, tuple[str, ...]] = {}
    for cells, name in names.items():
        if (other := first.setdefault(name, cells)) != cells:
            one, two = " + ".join(other), " + ".join(cells)
            mend = "write it in one way in all rows if it is one, or give one of them another name"
            raise UserError(
                f"the {what} {_contrast(one, two)} would have the same name",
                mend if _look_alike(one, two) else "rename one of them",
            )


def _contrast(one: str, other: str) -> str:
    """Two texts in quotes, with the code points of their letters if they look alike."""
    return f"{one!a} and {other!a}" if _look_alike(one, other) else f"{one!r} and {other!r}"


def _look_alike(one: str, other: str) -> bool:
    """Whether only the blanks around two texts, or the composition of their letters, differ."""
    return unicodedata.normalize("NFC", one.strip(BLANKS)) == unicodedata.normalize("NFC", other.strip(BLANKS))


def _group_rows(
    source: ForeignSource, options: JudgeOptions, shared: bool, notes: list[str]
) -> dict[RunKey, list[ForeignRow]]:
    """{(arm, seed): its rows}; seeds that are not whole numbers are numbered in the order of their names.

    Raises UserError if no row has an arm and a seed, or if two names of arms or seeds would be the same.
    """
    keys = (*options.arm, *([options.seed] if shared else []))
    named: dict[tuple[tuple[str, ...], str], list[ForeignRow]] = {}
    raw: dict[tuple[str, ...], tuple[str, ...]] = {}  # {cells with the blanks around them: without}
    always = set(keys)  # what every row lacks
    for row in source.rows:
        cells = [write_name(row.values.get(column)) for column in keys]
        lacking = [column for column, cell in zip(keys, cells, strict=True) if not cell]
        always &= set(lacking)
        if lacking:
            notes.append(f"{row.place} is left out: it has no {' and no '.join(lacking)}.")
            continue
        arm = tuple(cells[: len(options.arm)])
        raw[tuple(_keep_blanks(row.values[column]) for column in options.arm)] = arm
        run = cells[-1] if shared else _identify(row, arm, source, options)
        named.setdefault((arm, run), []).append(row)
    if not named:
        empty = [column for column in keys if column in always] or keys
        mend = f"fill it in, or name other columns with --arm and --seed; known: {', '.join(source.columns)}"
        raise UserError(f"no row of {source.name} has {' and '.join(f'a value in {column}' for column in empty)}", mend)
    names = _name_arms(dict.fromkeys(raw.values()), notes)
    _require_distinct({cells: names[arm] for cells, arm in raw.items()}, "arms")
    if not shared:
        _require_whole_runs(source, named)
        notes.append("The runs share no seeds: the arms are compared by all their runs.")
        return {(names[arm], at): rows for at, ((arm, _), rows) in enumerate(named.items())}
    seeds = _number_seeds(list(named), notes)
    groups: dict[RunKey, list[ForeignRow]] = {}
    for (arm, seed), group in named.items():
        groups.setdefault((names[arm], seeds[seed]), []).extend(group)
    return groups


def _name_arms(arms: Iterable[tuple[str, ...]], notes: list[str]) -> dict[tuple[str, ...], str]:
    """{cells of an arm: its name}. Cells are joined by `+`, or by `__` where `+` makes the names of two arms equal."""
    names = {arm: name_arm("+".join(arm)) for arm in arms}
    first = {name: tuple(map(name_arm, arm)) for arm, name in names.items()}
    clash = {name for arm, name in names.items() if tuple(map(name_arm, arm)) != first[name]}
    if not clash:
        return names
    apart = {arm: name_arm("__".join(arm)) for arm, name in names.items() if name in clash}
    notes.append(f"Joined by __, because + gives these arms the same name: {', '.join(apart.values())}.")
    return names | apart


def _keep_blanks(cell: object) -> str:
    return cell if isinstance(cell, str) else write_name(cell)


def _identify(row: ForeignRow, arm: Sequence[str], source: ForeignSource, options: JudgeOptions) -> str:
    """What tells a row's run from the others if the runs have no seeds: its name, or else the row itself."""
    if source.whole:
        return row.place
    if row.aliases or (row.name and row.name not in arm):
        return row.aliases[0] if row.aliases else row.name
    if options.step is not None:
        mend = "with --step, --seed none needs a column 'name'"
        raise UserError(f"{source.name} does not tell which rows are one run", mend)
    return row.place


def _require_whole_runs(
    source: ForeignSource, runs: Mapping[tuple[tuple[str, ...], str], Sequence[ForeignRow]]
) -> None:
    """Raises UserError if rows that count as runs of their own look like the steps of a log."""
    column = next((name for name in STEPS if name in source.columns), None)
    steps: dict[tuple[str, ...], set[str]] = {}
    for (arm, run), (row, *_) in runs.items():
        if column is not None and run == row.place and not source.whole:
            steps.setdefault(arm, set()).add(write_name(row.values.get(column)))
            if len(steps[arm] - {""}) > 1:
                cause = f"with --seed none each row is a run, but {'+'.join(arm)} has several values of {column}"
                raise UserError(cause, "add a column 'name' with the run of each row, or name the column of the seed")


def _number_seeds(runs: Sequence[tuple[tuple[str, ...], str]], notes: list[str]) -> dict[str, int]:
    """Whole numbers, such as 3 or 3.0, as they are; other names in their order.

    Raises UserError if an arm has a seed in two spellings, or a seed is too large to be exact.
    """
    texts = list(dict.fromkeys(seed for _, seed in runs))
    whole = {text: number for text in texts if (number := _read_whole(text)) is not None}
    spelled: dict[object, str] = {}
    for arm, text in runs:
        same = whole.get(text, unicodedata.normalize("NFC", text))
        if (other := spelled.setdefault((arm, same), text)) != text:
            cause = f"the seeds {_contrast(other, text)} of arm {'+'.join(arm)} are the same"
            raise UserError(cause, "write each seed once in one way")
    spellings: dict[object, list[str]] = {}
    for text in texts:
        spellings.setdefault(whole.get(text, unicodedata.normalize("NFC", text)), []).append(text)
    if twice := [" and ".join(same) for same in spellings.values() if len(same) > 1]:
        notes.append(f"The same seed: {'; '.join(twice)}.")
    if len(whole) == len(texts):
        return whole
    order = sorted(spellings, key=str)
    notes.append(f"Seeds are numbered: {', '.join(f'{at} is {spellings[one][0]}' for at, one in enumerate(order))}.")
    return {text: at for at, one in enumerate(order) for text in spellings[one]}


def _read_whole(text: str) -> int | None:
    """A whole number, exactly, however it is written; None for other texts."""
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    try:
        number = Decimal(text) if re.fullmatch(r"[0-9.eE+-]{1,40}", text) else None
    except InvalidOperation:
        return None
    if number is None or number != number.to_integral_value() or abs(number) > 10**30:
        return None
    if abs(number) >= _EXACT:
        raise UserError(f"the seed {text} may be rounded", "write it as a whole number")
    return int(number)


def _require_equal_settings(groups: Mapping[RunKey, Sequence[ForeignRow]], columns: Sequence[str]) -> None:
    """Raises UserError if runs that are compared on a task were evaluated with different settings."""
    tasks = {column.rpartition("/")[0] for column in columns}
    first: dict[tuple[str, str], tuple[str, Any]] = {}
    for (arm, _), rows in groups.items():
        for row in rows:
            for task, settings in row.settings.items():
                for key, value in settings.items() if task in tasks else ():
                    other, before = first.setdefault((task, key), (arm, value))
                    if before != value:
                        cause = f"{task} has {key} {before} in {other} and {value} in {arm}"
                        raise UserError(cause, "evaluate all arms in the same way, or judge other tasks")


def _note_unequal(
    groups: Mapping[RunKey, Sequence[ForeignRow]], columns: Sequence[str], used: Sequence[str | None]
) -> list[str]:
    """What the arms spent or ran on, as far as the columns tell, if each arm has one value but not the same one."""
    described = []
    for column in columns:
        if column in used or not _SPENT.search(" ".join(split_words(column))):
            continue
        values: dict[str, set[str]] = {}
        for (arm, _), rows in groups.items():
            values.setdefault(arm, set()).update(filter(None, (write_name(row.values.get(column)) for row in rows)))
        arms: dict[str, str] = {}  # {value: the first arm that has it}
        for arm, only in values.items():
            if len(only) == 1:
                arms.setdefault(next(iter(only)), arm)
        if len(arms) > 1:
            shown = ", ".join(f"{value} in {arm}" for value, arm in list(arms.items())[:_SHOWN_VALUES])
            described.append(f"{column} {shown}{', ...' if len(arms) > _SHOWN_VALUES else ''}")
    if not described:
        return []
    more = "; ..." if len(described) > _SHOWN_COLUMNS else ""
    return [f"Not equal between arms: {'; '.join(described[:_SHOWN_COLUMNS])}{more}."]


def _note_early_ends(groups: Mapping[RunKey, Sequence[ForeignRow]], columns: Sequence[str], step: str) -> list[str]:
    """Runs whose last value of a column is at an earlier step than that of the longest run."""
    notes = []
    for column in columns:
        ends: dict[str, float] = {}
        for (arm, seed), rows in groups.items():
            if steps := [point.step for point in list_points(rows, column, step) if point.step is not None]:
                ends[f"{arm}/seed{seed}"] = max(steps)
        latest = max(ends.values(), default=0.0)
        early = [f"{run} at {step} {end:.15g}" for run, end in ends.items() if end < latest]
        if early:
            more = f" and {len(early) - 1} more runs" if len(early) > 1 else ""
            notes.append(f"{column}: the last value of {early[0]}{more} counts, though others go on to {latest:.15g}.")
    return notes


def _make_record(
    study: str,
    key: RunKey,
    rows: Sequence[ForeignRow],
    columns: Sequence[str],
    choice: StepChoice,
    notes: list[str],
) -> Record | None:
    arm, seed = key
    label = f"{arm}/seed{seed}"
    done = [row for row in rows if row.status == DONE]
    if not done:
        return _record(study, key, rows[-1], status="failed", error=rows[-1].status)
    metrics: dict[str, float] = {}
    most = 0
    for column in columns:
        points = list_points(done, column, choice.column)
        if choice.column and any(point.step is None for point in points) and len(points) > 1:
            lacking = ", ".join(point.place for point in points if point.step is None)
            notes.append(f"{label}: {column} has no {choice.column} in {lacking}, which does not count.")
        try:
            metrics |= choose(points, choice, column)
        except Contradiction as places:
            apart = ""
            if len({point.run for point in points}) == 1:
                apart = _find_parting(done, {point.place for point in points}, (*columns, choice.column))
            notes.append(f"{label} is left out: its rows differ in {column} {places}{apart}.")
            return None
        most = max(most, sum(point.number is not None for point in points))
        where = ""
        if choice.at:
            where = f" at {choice.column} {' or '.join(choice.at)}"
        elif len(points) > 1:
            last = max(points, key=lambda point: -math.inf if point.step is None else point.step)
            where = f" in its last row ({last.place})"
        absent = [name for name in choice.name_columns(column) if name not in metrics]
        notes += [f"{label}: {name} has no number{where} and is left out." for name in absent]
    if most > 1 and choice.column is None:
        notes.append(f"{label} counts once: {', '.join(row.place for row in done)} have the same numbers.")
    return _record(study, key, done[0], status="done", metrics=metrics)


def _find_parting(rows: Sequence[ForeignRow], places: set[str], used: Sequence[str | None]) -> str:
    """Which column of names tells rows of a run apart, as an end of a note, or nothing."""
    named = [name for name in rows[0].values if name not in used]
    for name in named:
        cells = [row.values.get(name) for row in rows if row.place in places]
        if len(set(map(write_name, cells))) > 1 and not any(has_numbers([cell]) for cell in cells):
            return f"; so does {name}: --group {name} judges each value apart, --where {name}=VALUE takes one"
    return ""


def _record(study: str, key: RunKey, row: ForeignRow, **more: Any) -> Record:
    return Record(signature=row.place, study=study, arm=key[0], seed=key[1], scale="", **more)
