"""Tables of designs of several factors, from records with known means."""

from __future__ import annotations

from typing import Any

import pytest
from fake_records import LOSS, TASK, design, make_table, own, record

from paribus.core.jsonable import from_json, to_json
from paribus.reports.plots.interactions import average_cells
from paribus.reports.plots.panel import TableView, draw_all
from paribus.reports.site.claim_page import pair_runs
from paribus.reports.site.claims import describe_effect
from paribus.reports.tables.blocks import make_blocks
from paribus.reports.tables.files import render_files
from paribus.reports.tables.schema import EffectRow, Table
from paribus.sweeps.search.space import dimension
from paribus.sweeps.sweep import SCRATCH
from paribus.sweeps.universe import TWIN, Universe
from paribus.verdict.factorial import Factorial, make_factorial

TWO_BY_TWO = make_factorial("full", {"extractor": ("lstm", "transformer"), "fusion": ("late", "early")})
CELLS = {"lstm-late": 0.60, "lstm-early": 0.62, "transformer-late": 0.63, "transformer-early": 0.69}
WIGGLE = (-0.002, 0.0, 0.002)  # of one arm over three seeds, so that each effect has it by half


def make(
    factorial: Factorial, cells: dict[str, float], *claims: str, universe: Universe | None = None, **more: Any
) -> Table:
    """A table of three seeds; the last arm wiggles. `more`: {arm: what the record of its last seed says}."""
    records = []
    for seed, wiggle in enumerate(WIGGLE):
        luck = 0.05 * seed  # which all arms share
        for at, (arm, mean) in enumerate(cells.items(), 1):
            score = mean + luck + wiggle * (at == len(cells))
            told = more.get(arm, {}) if seed == len(WIGGLE) - 1 else {}
            records.append(record(arm, seed, {LOSS: 5.0 - score, TASK: score}, **told))
        records.append(record(SCRATCH, seed, {TASK: 0.2 + luck - wiggle}))
    values: dict[str, Any] = {"arms": {arm: [] for arm in cells}, "published": {}, "audit": {}, "claims": claims}
    values["universe"] = universe
    made = design(**values, baseline=next(iter(cells)), columns=(LOSS, TASK), seeds=(0, 1, 2), factorial=factorial)
    return make_table(made, records)


def find(table: Table, effect: str, column: str = TASK) -> EffectRow:
    assert table.factorial is not None
    return next(row for row in table.factorial.on(column) if row.effect == effect)


def test_effects_of_known_cell_means() -> None:
    table = make(TWO_BY_TWO, CELLS)
    assert find(table, "extractor").mean == pytest.approx((0.63 + 0.69) / 2 - (0.60 + 0.62) / 2)  # 0.05
    assert find(table, "fusion").mean == pytest.approx((0.62 + 0.69) / 2 - (0.60 + 0.63) / 2)  # 0.04
    assert find(table, "extractor x fusion").mean == pytest.approx(((0.69 - 0.63) - (0.62 - 0.60)) / 2)  # 0.02
    row = find(table, "extractor")
    assert (row.n, row.sides) == (3, ("transformer", "lstm"))
    assert row.sd == pytest.approx(0.001)  # half of the wiggle
    assert row.ci_high is not None
    assert row.ci_high - row.mean == pytest.approx(4.302653 * 0.001 / 3**0.5)  # t of two degrees of freedom
    assert find(table, "extractor", LOSS).mean == pytest.approx(-0.05)


def test_claims_on_effects_are_judged_like_others() -> None:
    claims = (
        f"extractor > 0 on {TASK}, margin 0.5 points",
        f"extractor x fusion ~ 0 on {TASK}, margin 0.5 points",
        f"0 > fusion on {TASK}, margin 0.5 points",
        f"transformer-early > lstm-late on {TASK}, margin 0.5 points",
    )
    table = make(TWO_BY_TWO, CELLS, *claims)
    verdicts = [claim.verdict for claim in table.claims]
    assert verdicts == ["reproduced", "contradicted", "contradicted", "reproduced"]
    row = table.claims[0].contrasts[0]
    assert (row.pair, row.names) == ("extractor", ("transformer", "lstm"))
    assert set(row.arms) == set(CELLS)
    assert row.p is not None
    assert table.claims[0].p == pytest.approx(4 * row.p)  # of the family of four claims
    assert [check.state for check in row.checks] == ["passes"] * 4 + ["does not apply", "passes"]
    effect = describe_effect(table, row)
    assert (effect.arm, effect.comparison, effect.versus) == ("transformer", "better", "lstm")


def test_an_effect_counts_the_seeds_that_all_its_arms_have_and_waits_for_those_on_their_plateau() -> None:
    claim = f"fusion > 0 on {LOSS}, margin 0.02 nats"
    short = make(TWO_BY_TWO, CELLS, claim, **{"lstm-late": {"status": "failed"}})
    assert find(short, "fusion").n == 2
    assert short.claims[0].contrasts[0].n == 2
    stuck = make(TWO_BY_TWO, CELLS, claim, **{"lstm-late": {"own": own(5.9)}})
    assert stuck.claims[0].verdict == "undecided"
    assert "lstm-late" in stuck.claims[0].said
    diverged = make(TWO_BY_TWO, CELLS, claim, **{"transformer-early": {"status": "diverged"}})
    assert "1 of 6 runs of early diverged" in diverged.claims[0].said


def test_the_control_is_that_of_both_sides() -> None:
    low = {arm: mean - 0.42 for arm, mean in CELLS.items()}
    low |= {arm: 0.15 for arm in CELLS if "transformer" in arm}
    table = make(TWO_BY_TWO, low, f"0 > extractor on {TASK}, margin 0.5 points")
    assert table.claims[0].verdict == "undecided"
    assert "not sensitive: lstm is not clearly above the model from scratch" in table.claims[0].said


def test_a_fraction_lists_what_it_cannot_tell_apart() -> None:
    half = make_factorial("fractional", {name: (f"{name}0", f"{name}1") for name in "abcd"})
    table = make(half, {arm: 0.6 + 0.01 * at for at, arm in enumerate(half.arms)})
    assert find(table, "a x b").aliases == ("c x d",)
    block = next(block for block in make_blocks(table) if block.heading == "Effects of the factors")
    assert block.header[-1] == "aliased with"
    assert "a x b is aliased with c x d." in table.notes
    assert len(block.lines) == 2 * (4 + 3)


def test_the_files_have_the_effects_and_their_drawings() -> None:
    claim = f"extractor > 0 on {TASK}, margin 0.5 points"
    table = make(TWO_BY_TWO, CELLS, claim)
    assert from_json(Table, to_json(table)) == table
    files = render_files(table)
    page = files["table.html"].decode()
    for text in ("Effects of the factors", "Half-normal plots of effects", "Interactions of factors"):
        assert text in page
    assert "| **extractor**" in files["table.md"].decode()
    drawn = {drawing.name: len(panels) for drawing, panels in draw_all(TableView(table))}
    assert (drawn["half_normal"], drawn["interactions"]) == (2, 2)
    assert table.factorial is not None
    means = average_cells(table, table.factorial, TASK, "extractor", "fusion")
    assert means["early"] == pytest.approx({"lstm": 67.0, "transformer": 74.0})  # in points, with luck of 5 on average


def test_the_page_of_a_claim_has_the_means_of_both_sides_with_each_seed() -> None:
    table = make(TWO_BY_TWO, CELLS, f"extractor > 0 on {TASK}, margin 0.5 points")
    runs = pair_runs(table, table.claims[0].contrasts[0])
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert (runs[1]["first"], runs[1]["second"], runs[1]["effect"]) == ("71.00", "66.00", "+5.00")


def test_settings_of_a_universe_are_blocks() -> None:
    factors = {"model.layers": [1, 2]}
    universe = Universe(3, 0, {key: dimension(key, values) for key, values in factors.items()}, factors, {})
    claim = f"extractor > 0 on {TASK}, margin 0.5 points"
    table = make(TWO_BY_TWO, {**CELLS, TWIN: 0.60}, claim, universe=universe)
    assert find(table, "extractor").mean == pytest.approx(0.05)
    assert table.universe is not None
    assert table.universe.claims[claim][0].mean == pytest.approx(0.05)
    assert table.universe.claims[claim][0].pair == "extractor"
