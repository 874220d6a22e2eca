"""The page of a claim: its effects at each scale and against tokens, and the runs behind each number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paribus.reports.effects import build_ladders, name_unit, rate_stability
from paribus.reports.plots.curves import draw_panel
from paribus.reports.plots.panel import Panel
from paribus.reports.plots.scales import STABILITY, draw_ladder
from paribus.reports.site.claims import (
    INTERVAL,
    NO_COST,
    ClaimLine,
    describe_cost,
    describe_effect,
    format_effect,
    list_scales,
)
from paribus.reports.site.collect import Entry
from paribus.reports.tables.blocks import format_number, say_after_exit, say_claim
from paribus.reports.tables.curves import HELD_OUT, ON_THE_WAY, Curve, average, subtract
from paribus.reports.tables.html import capitalize, render_page
from paribus.reports.tables.notes import find_changes
from paribus.reports.tables.schema import ClaimRow, ContrastRow, Table
from paribus.sweeps.control import describe_changes
from paribus.sweeps.sweep import TRIAL
from paribus.verdict.metrics import is_score, lower_is_better

_LEAST = 2  # points of a curve


def render_claim_page(line: ClaimLine, entries: Sequence[Entry]) -> bytes:
    """The page at <study>/claim-<number>.html; entries: all tables of the site."""
    scales = list_scales(entries)
    tables = [entry.table for entry, _ in line.entries]
    ladders = [ladder for ladder in build_ladders(tables) if ladder.claim == line.claim.text]
    stability = STABILITY[rate_stability([claim.verdict for _, claim in line.entries])] if line.entries else ""
    runs = [f"paribus run {line.sweep.path.stem} scale={one}" for one in scales if one != TRIAL] if line.sweep else []
    # the contrasts of all scales, each with its effect at the scales that measured it
    cells: dict[tuple[str, ...], dict[str, Any]] = {}
    last = {entry.scale: claim for entry, claim in line.entries}
    for entry, claim in line.entries:
        for row in claim.contrasts:
            effects = cells.setdefault((row.arm, row.relation, row.versus, row.column), {})
            if row.difference is not None and claim is last[entry.scale]:
                shown = {"effect": format_effect(entry.table, row), "verdict": row.verdict, "n": row.n}
                effects.setdefault(entry.scale, shown)
    return render_page(
        "claim.html",
        line.place,
        line.title,
        line=line,
        owner=capitalize(line.owner),
        scales=scales,
        verdicts=last,
        rows=[{"pair": " ".join(pair), "column": column, "cells": each} for (*pair, column), each in cells.items()],
        interval=INTERVAL,
        stability=stability,
        ladders=[draw_ladder(ladder, scales) for ladder in ladders],
        curves=[panel for entry, claim in line.entries for panel in draw_tokens(entry, claim)],
        parts=[_describe_scale(entry, claim) for entry, claim in line.entries],
        commands=runs,
    )


def _describe_scale(entry: Entry, claim: ClaimRow) -> dict[str, Any]:
    """A claim at one scale, with its contrasts in prose and the runs behind them."""
    table = entry.table
    arms = dict.fromkeys(arm for row in claim.contrasts for arm in row.arms)
    changes = {arm: "; ".join(describe_changes(table.audit.differences.get(arm, {}))) for arm in arms}
    contrasts = []
    for row in claim.contrasts:
        if row.difference is not None:
            size, unit = f"{row.margin * table.about[row.column].factor:g}", name_unit(row.column)
            margin = f"{size} {unit.removesuffix('s') if size == '1' else unit}".rstrip() if row.margin else ""
            runs = pair_runs(table, row)
            contrasts.append(
                {
                    "row": row,
                    "effect": describe_effect(table, row),
                    "margin": margin,
                    "runs": runs,
                    "unit": "seed" if table.universe is None else "setting",
                    "after_exit": say_after_exit(row),
                }
            )
    return {
        "entry": entry,
        "claim": claim,
        "said": say_claim(table, claim),
        "notes": find_changes(table.notes),
        "cost": describe_cost(record for record in entry.records if record.arm in arms) or NO_COST,
        "more": suggest_points(entry, claim),
        "changes": [f"{arm}: {change}" for arm, change in changes.items() if change],
        "contrasts": contrasts,
    }


def pair_runs(table: Table, row: ContrastRow) -> list[dict[str, Any]]:
    """The values of both arms, or the means of both sides of an effect, with each seed that all have; and the effect,
    positive if the first is better.
    """
    arms = {arm.name: arm for arm in table.arms}
    groups = ((row.arm,), (row.versus,)) if row.sides is None else (row.sides[0].arms, row.sides[1].arms)
    sides = []
    for names in groups:
        cells = [arms[name].metrics.get(row.column) if name in arms else None for name in names]
        values = [dict(zip(cell.seeds, cell.values, strict=False)) if cell else {} for cell in cells]
        shared = [seed for seed in values[0] if all(seed in of_arm for of_arm in values)]
        sides.append({seed: sum(of_arm[seed] for of_arm in values) / len(values) for seed in shared})
    first, second = sides
    turn = -1.0 if lower_is_better(row.column) else 1.0
    return [
        {
            "seed": seed,
            "first": format_number(table, row.column, first[seed], 1),
            "second": format_number(table, row.column, second[seed], 1),
            "effect": format_number(table, row.column, turn * (first[seed] - second[seed]), 1, sign=True),
        }
        for seed in first
        if seed in second
    ]


def draw_tokens(entry: Entry, claim: ClaimRow) -> list[Panel]:
    """A panel for each contrast whose column was measured during training: the paired effect with its interval."""
    panels: list[Panel] = []
    if entry.table.universe is not None:  # the tokens of different settings have no mean
        return panels
    for row in (row for row in claim.contrasts if row.sides is None):
        # the effect against tokens over the seeds that both arms have, in the unit that the column is read in
        factor = entry.table.about[row.column].factor
        turn = factor * (-1.0 if lower_is_better(row.column) else 1.0)
        curves: dict[str, dict[int, Curve]] = {row.arm: {}, row.versus: {}}  # {arm: {seed: curve}}
        for (arm, seed), measured in entry.curves.items():
            curve = measured.get(f"{HELD_OUT}{row.column}") or measured.get(f"{row.column}{ON_THE_WAY}")
            if arm in curves and curve is not None:
                curves[arm][seed] = curve
        first, second = curves[row.arm], curves[row.versus]
        pairs = [subtract(first[seed], second[seed]) for seed in first if seed in second]
        effects = [Curve(pair.tokens, [value * turn for value in pair.values]) for pair in pairs if pair.tokens]
        band = average(effects) if effects else None
        if band is None or len(band.tokens) < _LEAST:
            continue
        unit, margin = name_unit(row.column), row.margin * factor
        title = f"{row.column} at {entry.scale} scale{f' ({unit})' if unit else ''}"
        name = f"n={band.n}, {'each seed' if band.runs else '95% interval'}"
        below = f"{row.arm} against {row.versus}; up: the first is better"
        panels.append(draw_panel(title, [name], {name: band}, below, "input tokens of pre-training", margin=margin))
    return panels


def suggest_points(entry: Entry, claim: ClaimRow) -> str:
    """The command that also measures the claim's tasks during pre-training; empty if they were, or there is none."""
    rows = [row for row in claim.contrasts if row.difference is not None and is_score(row.column)]
    arms = {arm for row in rows for arm in row.arms}
    trained = [record for record in entry.records if record.arm in arms and record.budget.get("steps")]
    if entry.sweep is None or not trained or any(record.task_points for record in trained) or not entry.takes_points:
        return ""
    name = entry.sweep.path.stem
    return f"paribus run {name} scale={entry.scale} study={name}_over_tokens evaluation.task_points=3"
