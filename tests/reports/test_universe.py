"""Tables of a universe, from synthetic records: words, settings that do not count, controls, files."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from fake_records import LOSS, design, make_table, own, record

from paribus.core.errors import UserError
from paribus.core.jsonable import from_json, to_json
from paribus.reports.tables.blocks import make_blocks
from paribus.reports.tables.design import Design
from paribus.reports.tables.files import render_files
from paribus.reports.tables.schema import Table
from paribus.runs.manifest import Manifest
from paribus.sweeps.search.space import dimension
from paribus.sweeps.universe import TWIN, Universe
from paribus.verdict.sequential import Looks

FACTORS: dict[str, Any] = {
    "model.layers": [1, 2, 4],
    "corpus": ["docstrings", "prose"],
    "optimizer.lr": "tag(log, interval(1e-3, 1e-2))",
}
BASE, ARM, KNOWN = "static_x10", "dynamic", "static"
Effect = Callable[[dict[str, str]], float]  # the gain of ARM over the baseline in a setting


def make_universe(count: int = 12) -> Universe:
    space = {key: dimension(key, values) for key, values in FACTORS.items()}
    return Universe(count, 0, space, FACTORS, {KNOWN: "worse"})


def make_design(claim: str, count: int = 12, **changes: Any) -> Design:
    arms: dict[str, list[str]] = {arm: [] for arm in (BASE, ARM, KNOWN, TWIN)}
    values = {"columns": (LOSS,), "arms": arms, "claims": (claim,), "seeds": tuple(range(count)), "published": {}}
    return design(**{**values, "universe": make_universe(count), **changes})


def make_records(gain: Effect, sd: float, count: int = 12, known: float = -0.3, **more: Any) -> list[dict[str, Any]]:
    """Settings differ in their losses by far more than arms do. `more`: {arm: {number: what its record says}}."""
    noise, records = random.Random(3), []
    for number, setting in enumerate(make_universe(count).draw()):
        loss = 5.0 + noise.gauss(0.0, 0.5)
        gains = {BASE: 0.0, ARM: gain(dict(setting)), KNOWN: known, TWIN: 0.0}
        for arm, mean in gains.items():
            spread = 0.0 if arm == BASE else noise.gauss(0.0, sd)
            records.append(record(arm, number, {LOSS: loss - mean - spread}, **more.get(arm, {}).get(number, {})))
    return records


def by(size: float) -> Effect:
    return lambda setting: size


def with_layers(setting: dict[str, str]) -> float:
    return 0.2 * (math.log2(float(setting["model.layers"])) - 1.0)


@pytest.mark.parametrize(
    ("claim", "gain", "sd", "words"),
    [
        ("dynamic > static_x10", by(0.1), 0.02, ("holds nearly everywhere",)),
        ("dynamic > static_x10", by(0.1), 0.06, ("holds on average",)),
        ("dynamic > static_x10", by(-0.1), 0.02, ("fails nearly everywhere",)),
        ("dynamic > static_x10", by(-0.1), 0.06, ("fails on average",)),
        ("dynamic > static_x10", by(0.0), 0.004, ("makes no difference nearly everywhere",)),
        ("dynamic > static_x10", by(0.0), 0.014, ("makes no difference on average",)),
        ("dynamic > static_x10", by(0.0), 0.06, ()),
        ("dynamic > static_x10", with_layers, 0.04, ("depends on model.layers",)),
        ("dynamic > static_x10", lambda s: 0.3 + with_layers(s), 0.04, ("holds on average", "depends on model.layers")),
        ("dynamic >= static_x10", by(0.0), 0.004, ("holds nearly everywhere",)),
        ("dynamic >= static_x10", by(-0.1), 0.02, ("fails nearly everywhere",)),
        ("dynamic ~ static_x10", by(0.0), 0.004, ("holds nearly everywhere",)),
        ("dynamic ~ static_x10", by(0.0), 0.014, ("holds on average",)),
        ("dynamic > static_x10 by 0.05 nats", by(0.2), 0.02, ("holds nearly everywhere",)),
    ],
)
def test_words(claim: str, gain: Effect, sd: float, words: tuple[str, ...]) -> None:
    text = claim if " by " in claim else f"{claim} on {LOSS}, margin 0.02 nats"
    table = make_table(make_design(text), make_records(gain, sd))
    assert table.claims[0].words == words
    assert table.universe is not None
    assert table.universe.claims[text][0].words == words


def test_a_setting_counts_by_the_baseline_alone() -> None:
    stuck = {"own": own(5.9)}
    records = make_records(by(0.1), 0.02, **{BASE: {3: stuck, 5: {"status": "diverged"}}, ARM: {4: stuck}})
    table = make_table(make_design(f"dynamic > static_x10 on {LOSS}"), records)
    assert table.universe is not None
    assert {row.number: row.excluded for row in table.universe.excluded} == {
        3: "the baseline is still on the plateau of a trivial model",
        5: "the baseline's run diverged",
    }
    assert {arm.n for arm in table.arms} == {10}, "for all arms"
    assert "4" in table.universe.claims[table.claims[0].text][0].effects, "its own plateau is a part of the effect"
    assert any(
        note == "1 of 12 settings do not count, for no arm: the baseline's run diverged." for note in table.notes
    )
    assert [arm.status for arm in table.arms] == ["done"] * 4


def test_a_table_without_a_setting_that_counts_is_refused() -> None:
    records = make_records(by(0.1), 0.02, **{BASE: {number: {"own": own(5.9)} for number in range(12)}})
    with pytest.raises(UserError, match="no setting counts: the baseline is still on the plateau"):
        make_table(make_design(f"dynamic > static_x10 on {LOSS}"), records)


@pytest.mark.parametrize(("known", "seen"), [(-0.3, True), (0.0, False), (0.3, False)])
def test_controls(known: float, seen: bool) -> None:
    table = make_table(make_design(f"dynamic > static_x10 on {LOSS}"), make_records(by(0.1), 0.02, known=known))
    assert table.universe is not None
    twin, other = table.universe.controls
    assert (twin.arm, twin.expected, twin.seen) == (TWIN, "no effect", True)
    assert (other.arm, other.expected, other.seen) == (KNOWN, "worse", seen)
    assert other.mean == pytest.approx(-known, abs=0.02), "a loss: worse is higher"
    assert (other.holds == 12) is seen


def test_the_claims_share_their_part_of_the_error_rate() -> None:
    one = make_table(make_design(f"dynamic > static_x10 on {LOSS}"), make_records(by(0.1), 0.02))
    assert one.claims[0].contrasts[0].level == pytest.approx(1.0 - 0.7 * 0.05)
    claims = (f"dynamic > static_x10 on {LOSS}", f"static > static_x10 on {LOSS}")
    two = make_table(make_design(claims[0], claims=claims), make_records(by(0.0), 0.5, known=0.0))
    assert two.claims[0].contrasts[0].level == pytest.approx(1.0 - 0.7 * 0.05 / 2)


def test_the_settings_are_those_that_ran() -> None:
    frozen = {str(number): {**setting, "model.layers": "8"} for number, setting in enumerate(make_universe().draw())}
    planned = make_design(f"dynamic > static_x10 on {LOSS}").apply(Manifest("hash", [], {}, {}, settings=frozen))
    table = make_table(planned, make_records(by(0.1), 0.02))
    assert table.universe is not None
    assert {row.values["model.layers"] for row in table.universe.settings} == {"8"}


def test_settings_are_added_at_a_controlled_error_rate() -> None:
    """The first look is at twelve settings, of which one does not count."""
    records = make_records(by(0.1), 0.02, 16, **{BASE: {3: {"own": own(5.9)}}})
    planned = make_design(f"dynamic > static_x10 on {LOSS}", 16, looks=Looks(12, 20))
    table = make_table(planned, records)
    assert table.claims[0].said == "reproduced at smoke scale (at the look after 12 settings)"
    assert table.looks is not None
    assert (table.looks.first, table.looks.most) == (11, 19)


def test_texts_speak_of_settings() -> None:
    table = make_table(make_design(f"dynamic > static_x10 on {LOSS}"), make_records(by(0.02), 0.05))
    assert table.replication == "settings"
    assert "needs 29 settings or more" in table.claims[0].said
    assert not any("Paired by seed" in text for block in make_blocks(table) for text in block.below)


def test_a_table_is_written_and_read_back() -> None:
    table = make_table(
        make_design(f"dynamic > static_x10 on {LOSS}, margin 0.02 nats"), make_records(with_layers, 0.04)
    )
    assert from_json(Table, to_json(table)).universe == table.universe
    files = render_files(table)
    page = files["table.md"].decode()
    for heading in ("In another setting", "Controls", "What moves the effect", "Settings"):
        assert f"## {heading}" in page
    assert "depends on model.layers" in page
    assert "In another setting" in files["table.html"].decode()
    assert ". In another setting. " in files["evidence.tex"].decode()
    assert files["universe.svg"].decode().count("against") >= len(FACTORS)
