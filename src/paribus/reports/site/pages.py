"""A static site of every claim, table, run, search and published table; it needs only a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from paribus.core.console import progress, say
from paribus.core.errors import UserError
from paribus.reports.site.arm_page import list_records, name_record, render_arm
from paribus.reports.site.claim_page import render_claim_page
from paribus.reports.site.claims import make_lines
from paribus.reports.site.collect import Entry, collect, find_untabled, load_sweeps
from paribus.reports.site.index import render_index
from paribus.reports.site.overview import render_overview, render_scales
from paribus.reports.site.published import render_atlas
from paribus.reports.site.samples import Samples, find_cache
from paribus.reports.site.searches import Search, find_searches, render_search_page
from paribus.reports.site.table_page import count_runs, render_table_page
from paribus.reports.tables.files import render_texts, write_files
from paribus.reports.tables.html import make_style
from paribus.sweeps.sweep_file import names


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
        asked = study if study in named else f"SWEEP study={study}"
        say(f"{study} at scale={scale} has runs but no table: `paribus table {asked} scale={scale}`")
    searches = find_searches(runs)
    if not entries and not searches:
        mend = (
            "for example, `paribus run roberta_table1 scale=smoke` and then `paribus table roberta_table1 scale=smoke`"
        )
        raise UserError("there is no table yet", mend)
    samples = Samples(examples, str(cache) if cache else find_cache())
    count = size = 0
    for path, content in render_pages(entries, searches, samples):
        write_files((site / path).parent, {Path(path).name: content})
        count, size = count + 1, size + len(content)
    say(f"written to {site}: {count} files, {size / 1e6:.1f} MB, {len(entries)} tables; open {site / 'index.html'}")


def read_assets() -> dict[str, bytes]:
    """{path in the site: content} of styles and scripts."""
    folder = files("paribus.reports.site") / "assets"
    assets = {f"assets/{name}": (folder / name).read_bytes() for name in ("site.css", "site.js", "theme.js")}
    return {**assets, "assets/table.css": make_style().encode()}


def render_pages(entries: Sequence[Entry], searches: Sequence[Search], samples: Samples) -> Iterator[tuple[str, bytes]]:
    """(path, content) of every file of the site."""
    sweeps = load_sweeps()
    lines = make_lines(entries, sweeps)
    yield from read_assets().items()
    yield "index.html", render_index(entries, lines, searches)
    yield "claims.md", render_overview(lines)
    yield "scales.html", render_scales(entries, lines)
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
