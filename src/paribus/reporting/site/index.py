"""The first page: every claim with its verdict at each scale, to be searched, filtered and sorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.reporting.ladder import rate_stability
from paribus.reporting.site.collect import SCALES, Entry
from paribus.reporting.site.frame import Row, render_frame, render_link, render_list, render_search
from paribus.reporting.tables.blocks import format_interval, format_number
from paribus.reporting.tables.html import make_slug, render_claim
from paribus.reporting.tables.schema import ClaimRow
from paribus.sweeps.sweep import Sweep
from paribus.verdict.claims import OURS, Sentence
from paribus.verdict.published import table as published_table
from paribus.verdict.words import NOT_RUN, UNDECIDED, WORDS, find_word

COLUMNS = {"study": "table", "claim": "claim", "verdict": "verdict", "effect": "effect", "paper": "paper"}
OWN = "no paper"


class Line(NamedTuple):
    """A claim of a study with the tables that speak about it, small scales first."""

    study: str
    claim: ClaimRow  # not run: its text and its plain sentence alone
    published: str | None  # id in the atlas
    entries: list[tuple[Entry, ClaimRow]]


def render_index(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> bytes:
    """The page at index.html."""
    lines = sorted(_make_lines(entries, sweeps), key=_rank_openness)
    papers = sorted({_name_paper(line) for line in lines})
    scales = [*SCALES[1:], *sorted({entry.scale for entry in entries} - set(SCALES[1:]))]
    filters = {
        "verdict": ("every verdict", [word.name for word in WORDS.all()]),
        "scale": ("every scale", scales),
        "paper": ("every paper", papers),
    }
    return render_frame("index.html", "Paribus: claims and verdicts", [
        "<h1>Does the published choice hold here?</h1>",
        '<p class="lead">Each claim of a published table, fixed before its first run, with our verdict at each scale. '
        "A verdict holds at its scale alone; its table shows the effect, the interval, n and every run.</p>",
        render_search(filters),
        render_list(COLUMNS, [_render_row(line) for line in lines]),
    ])  # fmt: skip


def _make_lines(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> Iterator[Line]:
    """Claims of tables and of sweeps without any, by study."""
    studies: dict[str, list[Entry]] = {}
    for entry in entries:
        studies.setdefault(entry.study, []).append(entry)
    files = {sweep.study: sweep for sweep in sweeps.values()}
    for study in sorted(studies.keys() | files.keys()):
        own, sweep = studies.get(study, []), files.get(study)
        texts = list(sweep.claims) if sweep else []
        texts += [claim.text for entry in own for claim in entry.table.claims]
        published = sweep.published.get("table") if sweep else None
        published = published or next(
            (p for entry in own if (p := entry.table.paper and entry.table.paper.table)), None
        )
        for text in dict.fromkeys(texts) or [""]:
            found = [(entry, _find_claim(entry, text)) for entry in own]
            said = [Sentence(claim.says, claim.whose or OURS) for _, claim in found if claim.says]
            sentence = sweep.sentences.get(text) if sweep else None
            claim = _leave_open(text, *(sentence or next(iter(said), Sentence())))
            yield Line(study, claim, published, found)


def _rank_openness(line: Line) -> int:
    """0 for a claim that some scale has decided, 1 for one that is undecided, 2 for one that was not run."""
    verdicts = {claim.verdict for _, claim in line.entries}
    return 0 if any(find_word(one).decides for one in verdicts) else 1 if UNDECIDED in verdicts else 2


def _find_claim(entry: Entry, text: str) -> ClaimRow:
    return next((claim for claim in entry.table.claims if claim.text == text), _leave_open(text))


def _leave_open(text: str, says: str = "", whose: str = OURS) -> ClaimRow:
    return ClaimRow(text, NOT_RUN, NOT_RUN, says=says, whose=whose)


def _name_paper(line: Line) -> str:
    if line.published is None:
        return OWN
    try:
        return published_table(line.published).authors_year.partition(" (")[0]
    except UserError:
        return OWN


def _render_row(line: Line) -> Row:
    paper = _name_paper(line)
    last = line.entries[-1] if line.entries else None
    study = render_link(f"{last[0].place}/index.html", line.study) if last else escape(line.study)
    named = paper if line.published is None else render_link(f"published/{line.published}.html", paper)
    shown = [(entry.scale, claim.verdict) for entry, claim in line.entries] or [("", NOT_RUN)]
    text = " ".join(
        [line.study, line.claim.sentence, line.claim.text, paper, *(f"{scale} {verdict}" for scale, verdict in shown)]
    ).lower()
    data = {"text": text, "paper": paper, "at": ";".join(f"{scale}:{verdict}" for scale, verdict in shown)}
    cells = [
        study,
        render_claim(line.claim) or "no claim",
        _render_chips(line),
        _describe_effect(*last) if last else "",
        named,
    ]
    return Row(cells, data, [None, None, shown[-1][1]])


def _render_chips(line: Line) -> str:
    """The verdict at each scale; with two scales or more whether it is stable."""
    chips = [
        f'<a class="chip v-{make_slug(claim.verdict)}" href="{escape(entry.place)}/index.html">'
        f"{escape(claim.word)} <small>{escape(entry.scale)}</small></a>"
        for entry, claim in line.entries
    ] or ['<span class="chip v-not-run">not run</span>']
    verdicts = [claim.verdict for _, claim in line.entries]
    words = {"stable": "stable over scales", "changes": "changes with the scale"}.get(rate_stability(verdicts), "")
    return f'<span class="chips">{"".join(chips)}</span>' + (f'<span class="small">{words}</span>' if words else "")


def _describe_effect(entry: Entry, claim: ClaimRow) -> str:
    """The first contrast that has a number, at the largest scale."""
    for row in claim.contrasts:
        if row.difference is not None:
            table, column = entry.table, row.column
            value = format_number(table, column, row.difference, 1, sign=True)
            value += format_interval(table, column, row.ci_low, row.ci_high, 1)
            return f'{escape(value)} <span class="small">{escape(column)}, n={row.n}, {escape(entry.scale)}</span>'
    return ""
