"""Claims as the site shows them: each with the tables that judge it, in prose, and with its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from paribus.core.errors import UserError
from paribus.core.files import at_scale
from paribus.reporting.ladder import SCALES
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import render_link
from paribus.reporting.tables.blocks import format_interval, format_number
from paribus.reporting.tables.html import render_verdict
from paribus.reporting.tables.schema import ClaimRow, ContrastRow, Table
from paribus.reporting.turned import measure, name_unit, turn
from paribus.sweeps.sweep import Sweep
from paribus.verdict.claims import OURS, TWINS, Sentence
from paribus.verdict.published import PublishedTable
from paribus.verdict.published import table as published_table
from paribus.verdict.words import NOT_RUN, UNDECIDED, find_word

OWN = "no published table"
CLAIMED = f"not {TWINS}"  # of the owners of claims: the papers and us
INTERVAL = "the interval behind the verdict, 95% or wider to allow for the table's other claims and looks"


def tell_below(claims: Sequence[ClaimRow], scale: str = "") -> str:
    """A sentence on the decided claims (of a scale) whose verdict a linear model qualifies; empty if there are none."""
    decided = [claim for claim in claims if find_word(claim.verdict).decides]
    count = sum(bool(claim.below) for claim in decided)
    if not count:
        return ""
    where = f"In {count} of the {len(decided)} decided claims{at_scale(scale)}"
    return f"{where}, a bag-of-words baseline beats every arm on at least one task."


@dataclass(frozen=True)
class Line:
    """The `number`-th claim of a study, with the tables that judge it, small scales first. `claim`:

    only its text and its plain sentence; `published`: the id of the paper's table in the atlas.
    """

    study: str
    number: int
    claim: ClaimRow
    published: str | None
    sweep: Sweep | None
    entries: tuple[tuple[Entry, ClaimRow], ...]

    @property
    def place(self) -> str:
        """Its page in the site."""
        return f"{self.study}/claim-{self.number}.html"

    @property
    def measured(self) -> tuple[tuple[Entry, ClaimRow], ...]:
        """The scales at which some contrast has a number."""
        return tuple(pair for pair in self.entries if any(row.difference is not None for row in pair[1].contrasts))

    @property
    def of_twins(self) -> bool:
        """Whether it compares two identical arms."""
        return self.claim.whose == TWINS

    @cached_property
    def paper(self) -> PublishedTable | None:
        try:
            return None if self.published is None else published_table(self.published)
        except UserError:
            return None

    @property
    def authors(self) -> str:
        """Such as Liu et al. 2019."""
        return OWN if self.paper is None else self.paper.authors_year.partition(" (")[0]

    @property
    def citation(self) -> str:
        """What the sweep's title has behind three spaces, such as `arXiv 1810.04805, appendix C.1`."""
        title = self.sweep.title if self.sweep else self.entries[0][0].table.title
        return title.partition("   ")[2]


def make_lines(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> list[Line]:
    """Claims of tables and of sweeps without any: first those that some scale has decided, then the undecided ones."""
    studies: dict[str, list[Entry]] = {}
    for entry in entries:
        studies.setdefault(entry.study, []).append(entry)
    files = {sweep.study: sweep for sweep in sweeps.values()}
    lines = [
        line
        for study in sorted(studies.keys() | files.keys())
        for line in _make_lines(study, studies.get(study, []), files.get(study))
    ]
    return sorted(lines, key=_rank_openness)


def _make_lines(study: str, own: Sequence[Entry], sweep: Sweep | None) -> Iterator[Line]:
    named = {claim.text: claim.says for entry in own for claim in entry.table.claims}
    named |= {text: own.says for text, own in sweep.sentences.items()} if sweep else {}
    asked: dict[str, list[str]] = {}  # a scale may ask the same with other margins
    for text in dict.fromkeys([*(sweep.claims if sweep else ()), *named]):
        asked.setdefault(named.get(text) or text, []).append(text)
    papers = [entry.table.paper.table for entry in own if entry.table.paper]
    published = (sweep.published.get("table") if sweep else None) or next(iter(papers), None)
    for number, (text, *others) in enumerate(asked.values(), 1):
        found = [(entry, claim) for entry in own for claim in entry.table.claims if claim.text in (text, *others)]
        said = [Sentence(claim.says, claim.whose or OURS) for _, claim in found if claim.says]
        sentence = (sweep.sentences.get(text) if sweep else None) or next(iter(said), Sentence())
        claim = ClaimRow(text, NOT_RUN, NOT_RUN, says=sentence.says, whose=sentence.whose)
        yield Line(study, number, claim, published, sweep, tuple(found))


def _rank_openness(line: Line) -> tuple[int, bool]:
    verdicts = {claim.verdict for _, claim in line.entries}
    rank = 0 if any(find_word(one).decides for one in verdicts) else 1 if UNDECIDED in verdicts else 2
    return rank, line.of_twins


def list_scales(entries: Sequence[Entry]) -> list[str]:
    """The scales of the recipes, and others that tables have."""
    return [*SCALES, *sorted({entry.scale for entry in entries} - set(SCALES))]


def render_arxiv(paper: PublishedTable | None) -> str:
    """A link to the paper on arXiv, or where else it was published."""
    if paper is None:
        return ""
    link = f"https://arxiv.org/abs/{paper.arxiv}"
    return render_link(link, paper.place) if paper.on_arxiv else escape(paper.place)


def render_source(line: Line, up: str = "") -> str:
    """The table that a claim is from, its page here, and the paper; if there is no such table, what the sweep cites."""
    if line.paper is None or line.published is None:
        return escape(line.citation)
    named = render_link(f"{up}published/{line.published}.html", f"{line.authors}, {line.paper.table}")
    return f"{named}, {render_arxiv(line.paper)}"


def say_effect(table: Table, row: ContrastRow, show_name: Callable[[str], str], show_size: Callable[[str], str]) -> str:
    """A contrast in prose: which arm is better, by how much, on what. The functions mark up names and difference."""
    found = turn(row)
    flip = found.effect < 0.0
    low, high = (None if end is None else -end for end in found[2:0:-1]) if flip else found[1:3]
    number = format_number(table, row.column, abs(found.effect))
    unit = name_unit(row.column)
    size = show_size(f"{number}{f' {unit}' if unit else ''}{format_interval(table, row.column, low, high)}")
    arm, versus, column = map(show_name, (row.arm, row.versus, row.column))
    if float(number):
        effect = f"{arm} is {'worse' if flip else 'better'} than {versus} by {size}"
    else:
        effect = f"{arm} averages the same as {versus} ({size})"
    return f"{effect} on {column}, n\u00a0=\u00a0{row.n}"


def render_effect(table: Table, row: ContrastRow, place: str) -> str:
    """A contrast in prose, with its number as a link to its runs."""

    def show_name(name: str) -> str:
        return f'<span class="name">{escape(name)}</span>'

    def show_size(size: str) -> str:
        return f'<span class="name">{render_link(place, size)}</span>'

    return say_effect(table, row, show_name, show_size)


def format_effect(table: Table, row: ContrastRow) -> str:
    """The effect with its unit and interval, positive if the first arm is better."""
    found, unit = turn(row), name_unit(row.column)
    number = format_number(table, row.column, found.effect, sign=True) + (f" {unit}" if unit else "")
    return number + format_interval(table, row.column, found.low, found.high)


def find_weakest(claim: ClaimRow) -> tuple[ContrastRow, float] | None:
    """The contrast that favors the claim least, and its effect in margins."""
    found = [(row, size.effect) for row in claim.contrasts if (size := measure(row)) is not None]
    return min(found, key=lambda one: -abs(one[1]) if one[0].relation == "~" else one[1], default=None)


def render_effects(line: Line) -> str:
    """Every contrast of a claim at the largest scale at which it was measured."""
    if not line.measured:
        return ""
    entry, claim = line.measured[-1]
    place = f"{line.place}#{entry.scale}"
    parts = [render_effect(entry.table, row, place) for row in claim.contrasts if row.difference is not None]
    return "".join(f'<span class="found">{part}</span>' for part in parts)


def render_verdicts(line: Line) -> str:
    """The verdict at each scale, each a link to its table."""
    found = [
        (claim, render_link(f"{entry.place}/index.html", claim.word), entry.scale) for entry, claim in line.entries
    ]
    shown = [render_verdict(claim.verdict, f"{link} <small>{escape(scale)}</small>") for claim, link, scale in found]
    return "".join(shown) or render_verdict(NOT_RUN, NOT_RUN)
