"""Sweep files: what is refused, what wins, and what a sweep expands to."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from paribus.core.config import compose, root_seed
from paribus.core.errors import UserError
from paribus.reports.tables.design import make_design
from paribus.sweeps.sweep import SCRATCH, Refinement, arm_overrides, jobs, merge, quote
from paribus.sweeps.sweep_file import find, load, names
from paribus.training.description import Run
from paribus.training.streams import training_examples

PLAIN: dict[str, Any] = {
    "study": "small",
    "base": ["objective=mlm"],
    "varies": ["masking/schedule"],
    "matched": "tokens",
    "arms": {"fixed": ["masking/schedule=static"], "fresh": ["masking/schedule=dynamic"]},
    "baseline": "fixed",
    "columns": ["mlm_loss", "sst2/accuracy"],
    "claims": ["fresh >= fixed on all, margin 0.5 points, margin 0.02 nats"],
}
RATES = {
    "lamb_table1",
    "regularization",
    "sun_figure2",
    "sun_table4",
    "xiong_warmup",
    "cramming_ablation",
    "batch_universe",
    "decay_universe",
    "adapters_universe",
}  # what these sweeps are about
# cramming: BERT's original training is an arm, with its rate; a universe has no search, so its rates are among the arms
SAID = {"claim": "fresh > fixed on mlm_loss", "says": "Fresh masks are better", "whose": "paper"}


def write(folder: Path, **changes: Any) -> str:
    content = {key: value for key, value in {**PLAIN, **changes}.items() if value is not ...}
    path = folder / "small.yaml"
    path.write_text("# A small sweep.\n" + yaml.safe_dump(content))
    return str(path)


def test_roberta_table1_keeps_the_papers_repetition_from_cpu_on() -> None:
    sweep = load("roberta_table1")
    for scale in ("cpu", "gpu"):
        config = compose(arm_overrides(sweep, scale, "static_x10"))
        assert config.masking.schedule.copies == config.trainer.max_epochs / 4, scale
    small = compose(arm_overrides(sweep, "smoke", "static_x10"))
    assert (small.masking.schedule.copies, small.trainer.max_epochs) == (2, 4), "two masks, each of them twice"
    recipe, found = compose(["recipe=bert/v1/cpu"]), compose(arm_overrides(sweep, "cpu", "static_x10"))
    assert (found.masking.schedule.copies, found.trainer.max_epochs) == (10, 40)
    assert found.trainer.train_tokens * 40 == recipe.trainer.train_tokens * recipe.trainer.max_epochs


def test_rows_of_roberta_table1_have_ten_masks_in_forty_epochs(arguments: list[str]) -> None:
    """Drawn as the runs at cpu scale draw them, of another text."""
    masks = {}
    for arm, own in load("roberta_table1").arms.items():
        run = Run.of(compose([*arguments, *own]))
        made = training_examples(run, run.data())
        drawn = [made.batch(epoch, np.array([0]))["slot_P"].tobytes() for epoch in range(40)]
        masks[arm] = [drawn.count(mask) for mask in dict.fromkeys(drawn)]
    assert masks == {"static_x10": [4] * 10, "dynamic": [1] * 40, "static": [40]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colums": ["mlm_loss"]}, "unknown key 'colums'"),
        ({"varies": ...}, "has no 'varies'"),
        ({"varies": ["finetuning"]}, "'finetuning' in 'varies' is now 'finetune/method'"),
        ({"arms": {}}, "has no 'arms'"),
        ({"arms": ["fixed"]}, "'arms' is not a mapping"),
        ({"arms": {"fixed": ["masking/schedule"]}}, "'masking/schedule' in 'arms.fixed' is not an override"),
        ({"arms": {"fixed": ["seed=7"]}}, "'arms.fixed' sets 'seed', which has no effect there: write seeds: [0, 1]"),
        ({"base": ["scale=cpu"]}, "'base' sets 'scale', which has no effect there: write scale= on the command line"),
        ({"arms": {"15": ["masking.rate=0.15"]}}, "'15' in 'arms' cannot name an arm"),
        ({"arms": {SCRATCH: ["masking.rate=0.15"]}}, "cannot name an arm"),
        ({"arms": {True: ["masking.rate=0.15"]}}, "'True' in 'arms' cannot name an arm"),
        ({"study": "../up"}, "cannot name a folder"),
        ({"baseline": "static"}, "baseline 'static' is not an arm"),
        ({"matched": "hours"}, "matched 'hours' is unknown"),
        ({"matched": "none"}, "'matched: none', but no arm varies a budget"),
        ({"seeds": [0, 0]}, "'seeds' is not a list of distinct seeds"),
        ({"seeds": [True]}, "'seeds' is not a list of distinct seeds"),
        ({"claims": ["dynamic >= fixed, margin 0.5 points"]}, "names the unknown arm 'dynamic'"),
        ({"claims": ["fresh is nice"]}, "is not understood"),
        ({"claims": ["fresh > fixed on sst2/accuracy, margin 0.5"]}, "is 50 points: write `margin 0.5 points`"),
        ({"claims": [{"claim": "fresh > fixed"}]}, "a claim has no 'says'"),
        ({"claims": [{"says": "Fresh is better", "whose": "paper"}]}, "a claim has no 'claim'"),
        ({"claims": [{**SAID, "whose": "theirs"}]}, "'whose: theirs' is unknown"),
        ({"claims": [{**SAID, "by": "me"}]}, "unknown key 'claims.by'"),
        ({"claims": [SAID, 5]}, "'claims' is not a list of strings"),
        ({"claims": [{**SAID, "about": "speed"}]}, "'about: speed' is unknown"),
        ({"claims": [{**SAID, "about": "loss", "claim": "fresh > fixed"}]}, "but not on losses alone"),
        ({"claims": [{**SAID, "about": "loss", "claim": "fresh > fixed on sst2/accuracy"}]}, "but not on losses alone"),
        (
            {"claims": [SAID], "varies": ["masking/schedule", "masking.rate"]},
            "trained on its masks: leave mlm_loss out, or add 'about: loss' if the claim is about the loss itself",
        ),
        (
            {
                "claims": ["fresh > fixed on nsp_accuracy"],
                "columns": ["mlm_loss", "nsp_accuracy"],
                "varies": ["masking/schedule", "masking.rate"],
            },
            "they are not asked about the same pairs: leave nsp_accuracy out",
        ),
        ({"columns": ["mlm_loss", "sst2/accuracy", "mlm_loss"]}, "'columns' names mlm_loss twice: name it once"),
        ({"scales": {"smoke": {"lr": 1}}}, "unknown key 'scales.smoke.lr'"),
        (
            {"scales": {"cpuu": {"seeds": [0]}}},
            "small.yaml: 'scales': scale=cpuu is unknown for family=bert: did you mean cpu?",
        ),
        ({"scales": {1: {}}}, "scale=1 is unknown for family=bert: known: cpu, "),
        ({"scales": {"smoke": {"arms": {"other": []}}}}, "'scales.smoke.arms' names the unknown arm 'other'"),
        (
            {"scales": {"smoke": {"arms": {SCRATCH: ["model.hidden=64"]}}}},
            "'model.hidden=64' in 'scales.smoke.arms.from_scratch' is not a fine-tuning setting",
        ),
        ({SCRATCH: {"fresh": "other"}}, "'from_scratch' names the unknown arm 'other'"),
        ({SCRATCH: {"fresh": "fixed"}}, "'fixed' in 'from_scratch' is pre-trained: name an arm with untrained=true"),
        (
            {"published": {"table": "roberta_table1", "rows": {"other": "dynamic masking"}}},
            "names the unknown arm 'other'",
        ),
        ({"published": {"table": "roberta_table1", "rows": {"fresh": "no such row"}}}, "has no row 'no such row'"),
        (
            {"universe": {"settings": 4, "factors": {"model.layers": [2, float("inf")]}}},
            "'universe.factors.model.layers' has the value inf: write a finite number",
        ),
        (
            {"published": {"table": "roberta_table1", "rows": {"fresh": datetime.date(2020, 1, 1)}}},
            "'published.rows.fresh' has the value 2020-01-01, which YAML reads as a date: quote it",
        ),
        ({"published": {"table": "no_table"}}, "no published table 'no_table'"),
        (
            {"published": {"table": "roberta_table1", "metrics": {"squad/f1": "squad20_f1"}}},
            "names the unknown column 'squad/f1'",
        ),
    ],
)
def test_bad_sweeps_are_refused_in_one_line_that_names_file_and_key(tmp_path: Path, changes: Any, said: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(UserError) as caught:
        load(path)
    assert said in str(caught.value)
    assert str(caught.value).count("small.yaml") == 1
    assert "\n" not in str(caught.value)


def test_a_sweep_refines_a_scale_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conf/recipe/bert").mkdir(parents=True)
    Path("conf/recipe/bert/pocket.yaml").write_text("table_seeds: [0]\n")
    assert load(write(tmp_path, scales={"pocket": {"seeds": [4]}})).seeds_at("pocket") == (4,)


def test_the_anchor_is_fine_tuned_in_its_own_way_where_a_scale_says_so(tmp_path: Path) -> None:
    scales = {"smoke": {"arms": {SCRATCH: ["finetune.optimizer.lr=1e-4"], "fixed": ["finetune.epochs=2"]}}}
    sweep = load(write(tmp_path, base=["finetune.optimizer.lr=1e-3"], scales=scales))
    anchor, fixed = (compose(arm_overrides(sweep, "smoke", arm)) for arm in (SCRATCH, "fixed"))
    assert (anchor.finetune.optimizer.lr, anchor.finetune.epochs) == (1e-4, 2)
    assert (fixed.finetune.optimizer.lr, fixed.finetune.epochs) == (1e-3, 2)
    assert compose(arm_overrides(sweep, "cpu", SCRATCH)).finetune.optimizer.lr == 1e-3
    asked = arm_overrides(sweep, "smoke", SCRATCH, ["finetune.optimizer.lr=5e-4"])
    assert compose(asked).finetune.optimizer.lr == 5e-4  # the user's own wins


def test_every_sweep_on_minilm_has_an_anchor_that_learns() -> None:
    on = [name for name in names() if "experiment=minilm" in load(name).scales.get("cpu", Refinement()).overrides]
    assert len(on) >= 4
    anchors = [compose(arm_overrides(load(name), "cpu", SCRATCH)) for name in on]
    assert all(anchor.model.fresh for anchor in anchors)
    tuned = {(a.finetune.optimizer.lr, a.finetune.epochs, a.finetune.lr_schedule.curve) for a in anchors}
    assert len(tuned) == 1
    for name, anchor in zip(on, anchors, strict=True):
        baseline = compose(arm_overrides(load(name), "cpu", load(name).baseline))
        assert anchor.finetune.epochs > baseline.finetune.epochs, name


@pytest.mark.parametrize("name", ["adapter_places", "bert_table7", "houlsby_table1", "t5_table10", "tuning_methods"])
@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu"])
def test_arms_that_want_other_rates_are_tuned_over_the_same_space(name: str, scale: str) -> None:
    sweep = load(name)
    tune = sweep.tune_at(scale)
    assert tune is not None
    assert list(tune.space) == ["finetune.optimizer.lr"]
    assert tune.on.split("/")[0] in compose(arm_overrides(sweep, scale, sweep.baseline)).tasks


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu"])
def test_batches_are_tuned_over_the_same_space(scale: str) -> None:
    for name in ("roberta_table3", "roberta_iclr_batch"):
        tune = load(name).tune_at(scale)
        assert tune is not None
        assert list(tune.space) == ["optimizer.lr"]


@pytest.mark.parametrize("name", names())
def test_no_sweep_gives_its_arms_rates_in_a_fixed_ratio(name: str) -> None:
    """But for those whose subject the rate is, or a rule that it follows; at paper scale arms may have the paper's."""
    sweep = load(name)
    for scale, refinement in sweep.scales.items():
        arms = {arm: (*own, *refinement.arms.get(arm, ())) for arm, own in sweep.arms.items()}
        rates = {tuple(text for text in own if re.search(r"\blr=|_lr=", text)) for own in arms.values()}
        assert len(rates) == 1 or scale == "paper" or name in RATES, (scale, rates)


def test_t5_is_fine_tuned_at_a_constant_rate_in_its_table_10() -> None:
    sweep = load("t5_table10")
    for scale in ("smoke", "cpu", "gpu", "paper"):
        schedule = compose(arm_overrides(sweep, scale, "adapters_32")).finetune.lr_schedule
        assert (schedule.curve, schedule.warmup) == ("constant", 0.0), scale
    assert sweep.tune_at("paper") is None
    assert {compose(arm_overrides(sweep, "paper", arm)).finetune.optimizer.lr for arm in sweep.arms} == {1e-3}


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_ulmfit_unfreezes_as_its_authors_did_and_at_one_vector_of_rates(scale: str) -> None:
    methods = {
        arm: compose(arm_overrides(load("ulmfit_table7"), scale, arm)).finetune.method
        for arm in ("full_discr", "freez", "freez_discr", "freez_discr_stlr", "chain_thaw")
    }
    rates = {(methods[arm].decay, methods[arm].top_gap) for arm in ("full_discr", "freez_discr", "freez_discr_stlr")}
    assert len(rates) == 1
    assert {methods[arm].schedule for arm in methods if arm.startswith("freez")} == {"released"}
    pieces, chained = methods["freez"].spread / 2, methods["chain_thaw"].spread / (12 + 2)
    assert (pieces, chained) == (pytest.approx(0.02), pytest.approx(0.02)) if scale == "paper" else pieces == 0.25


def test_sun_s_embeddings_and_head_keep_the_base_rate() -> None:
    sweep = load("sun_table4")
    for arm in sweep.arms:
        method = compose(arm_overrides(sweep, "cpu", arm)).finetune.method
        assert (method.top_gap, method.embeddings) == (0, "full")


def test_no_yaml_and_no_sweep(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("study: [")
    with pytest.raises(UserError, match=r"broken\.yaml, line 2, is not valid YAML"):
        load(str(tmp_path / "broken.yaml"))
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(UserError, match="is not a sweep file"):
        load(str(tmp_path / "list.yaml"))
    with pytest.raises(UserError, match="unknown sweep 'no_such_sweep'"):
        find("no_such_sweep")
    with pytest.raises(UserError, match="did you mean roberta_table1"):
        find("roberta_tabel1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("study: a\narms: {a: [], b: []}\nstudy: b\n", "'study' is given twice, in lines 1 and 3"),
        ("scales:\n  test:\n    seeds: [0]\n    seeds: [0, 1]\n", "'seeds' is given twice, in lines 3 and 4"),
        ("arms: {a: [], a: [seed=1]}\n", "'a' is given twice, in lines 1 and 1"),
    ],
)
def test_a_key_that_is_given_twice_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(text)
    with pytest.raises(UserError, match=rf"twice\.yaml is not valid YAML: {said}"):
        load(str(tmp_path / "twice.yaml"))


def test_own_sweeps_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sweeps").mkdir()
    write(tmp_path / "sweeps")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweeps" / "folder.yaml").mkdir()
    assert load("small").study == "small"
    assert "folder" not in names()
    assert {"small", "roberta_table1"} <= set(names())


def test_later_levels_win(tmp_path: Path) -> None:
    """Recipe of the scale, base, refinement of the scale, arm, refinement of the arm, the user."""
    path = write(
        tmp_path,
        base=["objective=mlm", "batch.size=1", "masking.rate=0.1"],
        arms={"fixed": ["optimizer.lr=3", "masking.rate=0.2"], "fresh": []},
        scales={"test": {"overrides": ["input.length=64", "optimizer.lr=2"], "arms": {"fixed": ["masking.rate=0.3"]}}},
    )
    sweep = load(path)
    own = dict(text.split("=", 1) for text in arm_overrides(sweep, "test", "fixed", ["trainer.clip=5"]))
    assert own["batch.size"] == "1"
    cfg = compose(arm_overrides(sweep, "test", "fixed"))
    assert (cfg.batch.size, cfg.trainer.max_steps) == (1, 2), "the base over the recipe of scale=test"
    assert own["input.length"] == "64"
    assert own["optimizer.lr"] == "3"
    assert own["masking.rate"] == "0.3"
    assert own["trainer.clip"] == "5"
    assert dict(text.split("=", 1) for text in arm_overrides(sweep, "test", "fresh"))["masking.rate"] == "0.1"
    user = arm_overrides(sweep, "test", "fixed", ["masking.rate=0.9"])
    assert "masking.rate=0.9" in user
    assert len({text.partition("=")[0] for text in user}) == len(user)


def test_merging_keeps_values_over_group_choices_but_drops_tasks_that_are_gone() -> None:
    assert merge(["a.b=1"], ["a=other"], ["+a.b=2"]) == ("a=other", "+a.b=2")
    levels = (["task=docs_package", "tasks.docs_package.max_train=5"], ["task=[sst2,mnli]", "tasks.sst2.path=x"])
    assert merge(*levels) == ("task=[sst2,mnli]", "tasks.sst2.path=x")
    assert merge(["tasks.sst2.path=x"], ["task=sst2"]) == ("tasks.sst2.path=x", "task=sst2")
    tuned = ["+finetune.each.rte={epochs: 4}", "+finetune/head@finetune.each.rte.head=san", "finetune.epochs=2"]
    assert merge(tuned, ["task=rte"]) == (*tuned, "task=rte")
    assert merge(tuned, ["task=none"]) == ("finetune.epochs=2", "task=none")


def test_jobs_are_paired_by_seed_and_composable(tmp_path: Path) -> None:
    sweep = load(write(tmp_path, scales={"test": {"seeds": [3, 5]}}))
    listed = jobs(sweep, "test", anchor=True)
    assert [job.label for job in listed] == [
        f"{arm}/seed{seed}" for seed in (3, 5) for arm in ("fixed", "fresh", SCRATCH)
    ]
    config = compose(listed[2].overrides)
    assert (config.study, config.arm, config.seed, config.scale) == ("small", SCRATCH, 3, "test")
    assert config.trainer.max_steps == 0
    assert config.masking.schedule._target_.endswith("Static"), "the anchor is the baseline's model"
    assert config.sweep_hash == sweep.hash("test")
    assert [job.label for job in jobs(sweep, "test", arms=["fresh"], seeds=[9])] == ["fresh/seed9"]
    assert jobs(sweep, "test", study="pilot")[0].study == "pilot"
    with pytest.raises(UserError, match="has no arm 'nobody'"):
        jobs(sweep, "test", arms=["nobody"])


def test_seeds_come_from_refinement_then_sweep_then_recipe(tmp_path: Path) -> None:
    assert load(write(tmp_path)).seeds_at("test") == (0, 1)
    assert load(write(tmp_path, seeds=[4])).seeds_at("test") == (4,)
    assert load(write(tmp_path, seeds=[4], scales={"test": {"seeds": [7]}})).seeds_at("test") == (7,)


def test_hash_holds_what_is_fixed_before_the_first_run(tmp_path: Path) -> None:
    plain = load(write(tmp_path)).hash("smoke")
    assert load(write(tmp_path)).hash("smoke") == plain
    assert load(write(tmp_path, scales={"gpu": {"seeds": [1]}})).hash("smoke") == plain
    assert load(write(tmp_path, scales={"smoke": {"seeds": [1]}})).hash("smoke") != plain
    seeds = load(write(tmp_path, scales={"smoke": {"seeds": [1]}})).hash("smoke")
    assert load(write(tmp_path, scales={"smoke": {"seeds": [1], "revised": "The seeds."}})).hash("smoke") == seeds
    claimed = load(write(tmp_path, claims=["fresh > fixed on mlm_loss"])).hash("smoke")
    assert claimed != plain
    assert load(write(tmp_path, claims=[SAID])).hash("smoke") == claimed
    about = {"claim": "fresh > fixed on mlm_loss", "says": "Fresh", "whose": "ours", "about": "loss"}
    assert load(write(tmp_path, claims=[about])).hash("smoke") not in (plain, claimed)


def test_what_was_revised_is_told_by_the_table(tmp_path: Path) -> None:
    sweep = load(write(tmp_path, scales={"smoke": {"revised": "The budget,\n after a table."}}))
    assert make_design(sweep, "smoke", audited={}).revised == "The budget, after a table."
    assert make_design(sweep, "cpu", audited={}).revised == ""
    with pytest.raises(UserError, match=r"scales\.smoke\.revised is not a text: say in a sentence what was changed"):
        load(write(tmp_path, scales={"smoke": {"revised": ["The budget"]}}))


def test_a_claim_may_say_in_words_what_it_is_and_whose(tmp_path: Path) -> None:
    sweep = load(write(tmp_path, claims=[SAID, "fixed > fresh on mlm_loss"]))
    assert sweep.claims == ("fresh > fixed on mlm_loss", "fixed > fresh on mlm_loss")
    assert sweep.sentences == {"fresh > fixed on mlm_loss": ("Fresh masks are better", "paper", "quality")}


@pytest.mark.parametrize("value", ["runs", "/tmp/a b/c", "it's", "a,b", "12e4", "null", "0012", "x=y", "[a]"])
def test_quoted_values_come_back_unchanged(value: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_override(f"paths.runs={quote(value)}")
    assert parsed.value() == value


def test_a_replicate_draws_everything_anew_under_the_same_seed(arguments: list[str]) -> None:
    first, second, third = (compose([*arguments, *more]) for more in ([], ["replicate=0"], ["replicate=1"]))
    assert root_seed(first) == root_seed(second) == first.seed
    assert root_seed(third) not in {first.seed, third.seed}
    assert Run.of(first).identity.signature == Run.of(second).identity.signature != Run.of(third).identity.signature
    shown = [
        training_examples(Run.of(cfg), Run.of(cfg).data()).batch(0, np.arange(4))["ids_BL"] for cfg in (first, third)
    ]
    assert (shown[0] != shown[1]).any()
