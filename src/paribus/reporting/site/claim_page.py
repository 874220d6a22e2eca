"""The page of a claim: its effects at each scale and against tokens, and the runs behind each number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from paribus.reporting.ladder import build_ladders, rate_stability
from paribus.reporting.plots.scales import STABILITY, draw_ladder
from paribus.reporting.site.claims import INTERVAL, Line, format_effect, list_scales, render_effect, render_source
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.cost import NO_COST, describe_cost
from paribus.reporting.site.frame import Row, render_bullets, render_frame, render_link, render_list
from paribus.reporting.site.tokens import draw_tokens, suggest_points
from paribus.reporting.tables.blocks import format_number, say_claim
from paribus.reporting.tables.html import capitalize, render_figure, render_scroll, render_verdict
from paribus.reporting.tables.notes import REVISED
from paribus.reporting.tables.schema import ClaimRow, ContrastRow, Table
from paribus.reporting.turned import name_unit
from paribus.sweeps.control import describe_changes
from paribus.sweeps.sweep import TRIAL
from paribus.verdict.claims import OWNERS
from paribus.verdict.metrics import lower_is_better


def render_claim_page(line: Line, entries: Sequence[Entry]) -> bytes:
    """The page at <study>/claim-<number>.html; entries: all tables of the site."""
    title = line.claim.says or line.claim.text
    return render_frame(line.place, title, _render_body(line, title, list_scales(entries)))


def _render_body(line: Line, title: str, scales: Sequence[str]) -> Iterator[str]:
    yield f'<p class="crumbs">{render_link("../index.html", "Claims")} / {escape(line.study)}</p>'
    yield f"<h1>{escape(title)}</h1>"
    said = [capitalize(OWNERS[line.claim.whose or ""]), render_source(line, "../")]
    yield f'<p class="lead">{" ".join(f"{part}." for part in said if part)}</p>'
    yield f"<p><code>{escape(line.claim.text)}</code></p>"
    yield _render_ladder(line, scales)
    yield f"<p>{STABILITY[rate_stability([claim.verdict for _, claim in line.entries])]}</p>" if line.entries else ""
    tables = [entry.table for entry, _ in line.entries]
    ladders = [ladder for ladder in build_ladders(tables) if ladder.claim == line.claim.text]
    yield render_figure("Effects at each scale", [draw_ladder(ladder, scales) for ladder in ladders])
    panels = [panel for entry, claim in line.entries for panel in draw_tokens(entry, claim)]
    yield render_figure("Effects against tokens", panels)
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
    below = (
        f"Effects are turned: + favors the arm that the claim names first. [Brackets]: {INTERVAL}. A scale without a "
        "verdict was not run."
    )
    return f'{render_scroll(table, "Effects at each scale")}<p class="below">{escape(below)}</p>'


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


def _render_scale(entry: Entry, claim: ClaimRow) -> Iterator[str]:
    """The verdict in prose and the runs behind it."""
    yield f'<section id="{escape(entry.scale)}"><h2>At {escape(entry.scale)} scale</h2>'
    table = f"{render_link(f'{entry.scale}/index.html', 'the whole table')}"
    yield f"<p>{render_verdict(claim.verdict, escape(say_claim(entry.table, claim)))}; {table}</p>"
    arms = dict.fromkeys(arm for row in claim.contrasts for arm in (row.arm, row.versus))
    cost = describe_cost(record for record in entry.found.records if record.arm in arms)
    yield from (f"<p>{escape(note)}</p>" for note in entry.table.notes if note.startswith(REVISED))
    yield f"<p>Cost of these arms: {escape(cost or NO_COST)}.</p>"
    if more := suggest_points(entry, claim):
        said = "The tasks were fine-tuned at the end alone. To see the effect on them against the tokens as well:"
        yield f"<p>{said}</p><pre>{escape(more)}</pre>"
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
    size, unit = f"{row.margin * table.about[row.column].factor:g}", name_unit(row.column)
    margin = f"; margin {size} {unit.removesuffix('s') if size == '1' else unit}".rstrip() if row.margin else ""
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
    changes = "; ".join(describe_changes(table.audit.differences.get(arm, {})))
    return f"{arm}: {changes}" if changes else ""
