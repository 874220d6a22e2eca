"""Effects against tokens: the paired difference of two arms at each evaluation during training."""

from __future__ import annotations

from paribus.reports.plots.curves import draw_panel
from paribus.reports.plots.panel import Panel
from paribus.reports.signed_effects import name_unit
from paribus.reports.site.collect import Entry
from paribus.reports.tables.curves import HELD_OUT, ON_THE_WAY, Curve, average, subtract
from paribus.reports.tables.schema import Band, ClaimRow, ContrastRow
from paribus.verdict.metrics import in_points, is_score, lower_is_better

_LEAST = 2  # points of a curve


def draw_tokens(entry: Entry, claim: ClaimRow) -> list[Panel]:
    """A panel for each contrast whose column was measured during training: the paired effect with its interval."""
    found = ((row, _measure_on_the_way(entry, row)) for row in claim.contrasts)
    return [_draw_panel(entry, row, band) for row, band in found if band is not None and len(band.tokens) >= _LEAST]


def suggest_points(entry: Entry, claim: ClaimRow) -> str:
    """The command that also measures the claim's tasks during pre-training; empty if they were, or there is none."""
    rows = [row for row in claim.contrasts if row.difference is not None and is_score(row.column)]
    arms = {arm for row in rows for arm in (row.arm, row.versus)}
    trained = [record for record in entry.found.records if record.arm in arms and record.budget.get("steps")]
    if entry.sweep is None or not trained or any(record.task_points for record in trained) or not entry.takes_points:
        return ""
    name = entry.sweep.path.stem
    return f"paribus run {name} scale={entry.scale} study={name}_over_tokens evaluation.task_points=3"


def _measure_on_the_way(entry: Entry, row: ContrastRow) -> Band | None:
    """The effect against tokens over the seeds that both arms have, in the unit that the column is read in."""
    unit = (100.0 if in_points(row.column) else 1.0) * (-1.0 if lower_is_better(row.column) else 1.0)
    first, second = (_list_curves(entry, arm, row.column) for arm in (row.arm, row.versus))
    pairs = [subtract(first[seed], second[seed]) for seed in first if seed in second]
    curves = [Curve(one.tokens, [value * unit for value in one.values]) for one in pairs if one.tokens]
    return average(curves) if curves else None


def _list_curves(entry: Entry, arm: str, column: str) -> dict[int, Curve]:
    """{seed: curve} of a column's evaluations."""
    own = {seed: curves for (name, seed), curves in entry.curves.items() if name == arm}
    found = (
        (seed, curves.get(f"{HELD_OUT}{column}") or curves.get(f"{column}{ON_THE_WAY}")) for seed, curves in own.items()
    )
    return {seed: curve for seed, curve in found if curve is not None}


def _draw_panel(entry: Entry, row: ContrastRow, band: Band) -> Panel:
    unit, margin = name_unit(row.column), row.margin * (100.0 if in_points(row.column) else 1.0)
    title = f"{row.column} at {entry.scale} scale{f' ({unit})' if unit else ''}"
    name = f"n={band.n}, {'each seed' if band.runs else '95% interval'}"
    below = f"{row.arm} against {row.versus}; up: the first is better"
    return draw_panel(title, [name], {name: band}, below, "input tokens of pre-training", margin=margin)
