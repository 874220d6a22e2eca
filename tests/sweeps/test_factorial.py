"""Sweep files with a design of several factors: read, refused, run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.reports.tables.build import make_table
from paribus.reports.tables.files import render_committed
from paribus.sweeps.control import audit
from paribus.sweeps.plan import describe_power
from paribus.sweeps.request import parse
from paribus.sweeps.run import run_sweep
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load

FACTORS: dict[str, Any] = {
    "norm": {"pre": ["model.norm=pre"], "post": ["model.norm=post"]},
    "ffn": {"gelu": [], "relu": ["+model/change@model.changes.ffn=relu"]},
}
SWEEP: dict[str, Any] = {
    "study": "mine",
    "base": ["task=none"],
    "design": "full",
    "factors": FACTORS,
    "matched": "tokens",
    "columns": ["mlm_loss"],
    "claims": ["norm > 0 on mlm_loss, margin 0.02 nats", "norm x ffn ~ 0 on mlm_loss, margin 0.02 nats"],
}
THIRD = {"layers": {"one": ["model.layers=1"], "two": ["model.layers=2"]}}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes the sweep with changes at the top of the file; None leaves a key out."""

    def write_sweep(**top: Any) -> str:
        content = {key: value for key, value in {**SWEEP, **top}.items() if value is not None}
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return str(path)

    return write_sweep


def test_arms_are_combinations_and_vary_what_their_levels_set(write: Callable[..., str]) -> None:
    sweep = load(write())
    assert dict(sweep.arms) == {
        "pre-gelu": ("model.norm=pre",),
        "pre-relu": ("model.norm=pre", "+model/change@model.changes.ffn=relu"),
        "post-gelu": ("model.norm=post",),
        "post-relu": ("model.norm=post", "+model/change@model.changes.ffn=relu"),
    }
    assert sweep.varies == ("model.norm", "model.changes.ffn")
    assert sweep.baseline == "pre-gelu"
    assert load(write(baseline="post-relu")).baseline == "post-relu"
    assert set(sweep.arms) < sweep.find_needed(sweep.claims[0])
    assert sweep.hash("test") != load(write(design="fractional", factors=FACTORS | THIRD, claims=None)).hash("test")


def test_a_scale_refines_levels(write: Callable[..., str]) -> None:
    scales = {"cpu": {"factors": {"ffn": {"relu": ["optimizer.lr=1e-3"]}}, "arms": {"pre-relu": ["batch.size=4"]}}}
    sweep = load(write(scales=scales))
    assert sweep.scales["cpu"].arms == {
        "pre-relu": ("optimizer.lr=1e-3", "batch.size=4"),
        "post-relu": ("optimizer.lr=1e-3",),
    }
    assert "optimizer.lr" in sweep.varies


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ({"arms": {"a": [], "b": []}}, "'arms' and 'design' exclude each other"),
        ({"varies": ["model.norm"]}, "'varies' and 'design' exclude each other"),
        ({"design": None}, "'factors' belongs to a design"),
        ({"factors": None}, "'factors' is not a mapping of factors"),
        ({"factors": {**FACTORS, "size": {"small": []}}}, "the factor 'size' has one level"),
        ({"factors": {**FACTORS, "a b": FACTORS["norm"]}}, "'a b' in 'factors' cannot name a factor"),
        ({"factors": {**FACTORS, "tie": {True: [], "no-tie": []}}}, "'True' in 'factors.tie' cannot name a level"),
        ({"factors": {**FACTORS, "tie": {"a": "x=1", "b": []}}}, "'factors.tie.a' is not a list of overrides"),
        ({"factors": {**FACTORS, "other": FACTORS["norm"]}}, "'norm' and 'other' both set 'model.norm'"),
        ({"design": "fractional"}, "the main effects of norm and ffn are aliased"),
        ({"folded": "yes please"}, "neither true nor false"),
        ({"generators": {"ffn": "norm"}}, "'generators' belong to design: fractional"),
        ({"generators": ["norm"]}, "'generators' is not a mapping of products"),
        (
            {"design": "fractional", "factors": FACTORS | THIRD, "claims": ["norm x ffn ~ 0, margin 0.02 nats"]},
            "cannot tell 'norm x ffn' from layers",
        ),
        ({"claims": ["nrom > 0 on mlm_loss"]}, "unknown effect 'nrom'"),
        ({"scales": {"cpu": {"factors": {"nrom": {}}}}}, "'scales.cpu.factors' names the unknown factor 'nrom'"),
        ({"scales": {"cpu": {"factors": {"norm": {"p": []}}}}}, "'scales.cpu.factors.norm' names the unknown level"),
        (
            {"scales": {"cpu": {"factors": {"ffn": {"relu": ["model.norm=pre"]}}}}},
            "'norm' and 'ffn' both set 'model.norm'",
        ),
        (
            {"design": None, "factors": None, "arms": {"a": [], "b": ["x=1"]}, "varies": ["x"], "baseline": "a",
             "scales": {"cpu": {"factors": FACTORS}}},
            "'scales.cpu.factors' refines a design",
        ),
    ],
)  # fmt: skip
def test_files_that_are_refused(write: Callable[..., str], top: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as raised:
        load(write(**top))
    assert str(raised.value).startswith(str(write(**top)))
    assert "\n" not in str(raised.value)


def test_a_value_within_the_choice_of_another_factor_is_no_conflict(write: Callable[..., str]) -> None:
    factors = {
        "unit": {"token": [], "word": ["masking=whole_word"]},
        "rate": {"r15": [], "r40": ["masking.rate=0.4"]},
    }
    sweep = load(write(factors=factors, claims=None))
    assert sweep.arms["word-r40"] == ("masking=whole_word", "masking.rate=0.4")


def test_a_design_is_run_and_becomes_a_table(write: Callable[..., str], cache: Path, tmp_path: Path) -> None:
    name, runs = write(), tmp_path / "runs"
    corpus = ["corpus.distributions=[rich,hypothesis]", f"paths.cache={cache}"]
    given = ["scale=test", *corpus, "profile.threads=1", "profile.precision=32-true", f"runs={runs}", "seeds=0,1"]
    assert run_sweep(parse("run", [name, *given])._replace(results=tmp_path / "results")) == 0
    found = json.loads(render_committed(make_table(load(name), "test", None, [runs]))["table.json"])
    values = {arm["name"]: arm["metrics"]["mlm_loss"]["values"] for arm in found["arms"]}
    of_seeds = [
        (values["post-gelu"][at] + values["post-relu"][at] - values["pre-gelu"][at] - values["pre-relu"][at]) / 2
        for at in (0, 1)
    ]
    effect = found["factorial"]["effects"][0]
    assert (effect["effect"], effect["n"]) == ("norm", 2)
    assert effect["mean"] == pytest.approx(sum(of_seeds) / 2)
    assert found["claims"][0]["contrasts"][0]["difference"] == pytest.approx(effect["mean"])
    assert found["audit"]["varies"] == ["model.norm", "model.changes.ffn"]


def test_the_example_of_the_page_is_a_sweep(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/designs.md").read_text(encoding="utf-8")
    text = page.partition('title="sweeps/norm_and_ffn.yaml"\n')[2].partition("```")[0]
    (path := tmp_path / "norm_and_ffn.yaml").write_text(text, encoding="utf-8")
    sweep = load(str(path))
    configs = {arm: compose(list(arm_overrides(sweep, "smoke", arm))) for arm in sweep.arms}
    assert set(configs) == {"layer-gelu", "layer-square", "rms-gelu", "rms-square"}
    assert audit(sweep, configs)["controlled"]


def test_the_power_is_told_beforehand(write: Callable[..., str]) -> None:
    said = describe_power(parse("plan", [write(), "scale=cpu", "seeds=0,1,2,3,4"]))
    assert said[0].startswith("2 factors in 4 arms (full), 20 runs: a main effect of ")
    assert "with 2 claims; one factor at a time with as many runs: " in said[0]
    assert said[1] == "No main effect and no interaction of two factors is aliased with another."
    assert describe_power(parse("plan", [write(), "scale=cpu", "seeds=0"])) == []
    assert describe_power(parse("plan", ["roberta_table1", "scale=cpu"])) == []
