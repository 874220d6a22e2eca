"""What a table is to show, fixed before its first run: a plain view of a sweep file at one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paribus.core.errors import UserError
from paribus.verdict.claims import Claim, parse
from paribus.verdict.metrics import incomparable
from paribus.verdict.published import PublishedTable
from paribus.verdict.published import table as published_table
from paribus.verdict.sequential import Looks


@dataclass(frozen=True)
class Design:
    """`arms`: {name: overrides}; `seeds`: those the scale asks for; `published`: {table, rows, metrics} or empty.

    `published.rows` maps our arms to the paper's rows, `published.metrics` our columns to the paper's metrics, and
    only where both are the same task and metric. `audit`: {controlled, differences} as the control audit found them.
    `absent`: {arm: why it was not run}. `tuning`: the search that chose values for the arms (`study.search.Tuning`), or
    empty.
    """

    study: str
    scale: str
    baseline: str
    columns: tuple[str, ...]
    arms: Mapping[str, Sequence[str]]
    varies: tuple[str, ...] = ()
    matched: str = "tokens"
    claims: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    published: Mapping[str, Any] = field(default_factory=dict)
    sweep_hash: str | None = None
    title: str = ""
    audit: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    looks: Looks | None = None
    tuning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def carrying(self) -> tuple[str, ...]:
        """The columns that can carry a claim."""
        return tuple(column for column in self.columns if incomparable(column, self.varies) is None)

    def parsed(self) -> list[Claim]:
        """The claims. Raises UserError for one that cannot be read."""
        return [parse(text, tuple(self.arms), self.columns, self.carrying) for text in self.claims]

    def paper(self) -> PublishedTable | None:
        """The paper's table. Raises UserError for a mapping that names unknown arms, columns, rows or metrics."""
        if not self.published:
            return None
        paper = published_table(self.published["table"])
        for arm, row in self.published.get("rows", {}).items():
            _known(arm, self.arms, f"published.rows of {self.study}")
            paper.row(row)
        for column, metric in self.published.get("metrics", {}).items():
            _known(column, self.columns, f"published.metrics of {self.study}")
            _known(metric, [m.name for m in paper.metrics], f"published.metrics of {self.study}")
        return paper


def _known(name: str, names: Sequence[str] | Mapping[str, Any], where: str) -> None:
    if name not in names:
        raise UserError(f"{where} names '{name}'", f"known: {', '.join(names)}")
