"""The page of one table: verdicts, numbers that lead to their runs, drawings, cost, command, audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from paribus.core.errors import UserError
from paribus.reporting.audit.follow import IN_ORDER
from paribus.reporting.plots import landscape, scaling
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import bullets, framed, link
from paribus.reporting.tables.page import DRAWINGS, TITLES, claims, evidence, figure, notes, results
from paribus.reporting.tables.words import NONE, Cell
from paribus.sweeps.board import duration
from paribus.sweeps.sweep import SCRATCH
from paribus.verdict.ladder import ladders

DOWNLOADS = ("table.md", "table.tex", "table.html", "table.json", "table.csv")


def page(entry: Entry, siblings: Sequence[Entry], pages: Sequence[str], files: Sequence[str]) -> bytes:
    """The page at <study>/<scale>/index.html.

    Args:
        siblings: all tables of the study; pages: arms that have a page; files: names of the files beside this page.
    """
    title = f"{entry.study} at {entry.scale} scale"
    return framed(f"{entry.place}/index.html", title, _body(entry, title, siblings, pages, files))


def _body(
    entry: Entry, title: str, siblings: Sequence[Entry], pages: Sequence[str], files: Sequence[str]
) -> Iterator[str]:
    table = entry.table

    def linked(cell: Cell) -> str | None:
        if cell.paper is not None:
            return f"../../published/{cell.paper}.html"
        return f"{cell.arm}.html" if cell.arm in pages and cell.text != NONE else None

    yield f'<p class="crumbs">{link("../../index.html", "Claims")} / {_scales(entry, siblings)}</p>'
    yield f"<h1>{escape(title)}</h1>"
    yield f"<p class=lead>{escape(table['title'])}</p>" if table["title"] else ""
    yield from claims(table)
    yield from results(table, linked)
    for name, panels in DRAWINGS.items():
        yield figure(TITLES[name], panels(table))
    yield figure("Effect against compute", scaling.panels(ladders([sibling.table for sibling in siblings])))
    if (measured := entry.landscape) is not None:
        drawn = [*landscape.lines(measured), *landscape.planes(measured)]
        yield figure(f"Training loss around the fine-tuned weights, {measured['task']}", drawn)
    yield from evidence(table, linked)
    yield _runs(pages)
    yield from _cost(entry)
    yield from _audit(entry)
    yield notes(table)
    yield "<h2>Files</h2><p>" + " · ".join(link(name, name) for name in files) + "</p>"


def _scales(entry: Entry, siblings: Sequence[Entry]) -> str:
    """The study's tables at other scales."""
    named = [
        escape(one.scale) if one.scale == entry.scale else link(f"../{one.scale}/index.html", one.scale)
        for one in siblings
    ]
    return f"{escape(entry.study)}: {' · '.join(named)}"


def _runs(pages: Sequence[str]) -> str:
    if not pages:
        return ""
    named = " · ".join(link(f"{arm}.html", arm) for arm in pages)
    return f"<h2>Runs, configs and corrupted examples</h2><p>{named}</p>"


def _cost(entry: Entry) -> Iterator[str]:
    """What the runs cost and how they are made again."""
    done = [record for record in entry.found.records if record["status"] == "done"]
    flops = sum(float(record["budget"].get("flops", 0.0)) for record in done)
    seconds = sum(float(record["budget"].get("train_seconds", 0.0)) for record in done)
    yield "<h2>Cost and command</h2>"
    if done:
        yield f"<p>{len(done)} finished runs, {flops:.3g} FLOPs and {duration(seconds)} of pre-training in all.</p>"
    yield f"<pre>{escape(command(entry))}</pre>"


def command(entry: Entry) -> str:
    """The commands that make the table again."""
    name = entry.sweep.path.stem if entry.sweep else entry.study
    overrides = list(entry.manifest.overrides) if entry.manifest else []
    renamed = [] if entry.sweep is None or entry.sweep.study == entry.study else [f"study={entry.study}"]
    run = " ".join(["paribus run", name, f"scale={entry.scale}", *renamed, *overrides])
    return "\n".join([run, " ".join(["paribus table", name, f"scale={entry.scale}", *renamed])])


def _audit(entry: Entry) -> Iterator[str]:
    yield "<h2>Audit</h2>"
    lines, told = _followed(entry), entry.facts
    findings = [f"✗ {finding}" for finding in told.findings] or [IN_ORDER] if told else []
    yield '<ul class="findings">' + "".join(_finding(line) for line in (*lines, *findings)) + "</ul>"
    for part in told.parts if told else ():
        yield f"<details><summary>{escape(part.heading)}</summary>{bullets(part.lines)}</details>"


def _followed(entry: Entry) -> list[str]:
    try:
        odd, count = entry.follows()
    except UserError as error:
        return [f"✗ {error}"]
    return [f"✗ {line}" for line in odd] or [f"✓ all {count} numbers of the table follow from the records"]


def _finding(line: str) -> str:
    return f'<li class="{"ok" if line.startswith("✓") else "amiss"}">{escape(line)}</li>'


def arms_with_runs(entry: Entry) -> Mapping[str, int]:
    """{arm: number of records}, the anchor included."""
    names = [*(arm["name"] for arm in entry.table["arms"]), SCRATCH]
    counts = {name: sum(record["arm"] == name for record in entry.found.records) for name in names}
    return {name: count for name, count in counts.items() if count}
