"""The page of a claim: its effects at each scale and against tokens, and the runs behind each number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from paribus.reporting.ladder import build_ladders, rate_stability
from paribus.reporting.plots.curves import draw_panel
from paribus.reporting.plots.scales import STABILITY, draw_ladder
from paribus.reporting.plots.scene import Scene
from paribus.reporting.site.claims import Line, format_effect, list_scales, render_effect, render_source
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.cost import add_hours, format_hours
from paribus.reporting.site.frame import Row, render_bullets, render_frame, render_link, render_list
from paribus.reporting.tables.blocks import format_number
from paribus.reporting.tables.curves import Curve, average, subtract
from paribus.reporting.tables.html import render_figure, render_scroll, render_verdict
from paribus.reporting.tables.schema import Band, ClaimRow, ContrastRow, Table
from paribus.reporting.turned import name_unit
from paribus.sweeps.sweep import TRIAL
from paribus.verdict.claims import OWNERS
from paribus.verdict.metrics import in_points, lower_is_better

_LEAST = 2  # points of a curve


def render_claim_page(line: Line, entries: Sequence[Entry]) -> bytes:
    """The page at <study>/claim-<number>.html; entries: all tables of the site."""
    title = line.claim.says or line.claim.text
    return render_frame(line.place, title, _render_body(line, title, list_scales(entries)))


def _render_body(line: Line, title: str, scales: Sequence[str]) -> Iterator[str]:
    yield f'<p class="crumbs">{render_link("../index.html", "Claims")} / {escape(line.study)}</p>'
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="lead">{OWNERS[line.claim.whose or ""].capitalize()}. {render_source(line, "../")}.</p>'
    yield f"<p><code>{escape(line.claim.text)}</code></p>"
    yield _render_ladder(line, scales)
    yield f"<p>{STABILITY[rate_stability([claim.verdict for _, claim in line.entries])]}</p>" if line.entries else ""
    tables = [entry.table for entry, _ in line.entries]
    ladders = [ladder for ladder in build_ladders(tables) if ladder.claim == line.claim.text]
    yield render_figure("Effects at each scale", [draw_ladder(ladder, scales) for ladder in ladders])
    yield render_figure(
        "Effects against tokens", [scene for entry, claim in line.entries for scene in draw_tokens(entry, claim)]
    )
    for entry, claim in line.entries:
        yield from _render_scale(entry, claim)
    if line.sweep is not None:
        runs = [f"paribus run {line.sweep.path.stem} scale={scale}" for scale in scales if scale != TRIAL]
        yield f"<details><summary>Run it</summary><pre>{escape(chr(10).join(runs))}</pre></details>"


def _render_ladder(line: Line, scales: Sequence[str]) -> str:
    """Contrasts by scale: effect, interval and n, each a link to its runs."""
    found = {entry.scale: (entry, claim) for entry, claim in line.entries}
    rows = [Row(["verdict", *(_render_verdict(*found[one]) if one in found else "" for one in scales)], {})]
    keys = dict.fromkeys(
        (row.arm, row.relation, row.versus, row.column) for _, claim in line.entries for row in claim.contrasts
    )
    for key in keys:
        name = f'<span class="name">{escape(" ".join(key[:3]))}</span> <span class="small">{escape(key[3])}</span>'
        rows.append(Row([name, *(_render_rung(*found[one], key) if one in found else "" for one in scales)], {}))
    columns = {one: one for one in ("", *scales)}
    table = render_list(columns, rows, "Effects at each scale", sortable=False)
    below = "Effects are turned: + favors the arm that the claim names first. A scale without a verdict was not run."
    return f'{render_scroll(table, "Effects at each scale")}<p class="below">{below}</p>'


def _render_line(name: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _render_verdict(entry: Entry, claim: ClaimRow) -> str:
    return render_verdict(claim.verdict, render_link(f"#{entry.scale}", claim.word))


def _render_rung(entry: Entry, claim: ClaimRow, key: tuple[str, ...]) -> str:
    for row in claim.contrasts:
        if (row.arm, row.relation, row.versus, row.column) == key and row.difference is not None:
            number = render_link(f"#{entry.scale}", format_effect(entry.table, row))
            return f'{number}<br><span class="small">{escape(row.verdict)}, n = {row.n}</span>'
    return ""


def draw_tokens(entry: Entry, claim: ClaimRow) -> list[Scene]:
    """A panel for each contrast whose column was measured on the way: the paired effect with its interval."""
    found = ((row, _measure_on_the_way(entry, row)) for row in claim.contrasts)
    return [_draw_panel(entry, row, band) for row, band in found if band is not None and len(band.tokens) >= _LEAST]


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
    found = {seed: curves.get(f"validation/{column}") or curves.get(column) for seed, curves in own.items()}
    return {seed: curve for seed, curve in found.items() if curve is not None}


def _draw_panel(entry: Entry, row: ContrastRow, band: Band) -> Scene:
    unit, margin = name_unit(row.column), row.margin * (100.0 if in_points(row.column) else 1.0)
    title = f"{row.column} at {entry.scale} scale{f' ({unit})' if unit else ''}"
    shown = "each seed" if band.runs else "mean and 95% interval"
    name = f"{shown}, paired (n={band.n})"
    below = f"{row.arm} against {row.versus}; up: the first is better"
    return draw_panel(title, [name], {name: band}, below, "tokens", margin=margin)


def _render_scale(entry: Entry, claim: ClaimRow) -> Iterator[str]:
    """The verdict in prose and the runs behind it."""
    yield f'<section id="{escape(entry.scale)}"><h2>At {escape(entry.scale)} scale</h2>'
    table = f"{render_link(f'{entry.scale}/index.html', 'the whole table')}"
    yield f"<p>{render_verdict(claim.verdict, escape(claim.said))}; {table}</p>"
    arms = dict.fromkeys(arm for row in claim.contrasts for arm in (row.arm, row.versus))
    cost = format_hours(add_hours(record for record in entry.found.records if record.arm in arms))
    yield f"<p>Cost of these arms: {escape(cost)} of pre-training.</p>" if cost else ""
    changes = [line for arm in arms if (line := _describe_changes(entry.table, arm))]
    yield f"<p>How the arms differ from the baseline, {escape(entry.table.baseline)}:</p>" if changes else ""
    yield render_bullets(changes) if changes else ""
    for row in claim.contrasts:
        if row.difference is not None:
            yield f"<h3>{escape(row.pair)} on {escape(row.column)}</h3>"
            yield f"<p>{_say_contrast(entry.table, row)}</p>{_render_runs(entry, row)}"
    yield "</section>"


def _say_contrast(table: Table, row: ContrastRow) -> str:
    reason = f" ({escape(row.reason)})" if row.reason else ""
    margin = f"; margin {row.margin * table.about[row.column].factor:g}" if row.margin else ""
    place = f"{table.scale}/{row.arm}.html"
    return f"{render_effect(table, row, place)}{margin}. {render_verdict(row.verdict, escape(row.verdict))}{reason}"


def _render_runs(entry: Entry, row: ContrastRow) -> str:
    """Both arms' values seed by seed, each a link to its run."""
    table, arms = entry.table, {arm.name: arm for arm in entry.table.arms}
    cells = [arms[name].metrics.get(row.column) if name in arms else None for name in (row.arm, row.versus)]
    first, second = (dict(zip(cell.seeds, cell.values, strict=False)) if cell else {} for cell in cells)
    turn = -1.0 if lower_is_better(row.column) else 1.0
    lines = []
    for seed in (seed for seed in first if seed in second):
        links = [
            render_link(f"{entry.scale}/{arm}.html#seed{seed}", format_number(table, row.column, values[seed], 1))
            for arm, values in ((row.arm, first), (row.versus, second))
        ]
        effect = format_number(table, row.column, turn * (first[seed] - second[seed]), 1, sign=True)
        lines.append(_render_line(f"seed {seed}", [*links, effect]))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("", row.arm, row.versus, "effect"))
    caption = f'<caption class="unseen">Runs behind {escape(row.pair)} on {escape(row.column)}</caption>'
    body = f'<table class="numbers">{caption}<thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return render_scroll(body, f"Runs behind {row.pair} on {row.column}")


def _describe_changes(table: Table, arm: str) -> str:
    """How an arm's config differs from the baseline's."""
    found = sorted(table.audit.differences.get(arm, {}).items())
    changes = "; ".join(f"{key} = {own} (baseline: {base})" for key, (base, own) in found)
    return f"{arm}: {changes}" if changes else ""
