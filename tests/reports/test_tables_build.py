"""From synthetic records to table.json: statistics, controls, honest rows, the paper's numbers."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from fake_records import LOSS, TASK, build, design, make_table, own, read, record, study
from scipy import stats

from paribus.core.errors import UserError
from paribus.reports.tables.evidence import find_off_budget
from paribus.reports.tables.markdown import render_markdown
from paribus.reports.tables.schema import Level
from paribus.sweeps.sweep import SCRATCH
from paribus.verdict.claims import Sentence
from paribus.verdict.metrics import MEAN
from paribus.verdict.sequential import Looks


def test_the_numbers_are_scipys_and_paired_by_seed() -> None:
    records = study(5)
    made = build(design(), records)
    ours = {r["seed"]: r["metrics"][LOSS] for r in records if r["arm"] == "dynamic"}
    base = {r["seed"]: r["metrics"][LOSS] for r in records if r["arm"] == "static_x10"}
    arm = next(arm for arm in made["arms"] if arm["name"] == "dynamic")
    cell = arm["metrics"][LOSS]
    assert cell["values"] == list(ours.values())
    low, high = stats.t.interval(0.95, 4, sum(ours.values()) / 5, stats.sem(list(ours.values())))
    assert (cell["ci_low"], cell["ci_high"]) == (pytest.approx(low), pytest.approx(high))
    contrast = made["claims"][0]["contrasts"][0]
    assert contrast["column"] == LOSS
    assert contrast["p"] == pytest.approx(stats.ttest_rel(list(ours.values()), list(base.values())).pvalue)
    assert contrast["difference"] == pytest.approx(sum(ours[s] - base[s] for s in ours) / 5)
    assert arm["versus_baseline"][LOSS]["p"] == contrast["p"]
    assert {"column", "arm", "versus", "difference", "ci_low", "ci_high", "p", "n"} <= contrast.keys()


def test_the_contracts_keys() -> None:
    made = build(design(), study())
    assert {
        "study",
        "scale",
        "baseline",
        "columns",
        "arms",
        "claims",
        "audit",
        "budget",
        "anchors",
        "notes",
    } <= made.keys()
    for arm in made["arms"]:
        assert {"name", "overrides", "n", "status", "metrics", "published"} <= arm.keys()
        assert all({"mean", "sd", "ci_low", "ci_high", "values"} <= cell.keys() for cell in arm["metrics"].values())
    assert made["audit"]["differences"]["dynamic"]
    assert made["columns"] == [LOSS, TASK]
    assert "Not run at smoke scale: sst2/accuracy." in made["notes"]
    assert made["claims"][0]["verdict"] == "reproduced"
    assert made["claims"][0]["said"] == "reproduced (2 of 3 columns) at smoke scale"
    assert "says" not in made["claims"][0]  # a claim without a sentence of its own
    assert made["claims"][0]["whose"] == "ours"


def test_the_order_of_records_does_not_matter() -> None:
    assert build(design(), study()) == build(design(), study()[::-1])


def test_anchor_rows_and_the_sensitivity_control() -> None:
    made = build(design(), study())
    anchors = {anchor["name"]: anchor["metrics"] for anchor in made["anchors"]}
    assert anchors["from scratch"].keys() == {TASK}
    assert anchors["bag of words"][TASK]["mean"] == 0.58
    assert anchors["majority class"][TASK]["mean"] == 0.11
    assert anchors["unigram"][LOSS]["mean"] == 6.5
    weak = [r if r["arm"] != SCRATCH else r | {"metrics": {TASK: 0.6 + 0.01 * r["seed"]}} for r in study()]
    made = build(design(), weak)
    task = next(c for c in made["claims"][0]["contrasts"] if c["column"] == TASK)
    assert task["verdict"] == "undecided"
    assert task["reason"].startswith("not sensitive: static_x10 is not clearly above the model from scratch")
    assert made["claims"][0]["verdict"] == "undecided"


def test_arms_with_fewer_labels_are_compared_with_a_model_from_scratch_that_has_as_few() -> None:
    strong = [r if r["arm"] != SCRATCH else r | {"metrics": {TASK: 0.9 + 0.01 * r["seed"]}} for r in study()]
    few = [
        r | {"arm": "few", "metrics": {**r["metrics"], TASK: r["metrics"][TASK] - 0.2 - 0.001 * r["seed"]}}
        for r in study()
        if r["arm"] == SCRATCH
    ]

    def judge(**references: str) -> str:
        asked = design(arms={**design().arms, "few": ["untrained=true"]}, references=references)
        return next(c for c in build(asked, strong + few)["claims"][0]["contrasts"] if c["column"] == TASK)["verdict"]

    assert judge() == "undecided"
    assert judge(static_x10="few", dynamic="few") == judge(static_x10="few") != "undecided"


def test_a_table_on_the_plateau_says_that_it_is_too_small() -> None:
    flat = [r | {"baselines": {LOSS: {"unigram": 4.95}}} for r in study()]
    made = build(design(columns=(LOSS,), claims=("dynamic > static_x10",), published={}), flat)
    assert made["claims"][0]["verdict"] == "undecided"
    assert "only compare word frequencies" in made["claims"][0]["said"]
    assert any("too small to decide" in note for note in made["notes"])


def test_arms_that_differ_in_their_masks_have_no_verdict_on_the_loss() -> None:
    made = build(design(varies=("masking.rate",), claims=("dynamic > static_x10",)), study())
    assert [contrast["column"] for contrast in made["claims"][0]["contrasts"]] == [TASK]
    assert not made["about"][LOSS]["decides"]
    named = build(design(varies=("masking.rate",), claims=("dynamic > static_x10 on mlm_loss",)), study())
    assert named["claims"][0]["verdict"] == "undecided"
    assert "no verdict" in named["claims"][0]["said"]


def test_a_claim_about_a_loss_itself_is_decided_whatever_the_arms_differ_in() -> None:
    about, other = "dynamic > static_x10 on mlm_loss, margin 0.02 nats", "dynamic >= static_x10, margin 0.5 points"
    sentences = {about: Sentence("The loss falls", "ours", about="loss")}
    made = build(design(varies=("masking.rate",), claims=(about, other), sentences=sentences), study())
    itself, quality = made["claims"]
    assert (itself["verdict"], itself["says"], itself["whose"]) == ("reproduced", "The loss falls", "ours")
    assert [contrast["column"] for contrast in quality["contrasts"]] == [TASK]  # `all` still leaves it out


def test_unmatched_budgets_make_no_table() -> None:
    records = study()
    records[1]["budget"] = {"input_tokens": 900_000}
    with pytest.raises(UserError, match=r"budgets differ .* in tokens: .*dynamic/seed0 used 900000"):
        build(design(), records)
    assert build(design(matched="steps"), records)["budget"]["matched"] == "steps"
    assert find_off_budget(design(), read(records)) is not None
    assert find_off_budget(design(scale="test"), read(records)) is None, "two steps are too few to compare"


def test_seeds_may_fill_other_numbers_of_sequences_but_not_the_arms_of_a_seed() -> None:
    records = study()
    for run in records:
        run["budget"] = {
            "input_tokens": 1_000_000,
            "sequences": 1000 + 50 * run["seed"],
            "steps": 100 + 5 * run["seed"],
        }
        run["budget"] |= {"predicted_tokens": 150_000 + 7_000 * run["seed"], "flops": 1e12 + 5e10 * run["seed"]}
    assert build(design(matched="sequences"), records)["budget"]["matched"] == "sequences"
    other = next(run for run in records if (run["arm"], run["seed"]) == ("dynamic", 1))
    other["budget"] = other["budget"] | {"sequences": 1000}
    with pytest.raises(UserError, match=r"dynamic/seed1 used 1000 and .*/seed1 used 1050"):
        build(design(matched="sequences"), records)


def test_a_seed_that_had_another_budget_in_all_arms_makes_no_table() -> None:
    records = study()
    for run in records:
        run["budget"] = {"input_tokens": 1_000_000 * (1 + (run["seed"] == 1)), "steps": 100 * (1 + (run["seed"] == 1))}
    with pytest.raises(UserError, match=r"seed0 used 1e\+06 and .*/seed1 used 2e\+06"):
        build(design(), records)


def test_failed_diverged_and_missing_runs_stay_in_sight() -> None:
    records = [r for r in study() if not (r["arm"] == "static" and r["seed"] == 4)]
    records[0] |= {"status": "diverged", "error": "loss is not a number at step 40"}
    for r in records:
        if r["arm"] == "dynamic":
            r |= {"status": "failed", "metrics": {}}
    made = build(design(), records)
    states = {arm["name"]: (arm["status"], arm["n"]) for arm in made["arms"]}
    assert states == {"static_x10": ("partial", 4), "dynamic": ("failed", 0), "static": ("partial", 4)}
    assert "static_x10/seed0 diverged: loss is not a number at step 40." in made["notes"]
    assert "static: no record of seed 4." in made["notes"]
    assert made["claims"][0]["verdict"] == "not run"
    assert next(a for a in made["arms"] if a["name"] == "dynamic")["metrics"] == {}


def test_one_seed_prints_no_interval() -> None:
    made = build(design(seeds=(0,)), [r for r in study() if r["seed"] == 0])
    cell = made["arms"][0]["metrics"][LOSS]
    assert cell["mean"] is not None
    assert (cell["sd"], cell["ci_low"], cell["ci_high"]) == (None, None, None)
    assert made["claims"][0]["verdict"] == "undecided"
    assert "No interval, because there is only one seed: static_x10, dynamic, static." in made["notes"]


def test_notes_say_how_much_of_a_task_stands_in_the_text() -> None:
    records = study(seeds=2)
    assert not any("pre-training text" in note for note in build(design(), records)["notes"])
    said = "Evaluation texts of docs_package that also occur in the pre-training text: "
    alike = [{**each, "overlap": {"docs_package": 0.957}} for each in records]
    assert f"{said}95.7%." in build(design(), alike)["notes"]
    apart = [{**each, "overlap": {"docs_package": 0.25 * (each["arm"] == "dynamic")}} for each in records]
    assert f"{said}0.0% (static_x10, static); 25.0% (dynamic)." in build(design(), apart)["notes"]


def test_notes_count_evaluation_texts_that_are_in_the_training_set() -> None:
    records = study(seeds=2)
    for split, count in (("validation", 11), ("hard", 0)):
        counted = {"trec": {"examples": {"train": 5452, split: 499}, "leaked": {split: count}}}
        notes = build(design(), [{**each, "task_examples": counted} for each in records])["notes"]
        said = "Evaluation texts of trec (validation) that are also in its training set: 11 of 499."
        assert (said in notes) == bool(count)


def test_notes_count_fine_tunings_that_learned_nothing_beside_some_that_did() -> None:
    def count(*accuracies: float) -> list[str]:
        runs = [
            {"task": "docs_package", "seed": seed, "metrics": {"accuracy": accuracy}}
            for seed, accuracy in enumerate(accuracies)
        ]
        given = [{**each, "task_runs": runs} if each["arm"] == "dynamic" else each for each in study(seeds=2)]
        return [note for note in build(design(), given)["notes"] if note.startswith("Some fine-tuning runs")]

    (note,) = count(0.11, 0.6, 0.115)  # the most frequent class: 0.11
    assert f"while others of the same arm are: dynamic 4 of 6 on {TASK}." in note
    assert count(0.11, 0.115) == count(0.6, 0.5) == count(0.11, 0.14) == []


def test_notes_say_how_many_weights_a_task_trains_if_arms_differ_in_that() -> None:
    def count(adapted: int) -> list[str]:
        sizes = {"dynamic": adapted}
        given = [
            {**each, "tuned": {"trained_parameters": sizes.get(each["arm"], 4500), "head_parameters": 1200}}
            for each in study(seeds=2)
        ]
        return [note for note in build(design(), given)["notes"] if note.startswith("Weights")]

    head = "1,200 of them in the head"
    said = f"Weights trained in fine-tuning: 4,500, {head} (static_x10, static); 1,900, {head} (dynamic)."
    assert count(1900) == [said]
    assert count(4500) == []


def test_what_cannot_be_trusted_is_named_and_kept_out() -> None:
    records = study()
    records += [record("dynamic", 0, {LOSS: 1.0}, signature="another")]
    records[6]["metrics"][TASK] = math.nan
    records[9]["data"] = {"fingerprint": "other text"}
    records[10]["sweep_hash"] = "older"
    made = build(design(), records)
    notes = "\n".join(made["notes"])
    assert "dynamic/seed0 is left out: records with several signatures (another, dynamic-0)." in notes
    assert f"{records[6]['arm']}/seed1: {TASK} is not a number and is left out." in notes
    assert f"{records[9]['arm']}/seed2 is left out: it was trained on a different text" in notes
    assert f"Made under another version of the sweep file: {records[10]['arm']}/seed2." in notes
    assert next(arm for arm in made["arms"] if arm["name"] == "dynamic")["metrics"][LOSS]["seeds"] == [1, 3, 4]


def test_the_anchor_from_scratch_counts_if_the_others_end_on_text_of_their_task() -> None:
    records = study()
    for each in records:
        each["data"] = {"fingerprint": "task", "tokenizer": "one", "tasks": {"docs_package": "same"}}
        if each["arm"] == SCRATCH:
            each["data"]["fingerprint"] = "general"
    records[7]["data"] = records[7]["data"] | {"tokenizer": "another"}
    made = build(design(), records)
    assert (records[7]["arm"], records[7]["seed"]) == (SCRATCH, 1)
    assert [note for note in made["notes"] if "left out" in note] == [
        "from_scratch/seed1 is left out: it was trained on a different text than the other runs."
    ]
    (anchor,) = (row for row in made["anchors"] if row["name"] == "from scratch")
    assert anchor["metrics"][TASK]["seeds"] == [0, 2, 3, 4]


def test_the_papers_numbers_stand_beside_the_same_metric_only() -> None:
    made = build(design(), study())
    dynamic = next(arm for arm in made["arms"] if arm["name"] == "dynamic")
    source = "Liu et al. 2019, arXiv 1907.11692, Table 1"
    assert dynamic["published"]["sst2_acc"] == {"value": 92.9, "source": source}
    assert next(arm for arm in made["arms"] if arm["name"] == "static")["published"] == {}
    assert made["paper"]["beside"] == {}
    assert made["paper"]["absent"] == {"sst2/accuracy": "sst2_acc"}  # it was not run
    assert made["paper"]["own"] == ["squad20_f1", "mnli_m_acc"]
    for r in (records := study()):
        r["metrics"]["sst2/accuracy"] = 0.8 + r["metrics"][TASK] / 10
    made = build(design(), records)
    assert made["paper"]["beside"] == {"sst2/accuracy": "sst2_acc"}
    assert made["paper"]["absent"] == {}
    assert "sst2_acc" not in made["paper"]["own"]


def test_best_needs_an_interval_on_the_better_side() -> None:
    made = build(design(), study())
    assert {arm["name"]: arm["best"] for arm in made["arms"]}["dynamic"] == [LOSS, TASK]
    close = build(design(), study(spread=1.0))
    assert not any(arm["best"] for arm in close["arms"])


def test_bad_designs_are_named() -> None:
    with pytest.raises(UserError, match="no finished run"):
        build(design(), [])
    with pytest.raises(UserError, match="matched: epochs"):
        build(design(matched="epochs"), study())
    wrong = {"table": "roberta_table1", "rows": {"dynamc": "dynamic masking"}}
    with pytest.raises(UserError, match=r"published\.rows.*dynamc"):
        build(design(published=wrong), study())


def test_the_mean_over_tasks_is_a_column_of_its_own() -> None:
    records = study()
    for r in records:
        r["metrics"] = r["metrics"] | {"sst2/accuracy": r["metrics"][TASK] ** 2}
    claim = "dynamic >= static_x10 on mean, margin 0.5 points"
    asked = design(columns=(LOSS, TASK, "sst2/accuracy", MEAN), claims=(claim,), varies=("masking.rate",))
    made = build(asked, records)
    arm = next(arm for arm in made["arms"] if arm["name"] == "dynamic")
    both = zip(*(arm["metrics"][column]["values"] for column in (TASK, "sst2/accuracy")), strict=True)
    assert arm["metrics"][MEAN]["values"] == pytest.approx([sum(row) / 2 for row in both])
    assert (made["claims"][0]["verdict"], made["claims"][0]["said"]) == ("reproduced", "reproduced at smoke scale")
    assert made["about"][MEAN] == {"higher_is_better": True, "unit": "points", "decides": True, "reason": None}
    assert MEAN in made["anchors"][0]["metrics"], "from scratch too: it is the control"
    assert f"{MEAN} averages {TASK}, sst2/accuracy for each seed." in made["notes"]
    alone = build(design(columns=(LOSS, TASK, MEAN), claims=(), published={}), study())["arms"][0]["metrics"]
    assert alone[MEAN] == alone[TASK], "of one task it is that task"


def test_the_unit_of_replication_is_named() -> None:
    assert build(design(), study())["replication"] == "pre-training runs"
    budget = {"input_tokens": 0, "steps": 0}
    text = render_markdown(make_table(design(), [r | {"budget": budget} for r in study()]))
    assert "over n fine-tuning runs of one checkpoint" in text
    assert "The intervals say nothing about other checkpoints." in text
    assert "No arm was pre-trained: all fine-tune the same checkpoint." in text
    assert "pre-training seed" not in text


def test_a_pilot_of_one_arm_is_no_look_and_other_seeds_than_the_declared_ones_are_none() -> None:
    pilot = [record("static_x10", seed, {LOSS: 5.0, TASK: 0.4}) for seed in (100, 101, 102)]
    plain = build(design(), study())
    assert build(design(), [*study(), *pilot])["claims"] == plain["claims"]
    moved = build(design(seeds=(10, 11, 12, 13, 14)), study())
    assert moved["looks"] is None
    assert [(row["n"], row["level"]) for row in moved["claims"][0]["contrasts"] if row["n"]] == [(5, 0.95)] * 2


def test_seeds_beyond_those_of_the_sweep_are_looks() -> None:
    made = build(design(seeds=(0, 1, 2)), study())
    assert (made["looks"]["first"], made["looks"]["most"], made["looks"]["n"]) == (3, 12, 5)
    assert made["looks"]["level"] < 0.05
    assert build(design(), study())["looks"] is None


def test_a_claim_gives_the_ratios_of_what_its_arms_cost_beside_what_is_matched() -> None:
    records = study()
    claims = render_markdown(make_table(design(), records)).partition("## Claims")[2]
    assert "FLOPs" not in claims.partition("## Notes")[0]
    for r in records:
        r["budget"] = r["budget"] | {"flops": 2.4e12 if r["arm"] == "dynamic" else 1e12}
    said = render_markdown(make_table(design(), records))
    verdict = "reproduced (2 of 3 columns) at smoke scale; at equal tokens, dynamic used 2.40 times the FLOPs"
    assert f"{verdict} of static_x10" in said
    for r in records:
        r["budget"] = r["budget"] | {"predicted_tokens": 3e5 if r["arm"] == "dynamic" else 5e4}
    said = render_markdown(make_table(design(), records))
    assert f"{verdict} and 6.00 times the predictions of static_x10" in said


def test_a_decision_of_an_early_look_stays() -> None:
    records = study(12)
    for r in records:
        if r["arm"] == "dynamic" and r["seed"] > 4:
            r["metrics"][LOSS] += 1.0 if r["seed"] % 2 else -1.0
    claims = ("dynamic > static_x10 on mlm_loss", "static > static_x10 on mlm_loss")
    made = build(design(claims=claims, seeds=tuple(range(12)), looks=Looks(3, 12)), records)
    early, _ = made["claims"]
    assert early["verdict"] == "reproduced"
    n = early["contrasts"][0]["n"]
    assert n < 6
    assert early["said"] == f"reproduced at smoke scale (at the look after {n} seeds)"
    assert build(design(claims=claims, seeds=tuple(range(12))), records)["claims"][0]["verdict"] == "undecided"


def add_own(records: list[dict[str, Any]], **losses: float) -> list[dict[str, Any]]:
    return [r | {"own": own(losses[r["arm"]])} if r["arm"] in losses else r for r in records]


@pytest.mark.parametrize("losses", [{"dynamic": 5.0, "static_x10": 6.1}, {"dynamic": 6.1, "static_x10": 5.0}])
def test_a_contrast_of_an_arm_on_its_plateau_decides_nothing_in_any_column(losses: dict[str, float]) -> None:
    free = build(design(), add_own(study(), dynamic=5.0, static_x10=5.0))["claims"][0]["contrasts"]
    assert [found["verdict"] for found in free] == ["reproduced", "reproduced"]
    stuck = build(design(), add_own(study(), **losses))["claims"][0]
    assert stuck["verdict"] == "undecided"
    assert [found["verdict"] for found in stuck["contrasts"]] == ["undecided", "undecided"]
    assert all("plateau of a trivial model" in found["reason"] for found in stuck["contrasts"])
    assert not stuck["open"]


def test_one_stuck_seed_is_enough() -> None:
    records = add_own(study(), dynamic=5.0, static_x10=5.0)
    next(r for r in records if r["arm"] == "dynamic")["own"] = own(6.2)
    reason = build(design(), records)["claims"][0]["contrasts"][1]["reason"]
    assert reason == "runs still on the plateau of a trivial model: dynamic (1 of 5)"


def test_a_table_prints_when_each_arm_left_its_plateau() -> None:
    records = add_own(study(2), dynamic=5.0, static_x10=6.1)
    records = [r | {"own": {}} if r["arm"] == "static" else r for r in records]
    found = {arm["name"]: arm.get("own") for arm in build(design(seeds=(0, 1)), records)["arms"]}
    assert (found["dynamic"]["left"], found["dynamic"]["steps"], found["static_x10"]["steps"]) == (2, [200, 200], None)
    text = re.sub(" +", " ", render_markdown(make_table(design(seeds=(0, 1)), records)))
    assert "| dynamic | 2 | 5.00 | 6.00 | 1.00 | 2 of 2 | 200 | 200,000 | 2 of 2 (0.10) |" in text
    assert "| static_x10 | 2 | 6.10 | 6.00 | -0.10 | 0 of 2 | - | - | 2 of 2 (0.10) |" in text
    assert "Not recorded whether runs left the plateau of a trivial model: static." in text


def test_arms_with_the_same_pre_training_have_one_row() -> None:
    def render(**losses: float) -> str:
        budget = {"input_tokens": 5000.0}
        records = [r | {"budget": budget} for r in add_own(study(2), **losses)]
        return re.sub(" +", " ", render_markdown(make_table(design(seeds=(0, 1)), records)))

    shared = render(dynamic=5.0, static_x10=5.0, static=5.0)
    assert "| all arms | 2 | 5.00 |" in shared
    assert "| dynamic | 2 | 5.00 |" not in shared
    assert "Used: 5,000 by all arms." in shared
    apart = render(dynamic=5.1, static_x10=5.0, static=5.0)
    assert "| dynamic | 2 | 5.10 |" in apart
    assert "| static_x10, static | 2 | 5.00 |" in apart


def test_records_without_their_own_loss_decide_nothing_and_say_so_in_one_line() -> None:
    made = build(design(), [r | {"own": {}} for r in study()])
    why = "ot recorded whether runs left the plateau of a trivial model:"
    assert [note for note in made["notes"] if "plateau" in note] == [f"N{why} static_x10, dynamic, static."]
    assert "own" not in made["arms"][0]
    reasons = {contrast["reason"] for contrast in made["claims"][0]["contrasts"]}
    assert reasons == {f"n{why} dynamic, static_x10"}
    checkpoint = [r | {"own": {}, "budget": {"steps": 0}} for r in study()]
    assert build(design(), checkpoint)["claims"][0]["verdict"] == "reproduced"


def test_the_verdict_on_a_loss_does_not_depend_on_the_baseline() -> None:
    """A baseline that has learned nothing but word frequencies bars no contrast of two other arms."""
    records = [r | {"baselines": {LOSS: {"unigram": 5.5}}} for r in study()]
    for base in ("static", "dynamic"):
        asked = design(claims=("dynamic > static_x10 on mlm_loss",), baseline=base, columns=(LOSS,), published={})
        assert build(asked, records)["claims"][0]["verdict"] == "reproduced"


def test_seeds_added_by_hand_are_looked_at_after_the_declared_ones() -> None:
    def rule(*more: int) -> dict[str, Any]:
        """A claim of seeds 1 to 5, then those added, in which the difference is of the other sign."""
        records = [r | {"seed": seed} for r in study(6) for seed in [r["seed"] + 1] if seed < 6]
        for at, seed in enumerate(more):
            extra = [r | {"seed": seed, "metrics": dict(r["metrics"])} for r in study(20) if r["seed"] == 6 + at]
            for r in extra:
                r["metrics"][LOSS] += 0.5 * (r["arm"] == "dynamic")
            records += extra
        asked = design(claims=("dynamic > static_x10 on mlm_loss",), seeds=(1, 2, 3, 4, 5))
        return build(asked, records)

    for added in ((6,), (0,), (0, *range(6, 12)), (0, *range(6, 15))):
        made = rule(*added)
        assert made["claims"][0]["verdict"] == "reproduced"
        assert "at the look after 5 seeds" in made["claims"][0]["said"]
    assert made["looks"] == {"first": 5, "most": 12, "n": 12, "level": made["looks"]["level"]}
    assert "Left out, because no look includes them: seed 12, 13, 14." in made["notes"]
    assert any("A table of the first 5 that was read before is a chance to err of its own" in n for n in made["notes"])


@pytest.mark.parametrize(("spread", "most"), [(0.04, 8), (0.05, 9), (0.07, 17), (0.1, None)])
def test_a_table_with_an_open_claim_proposes_how_many_seeds_to_add(spread: float, most: int | None) -> None:
    """At least three more; more if a claim needs them, and none for a claim that needs more than twenty."""
    made = build(design(claims=("dynamic ~ static_x10 on mlm_loss, margin 0.15",)), study(5, spread))
    assert made["claims"][0]["open"]
    (note,) = [note for note in made["notes"] if note.startswith("A range of seeds covers")]
    assert re.findall(r"--until-decided max_seeds=(\d+)", note) == ([] if most is None else [str(most)])


def test_a_table_says_what_was_changed_after_results_had_been_seen() -> None:
    told = "Changed after results had been seen: The budget, after a table."
    assert told in build(design(revised="The budget, after a table."), study())["notes"]
    assert not any("had been seen" in note for note in build(design(), study())["notes"])


def test_a_linear_model_above_every_arm_qualifies_a_decided_verdict() -> None:
    above = [r | {"baselines": {TASK: {"bag_of_words": 0.9, "majority": 0.1}}} for r in study()]
    asked = design(claims=(f"dynamic >= static_x10 on {TASK}, margin 1 points",))
    claim = make_table(asked, above).claims[0]
    assert claim.word == f"reproduced (every arm is below the bag of words on {TASK})"
    assert claim.said.startswith(claim.word)
    assert make_table(asked, study()).claims[0].word == "reproduced"


def test_each_arm_is_compared_with_the_linear_model_on_its_own_labels() -> None:
    """With few labels, `static` is above its own linear model; the mean of all linear models is above every arm."""
    own = {"static": 0.4}
    records = [r | {"baselines": {TASK: {"bag_of_words": own.get(r["arm"], 0.9), "majority": 0.1}}} for r in study()]
    made = make_table(design(claims=(f"dynamic >= static_x10 on {TASK}, margin 1 points",)), records)
    assert made.claims[0].word == "reproduced"
    rows = {row.name: row.metrics[TASK] for row in made.anchors if "words" in row.name}
    assert rows == {"bag of words (static_x10, dynamic)": Level(0.9), "bag of words (static)": Level(0.4)}


def test_a_verdict_on_probes_asks_for_a_gain_over_the_model_from_scratch() -> None:
    """Two equal arms below the model from scratch are hollow sameness, and a better arm below it proves nothing."""
    probe = "sop_probe_accuracy"
    claims = (f"dynamic ~ static_x10 on {probe}, margin 3 points", f"dynamic > static on {probe}, margin 3 points")
    asked = design(claims=claims, columns=(probe,), varies=("objective",), published={})
    for scratch, words in ((0.70, "undecided"), (0.50, "reproduced")):
        records = [
            r | {"metrics": {probe: scratch + 0.001 * r["seed"] if r["arm"] == SCRATCH else r["metrics"][TASK]}}
            for r in study()
        ]
        made = make_table(asked, records)
        assert [claim.verdict for claim in made.claims] == [words] * 2
        assert all("not sensitive" in claim.said for claim in made.claims if claim.verdict == "undecided")
    assert "no run from scratch" in make_table(asked, [r for r in records if r["arm"] != SCRATCH]).claims[0].said


def test_a_linear_model_above_every_arm_on_a_task_of_the_mean_qualifies_it_too() -> None:
    """0.9 beats every arm on one task; 0.3 on the other leaves the mean of both below the arms'."""
    other = "docs_order/accuracy"
    claims, columns = ("dynamic >= static_x10 on mean, margin 1 points",), (TASK, other, MEAN)
    asked = design(claims=claims, columns=columns, published={})
    for second, named in ((0.3, TASK), (0.5, MEAN)):
        records = [r | {"metrics": r["metrics"] | {other: r["metrics"][TASK]}} for r in study()]
        anchors = {TASK: {"bag_of_words": 0.9, "majority": 0.1}, other: {"bag_of_words": second}}
        made = make_table(asked, [r | {"baselines": anchors} for r in records])
        assert made.claims[0].word == f"reproduced (every arm is below the bag of words on {named})"
        (row,) = [row for row in made.anchors if row.name == "bag of words"]
        assert row.metrics["mean"] == Level((0.9 + second) / 2.0)
        assert all("mean" not in row.metrics for row in made.anchors if row.name == "majority class")
