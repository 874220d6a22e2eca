"""Logs with several rows per run: which column is the step, and which row of each metric counts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.core.errors import UserError, suggest
from paribus.integrations.column_kinds import AT
from paribus.integrations.source import ForeignRow, ForeignSource

LAST, BEST = "last", "best"
STEPS = ("step", "global_step", "_step", "Step", "trainer/global_step", "epoch")  # the likeliest first
_AT_STEPS = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:,(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)*")


class StepChoice(NamedTuple):
    """`column`: that of the step, None for rows that must agree; `rule`: LAST or BEST; `at`: steps that count instead.

    `lower`: {metric: whether lower is better}, for BEST.
    """

    column: str | None
    rule: str = LAST
    at: tuple[str, ...] = ()
    lower: Mapping[str, bool] = {}

    def name_columns(self, column: str) -> tuple[str, ...]:
        """The columns that a metric gives: one for each step if there are several."""
        return tuple(f"{column}{AT}{step}" for step in self.at) if len(self.at) > 1 else (column,)


class Point(NamedTuple):
    """A cell of a metric that is not empty. `step`: None if its row has none; `number`: None for another text, such as
    `NA`; `run`: the name of the run, if the row has one.
    """

    step: float | None
    number: float | None
    place: str
    run: str = ""


class Contradiction(Exception):
    """Different numbers of a metric at the same step, or of several runs; the argument says where they are."""


def read_choice(text: str | None, source: ForeignSource, notes: list[str]) -> StepChoice:
    """What `--step` asks for: COLUMN, last, best, N[,N], or COLUMN=one of these. A column of the source comes first.

    Raises UserError for anything else, and if no column looks like that of the step.
    """
    known = source.columns
    if text is None:
        return StepChoice(None)
    if text in known:
        if text in (LAST, BEST) or _AT_STEPS.fullmatch(text):
            notes.append(f"--step {text} is the column of that name; COLUMN={text} asks for a row.")
        return StepChoice(text)
    named, equals, rule = text.rpartition("=")
    if equals and named not in known:
        mend = f"--step COLUMN={rule} names another one; {suggest(named, known)}"
        raise UserError(f"{source.name} has no column '{named}'", mend)
    at = tuple(rule.split(",")) if _AT_STEPS.fullmatch(rule) else ()
    if not at and rule not in (LAST, BEST):
        if equals:
            raise UserError(f"--step {text} is not valid", f"write {named}={LAST}, {named}={BEST} or {named}=1000")
        mend = f"--step COLUMN names another one, --step {LAST}, {BEST} or 1000 finds it; {suggest(text, known)}"
        raise UserError(f"{source.name} has no column '{text}'", mend)
    if len(set(at)) < len(at):
        raise UserError(f"--step {text} names a step twice", "name it once")
    column = named or find_step(source, (), notes)
    if column is None:
        raise UserError(f"{source.name} has no column of steps ({', '.join(STEPS)})", f"write --step COLUMN={rule}")
    return StepChoice(column, BEST if rule == BEST else LAST, at)


def find_step(source: ForeignSource, taken: Sequence[str | None], notes: list[str]) -> str | None:
    """The column of the step, with a note; None if no column is named like one, but for those that are taken."""
    likely = (source.step, *STEPS)
    column = next((name for name in likely if name in source.columns and name not in taken), None)
    if column is not None:
        notes.append(f"Steps are read from the column {column} (--step COLUMN=last names another and its last row).")
    return column


def list_points(rows: Sequence[ForeignRow], column: str, step: str | None) -> list[Point]:
    """The cells of a column that are not empty."""
    filled = [row for row in rows if row.values.get(column) is not None]
    steps = [_find_number(row.values.get(step)) if step else None for row in filled]
    numbers = [_find_number(row.values[column]) for row in filled]
    return [Point(at, number, row.place, row.name) for at, number, row in zip(steps, numbers, filled, strict=True)]


def _find_number(cell: object) -> float | None:
    return cell if isinstance(cell, float) else None


def choose(points: Sequence[Point], choice: StepChoice, column: str) -> dict[str, float]:
    """{column: number} of a run, where the chosen row has one. Raises Contradiction.

    The last row counts even if its cell is no number: an earlier number is not the run's last.
    """
    at_steps = [point for point in points if point.step is not None] or list(points)
    runs = dict.fromkeys(point.run for point in points)
    if len(runs) > 1:
        return _agree(column, points, f" of the runs {' and '.join(runs)}")
    same = f" of the same {choice.column}" if choice.column else "; with --step the last one counts"
    if choice.at:
        numbers: dict[str, float] = {}
        for name, at in zip(choice.name_columns(column), choice.at, strict=True):
            numbers |= _agree(name, [point for point in points if point.step == float(at)], same)
        return numbers
    if choice.rule == BEST:
        finite = [point.number for point in at_steps if point.number is not None and math.isfinite(point.number)]
        best = min if choice.lower[column] else max
        return {column: best(finite)} if finite else _agree(column, at_steps[-1:], same)
    last = max((point.step for point in at_steps if point.step is not None), default=None)
    return _agree(column, [point for point in at_steps if point.step == last], same)


def _agree(column: str, points: Sequence[Point], what: str) -> dict[str, float]:
    """{column: the number of these points}, if they have one. Other texts, such as `NA`, do not count beside it."""
    numbered = [point for point in points if point.number is not None]
    if len({repr(point.number) for point in numbered}) > 1:
        raise Contradiction(f"({', '.join(dict.fromkeys(point.place for point in numbered))}){what}")
    number = numbered[0].number if numbered else None
    return {} if number is None else {column: number}
