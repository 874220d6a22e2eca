"""What the settings of a universe can decide, by its A/A twin: before a sweep is frozen, from a pilot of its baseline.

The twin is the baseline with other draws, so that its effects over the settings spread by luck alone. An effect that
varies over the settings spreads more. The powers are therefore, at best, those of the table that is planned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.core.jsonable import from_json
from paribus.reports.audit import TABLE, read_table
from paribus.reports.tables.schema import ContrastRow, Table
from paribus.sweeps.status import align
from paribus.sweeps.universe import TWIN
from paribus.verdict.power import POWER, power
from paribus.verdict.rules import find_routes
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import ALPHA
from paribus.verdict.universe import CLAIMS


class MarginPower(NamedTuple):
    """What a contrast of a claim can decide. All numbers are in the unit of its column.

    `effect`: the true one that the power is for. `sd`: of the twin's effects over `n` settings. `powers`: {number of
    settings: the chance that the contrast is decided}.
    """

    claim: str
    contrast: ContrastRow
    effect: float
    sd: float
    n: int
    powers: Mapping[int, float]

    @property
    def reached(self) -> bool:
        """Whether the most settings have the power that is asked of a question."""
        return max(self.powers.values()) >= POWER


def list_powers(table: Table, first: int, most: int) -> list[MarginPower]:
    """The power of each contrast with a margin on a column that the twin has.

    The true effect is assumed to be the smallest that matters: for `A > B` the margin, for `A > B by m` twice the
    margin, for `>=` and `~` none. If `most` is above `first`, the levels are those of looks at `first` to `most`
    settings, and the power is that of the one look.

    Raises UserError for a table without a universe, or one whose twin has no spread.
    """
    if table.universe is None:
        raise UserError(f"{table.study} has no universe, so no twin", "give the table of a sweep with a universe")
    twins = {row.column: row for row in table.universe.controls if row.arm == TWIN and row.sd}
    if not twins:
        mend = "run the baseline and the arm twin in three settings or more, and make the table again"
        raise UserError(f"the twin of {table.study} has no spread", mend)
    alpha = CLAIMS * ALPHA / len(table.claims)  # of one claim, before any other is decided
    levels = {first: alpha} if most == first else {n: Looks(first, most).level(alpha, n) for n in (first, most)}
    found = []
    for claim in table.claims:
        for contrast in claim.contrasts:
            twin, margin = twins.get(contrast.column), contrast.margin
            if twin is None or twin.sd is None or not margin:
                continue
            effect = {">": margin, "> by": 2.0 * margin}.get(contrast.relation, 0.0)
            routes = find_routes(contrast.relation, effect, margin)
            powers = {n: power(routes, twin.sd / math.sqrt(n), n - 1, level) for n, level in levels.items()}
            found.append(MarginPower(claim.text, contrast, effect, twin.sd, twin.n, powers))
    return found


def report_powers(path: Path, first: int, most: int) -> str:
    """The powers of a table.json, or of that in a folder. Raises UserError as `list_powers` does, and for a file that
    is no table.
    """
    path = path / TABLE if path.is_dir() else path
    try:
        table = from_json(Table, read_table(path))
    except TypeError as error:
        raise UserError(f"{path} is not a table", "build it with `paribus table`") from error
    return write_powers(table.study, list_powers(table, first, most))


def write_powers(study: str, found: Sequence[MarginPower]) -> str:
    """A line for each contrast, and a line for each claim that does not reach `POWER`."""
    heads = ["column", "contrast", "margin", "true effect", "sd of the twin", "settings"]
    rows = [[*heads, *(f"power at {n}" for one in found[:1] for n in one.powers)]]
    for one in found:
        contrast = one.contrast
        pair = f"{contrast.arm} {contrast.relation} {contrast.versus}"
        numbers = [f"{contrast.margin:g}", f"{one.effect:g}", f"{one.sd:.3g}", str(one.n)]
        rows.append([contrast.column, pair, *numbers, *(f"{chance:.0%}" for chance in one.powers.values())])
    note = "At best: the twin differs by luck alone, and an effect that varies over settings spreads more."
    short = [f"below {POWER:.0%}: {claim}" for claim in dict.fromkeys(one.claim for one in found if not one.reached)]
    return "\n".join([f"{study}, by its A/A twin", *align(rows), note, *(short or [f"all reach {POWER:.0%}"])]) + "\n"
