"""`paribus report`: a static site of every claim, table, run and published table."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.core.arguments import Arguments, Option, Verb, path, whole
from paribus.sweeps.request import CACHE, RESULTS, RUNS

REPORTS = Option("reports", "folder of tables", Path("reports"), path)
OUT = Option("out", "folder of the site", Path("reports/site"), path)
EXAMPLES = Option("examples", "corrupted examples per arm, 0 for none", 3, whole(0))


@click.command(
    cls=Verb,
    params=[OUT, EXAMPLES, REPORTS, RUNS, RESULTS, CACHE],
    example="paribus report out=site",
)
def report(given: Arguments) -> int:
    """Write a static site of every claim, table, run and published table. Open its index.html in a browser.
    \f
    Raises UserError if there is no table yet.
    """
    from paribus.reports.site.pages import write_site

    write_site(given[OUT], given[REPORTS], given[RUNS], given[RESULTS], given[EXAMPLES], given[CACHE])
    return 0
