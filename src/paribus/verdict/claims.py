"""The language of claims, fixed in a sweep file before its first run.

    claim     = statement [" on " columns] {", margin " number [unit] [" on " columns]} [", p < " number]
    statement = ARM " > " ARM            better (superiority)
              | ARM " > " ARM " by " number [unit]   better by more than that
              | ARM " >= " ARM           not worse by more than the margin (non-inferiority)
              | ARM " ~ " ARM            the same within the margin (equivalence)
              | "monotone(" ARM, ARM, ... ")"   each >= the one before, and the last > the first
              | "best is " ARM [" of (" ARM, ARM, ... ")"]   > every other arm (of those named)
              | EFFECT " > 0", and the like     of a design of several factors (`factorial.py`): `extractor > 0` if the
                                                second level is better, `extractor x fusion ~ 0` for an interaction
    columns   = "all" | COLUMN {", " COLUMN}
    unit      = "points" (1/100 of an accuracy-like metric) | "nats" (of a loss or forgetting) | none (the metric's own)

By `on all`, a claim is about every column that can carry one. Without `on`, it is about those that its margins fit,
or about all if it has none. A margin in points holds for the accuracy-like columns of its claim, one in nats for losses
and forgetting; one that fits none is refused. `on COLUMN` narrows either and is required for a margin without a unit if
the claim has several columns. On an accuracy, such a margin is a fraction: 0.02 is 2 points, and 0.1 or more is
refused. A column without a margin has a margin of zero. What follows `by` is read like a margin, and takes its place.
`p < 0.001` asks for more than the table's error rate of 5%: the two-sided test of each contrast must pass that level
too.
Example:

    dynamic >= static_x10 on all, margin 0.5 points, margin 0.02 on mlm_loss

A sweep file lists a claim as this text, or as a mapping that also says it in a plain sentence and whose it is:

    - claim: dynamic >= static_x10 on all, margin 0.5 points
      says: A new mask in every epoch is no worse than ten masks in turn
      whose: paper

A third line, `about: loss`, makes it a claim about a loss itself, such as what it costs to train on something else.
Without that line a loss stands for the quality of a model, and arms that differ in what it measures are not compared.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from paribus.core.errors import UserError, suggest
from paribus.verdict.factorial import ZERO
from paribus.verdict.metrics import POINT, find_metric, in_points, metric
from paribus.verdict.rules import Relation
from paribus.verdict.statistics import ALPHA, is_number

OURS, PAPER, TWINS = "ours", "paper", "A/A"
QUALITY, LOSS = "quality", "loss"
SUBJECTS = (QUALITY, LOSS)
OWNERS = {PAPER: "the paper's claim", OURS: "our claim", TWINS: "an A/A test"}

_ARM = r"[\w.+-]+"
_SIDE = r"[^,()<>=~≥≤]+?"  # an arm, or what is meant to be one
_PAIR = re.compile(rf"({_SIDE})\s*([<>]=?|[≥≤~])\s*({_SIDE})")
_TURNED = {"<": ">", "<=": ">=", "≤": ">="}
_MONOTONE = re.compile(rf"monotone\(\s*({_ARM}(?:\s*,\s*{_ARM})+)\s*\)")
_BEST = re.compile(rf"best is ({_ARM})(?:\s+of\s+\(\s*({_ARM}(?:\s*,\s*{_ARM})*)\s*\))?")
IN_NATS = ("loss", "forgetting")  # what the names of such columns end with
_COARSE = 0.1  # a margin without unit that is this large on an accuracy is meant in points
_NO_COMMA = re.compile(r"[^\s,]\s+margin\s+[\d.+-]")
_LEVEL = re.compile(r"p\s*<\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_MARGIN = re.compile(r"margin\s+([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:\s+(points?|nats?))?(?:\s+on\s+(.+))?")
_IN_PERCENT = re.compile(
    r"margin\s+([+-]?(?:\d+\.?\d*|\.\d+))\s*(?:%|per\s?cents?|percentage points?|pp|pts?)((?:\s+on\s+.+)?)"
)


class Sentence(NamedTuple):
    """A claim in plain words. `whose`: one of OWNERS; `about`: one of SUBJECTS."""

    says: str = ""
    whose: str = OURS
    about: str = QUALITY


class Pair(NamedTuple):
    """`arm relation versus`, such as dynamic >= static; or an effect and ZERO, in either order."""

    arm: str
    relation: Relation
    versus: str


class Margin(NamedTuple):
    """`size` in `unit` ("points", "nats" or "" for the metric's own); `columns` None: all that the unit fits."""

    size: float
    unit: str
    columns: tuple[str, ...] | None

    def fits(self, column: str) -> bool:
        if self.columns is not None:
            return column in self.columns
        if self.unit == "points":
            return in_points(column)
        return not self.unit or is_in_nats(column)


def is_in_nats(column: str) -> bool:
    """Whether a margin in nats holds for a column: a loss, in longer rows too (`mlm_loss_x2`), or forgetting, by its
    name.
    """
    name = re.sub(r"_x\d+$", "", metric(column).lower())
    if find_metric(column).foreign:
        return not in_points(column) and any(word in name for word in IN_NATS)
    return name.endswith(IN_NATS)


@dataclass(frozen=True)
class Claim:
    """A parsed claim; it holds when all its pairs hold on all its columns (`columns` None: all that can carry one).

    `left`: the columns that it is not about, since it names none and no margin of it fits them. `level`: the error rate
    of each contrast, if the claim asks for a stricter one than the table's.
    """

    text: str
    pairs: tuple[Pair, ...]
    columns: tuple[str, ...] | None
    margins: tuple[Margin, ...]
    left: tuple[str, ...] = ()
    level: float = ALPHA

    def margin(self, column: str) -> float:
        """The margin on a column in the metric's own unit: of several that fit the last one that names the column."""
        fitting = sorted((m for m in self.margins if m.fits(column)), key=lambda m: m.columns is not None)
        if not fitting:
            return 0.0
        return fitting[-1].size * (POINT if fitting[-1].unit == "points" else 1.0)


def parse(
    text: str,
    arms: Sequence[str],
    columns: Sequence[str],
    carrying: Sequence[str] | None = None,
    effects: Sequence[str] = (),
) -> Claim:
    """Read a claim about these arms, effects and columns, of which `carrying` (by default all) are what `all` means.

    Raises UserError naming what is unknown or missing.
    """
    if _NO_COMMA.search(text):
        raise UserError(f"claim '{text}' runs into its margin", "put a comma before margin")
    head, *tails = [part.strip() for part in re.split(r",\s*(?=margin\b|p\s*<)", text.strip())]
    level, tails = _level(tails, text)
    statement, _, named = (part.strip() for part in head.partition(" on "))
    if " by " in named:
        raise UserError(f"claim '{text}' has 'by' behind its columns", "write A > B by 0.5 points on COLUMN")
    statement, by, size = (part.strip() for part in statement.partition(" by "))
    if by:
        if tails or not re.fullmatch(rf"{_SIDE}\s*>\s*{_SIDE}", statement):
            raise UserError(f"claim '{text}' cannot have 'by {size}'", "write A > B by 0.5 points, without a margin")
        tails = [f"margin {size}"]
    pairs = _pairs(statement, text, arms)
    if by:
        pairs = tuple(pair._replace(relation="> by") for pair in pairs)
    if not pairs:
        raise UserError(f"claim '{text}' compares an arm with itself", "name two arms")
    of_effect = [pair for pair in pairs if effects and ZERO in (pair.arm, pair.versus)]
    for pair in of_effect:
        if (effect := pair.versus if pair.arm == ZERO else pair.arm) not in effects:
            raise UserError(f"claim '{text}' names the unknown effect '{effect}'", suggest(effect, effects))
    for arm in dict.fromkeys(name for pair in pairs if pair not in of_effect for name in (pair.arm, pair.versus)):
        if arm in effects:
            raise UserError(f"claim '{text}' compares the effect '{arm}' with an arm", f"write {arm} > {ZERO}")
        if arm not in arms:
            raise UserError(f"claim '{text}' names the unknown arm '{arm}'", suggest(arm, arms))
    margins = tuple(_margin(tail, text, columns, "by" if by else "margin") for tail in tails)
    claim = Claim(text, pairs, _columns(named, text, columns), margins, level=level)
    about = tuple(columns if carrying is None else carrying)
    if not named:
        claim = _narrow(claim, about)
    _check_margins(claim, about)
    return claim


def _narrow(claim: Claim, carrying: Sequence[str]) -> Claim:
    """The claim about the columns that its margins fit. One without margins, or of which none fits, stays as it is."""
    fitting = tuple(column for column in carrying if any(margin.fits(column) for margin in claim.margins))
    left = tuple(column for column in carrying if column not in fitting)
    return replace(claim, columns=fitting, left=left) if fitting and left else claim


def _pairs(statement: str, text: str, arms: Sequence[str]) -> tuple[Pair, ...]:
    if match := _PAIR.fullmatch(statement):
        arm, relation, versus = match.groups()
        if arm == versus:
            raise UserError(f"claim '{text}' compares an arm with itself", "name two arms")
        if relation in _TURNED:
            turned = f"{versus} {_TURNED[relation]} {arm}"
            raise UserError(f"claim '{text}' has '{relation}'", f"write the better arm first, as in {turned}")
        return (Pair(arm, cast(Relation, relation.replace("≥", ">=")), versus),)
    if match := _MONOTONE.fullmatch(statement):
        chain = _names(match[1], text)
        steps = tuple(Pair(later, ">=", earlier) for earlier, later in itertools.pairwise(chain))
        return (*steps, Pair(chain[-1], ">", chain[0]))
    if match := _BEST.fullmatch(statement):
        others = _names(match[2], text) if match[2] else list(arms)
        return tuple(Pair(match[1], ">", other) for other in others if other != match[1])
    raise UserError(f"claim '{text}' is not understood", "write A > B, A >= B, A ~ B, monotone(A, B, C) or best is A")


def _names(listed: str, text: str) -> list[str]:
    names = [name.strip() for name in listed.split(",")]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"claim '{text}' names {twice[0]} twice", "name it once")
    return names


def _columns(named: str, text: str, columns: Sequence[str]) -> tuple[str, ...] | None:
    if named in ("", "all"):
        return None
    names = tuple(_names(named, text))
    for column in names:
        if column not in columns:
            raise UserError(f"claim '{text}' names the unknown column '{column}'", suggest(column, columns))
    return names


def _level(tails: Sequence[str], text: str) -> tuple[float, list[str]]:
    """(the level of `p < 0.001`, the other parts of a claim)."""
    levels = [tail for tail in tails if tail.startswith("p")]
    if not levels:
        return ALPHA, list(tails)
    match = _LEVEL.fullmatch(levels[0])
    if match is None or len(levels) > 1 or not 0.0 < float(match[1]) <= ALPHA:
        raise UserError(f"claim '{text}' has '{levels[-1]}'", f"write one level, at most {ALPHA:.2g}, as in p < 0.001")
    return float(match[1]), [tail for tail in tails if tail not in levels]


def _margin(tail: str, text: str, columns: Sequence[str], word: str) -> Margin:
    """word: `by` or `margin`, which the claim has in front of the size."""
    match = _MARGIN.fullmatch(tail)
    said = tail.replace("margin", word, 1)
    if match is None or not is_number(size := float(match[1])):
        mend = f"write {word} 0.5 points, or {word} 0.02 on mlm_loss"
        if word == "by":
            mend = "write A > B by 0.5 points, or A > B by 0.02 on mlm_loss"
        if percent := _IN_PERCENT.fullmatch(tail):
            mend = f"write {word} {float(percent[1]):g} points{percent[2]}"
        raise UserError(f"claim '{text}' has '{said}', which cannot be read", mend)
    if size <= 0.0:
        raise UserError(f"claim '{text}' has '{said}', which is not positive", "leave it out for a margin of zero")
    unit = {"p": "points", "n": "nats"}.get((match[2] or " ")[0], "")
    margin = Margin(size, unit, _columns(match[3] or "", text, columns))
    for column in margin.columns or ():
        if margin.unit == "points" and not in_points(column):
            raise UserError(
                f"claim '{text}' gives points for {column}", "points are for accuracies; leave the unit out"
            )
        if margin.unit == "nats" and in_points(column):
            raise UserError(f"claim '{text}' gives nats for {column}", _say_points(column, word))
    return margin


def _say_points(column: str, word: str) -> str:
    return f"{column} is in points: write {word} 0.5 points"


def _check_margins(claim: Claim, carrying: Sequence[str]) -> None:
    about = tuple(carrying) if claim.columns is None else claim.columns
    word = "by" if any(pair.relation == "> by" for pair in claim.pairs) else "margin"
    if any(not margin.unit and margin.columns is None for margin in claim.margins) and len(about) > 1:
        raise UserError(f"claim '{claim.text}' has a margin without unit", "say points, nats, or on which column")
    for margin in claim.margins:
        if not any(margin.fits(column) for column in about):
            cause = f"claim '{claim.text}' has a margin in {margin.unit or 'no unit'} that fits none of its columns"
            accuracy = next(filter(in_points, about), None)
            without = "write it without a unit for a column in a unit of its own"
            raise UserError(cause, _say_points(accuracy, word) if accuracy else without)
    for column in about:
        fitting = [margin for margin in claim.margins if margin.fits(column)]
        coarse = [margin.size for margin in fitting if not margin.unit and margin.size >= _COARSE]
        if coarse and in_points(column):  # such as 0.5 on accuracies between 0 and 1
            written, points = f"{word} {coarse[0]:g}", f"{100 * coarse[0]:g} points"
            cause = f"the margin {coarse[0]:g} on {column}, whose values lie between 0 and 1, is {points}"
            raise UserError(cause, f"write `{written} points`, or a fraction")
        named = [margin.columns is not None for margin in fitting]
        if len(set(named)) < len(named):
            raise UserError(f"claim '{claim.text}' has two margins on {column}", "keep one of them")
        if any(pair.relation == "~" for pair in claim.pairs) and claim.margin(column) == 0.0:
            raise UserError(f"claim '{claim.text}' has no margin on {column}", "~ needs one, such as margin 0.5 points")
