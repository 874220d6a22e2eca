"""Claims as the site shows them: each with the tables that judge it, in prose, and with the cost of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.core.files import at_scale
from paribus.reports.effects import SCALES, measure_in_margins, name_unit, sign_effect
from paribus.reports.questions import find_question
from paribus.reports.site.collect import Entry
from paribus.reports.tables.blocks import format_interval, format_number, mark_checks
from paribus.reports.tables.schema import ClaimRow, ContrastRow, Table
from paribus.runs.record import Record
from paribus.sweeps.sweep import Sweep
from paribus.verdict.claims import OURS, OWNERS, TWINS, Sentence
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.published import PublishedTable
from paribus.verdict.published import table as published_table
from paribus.verdict.rules import NOT_RUN, UNDECIDED, find_word

NO_PAPER = "no published table"
CLAIMED = f"not {TWINS}"  # of the owners of claims: the papers and us
INTERVAL = "the interval behind the verdict, 95% or wider to allow for the table's other claims and looks"
NO_COST = "not recorded"


def tell_below(claims: Sequence[ClaimRow], scale: str = "") -> str:
    """A sentence on the decided claims (of a scale) whose verdict a linear model qualifies; empty if there are none."""
    decided = [claim for claim in claims if find_word(claim.verdict).decides]
    count = sum(bool(claim.below) for claim in decided)
    if not count:
        return ""
    where = f"In {count} of the {len(decided)} decided claims{at_scale(scale)}"
    return f"{where}, a bag-of-words baseline beats every arm on at least one task."


@dataclass(frozen=True)
class ClaimLine:
    """The `number`-th claim of a study, with the tables that judge it, small scales first.

    `claim`: only its text and its plain sentence; `published`: the id of the paper's table in the atlas.
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
    def title(self) -> str:
        """The claim in plain words if its sweep file has them."""
        return self.claim.says or self.claim.text

    @property
    def owner(self) -> str:
        """Whose claim it is, such as `the paper's claim`."""
        return OWNERS[self.claim.whose or OURS]

    @property
    def measured(self) -> tuple[tuple[Entry, ClaimRow], ...]:
        """The scales at which some contrast has a number."""
        return tuple(pair for pair in self.entries if any(row.difference is not None for row in pair[1].contrasts))

    @property
    def about(self) -> str:
        """The kind of question, and whether its verdicts explore or confirm, such as `a choice in pre-training,
        exploratory`.
        """
        if not self.entries:
            return find_question(self.sweep.varies if self.sweep else ())
        table = self.entries[-1][0].table
        return ", ".join([find_question(table.audit.varies), *[table.stage] * bool(table.stage)])

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
        return NO_PAPER if self.paper is None else self.paper.authors_year.partition(" (")[0]

    @property
    def citation(self) -> str:
        """What the sweep's title has behind three spaces, such as `arXiv 1810.04805, appendix C.1`."""
        title = self.sweep.title if self.sweep else self.entries[0][0].table.title
        return title.partition("   ")[2]

    @property
    def sourced(self) -> bool:
        """Whether a published table or a citation says where the claim is from."""
        return self.paper is not None or bool(self.citation)

    @property
    def verdicts(self) -> str:
        """The verdict at each scale as site.js reads it, such as `smoke:undecided;cpu:reproduced`."""
        shown = [(entry.scale, claim.verdict) for entry, claim in self.entries] or [("", NOT_RUN)]
        return ";".join(f"{scale}:{verdict}" for scale, verdict in shown)

    @property
    def search_text(self) -> str:
        """What a search looks through."""
        words = [self.study, self.claim.sentence, self.claim.text, self.authors, self.verdicts.replace(":", " ")]
        words += [claim.strength for _, claim in self.entries if claim.strength is not None]
        return " ".join(words).lower()


def make_lines(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> list[ClaimLine]:
    """Claims of tables and of sweeps without any: first those that some scale has decided, then the undecided ones."""
    studies: dict[str, list[Entry]] = {}
    for entry in entries:
        studies.setdefault(entry.study, []).append(entry)
    files = {sweep.study: sweep for sweep in sweeps.values()}
    lines: list[ClaimLine] = []
    for study in sorted(studies.keys() | files.keys()):
        lines += _list_claims(study, studies.get(study, []), files.get(study))

    def rank(line: ClaimLine) -> tuple[int, bool]:
        verdicts = {claim.verdict for _, claim in line.entries}
        decided = any(find_word(verdict).decides for verdict in verdicts)
        return 0 if decided else 1 if UNDECIDED in verdicts else 2, line.of_twins

    return sorted(lines, key=rank)


def _list_claims(study: str, entries: Sequence[Entry], sweep: Sweep | None) -> Iterator[ClaimLine]:
    named = {claim.text: claim.says for entry in entries for claim in entry.table.claims}
    named |= {text: sentence.says for text, sentence in sweep.sentences.items()} if sweep else {}
    asked: dict[str, list[str]] = {}  # a scale may ask the same with other margins
    for text in dict.fromkeys([*(sweep.claims if sweep else ()), *named]):
        asked.setdefault(named.get(text) or text, []).append(text)
    papers = [entry.table.paper.table for entry in entries if entry.table.paper]
    published = (sweep.published.get("table") if sweep else None) or next(iter(papers), None)
    for number, (text, *others) in enumerate(asked.values(), 1):
        judged = [(entry, claim) for entry in entries for claim in entry.table.claims if claim.text in (text, *others)]
        said = [Sentence(claim.says, claim.whose or OURS) for _, claim in judged if claim.says]
        sentence = (sweep.sentences.get(text) if sweep else None) or next(iter(said), Sentence())
        claim = ClaimRow(text, NOT_RUN, NOT_RUN, says=sentence.says, whose=sentence.whose)
        yield ClaimLine(study, number, claim, published, sweep, tuple(judged))


def list_scales(entries: Sequence[Entry]) -> list[str]:
    """The scales of the recipes, and others that tables have."""
    return [*SCALES, *sorted({entry.scale for entry in entries} - set(SCALES))]


class Effect(NamedTuple):
    """A contrast in prose: `arm` is better than `versus` by `size` on `column`.

    `comparison`: better or worse if the contrast is decided, else higher or lower, since its numbers alone say no more;
    empty if both arms average the same. `size`: with unit and interval; `n`: of runs; `reason`: what else its verdict
    rests on; `checks`: a mark for each.
    """

    arm: str
    comparison: str
    versus: str
    size: str
    column: str
    n: str
    reason: str
    checks: str

    @property
    def decided(self) -> bool:
        return self.comparison in ("better", "worse")


def describe_effect(table: Table, row: ContrastRow) -> Effect:
    """Which arm is better or averages more, by how much, on what. Raises ValueError if the contrast has no number."""
    signed, unit = sign_effect(row), name_unit(row.column)
    flip, low, high = signed.effect < 0.0, signed.low, signed.high
    if flip:
        low, high = (None if end is None else -end for end in (high, low))
    number = format_number(table, row.column, abs(signed.effect))
    size = f"{number}{f' {unit}' if unit else ''}{format_interval(table, row.column, low, high)}"
    words = ("worse", "better") if find_word(row.verdict).decides else ("lower", "higher")
    better = not flip if words[0] == "worse" else flip == lower_is_better(row.column)
    comparison = "" if float(number) == 0.0 else words[better]
    return Effect(
        row.names[0], comparison, row.names[1], size, row.column, row.n_text, row.reason, mark_checks(row.checks)
    )


def describe_effects(table: Table, claim: ClaimRow) -> list[Effect]:
    """Every contrast of a claim that has a number."""
    return [describe_effect(table, row) for row in claim.contrasts if row.difference is not None]


def format_effect(table: Table, row: ContrastRow) -> str:
    """The effect with its unit and interval, positive if the first arm is better."""
    signed, unit = sign_effect(row), name_unit(row.column)
    number = format_number(table, row.column, signed.effect, sign=True) + (f" {unit}" if unit else "")
    return number + format_interval(table, row.column, signed.low, signed.high)


def find_weakest(claim: ClaimRow) -> tuple[ContrastRow, float] | None:
    """The contrast that favors the claim least, and its effect in margins."""
    effects = [(row, size.effect) for row in claim.contrasts if (size := measure_in_margins(row)) is not None]
    return min(effects, key=lambda one: -abs(one[1]) if one[0].relation == "~" else one[1], default=None)


def add_hours(records: Iterable[Record]) -> dict[str, float]:
    """{unit: hours of pre-training} of finished runs; one that several of them start from counts once."""
    stages: dict[tuple[str, float], Record] = {}
    for record in records:
        if record.done and (seconds := record.budget.get("train_seconds")):
            signature = record.pretraining or record.signature
            stages.setdefault((signature, seconds), record)  # other seconds: it was trained again
    return _add((record, record.budget["train_seconds"]) for record in stages.values())


def describe_tuning(records: Iterable[Record], name: str = "") -> str:
    """Such as `0.4 core-hours (3 of 5 runs)`: what fine-tunings took, and how many runs recorded it if not all did."""
    tuned = [record for record in records if record.done and record.task_runs]
    spent = [(record, record.finetune_seconds) for record in tuned if record.finetune_seconds is not None]
    part = f" ({len(spent)} of {len(tuned)} runs)" if len(spent) < len(tuned) else ""
    return f"{format_hours(_add(spent))}{name}{part}" if spent else ""


def describe_cost(records: Iterable[Record]) -> str:
    """Such as `2.3 core-hours of pre-training, 0.4 core-hours of fine-tuning`; nothing if neither is on record."""
    runs = list(records)
    trained = format_hours(add_hours(runs))
    parts = [f"{trained} of pre-training" if trained else "", describe_tuning(runs, " of fine-tuning")]
    return ", ".join(part for part in parts if part)


def _add(spent: Iterable[tuple[Record, float]]) -> dict[str, float]:
    """{unit: hours} of seconds that runs spent."""
    hours: dict[str, float] = {}
    for record, seconds in spent:
        profile = record.profile
        workers = float(profile.get("ranks", 1))
        if profile.get("accelerator", "cpu") == "cpu":
            unit, workers = "core-hours", workers * float(profile.get("threads", 1))
        else:
            unit = f"process-hours on {profile.get('device')}"  # several processes may share one device
        hours[unit] = hours.get(unit, 0.0) + seconds * workers / 3600.0
    return hours


def format_hours(hours: Mapping[str, float]) -> str:
    """Such as `2.3 core-hours`; nothing if no training is on record."""
    return ", ".join(f"{value:.2g} {unit}" if value < 10 else f"{value:,.0f} {unit}" for unit, value in hours.items())
