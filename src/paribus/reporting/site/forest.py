"""The forest plot: every measured contrast on one axis, effect over margin, turned so that right favors the claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from paribus.reporting.plots.marks import render_mark
from paribus.reporting.site.claims import INTERVAL, Line, format_effect
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import render_link
from paribus.reporting.tables.html import make_slug
from paribus.reporting.tables.schema import ClaimRow, ContrastRow
from paribus.reporting.turned import Turned, measure
from paribus.verdict.metrics import MEAN
from paribus.verdict.words import NOT_RUN, WORDS, find_word

_TICKS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
_NAMED = 9  # as many ticks can have their numbers side by side
_GROUPS = {
    ">": ("Better", "the claim needs the whole interval right of zero"),
    ">=": ("No worse", "the claim needs the whole interval right of minus one margin"),
    "~": ("The same", "the claim needs the whole interval within one margin of zero"),
}
_TWINS = ("A/A tests", "identical arms: any difference is chance")


class Contrast(NamedTuple):
    """A contrast of a claim at a scale. `found`: in margins; `below`: it is decided, and every arm is below a linear
    model; `among`: the claim has several on its column.
    """

    line: Line
    entry: Entry
    row: ContrastRow
    found: Turned
    below: bool
    among: bool


class Axis(NamedTuple):
    """Effects on percent of the width: linear within about one margin of zero, by orders of magnitude beyond."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        low, high, value = map(math.asinh, (self.low, self.high, value))
        return 100.0 * min(1.0, max(0.0, (value - low) / (high - low)))

    def list_named(self) -> list[float]:
        """The ticks with a number: on a wide axis, zero and powers of ten alone."""
        ticks = self.list_ticks()
        return ticks if len(ticks) <= _NAMED else [tick for tick in ticks if _is_power(tick)]

    def list_ticks(self) -> list[float]:
        """Round values inside."""
        both = sorted([0.0, *(sign * tick for tick in _TICKS for sign in (-1.0, 1.0))])
        return [tick for tick in both if self.low <= tick <= self.high]


def list_contrasts(lines: Sequence[Line]) -> list[Contrast]:
    """Every contrast with a number, at each scale."""
    return [
        Contrast(line, entry, row, found, _is_below(claim, row), _is_among(claim, row))
        for line in lines
        for entry, claim in line.entries
        for row in claim.contrasts
        if (found := measure(row)) is not None
    ]


def _is_below(claim: ClaimRow, row: ContrastRow) -> bool:
    averaged = row.column == MEAN and bool(claim.below)
    return find_word(row.verdict).decides and (averaged or row.column in claim.below)


def _is_among(claim: ClaimRow, row: ContrastRow) -> bool:
    return sum(other.column == row.column for other in claim.contrasts) > 1


def render_forest(lines: Sequence[Line]) -> Iterator[str]:
    """Each plot with its key, as a table: a row per contrast, by what its claim says and by size.

    Contrasts that are undecided for another reason than too few seeds are folded away, unless there are no others.
    """
    contrasts = list_contrasts(lines)
    if not contrasts:
        return
    barred = [one for one in contrasts if one.row.barred]
    yield from _render_table([one for one in contrasts if not one.row.barred] or barred, "Measured contrasts")
    if 0 < len(barred) < len(contrasts):
        said = f"{len(barred)} more, undecided for another reason than too few seeds"
        why = "runs are still on the plateau of a trivial model, or the task is not sensitive"
        yield f"<details><summary>{said}: {why}</summary>"
        yield from _render_table(barred, said)
        yield "</details>"


def _render_table(contrasts: Sequence[Contrast], what: str) -> Iterator[str]:
    yield _render_key(contrasts)
    axis = _make_axis(contrasts)
    ticks = ", ".join(_draw_tick(axis(tick)) for tick in axis.list_ticks())
    caption = f"{what}: effect over margin, turned so that right favors the claim"
    yield f'<table class="forest" style="--ticks: {ticks}"><caption class="unseen">{caption}</caption>'
    yield f"<thead><tr>{_render_head(axis)}</tr></thead>"
    own = [one for one in contrasts if not one.line.of_twins]
    groups = [(words, [one for one in own if one.row.relation == sign]) for sign, words in _GROUPS.items()]
    for words, group in [*groups, (_TWINS, [one for one in contrasts if one.line.of_twins])]:
        if group:
            yield _render_group(words, sorted(group, key=lambda one: -one.found.effect), axis)
    yield "</table>"


def _make_axis(contrasts: Sequence[Contrast]) -> Axis:
    ends = [end for one in contrasts for end in one.found if end is not None]
    return Axis(min(-3.0, *ends) * 1.15, max(3.0, *ends) * 1.15)


def _draw_tick(place: float) -> str:
    line = f"var(--grid) calc({place:.2f}% - .5px) calc({place:.2f}% + .5px)"
    return f"linear-gradient(to right, transparent calc({place:.2f}% - .5px), {line}, transparent 0)"


def _render_head(axis: Axis) -> str:
    ticks = "".join(_name_tick(axis, tick) for tick in axis.list_named())
    claim = '<th scope="col" class="what">claim <span class="axis-name">effect over margin</span></th>'
    names = claim, '<th scope="col" class="value">effect [interval]</th>'
    lane = f'<th scope="col" class="lane axis"><span class="unseen">effect over margin</span><div>{ticks}</div></th>'
    return lane.join(names)


def _name_tick(axis: Axis, tick: float) -> str:
    """The number of a tick; those that are no power of ten go first if there is little room."""
    between = "" if _is_power(tick) else ' class="between"'
    return f'<span{between} style="left: {axis(tick):.2f}%">{tick:g}</span>'


def _is_power(tick: float) -> bool:
    """Whether it is 0, 1, 10 and so on, or the negative of one."""
    return f"{abs(tick):g}".strip("0") in ("", "1")


def _render_key(contrasts: Sequence[Contrast]) -> str:
    shown = {one.row.verdict for one in contrasts}
    marks = [
        f'<span class="v-{make_slug(word.name)}">{render_mark(word.mark, word.decides)}{escape(word.name)}</span>'
        for word in WORDS.all()
        if word.name in shown and word.name != NOT_RUN
    ]
    marks.append(f"bar and [brackets]: {escape(INTERVAL)}")
    marks.append(
        '<span class="patch"></span>where the claim needs the interval; '
        "on a task, an arm must also beat the model from scratch"
    )
    if any(one.found.published is not None for one in contrasts):
        marks.append(render_mark("diamond", filled=False) + "the paper&#x27;s effect, if it prints the same metric")
    if any(not one.row.margin for one in contrasts):
        marks.append("* no margin: in standard deviations of the seeds&#x27; differences")
    if any(one.below for one in contrasts):
        marks.append("† a bag-of-words baseline beats every arm on the task, or on at least one task of the mean")
    return '<ul class="key">' + "".join(f"<li>{mark}</li>" for mark in marks) + "</ul>"


def _render_group(words: tuple[str, str], group: Sequence[Contrast], axis: Axis) -> str:
    head = f'<tr class="group"><th scope="rowgroup" colspan="3">{words[0]} <small>{words[1]}</small></th></tr>'
    return f"<tbody>{head}" + "\n".join(_render_row(one, axis) for one in group) + "</tbody>"


def _render_row(one: Contrast, axis: Axis) -> str:
    row, table, line = one.row, one.entry.table, one.line
    says = line.claim.says or line.claim.text
    pair = f' <span class="small">{escape(row.arm)} against {escape(row.versus)}</span>' if one.among else ""
    name = f'<a href="{escape(line.place)}" title="{escape(says)}">{escape(says)}</a>{pair}'
    signs = "*" * (not row.margin) + "†" * one.below
    value = f"{render_link(f'{line.place}#{one.entry.scale}', format_effect(table, row))}{signs}"
    where = f'<span class="small">{escape(row.column)}, {escape(one.entry.scale)}</span>'
    return (
        f'<tr><th scope="row" class="what">{name}</th>'
        f'<td class="lane v-{make_slug(row.verdict)}">{_draw_lane(one, axis)}</td>'
        f'<td class="value">{value} {where}</td></tr>'
    )


def _draw_lane(one: Contrast, axis: Axis) -> str:
    """The zone in which the interval would reproduce the claim, zero, the interval, the mark and the paper's effect."""
    row, found, margin = one.row, one.found, 1.0 if one.row.margin else 0.0
    low = axis({">": 0.0, ">=": -margin, "~": -margin}[row.relation])
    high = axis(margin) if row.relation == "~" else 100.0
    parts = [f'<i class="zone" style="left: {low:.2f}%; width: {high - low:.2f}%"></i>']
    parts.append(f'<i class="zero" style="left: {axis(0.0):.2f}%"></i>')
    if found.low is not None and found.high is not None:
        start, end = axis(found.low), axis(found.high)
        parts.append(f'<i class="bar-ci" style="left: {start:.2f}%; width: {end - start:.2f}%"></i>')
    word = find_word(row.verdict)
    parts.append(_place(render_mark(word.mark, word.decides), axis(found.effect)))
    if found.published is not None:
        parts.append(f'<span class="paper">{_place(render_mark("diamond", False), axis(found.published))}</span>')
    said = escape(row.verdict + (f": {row.reason}" if row.reason else ""))
    return f'<div role="img" aria-label="{said}" title="{said}">{"".join(parts)}</div>'


def _place(mark: str, at: float) -> str:
    return mark.replace("<svg ", f'<svg style="left: {at:.2f}%" ', 1)
