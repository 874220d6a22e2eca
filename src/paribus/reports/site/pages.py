"""A static site of every claim, table, run, search and published table; it needs only a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from paribus.core.console import progress, say
from paribus.core.errors import UserError
from paribus.core.jsonable import to_json
from paribus.reports.audit import IN_ORDER
from paribus.reports.decision_accuracy import predict_large
from paribus.reports.plots.panel import TableView
from paribus.reports.site.arm_page import Samples, find_cache, list_records, name_record, render_arm
from paribus.reports.site.claim_page import render_claim_page
from paribus.reports.site.claims import describe_cost, make_lines
from paribus.reports.site.collect import Entry, collect, find_untabled, load_sweeps
from paribus.reports.site.columns import measure_all, render_columns, write_columns
from paribus.reports.site.overview import render_index, render_overview, render_scales
from paribus.reports.site.searches import Search, find_searches, render_search_page
from paribus.reports.tables.blocks import NONE, Block, CellText
from paribus.reports.tables.files import render_texts, write_files
from paribus.reports.tables.html import make_parts, make_style, render_page
from paribus.sweeps.sweep import SCRATCH, Sweep
from paribus.sweeps.sweep_file import names
from paribus.verdict.published import ids, numbers, row_flags, table

FIRST = "roberta_table1"  # a sweep to begin with


def write_site(site: Path, reports: Path, runs: Path, results: Path, examples: int, cache: Path | None) -> None:
    """Write the site.

    Args:
        site: its folder.
        reports, results: folders of tables. runs: folder of the records.
        examples: how many corrupted examples each arm shows.
        cache: of prepared text, None for the usual folder.

    Raises:
        UserError: if there is no table yet.
    """
    entries, named = collect(reports, runs, results), names()
    for study, scale in find_untabled(entries, runs, results):
        if study in named:
            mend = f"type `paribus table {study} scale={scale}`"
        else:
            mend = f"type `paribus table`, the path of its sweep file, study={study} and scale={scale}"
        say(f"{study} at scale={scale} has runs but no table: {mend}")
    searches = find_searches(runs)
    if not entries and not searches:
        mend = f"run a sweep and make its table, such as `paribus run {FIRST}` and then `paribus table {FIRST}`"
        raise UserError(f"there is no table in {reports} or {results} yet", mend)
    samples = Samples(examples, str(cache) if cache else find_cache())
    count = size = 0
    for path, content in render_pages(entries, searches, samples):
        write_files((site / path).parent, {Path(path).name: content})
        count, size = count + 1, size + len(content)
    say(f"written to {site}: {count} files, {size / 1e6:.1f} MB, {len(entries)} tables; open {site / 'index.html'}")


def render_pages(entries: Sequence[Entry], searches: Sequence[Search], samples: Samples) -> Iterator[tuple[str, bytes]]:
    """(path, content) of every file of the site."""
    sweeps = load_sweeps()
    lines = make_lines(entries, sweeps)
    for name in ("site.css", "site.js", "theme.js"):
        yield f"assets/{name}", (files("paribus.reports.site") / "assets" / name).read_bytes()
    yield "assets/table.css", make_style().encode()
    yield "index.html", render_index(entries, lines, searches)
    prediction = predict_large([entry.table for entry in entries])
    yield "claims.md", render_overview(lines, prediction)
    yield "scales.html", render_scales(entries, lines, prediction)
    if prediction is not None:
        yield "scales.json", (json.dumps(to_json(prediction), indent=1) + "\n").encode()
    signals = measure_all(entries)
    if signals:
        yield "columns.md", render_columns(signals)
        yield "columns.json", write_columns(signals)
    yield from render_atlas(entries, sweeps)
    for search in searches:
        yield search.place, render_search_page(search)
    for line in lines:
        yield line.place, render_claim_page(line, entries)
    for entry in progress(entries, "tables", len(entries), "table"):
        siblings = [one for one in entries if one.study == entry.study]
        places = {line.claim.text: f"../claim-{line.number}.html" for line in lines if line.study == entry.study}
        arms, texts = list(count_runs(entry)), render_texts(entry.table)
        yield f"{entry.place}/index.html", render_table_page(entry, siblings, places, arms, list(texts))
        for name, text in texts.items():
            yield f"{entry.place}/{name}", text.encode()
        for arm in arms:
            yield f"{entry.place}/{arm}.html", render_arm(entry, arm, samples.draw(entry, arm))
            for seed, content in list_records(entry, arm).items():
                yield f"{entry.place}/{name_record(arm, seed)}", content


def render_table_page(
    entry: Entry, siblings: Sequence[Entry], places: Mapping[str, str], arms: Sequence[str], files: Sequence[str]
) -> bytes:
    """The page at <study>/<scale>/index.html.

    Args:
        siblings: all tables of the study; places: {claim: its page}.
        arms: those that have a page; files: names of the files beside this page.
    """

    def link(cell: CellText) -> str | None:
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
        parts=make_parts(TableView(entry.table, [one.table for one in siblings], entry.landscape), places, link),
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


def render_atlas(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the list and of each published table."""
    made = {entry.table.paper.table for entry in entries if entry.table.paper}
    listed = []  # (table, its authors, the words that a search looks through, our tables of it)
    for paper in map(table, ids()):
        text = " ".join([paper.id, paper.paper, paper.source, paper.claim, *paper.flags]).lower()
        listed.append((paper, paper.authors_year.partition(" (")[0], text, _list_uses(paper.id, entries, sweeps)))
    path = "published/index.html"
    yield (
        path,
        render_page(
            "published_index.html",
            path,
            "Published tables",
            papers=sorted({authors for _, authors, _, _ in listed}),
            here=[one for one in listed if one[0].id in made],
            others=[one for one in listed if one[0].id not in made],
        ),
    )
    for paper, _, _, uses in listed:
        path = f"published/{paper.id}.html"
        header, rows, left = numbers(paper)
        flags = [f"Flag: {flag}" for flag in paper.flags] or ["No flag on the table as a whole."]
        page = render_page(
            "published.html",
            path,
            f"{paper.id}: {paper.paper}",
            table=paper,
            block=Block(paper.id, header, [[CellText(text) for text in row] for row in rows], [], left),
            row_flags=[f"[{at}] {flag}" for at, flag in enumerate(row_flags(paper), 1)],
            sources=[*flags, *(f"Read in: {place}" for place in paper.verified)],
            uses=uses,
        )
        yield path, page


def _list_uses(name: str, entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> list[dict[str, str]]:
    """Our tables of a published one, below the folder of its page, then the sweeps that have none."""
    made = [entry for entry in entries if entry.table.paper and entry.table.paper.table == name]
    studies = {entry.study for entry in made}
    waiting = [s.study for s in sweeps.values() if s.published.get("table") == name and s.study not in studies]
    return [
        *({"text": f"{each.study} at {each.scale} scale", "place": f"../{each.place}/index.html"} for each in made),
        *({"text": f"{study} (not run)", "place": ""} for study in sorted(waiting)),
    ]
