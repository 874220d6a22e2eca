"""What stands beside the numbers: published effects, components, orders, means over tasks, and what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_records import LOSS, TASK, build, design, study
from scipy import stats

from paribus.sweeps.sweep import SCRATCH

SST2 = "sst2/accuracy"
CLAIM = ("dynamic > static_x10 on sst2/accuracy, margin 0.5 points",)


def two_tasks(seeds: int = 5, spread: float = 0.01) -> list[dict[str, Any]]:
    records = study(seeds, spread)
    for r in records:
        r["metrics"] = r["metrics"] | {SST2: r["metrics"][TASK] + 0.2}
        scores = (r["metrics"][SST2] - 0.003, r["metrics"][SST2] + 0.003)
        r["task_runs"] = [{"task": "sst2", "seed": k, "metrics": {"accuracy": x}} for k, x in enumerate(scores)]
    return records


def contrast(made: dict[str, Any]) -> dict[str, Any]:
    return dict(made["claims"][0]["contrasts"][0])


def test_the_published_effect_is_in_our_unit_and_set_against_what_n_could_see() -> None:
    made = build(design(claims=CLAIM), two_tasks(spread=0.1))
    found = contrast(made)
    assert found["published"] == pytest.approx(0.004)  # 92.9 - 92.5 points
    assert found["detectable"] > 0.004
    assert any("the paper's effect of 0.4 points is too small for n = 5" in note for note in made["notes"])
    assert contrast(build(design(), two_tasks()))["published"] is None, "no column of the paper stands beside the loss"


def test_what_n_could_see_is_said_where_nothing_is_decided_and_the_paper_has_no_number() -> None:
    noisy = two_tasks()
    for r in noisy:
        r["metrics"]["mlm_loss"] += (r["arm"] == "dynamic") * 5.0 * (-1) ** r["seed"]
    made = build(design(), noisy)
    found = contrast(made)
    assert (found["verdict"], found["published"]) == ("undecided", None)
    (note,) = (
        note
        for note in made["notes"]
        if note.startswith("Smallest differences that n seeds detect with a power of 80%: ")
    )
    assert f"dynamic - static_x10 on mlm_loss {found['detectable']:.3g} (n = 5)" in note


def test_components_say_what_more_fine_tuning_would_buy() -> None:
    found = contrast(build(design(claims=CLAIM), two_tasks()))["components"]
    assert found["fine_tuning_seeds"] == 2
    assert found["sd_within"] == pytest.approx(0.0, abs=1e-9), "both arms share the fine-tuning seeds' luck"
    noisy = two_tasks()
    for at, r in enumerate(noisy):
        r["task_runs"][0]["metrics"]["accuracy"] += 0.05 * (-1) ** at
    found = contrast(build(design(claims=CLAIM), noisy))["components"]
    assert found["narrower"] > 0.2


def test_equivalence_and_bootstrap_stand_beside_where_they_apply() -> None:
    found = contrast(build(design(claims=CLAIM, seeds=tuple(range(24))), two_tasks(24)))
    assert found["ci_bootstrap"] == pytest.approx([found["ci_low"], found["ci_high"]], abs=0.001)
    assert found["equivalence"]["ci_low"] > found["ci_low"]
    few = contrast(build(design(), two_tasks()))
    assert few["ci_bootstrap"] is None


def test_means_over_tasks_need_two() -> None:
    assert build(design(), study())["aggregate"] == {}
    found = build(design(), two_tasks())["aggregate"]
    assert found["columns"] == [TASK, SST2]
    arms = {arm["name"]: arm for arm in found["arms"]}
    assert "gain" not in arms["static_x10"]
    own, base = (
        [(r["metrics"][TASK] + r["metrics"][SST2]) / 2 for r in two_tasks() if r["arm"] == arm]
        for arm in ("dynamic", "static_x10")
    )
    low, high = stats.t.interval(0.95, 4, np.mean(own), stats.sem(own))
    assert arms["dynamic"]["mean"] == pytest.approx({"value": np.mean(own), "ci_low": low, "ci_high": high})
    gains = np.subtract(own, base)
    low, high = stats.t.interval(0.95, 4, gains.mean(), stats.sem(gains))
    assert arms["dynamic"]["gain"] == pytest.approx({"value": gains.mean(), "ci_low": low, "ci_high": high})
    assert arms["static"]["n"] == 5


def test_orders_need_three_arms_of_the_paper() -> None:
    assert build(design(), two_tasks())["paper"]["orders"] == []
    rows = {"static_x10": "static masking", "dynamic": "dynamic masking", "static": "reference"}
    mapped = {"table": "roberta_table1", "rows": rows, "metrics": {SST2: "sst2_acc"}}
    (found,) = build(design(published=mapped), two_tasks(spread=0.001))["paper"]["orders"]
    # ours: static < static_x10 < dynamic; the paper: static_x10 92.5 < reference 92.8 < dynamic 92.9
    assert found["tau"] == pytest.approx(1 / 3)
    assert (found["column"], found["metric"], found["n"]) == (SST2, "sst2_acc", 5)


def test_a_missing_baseline_is_named() -> None:
    records = [r for r in study() if r["arm"] != "static_x10"]
    made = build(design(), records)
    assert any("No run of the baseline static_x10 is finished" in note for note in made["notes"])
    assert made["claims"][0]["verdict"] == "not run"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.6", [0.6]])
def test_what_is_no_number_is_named_and_kept_out(value: Any) -> None:
    records = study()
    odd = next(r for r in records if r["arm"] == "dynamic" and r["seed"] == 2)
    odd["metrics"] = odd["metrics"] | {TASK: value}
    made = build(design(), records)
    assert f"dynamic/seed2: {TASK} is not a number and is left out." in made["notes"]
    cells = {arm["name"]: arm["metrics"] for arm in made["arms"]}
    assert cells["dynamic"][TASK]["seeds"] == [0, 1, 3, 4]
    assert cells["dynamic"][LOSS]["seeds"] == [0, 1, 2, 3, 4]


def test_a_missing_anchor_bars_the_task() -> None:
    made = build(design(), [r for r in study() if r["arm"] != SCRATCH])
    assert "no run from scratch" in made["about"][TASK]["reason"]
