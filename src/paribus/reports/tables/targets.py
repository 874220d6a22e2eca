"""Held-out losses over different sets of targets: they are no numbers of one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paribus.verdict.metrics import LOSS, is_task, write_value
from paribus.verdict.statistics import mean_sd

if TYPE_CHECKING:
    from paribus.reports.tables.design import Design
    from paribus.reports.tables.evidence import Evidence


class TargetSet(NamedTuple):
    """Which places a loss is a mean over, as a record says: how many, and what the tokens are if it says so."""

    what: str
    places: int
    tokens: str = ""


def is_of_loss(column: str, loss: str) -> bool:
    """Whether a column is of this held-out loss: `mlm_loss`, `mlm_perplexity` and `mlm_accuracy` are of `mlm_loss`."""
    return not is_task(column) and column.startswith(loss.removesuffix(LOSS))


def find_apart(design: Design, evidence: Evidence) -> dict[str, frozenset[str]]:
    """{loss: the arms whose targets are others than those of the baseline}, or of the first arm that has the loss.

    The number of places is compared if the arms read the same held-out text in rows of the same length, the kind of
    tokens if all records say it.
    """
    differences = design.audit.get("differences", {})
    varied = {*design.varies, *(key for of_arm in differences.values() for key in of_arm)}
    same_text = not design.varies_text and "input.length" not in varied and design.universe is None
    apart: dict[str, frozenset[str]] = {}
    for loss, sets in list_sets(design, evidence).items():
        known = all(one.tokens for of_arm in sets.values() for one in of_arm)
        asked = {
            arm: {(one.what, one.places if same_text else 0, one.tokens if known else "") for one in of_arm}
            for arm, of_arm in sets.items()
        }
        first = next(iter(asked.values()))
        apart[loss] = frozenset(arm for arm, of_arm in asked.items() if of_arm != first)
    return apart


def list_sets(design: Design, evidence: Evidence) -> dict[str, dict[str, list[TargetSet]]]:
    """{held-out loss: {arm: the sets of targets of its runs, each once}}, the baseline first."""
    sets: dict[str, dict[str, list[TargetSet]]] = {}
    for arm in sorted(design.arms, key=lambda arm: arm != design.baseline):
        for run in evidence.done(arm).values():
            for loss, targets in run.targets.items():
                found = TargetSet(str(targets["what"]), int(targets["places"]), str(targets.get("tokens", "")))
                of_arm = sets.setdefault(loss, {}).setdefault(arm, [])
                of_arm += [found] if found not in of_arm else []
    return sets


def describe_apart(design: Design, evidence: Evidence, apart: Mapping[str, frozenset[str]]) -> list[str]:
    """A note on each arm whose targets are others: its values, those of the table, and both sets."""
    notes = []
    for loss, sets in list_sets(design, evidence).items():
        columns = [column for column in design.columns if is_of_loss(column, loss)]
        described = {arm: _describe(evidence, arm, columns) for arm in sets}
        named = {arm: " and ".join(map(_name, of_arm)) for arm, of_arm in sets.items()}
        first = next(iter(sets))
        notes += [
            f"{arm}: left out because its targets are others: {described[arm]} over {named[arm]}; "
            f"{first} has {described[first]} over {named[first]}."
            for arm in sets
            if arm in apart[loss] and described[arm]
        ]
    return notes


def _name(targets: TargetSet) -> str:
    """`"every token" (1,100 places, per token of 8,192 WordPieces)`."""
    tokens = f", per token of {targets.tokens}" if targets.tokens else ""
    return f'"{targets.what}" ({targets.places:,} places{tokens})'


def _describe(evidence: Evidence, arm: str, columns: Sequence[str]) -> str:
    """`clm_loss 5.123, clm_accuracy 21.4`: the means of an arm."""
    values = {column: list(evidence.values(arm, column).values()) for column in columns}
    return ", ".join(f"{column} {write_value(column, mean_sd(each)[0])}" for column, each in values.items() if each)
