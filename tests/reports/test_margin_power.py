"""What the settings of a universe can decide, by the spread of its twin."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_records import LOSS, design, make_table, record

from paribus.commands.cli import main
from paribus.core.errors import UserError
from paribus.core.jsonable import to_json
from paribus.reports.margin_power import list_powers
from paribus.reports.tables.schema import Table
from paribus.sweeps.search.space import dimension
from paribus.sweeps.universe import TWIN, Universe
from paribus.verdict.rules import find_word, judge
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import average

BASE, ARM = "static_x10", "dynamic"
MARGIN, SETTINGS = 0.02, 8


def pilot(sd: float, relation: str = ">", settings: int = SETTINGS) -> Table:
    """The table of runs of the baseline and its twin alone."""
    noise, records = random.Random(5), list[dict[str, Any]]()
    for number in range(settings):
        loss = 5.0 + noise.gauss(0.0, 0.5)
        records += [record(BASE, number, {LOSS: loss}), record(TWIN, number, {LOSS: loss + noise.gauss(0.0, sd)})]
    factors = {"model.layers": dimension("model.layers", [1, 2])}
    planned = design(
        columns=(LOSS,),
        arms={arm: [] for arm in (BASE, ARM, TWIN)},
        claims=(f"{ARM} {relation} {BASE} on {LOSS}, margin {MARGIN}",),
        seeds=tuple(range(settings)),
        published={},
        universe=Universe(settings, 0, factors, {}, {}),
    )
    return make_table(planned, records)


def test_the_twins_spread_gives_the_power_of_each_margin() -> None:
    table = pilot(0.02)
    (found,) = list_powers(table, 12, 20)
    assert table.universe is not None
    effects = next(row for row in table.universe.controls if row.arm == TWIN).effects
    assert found.sd == pytest.approx(average([*effects.values()]).sd)
    assert (found.n, found.effect, [*found.powers]) == (SETTINGS, MARGIN, [12, 20])
    assert found.powers[12] < found.powers[20]


@pytest.mark.parametrize("relation", [">", ">=", "~"])
def test_the_power_is_the_share_of_simulated_tables_that_are_decided(relation: str) -> None:
    (found,) = list_powers(pilot(0.02, relation), 12, 20)
    level, noise, decided = Looks(12, 20).level(0.7 * 0.05, 20), random.Random(1), 0
    for _ in range(1000):
        drawn = average([noise.gauss(found.effect, found.sd) for _ in range(20)])
        low, high = drawn.interval(level)
        assert low is not None
        assert high is not None
        decided += find_word(judge(found.contrast.relation, low, high, MARGIN)).decides
    assert decided / 1000 == pytest.approx(found.powers[20], abs=0.04)


def test_the_command_says_which_claims_have_too_little_power(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for sd, said in ((0.01, "all reach 80%"), (0.1, f"below 80%: {ARM} > {BASE} on {LOSS}, margin {MARGIN}")):
        (tmp_path / "table.json").write_text(json.dumps(to_json(pilot(sd))))
        assert main(["power", "--from", str(tmp_path)]) == 0
        out = capsys.readouterr().out
        assert said in out
        assert re.search(rf"{LOSS} +{ARM} > {BASE} +{MARGIN} +{MARGIN} .* {SETTINGS} ", out)


def test_what_has_no_twin_is_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    with pytest.raises(UserError, match="the twin of roberta_table1 has no spread"):
        list_powers(pilot(0.02, settings=1), 12, 20)
    with pytest.raises(UserError, match="has no universe"):
        list_powers(make_table(design(), [record(BASE, 0, {LOSS: 5.0})]), 12, 20)
    assert "is not a table" in refusal("power", "--from", str(tmp_path / "none.json"))
    assert "--sd does not apply to --from" in refusal("power", "--from", str(tmp_path), "--sd", "1")
    assert "--most is below --settings" in refusal("power", "--from", str(tmp_path), "--settings", "30")
    assert "--most applies to --from alone" in refusal("power", "--sd", "1", "--most", "30")
