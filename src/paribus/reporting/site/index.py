"""The first page: every claim with its verdict at each scale, to be searched, filtered and sorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.reporting.site.collect import SCALES, Entry
from paribus.reporting.site.frame import Row, framed, link, listing, search
from paribus.reporting.tables.page import slug
from paribus.reporting.tables.words import interval, number
from paribus.sweeps.sweep import Sweep
from paribus.verdict.ladder import stability
from paribus.verdict.published import table as published_table

COLUMNS = {"study": "table", "claim": "claim", "verdict": "verdict", "effect": "effect", "paper": "paper"}
OWN = "no paper"
DECIDED = {"reproduced", "contradicted", "equivalent"}


class Line(NamedTuple):
    """A claim of a study with the tables that speak about it, small scales first."""

    study: str
    claim: str
    published: str | None  # id in the atlas
    entries: list[tuple[Entry, Mapping[str, Any]]]


def index(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> bytes:
    """The page at index.html."""
    lines = sorted(_lines(entries, sweeps), key=_openness)
    papers = sorted({_paper(line) for line in lines})
    verdicts = ("reproduced", "contradicted", "equivalent", "undecided", "not run")
    scales = [*SCALES[1:], *sorted({entry.scale for entry in entries} - set(SCALES[1:]))]
    filters = {
        "verdict": ("every verdict", verdicts),
        "scale": ("every scale", scales),
        "paper": ("every paper", papers),
    }
    return framed("index.html", "Paribus: claims and verdicts", [
        "<h1>Does the published choice hold here?</h1>",
        '<p class="lead">Each claim of a published table, fixed before its first run, with our verdict at each scale. '
        "A verdict holds at its scale alone; its table shows the effect, the interval, n and every run.</p>",
        search(filters),
        listing(COLUMNS, [_row(line) for line in lines]),
    ])  # fmt: skip


def _lines(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> Iterator[Line]:
    """Claims of tables and of sweeps without any, by study."""
    studies: dict[str, list[Entry]] = {}
    for entry in entries:
        studies.setdefault(entry.study, []).append(entry)
    files = {sweep.study: sweep for sweep in sweeps.values()}
    for study in sorted(studies.keys() | files.keys()):
        own, sweep = studies.get(study, []), files.get(study)
        texts = list(sweep.claims) if sweep else []
        texts += [claim["text"] for entry in own for claim in entry.table["claims"]]
        published = sweep.published.get("table") if sweep else None
        published = published or next((p for entry in own if (p := entry.table["paper"].get("table"))), None)
        for text in dict.fromkeys(texts) or [""]:
            yield Line(study, text, published, [(entry, _claim(entry, text)) for entry in own])


def _openness(line: Line) -> int:
    """0 for a claim that some scale has decided, 1 for one that is undecided, 2 for one that was not run."""
    verdicts = {claim["verdict"] for _, claim in line.entries}
    return 0 if verdicts & DECIDED else 1 if "undecided" in verdicts else 2


def _claim(entry: Entry, text: str) -> Mapping[str, Any]:
    absent = {"verdict": "not run", "contrasts": [], "said": "not run"}
    return next((claim for claim in entry.table["claims"] if claim["text"] == text), absent)


def _paper(line: Line) -> str:
    if line.published is None:
        return OWN
    try:
        return published_table(line.published).authors_year.partition(" (")[0]
    except UserError:
        return OWN


def _row(line: Line) -> Row:
    paper = _paper(line)
    last = line.entries[-1] if line.entries else None
    study = link(f"{last[0].place}/index.html", line.study) if last else escape(line.study)
    named = f"{paper}" if line.published is None else link(f"published/{line.published}.html", paper)
    shown = [(entry.scale, claim["verdict"]) for entry, claim in line.entries] or [("", "not run")]
    text = " ".join([line.study, line.claim, paper, *(f"{scale} {verdict}" for scale, verdict in shown)]).lower()
    data = {"text": text, "paper": paper, "at": ";".join(f"{scale}:{verdict}" for scale, verdict in shown)}
    cells = [study, escape(line.claim) or "no claim", _chips(line), _effect(*last) if last else "", named]
    return Row(cells, data, [None, None, shown[-1][1]])


def _chips(line: Line) -> str:
    """The verdict at each scale; with two scales or more whether it is stable."""
    chips = [
        f'<a class="chip v-{slug(claim["verdict"])}" href="{escape(entry.place)}/index.html">'
        f"{escape(claim['verdict'])} <small>{escape(entry.scale)}</small></a>"
        for entry, claim in line.entries
    ] or ['<span class="chip v-not-run">not run</span>']
    verdicts = [claim["verdict"] for _, claim in line.entries]
    said = {"stable": "stable over scales", "changes": "changes with the scale"}.get(stability(verdicts), "")
    return f'<span class="chips">{"".join(chips)}</span>' + (f'<span class="small">{said}</span>' if said else "")


def _effect(entry: Entry, claim: Mapping[str, Any]) -> str:
    """The first contrast that has a number, at the largest scale."""
    for found in claim["contrasts"]:
        if found["difference"] is not None:
            table, column = entry.table, found["column"]
            value = number(table, column, found["difference"], 1, sign=True) + interval(table, column, found, 1)
            return f'{escape(value)} <span class="small">{escape(column)}, n={found["n"]}, {escape(entry.scale)}</span>'
    return ""
