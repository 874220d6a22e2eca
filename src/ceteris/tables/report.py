"""`ceteris report`: a static site of every table that was made, with an index of all claims and their verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ceteris.config import split_overrides
from ceteris.console import say
from ceteris.errors import UserError
from ceteris.tables.build import Table
from ceteris.tables.files import render, write
from ceteris.tables.page import document

_PLACES = {"reports": Path("reports"), "results": Path("analysis/results")}
_SITE = Path("reports/site")


def report(argv: list[str]) -> int:
    """Write the site: index.html and a page a table. Arguments: reports=, results= (folders of tables), out=.

    Raises UserError for unknown arguments and where no table was made yet.
    """
    given = split_overrides(argv)
    if wrong := [key for key in given if key not in (*_PLACES, "out")]:
        raise UserError(f"report does not know '{wrong[0]}='", f"known: {', '.join(_PLACES)}, out")
    tables = found([Path(given.get(key, place)) for key, place in _PLACES.items()])
    if not tables:
        raise UserError("no table was made yet", "ceteris table SWEEP scale=...")
    site = Path(given.get("out", _SITE))
    for name, table in tables.items():
        write(site / name, render(table))
    write(site, {"index.html": index(tables).encode()})
    say(f"written to {site}: index.html and {len(tables)} tables")
    return 0


def found(roots: Sequence[Path]) -> dict[str, Table]:
    """{"<study>/<scale>": table} of every table.json below the roots; the first root that has one counts."""
    tables: dict[str, Table] = {}
    for root in roots:
        for path in sorted(root.glob("*/*/table.json")):
            table: Table = json.loads(path.read_text(encoding="utf-8"))
            tables.setdefault(f"{table['study']}/{table['scale']}", table)
    return dict(sorted(tables.items()))


def index(tables: dict[str, Table]) -> str:
    """The first page: a row for each claim of each table."""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("table", "scale", "claim", "verdict"))
    rows = "\n".join(row for name, table in tables.items() for row in _rows(name, table))
    body = (
        "<h1>Claims and verdicts</h1>\n"
        "<p>Does the published choice hold here? Verdicts hold at their scale alone.</p>\n"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )
    return document("Ceteris", body, "th, td { text-align: left; white-space: normal; vertical-align: top; }\n")


def _rows(name: str, table: Table) -> Iterator[str]:
    link = f'<a href="{escape(name)}/table.html">{escape(table["study"])}</a>'
    for claim in table["claims"] or [{"text": "no claim", "said": ""}]:
        cells = (link, escape(table["scale"]), escape(claim["text"]), escape(claim["said"]))
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
