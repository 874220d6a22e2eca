"""The page of one table: verdicts, numbers that lead to their runs, drawings, cost, command, audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from paribus.core.errors import UserError
from paribus.reporting.audit import IN_ORDER
from paribus.reporting.plots.drawing import View
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.cost import describe_cost
from paribus.reporting.site.frame import render_bullets, render_frame, render_link
from paribus.reporting.tables.blocks import NONE, Text
from paribus.reporting.tables.html import (
    render_claims,
    render_evidence,
    render_facts,
    render_figures,
    render_notes,
    render_results,
)  # fmt: skip
from paribus.sweeps.sweep import SCRATCH


def render_table_page(
    entry: Entry, siblings: Sequence[Entry], places: Mapping[str, str], pages: Sequence[str], files: Sequence[str]
) -> bytes:
    """The page at <study>/<scale>/index.html.

    Args:
        siblings: all tables of the study; places: {claim: its page}.
        pages: arms that have a page; files: names of the files beside this page.
    """
    body = _render_body(entry, siblings, places, pages, files)
    return render_frame(f"{entry.place}/index.html", entry.table.label, body)


def _render_body(
    entry: Entry, siblings: Sequence[Entry], places: Mapping[str, str], pages: Sequence[str], files: Sequence[str]
) -> Iterator[str]:
    table = entry.table

    def link(cell: Text) -> str | None:
        if cell.paper is not None:
            return f"../../published/{cell.paper}.html"
        return f"{cell.arm}.html" if cell.arm in pages and cell.text != NONE else None

    yield f'<p class="crumbs">{render_link("../../index.html", "Claims")} / {_link_scales(entry, siblings)}</p>'
    yield f"<h1>{escape(table.label)}</h1>"
    yield f"<p class=lead>{escape(table.title)}</p>" if table.title else ""
    yield from render_facts(table)
    yield from render_claims(table, places)
    yield from render_results(table, link)
    yield from render_figures(View(table, [sibling.table for sibling in siblings], entry.landscape))
    yield from render_evidence(table, link)
    yield _render_runs(pages)
    yield from _render_cost(entry)
    yield from _render_audit(entry)
    yield render_notes(table)
    yield "<h2>Files</h2><p>" + " · ".join(render_link(name, name) for name in files) + "</p>"


def _link_scales(entry: Entry, siblings: Sequence[Entry]) -> str:
    named = [
        escape(one.scale) if one.scale == entry.scale else render_link(f"../{one.scale}/index.html", one.scale)
        for one in siblings
    ]
    return f"{escape(entry.study)}: {' · '.join(named)}"


def _render_runs(pages: Sequence[str]) -> str:
    if not pages:
        return ""
    named = " · ".join(render_link(f"{arm}.html", arm) for arm in pages)
    return f"<h2>Runs, configs and corrupted examples</h2><p>{named}</p>"


def _render_cost(entry: Entry) -> Iterator[str]:
    """What the runs cost, and how to repeat them."""
    done = [record for record in entry.found.records if record.done]
    cost = describe_cost(done)
    yield "<h2>Cost and command</h2>"
    if done:
        yield f"<p>{len(done)} finished runs{f': {escape(cost)}' if cost else ''}.</p>"
    yield f"<pre>{escape(write_command(entry))}</pre>"


def write_command(entry: Entry) -> str:
    """The commands that build the table again."""
    name = entry.sweep.path.stem if entry.sweep else entry.study
    overrides = list(entry.manifest.overrides) if entry.manifest else []
    renamed = [] if entry.sweep is None or entry.sweep.study == entry.study else [f"study={entry.study}"]
    run = " ".join(["paribus run", name, f"scale={entry.scale}", *renamed, *overrides])
    return "\n".join([run, " ".join(["paribus table", name, f"scale={entry.scale}", *renamed])])


def _render_audit(entry: Entry) -> Iterator[str]:
    yield "<h2>Audit</h2>"
    lines, report = _check(entry), entry.report
    findings = [f"✗ {finding}" for finding in report.findings] or [IN_ORDER] if report else []
    yield '<ul class="findings">' + "".join(_render_finding(line) for line in (*lines, *findings)) + "</ul>"
    for part in report.sections if report else ():
        yield f"<details><summary>{escape(part.heading)}</summary>{render_bullets(part.lines)}</details>"


def _check(entry: Entry) -> list[str]:
    try:
        odd, count = entry.check()
    except UserError as error:
        return [f"✗ {error}"]
    return [f"✗ {line}" for line in odd] or [f"✓ all {count} numbers of the table match the records"]


def _render_finding(line: str) -> str:
    return f'<li class="{"ok" if line.startswith("✓") else "amiss"}">{escape(line)}</li>'


def count_runs(entry: Entry) -> Mapping[str, int]:
    """{arm: number of records}, the model from scratch included."""
    names = [*(arm.name for arm in entry.table.arms), SCRATCH]
    counts = {name: sum(record.arm == name for record in entry.found.records) for name in names}
    return {name: count for name, count in counts.items() if count}
