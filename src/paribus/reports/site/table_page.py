"""The page of one table: verdicts, numbers that lead to their runs, drawings, cost, command, audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core.errors import UserError
from paribus.reports.audit import IN_ORDER
from paribus.reports.plots.drawing import View
from paribus.reports.rendering import render_page
from paribus.reports.site.collect import Entry
from paribus.reports.site.cost import describe_cost
from paribus.reports.tables.blocks import NONE, Text
from paribus.reports.tables.html import make_parts
from paribus.sweeps.sweep import SCRATCH


def render_table_page(
    entry: Entry, siblings: Sequence[Entry], places: Mapping[str, str], arms: Sequence[str], files: Sequence[str]
) -> bytes:
    """The page at <study>/<scale>/index.html.

    Args:
        siblings: all tables of the study; places: {claim: its page}.
        arms: those that have a page; files: names of the files beside this page.
    """

    def link(cell: Text) -> str | None:
        if cell.paper is not None:
            return f"../../published/{cell.paper}.html"
        return f"{cell.arm}.html" if cell.arm in arms and cell.text != NONE else None

    report = entry.report
    return render_page(
        "table.html",
        f"{entry.place}/index.html",
        entry.table.label,
        entry=entry,
        siblings=siblings,
        parts=make_parts(View(entry.table, [one.table for one in siblings], entry.landscape), places, link),
        arms=arms,
        cost=describe_cost(entry.finished),
        command=write_command(entry),
        findings=list_findings(entry),
        sections=report.sections if report else [],
        files=files,
    )


def write_command(entry: Entry) -> str:
    """The commands that build the table again."""
    name = entry.sweep.path.stem if entry.sweep else entry.study
    overrides = list(entry.manifest.overrides) if entry.manifest else []
    renamed = [] if entry.sweep is None or entry.sweep.study == entry.study else [f"study={entry.study}"]
    run = " ".join(["paribus run", name, f"scale={entry.scale}", *renamed, *overrides])
    return "\n".join([run, " ".join(["paribus table", name, f"scale={entry.scale}", *renamed])])


def list_findings(entry: Entry) -> list[str]:
    """Whether the table follows from its records, then what their audit found; each line says whether all is well."""
    try:
        odd, count = entry.check()
        lines = [f"✗ {line}" for line in odd] or [f"✓ all {count} numbers of the table match the records"]
    except UserError as error:
        lines = [f"✗ {error}"]
    if entry.report:
        lines += [f"✗ {finding}" for finding in entry.report.findings] or [IN_ORDER]
    return lines


def count_runs(entry: Entry) -> Mapping[str, int]:
    """{arm: number of records}, the model from scratch included."""
    names = [*(arm.name for arm in entry.table.arms), SCRATCH]
    counts = {name: sum(record.arm == name for record in entry.records) for name in names}
    return {name: count for name, count in counts.items() if count}
