"""Every measured claim as a Markdown page, for a repository or a paper's appendix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from paribus.reporting.site.claims import Line, is_unsure, say_effect
from paribus.reporting.tables.schema import ContrastRow, Table
from paribus.verdict.claims import PAPER
from paribus.verdict.words import NOT_RUN, WORDS

UNSURE = " Rerun it: its runs did not record whether they left the plateau of a trivial model."
INTRODUCTION = """# Results

Each claim was fixed before its first run, and a verdict holds only at its scale. A claim is shown at the largest scale
at which it was measured. The brackets are the intervals that the verdicts were read from.
"""


def render_overview(lines: Sequence[Line]) -> bytes:
    """A section per scale, the largest first, with the counts of its verdicts and a list of claims per study."""
    measured = [line for line in lines if line.measured and not line.of_twins]
    scales = dict.fromkeys(sorted((line.measured[-1][0].order[1:] for line in measured), reverse=True))
    sections = (_render_scale(scale, [line for line in measured if line.scale == scale]) for _, scale in scales)
    return "\n".join([INTRODUCTION, *(part for section in sections for part in section)]).encode()


def _render_scale(scale: str, lines: Sequence[Line]) -> Iterator[str]:
    counts = Counter(line.measured[-1][1].verdict for line in lines)
    found = (f"{counts[word.name]} {word.name}" for word in WORDS.all() if word.name != NOT_RUN)
    yield f"## At {scale} scale\n\n{len(lines)} claims: {', '.join(found)}.\n"
    for study in sorted({line.study for line in lines}):
        own = sorted((line for line in lines if line.study == study), key=lambda line: line.number)
        yield f"### {study}\n\n{own[0].measured[-1][0].table.title}\n".replace("\n\n\n", "\n")
        yield "".join(map(_render_line, own))


def _render_line(line: Line) -> str:
    entry, claim = line.measured[-1]
    paper = line.authors if line.paper else "the paper"
    owner = paper if line.claim.whose == PAPER else "ours"
    notes = claim.word.removeprefix(claim.verdict)
    advice = UNSURE if is_unsure(entry, claim) else ""
    effects = (_say_contrast(entry.table, row) for row in claim.contrasts if row.difference is not None)
    said = line.claim.says or f"`{line.claim.text}`"
    return f"- {said} ({owner}). **{claim.verdict.capitalize()}**{notes}: {'; '.join(effects)}.{advice}\n"


def _say_contrast(table: Table, row: ContrastRow) -> str:
    reason = f" ({row.reason})" if row.reason else ""
    return f"{say_effect(table, row, lambda name: f'`{name}`', str)}{reason}"
