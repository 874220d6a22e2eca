"""`paribus report`: a static site of every claim, table, run and published table; needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paribus.core.config import split_overrides
from paribus.core.console import progress, say
from paribus.core.errors import UserError
from paribus.reporting.site import arm_page, table_page
from paribus.reporting.site import published as atlas
from paribus.reporting.site.collect import Entry, collect, known, untabled
from paribus.reporting.site.frame import assets
from paribus.reporting.site.index import index
from paribus.reporting.site.samples import Samples, cache_folder
from paribus.reporting.tables.files import texts, write

PLACES = {"reports": Path("reports"), "runs": Path("runs"), "results": Path("analysis/results")}
SITE = Path("reports/site")
EXAMPLES = 3
_KEYS = (*PLACES, "out", "examples", "paths.cache")


def report(argv: list[str]) -> int:
    """Write the site.

    Arguments: reports=, results= (folders of tables), runs= (of records), out=, examples= (corrupted examples an arm,
    0: none), paths.cache=. Raises UserError for unknown arguments and where no table was made yet.
    """
    given = split_overrides(argv)
    if wrong := [key for key in given if key not in _KEYS]:
        raise UserError(f"report does not know '{wrong[0]}='", f"known: {', '.join(_KEYS)}")
    examples = given.get("examples", str(EXAMPLES))
    if not examples.isdecimal():
        raise UserError(f"examples={examples}", "give a whole number, 0 for none")
    places = {key: Path(given.get(key, place)) for key, place in PLACES.items()}
    entries = collect(**places)
    for study, scale in untabled(entries, places["runs"], places["results"]):
        say(f"{study} at scale={scale} was run but has no table: paribus table {study} scale={scale}")
    if not entries:
        raise UserError("no table was made yet", "paribus table SWEEP scale=...")
    site = Path(given.get("out", SITE))
    samples = Samples(int(examples), given.get("paths.cache") or cache_folder())
    count = size = 0
    for path, content in pages(entries, samples):
        write((site / path).parent, {Path(path).name: content})
        count, size = count + 1, size + len(content)
    say(f"written to {site}: {count} files, {size / 1e6:.1f} MB, {len(entries)} tables; open {site / 'index.html'}")
    return 0


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
