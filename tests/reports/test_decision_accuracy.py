"""The contrasts of two scales: which count, how they are turned, and what the site says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_records import LOSS, TASK, design, make_table, own, study

from paribus.reports.decision_accuracy import find_contrasts, predict_large
from paribus.reports.site.prediction import tell_prediction
from paribus.reports.tables.schema import Table
from paribus.verdict.claims import TWINS

CLAIM = ("static_x10 > dynamic on all, margin 1 points, margin 0.1 on mlm_loss",)


def table(scale: str, name: str = "roberta_table1", claims: tuple[str, ...] | None = None, shift: float = 0.0) -> Table:
    records = [record | {"scale": scale, "study": name} for record in study()]
    for record in records:
        moved = shift if record["arm"] == "dynamic" else 0.0
        record["metrics"] = record["metrics"] | {LOSS: record["metrics"][LOSS] + moved}
    return make_table(design(scale=scale, study=name, **({"claims": claims} if claims else {})), records)


def test_a_contrast_counts_once_and_with_one_sign_at_both_scales() -> None:
    """The larger scale names the arms in the other order, with other margins."""
    found = {one.column: one for one in find_contrasts([table("cpu", claims=CLAIM), table("smoke")])}
    assert found.keys() == {LOSS, TASK}
    loss = found[LOSS]
    assert (loss.arm, loss.versus, loss.small.scale, loss.large.scale) == ("dynamic", "static_x10", "smoke", "cpu")
    assert loss.small.effect == loss.large.effect > 0.0  # the loss of dynamic is lower
    assert loss.small.in_margins == pytest.approx(5.0 * loss.large.in_margins)
    assert loss.large.clear


def test_one_scale_or_identical_arms_predict_nothing() -> None:
    small, large = table("smoke"), table("cpu")
    assert predict_large([small]) is None
    twins = replace(large, claims=tuple(replace(claim, whose=TWINS) for claim in large.claims))
    assert predict_large([small, twins]) is None


def test_the_groups_and_columns_of_studies() -> None:
    """Three studies keep their effects; in the fourth, the loss turns at the larger scale."""
    tables = [table(scale, f"study{at}") for at in range(3) for scale in ("smoke", "cpu")]
    tables += [table("smoke", "turns"), table("cpu", "turns", shift=0.3)]
    prediction = predict_large(tables)
    assert prediction is not None
    everything = prediction.groups[0]
    assert (everything.studies, everything.signs.same, everything.signs.count) == (4, 7, 8)
    assert {one.column: one.signs.share for one in prediction.columns} == {LOSS: 0.75, TASK: 1.0}
    assert [share.median for share in prediction.published] == [80.0, 63.0]
    told = tell_prediction(prediction)
    assert told is not None
    assert told["groups"][0][:3] == ["all", "4", "7 of 8 (88%)"]


def test_runs_on_their_plateau_are_left_out_of_what_could_be_decided() -> None:
    stuck = [record | {"own": own(5.9)} for record in study()]
    prediction = predict_large([make_table(design(), stuck), table("cpu")])
    assert prediction is not None
    assert [one.small.barred for one in prediction.contrasts] == [True, True]
    groups = {group.name: group.signs.count for group in prediction.groups}
    assert groups == {
        "all": 2,
        "the interval at the larger scale excludes 0": 2,
        "nothing but the number of seeds keeps either scale from a verdict": 0,
        "the same tasks at both scales": 2,
    }
