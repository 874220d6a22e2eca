"""A static site of every claim, table, run and published table; it needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paribus.core.console import progress, say
from paribus.core.errors import UserError
from paribus.reporting.site import arm_page, table_page
from paribus.reporting.site import published as atlas
from paribus.reporting.site.collect import Entry, collect, known, untabled
from paribus.reporting.site.frame import assets
from paribus.reporting.site.index import index
from paribus.reporting.site.samples import Samples, cache_folder
from paribus.reporting.tables.files import texts, write


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
    entries = collect(reports, runs, results)
    for study, scale in untabled(entries, runs, results):
        say(f"{study} at scale={scale} has runs but no table: paribus table {study} scale={scale}")
    if not entries:
        raise UserError("there is no table yet", "paribus table SWEEP scale=...")
    samples = Samples(examples, str(cache) if cache else cache_folder())
    count = size = 0
    for path, content in pages(entries, samples):
        write((site / path).parent, {Path(path).name: content})
        count, size = count + 1, size + len(content)
    say(f"written to {site}: {count} files, {size / 1e6:.1f} MB, {len(entries)} tables; open {site / 'index.html'}")


def pages(entries: Sequence[Entry], samples: Samples) -> Iterator[tuple[str, bytes]]:
    """(path, content) of every file of the site."""
    sweeps = known()
    yield from assets().items()
    yield "index.html", index(entries, sweeps)
    yield from atlas.pages(entries, sweeps)
    for entry in progress(entries, "tables", len(entries), "table"):
        yield from _table(entry, [one for one in entries if one.study == entry.study], samples)


def _table(entry: Entry, siblings: Sequence[Entry], samples: Samples) -> Iterator[tuple[str, bytes]]:
    arms = list(table_page.arms_with_runs(entry))
    files = texts(entry.table)
    yield f"{entry.place}/index.html", table_page.page(entry, siblings, arms, list(files))
    for name, text in files.items():
        yield f"{entry.place}/{name}", text.encode()
    for arm in arms:
        yield f"{entry.place}/{arm}.html", arm_page.page(entry, arm, samples.of(entry, arm))
