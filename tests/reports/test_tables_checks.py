"""The six checks from records: of synthetic studies, and of a committed table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_records import LOSS, TASK, build, design, make_table, own, record, study

from paribus.core.jsonable import from_json, to_json
from paribus.reports.tables.blocks import list_notes, mark_checks
from paribus.reports.tables.build import make_table as rebuild
from paribus.reports.tables.markdown import render_markdown
from paribus.reports.tables.schema import ClaimRow, Table
from paribus.sweeps.sweep import SCRATCH
from paribus.sweeps.sweep_file import load
from paribus.sweeps.tuning import ArmTuning, Trial, Tuning
from paribus.verdict.checks import CHECKS

ROOT = Path(__file__).parents[2]
ON_TASK = f"dynamic > static on {TASK}, margin 0.5 points"


def judge(records: list[dict[str, Any]], claim: str = ON_TASK, **changes: Any) -> ClaimRow:
    return make_table(design(claims=(claim,), **changes), records).claims[0]


def edit(records: list[dict[str, Any]], arm: str, **changes: Any) -> list[dict[str, Any]]:
    return [r | changes if r["arm"] == arm else r for r in records]


def leave_at(*points: tuple[int, float]) -> dict[str, Any]:
    """The own loss of a run of 400,000 tokens, at these steps."""
    return own(5.0) | {"curve": [[step, 1000 * step, loss] for step, loss in points]}


def reasons(claim: ClaimRow) -> dict[str, str]:
    return {check.name: check.reason for check in claim.checks if check.state != "passes"}


def test_a_sound_study_is_solid_and_its_word_says_nothing_more() -> None:
    claim = judge(study())
    assert (claim.verdict, claim.strength, claim.word) == ("reproduced", "solid", "reproduced")
    assert mark_checks(claim.checks) == "✓✓✓✓–✓"
    assert reasons(claim) == {"inside_grid": "no value was tuned"}
    about_loss = judge(study(), f"dynamic > static on {LOSS}, margin 0.01 nats")
    assert mark_checks(about_loss.checks) == "✓✓–––✓"


def test_a_late_exit_makes_a_verdict_weak_and_shows_the_arms_at_equal_tokens_after_it() -> None:
    late = leave_at((100, 6.5), (200, 6.0), (300, 5.2), (400, 5.0))
    table = make_table(design(claims=(ON_TASK,)), edit(study(), "dynamic", own=late))
    claim = table.claims[0]
    why = "weak: dynamic left the plateau at 75% of its tokens in seed 0 (5 of 10 runs had not left it by half)"
    assert claim.word == f"reproduced ({why}; exits at 75% (dynamic) and 50% (static) of the tokens)"
    assert claim.said == f"{claim.word} at smoke scale"
    assert claim.short_word == "reproduced (weak)"
    after = claim.contrasts[0].after_exit
    assert after is not None
    assert (after.tokens, after.n, after.comparable) == (100_000, 5, True)
    assert after.below == pytest.approx((1.0, 0.9))  # at 400,000 and at 300,000 tokens, of a floor of 6
    assert after.difference == pytest.approx(0.1)
    text = render_markdown(table)
    assert "| checks |" in text
    assert "| ✗✗✓✓–✓ |" in text
    assert "Check 2 fails: exits at 75% (dynamic) and 50% (static) of the tokens." in text
    assert "Without a verdict: 100,000 tokens after each run left the plateau, the own loss is 1.00 nats below" in text
    assert list_notes(table)[0].startswith("Checks: (1) both arms left the plateau by half of their tokens, (2)")
    other = judge(edit(study(), "dynamic", own=late), varies=("masking.rate",)).contrasts[0].after_exit
    assert other is not None
    assert not other.comparable


def test_what_a_machine_reads_keeps_its_verdict_and_gains_checks_and_strength() -> None:
    made = build(design(claims=(ON_TASK,)), edit(study(), "dynamic", own=leave_at((100, 6.5), (390, 5.3), (400, 5.0))))
    claim, contrast = made["claims"][0], made["claims"][0]["contrasts"][0]
    assert (claim["verdict"], claim["strength"], contrast["strength"]) == ("reproduced", "weak", "weak")
    assert [check["name"] for check in contrast["checks"]] == list(CHECKS)
    assert set(contrast["checks"][0]) == {"name", "state", "reason"}
    assert to_json(from_json(Table, json.loads(json.dumps(made)))) == made


def test_an_exit_in_an_earlier_stage_is_known_if_each_stage_has_its_loss() -> None:
    stages = [{"stage": name, "budget": {"steps": 100, "input_tokens": 400_000}} for name in ("pretraining", "further")]
    old = edit(study(), "dynamic", stages=stages)
    why = "dynamic left the plateau in an earlier stage, whose exit is not recorded"
    assert judge(old).word == f"reproduced (unchecked: {why})"
    new = edit(study(), "dynamic", stages=[stage | {"own": own(5.0)} for stage in stages])
    assert judge(new).strength == "weak"  # half of the first stage is a quarter of the run
    assert reasons(judge(new))["exits_alike"] == "exits at 25% (dynamic) and 50% (static) of the tokens"


def test_one_collapsed_fine_tuning_is_named() -> None:
    records = study()
    runs = next(r for r in records if r["arm"] == "static")["task_runs"]
    runs[0]["metrics"] = {"accuracy": 0.115}
    assert reasons(judge(records))["no_collapse"] == f"fine-tunings at chance on {TASK}: 1 of 10 of static"
    without = [r | {"baselines": {TASK: {"bag_of_words": 0.58}}} for r in study()]
    assert judge(without).word.startswith("reproduced (unchecked: the score of a constant answer is not recorded")


def test_an_arm_below_from_scratch_makes_a_difference_weak() -> None:
    records = [r | {"metrics": {TASK: r["metrics"][TASK] - 0.36}} if r["arm"] == "static" else r for r in study()]
    assert reasons(judge(records))["above_scratch"].startswith("static gains -1.0 [")


def test_a_value_at_the_edge_of_its_grid() -> None:
    def tune(chosen: str) -> ArmTuning:
        return ArmTuning(
            {"optimizer.lr": chosen}, [Trial(at, {"optimizer.lr": lr}) for at, lr in enumerate(("1", "2", "3"))]
        )

    spec = {"trials": 3, "space": {"optimizer.lr": [1, 2, 3]}, "on": LOSS, "seeds": [100], "sampler": "grid"}
    tuning = Tuning(spec, {"dynamic": tune("2"), "static": tune("3")})
    assert reasons(judge(study(), tuning=tuning)) == {
        "inside_grid": "tuned to the edge of the grid: optimizer.lr=3 in static"
    }
    alone = replace(tuning, arms={"dynamic": tune("2")})
    assert reasons(judge(study(), tuning=alone)) == {"inside_grid": "the search for static is not recorded"}


def test_runs_of_one_checkpoint_are_told_from_models_from_scratch_and_from_several_checkpoints() -> None:
    untrained = {"budget": {"input_tokens": 0, "steps": 0}}
    tuned = [r | untrained | {"own": {}} for r in study()]
    fine_tuned = judge(tuned, matched="none")
    assert fine_tuned.word == "reproduced (weak: all runs start from one checkpoint of one text)"
    assert mark_checks(fine_tuned.checks) == "––✓✓–✗"
    named = [r | {"checkpoint": f"weights{r['seed']}"} for r in tuned]
    assert judge(named, matched="none").strength == "solid"
    scratch = edit(study(), "static", **untrained, own={})
    assert mark_checks(judge(scratch, matched="none").checks) == "✓–✓✓–✓"


def test_seeds_that_only_one_arm_has_do_not_count() -> None:
    alone = record("dynamic", 9, {LOSS: 4.9, TASK: 0.6}, own=leave_at((100, 6.5), (390, 5.3), (400, 5.0)))
    assert judge([*study(), alone]).checks == judge(study()).checks


def test_runs_of_another_framework_have_no_checks() -> None:
    records = [r | {"scale": ""} for r in study() if r["arm"] != SCRATCH]
    claim = judge(records, f"dynamic > static on {LOSS}, margin 0.01 nats", scale="", matched="none", published={})
    assert (claim.verdict, claim.word, claim.checks, claim.strength) == ("reproduced", "reproduced", (), None)


def test_a_committed_table_follows_from_its_records_with_its_checks() -> None:
    results = ROOT / "analysis/results/cpu"
    made = rebuild(load("t5_table4"), "cpu", None, [results])
    kept = from_json(Table, json.loads((results / "t5_table4/table.json").read_bytes()))
    assert made.claims == kept.claims
    claim = made.claims[0]
    assert (claim.verdict, claim.strength) == ("reproduced", "weak")
    assert mark_checks(claim.checks) == "✗✗✓✗–✓"
    assert "exits at 58% (bert_style) and 13% (prefix_lm) of the tokens" in claim.word
    assert claim.contrasts[0].after_exit is not None
