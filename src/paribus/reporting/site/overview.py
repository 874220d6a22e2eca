"""Every measured claim as a Markdown page, for a repository or a paper's appendix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from paribus.reporting.site.claims import Line, say_effect, tell_below
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.cost import describe_cost
from paribus.reporting.tables.blocks import compare_costs
from paribus.reporting.tables.evidence import OLDER
from paribus.reporting.tables.notes import REVISED
from paribus.reporting.tables.schema import ClaimRow, ContrastRow, Table
from paribus.verdict.claims import PAPER
from paribus.verdict.words import NOT_RUN, WORDS

_Found = tuple[Line, Entry, ClaimRow]  # a claim with the largest table that measures it
INTRODUCTION = """# Results

Claims are fixed before their first run; a study says so if its sweep file has changed since then, or if something else
was changed after results had been seen. A verdict holds only at its scale. A claim is shown at the largest scale at
which it was measured. The brackets are the intervals that the verdicts were read from.
"""


def render_overview(lines: Sequence[Line]) -> bytes:
    """A section per scale, the largest first, with the counts of its verdicts and a list of claims per study."""
    found = [(line, *line.measured[-1]) for line in lines if line.measured and not line.of_twins]
    scales: dict[tuple[int, str], list[_Found]] = {}
    for each in sorted(found, key=lambda each: (each[0].study, each[0].number)):
        scales.setdefault(each[1].order[1:], []).append(each)
    parts = (_render_scale(scales[order]) for order in sorted(scales, reverse=True))
    return "\n".join([INTRODUCTION, *(text for part in parts for text in part)]).encode()


def _render_scale(found: Sequence[_Found]) -> Iterator[str]:
    """The claims of a scale, in the order of their studies."""
    counts = Counter(claim.verdict for _, _, claim in found)
    verdicts = (f"{counts[word.name]} {word.name}" for word in WORDS.all() if word.name != NOT_RUN)
    below = tell_below([claim for _, _, claim in found])
    yield f"## At {found[0][1].scale} scale\n\n{len(found)} claims: {', '.join(verdicts)}.{below and f' {below}'}\n"
    entries = {entry.place: entry for _, entry, _ in found}
    cost = describe_cost(record for entry in entries.values() for record in entry.found.records)
    yield f"Their tables took {cost}.\n" if cost else ""
    for study, own in groupby(found, key=lambda each: each[0].study):
        claims = list(own)
        title = claims[0][1].table.title
        yield f"### {study}\n"
        yield f"{title}\n" if title else ""
        notes = claims[0][1].table.notes
        yield from (f"{note}\n" for note in notes if note.startswith(REVISED))
        if any(note.startswith(OLDER) for note in notes):
            yield "The runs were made under another version of the sweep file.\n"
        yield "".join(_render_line(*each) for each in claims)


def _render_line(line: Line, entry: Entry, claim: ClaimRow) -> str:
    paper = line.authors if line.paper else "the paper"
    owner = paper if line.claim.whose == PAPER else "ours"
    notes = claim.word.removeprefix(claim.verdict)
    found = [_say_contrast(entry.table, row) for row in claim.contrasts if row.difference is not None]
    found += compare_costs(entry.table, claim)
    said = line.claim.says or f"`{line.claim.text}`"
    return f"- {said} ({owner}). **{claim.verdict.capitalize()}**{notes}: {'; '.join(found)}.\n"


def _say_contrast(table: Table, row: ContrastRow) -> str:
    reason = f" ({row.reason})" if row.reason else ""
    return f"{say_effect(table, row, lambda name: f'`{name}`', str)}{reason}"
