"""The control audit on small configs with one planted difference each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from paribus.core.errors import UserError
from paribus.sweeps.control import audit, describe_changes, require_matched
from paribus.sweeps.sweep import Sweep

BASE: dict[str, Any] = {
    "study": "s",
    "arm": "a",
    "seed": 0,
    "input": {"length": 64},
    "masking": {"rate": 0.15, "schedule": {"_target_": "x.Static"}},
    "model": {"positions": "${input.length}", "hidden": 128},
    "finetune": {"optimizer": "${optimizer}"},
    "optimizer": {"lr": 0.1},
    "tasks": {},
}


def sweep(*varies: str, matched: str = "tokens") -> Sweep:
    return Sweep(
        path=Path("s.yaml"), title="", study="s", family="bert", base=(), varies=varies, matched=matched,
        arms={"a": (), "b": ()}, baseline="a", columns=("mlm_loss",), claims=(), published={}, scales={}, seeds=None,
        content={},
    )  # fmt: skip


def audited(changes: dict[str, Any], *varies: str) -> dict[str, Any]:
    other = OmegaConf.merge(OmegaConf.create(BASE), OmegaConf.create({"arm": "b", **changes}))
    return audit(sweep(*varies), {"a": OmegaConf.create(BASE), "b": other})


def test_declared_differences_are_listed_with_both_values() -> None:
    found = audited({"masking": {"schedule": {"_target_": "x.Copies", "copies": 10}}}, "masking.schedule")
    assert found["controlled"] is True
    assert found["differences"] == {
        "a": {},
        "b": {"masking.schedule": ["x.Static", "x.Copies"], "masking.schedule.copies": [None, 10]},
    }


@pytest.mark.parametrize(
    ("changes", "varies", "keys"),
    [
        ({"masking": {"rate": 0.3, "schedule": {"_target_": "y"}}}, "masking.schedule", "masking.rate"),
        ({"masking": {"schedule": {"_target_": "y"}}, "optimizer": {"lr": 0.2}}, "masking", "optimizer.lr"),
        ({"masking": {"rate": 0.3}}, "masking.rat", "masking.rate"),
        ({"input": {"length": 32}}, "model.positions", "input.length"),
        ({"model": {"positions": 32}, "masking": {"rate": 0.3}}, "masking", "model.positions"),
        ({"optimizer": {"extra": 1}, "masking": {"rate": 0.3}}, "masking", "optimizer.extra"),
        ({"model": {"hidden": "128"}, "masking": {"rate": 0.3}}, "masking", "model.hidden"),
    ],
)
def test_an_undeclared_difference_names_key_and_arm(changes: dict[str, Any], varies: str, keys: str) -> None:
    with pytest.raises(UserError) as caught:
        audited(changes, varies)
    assert f"b: {keys}" in str(caught.value)
    assert "s.yaml" in str(caught.value)


def test_interpolations_of_varied_keys_are_derived_and_listed() -> None:
    found = audited({"input": {"length": 32}}, "input.length")
    assert found["differences"]["b"] == {"input.length": [64, 32], "model.positions": [64, 32]}


def test_a_node_that_is_an_interpolation_is_derived() -> None:
    found = audited({"optimizer": {"lr": 0.2}}, "optimizer")
    assert found["differences"]["b"] == {"optimizer.lr": [0.1, 0.2], "finetune.optimizer.lr": [0.1, 0.2]}


def test_an_interpolation_against_a_value_is_not_derived() -> None:
    with pytest.raises(UserError, match=r"model\.positions"):
        audited({"input": {"length": 32}, "model": {"positions": 64 + 1}}, "input")


def test_a_whole_group_counts_as_its_prefix_also_from_empty() -> None:
    assert audited({"tasks": {"sst2": {"name": "sst2"}}}, "tasks.sst2")["differences"]["b"]
    with pytest.raises(UserError, match="tasks"):
        audited({"tasks": {"sst2": {"name": "sst2"}}, "masking": {"rate": 0.3}}, "masking")


def test_arms_that_do_not_differ_and_keys_that_nobody_has() -> None:
    with pytest.raises(UserError, match="a and b do not differ at all: remove one of them, or the key=value of the"):
        audited({}, "masking")
    with pytest.raises(UserError, match="'varies' names 'maskin'"):
        audited({"masking": {"rate": 0.3}}, "masking", "maskin")


def test_differences_read_as_key_and_value_and_skip_what_neither_side_sets() -> None:
    assert describe_changes(
        {
            "masking": ["Bernoulli", "NoNoise"],
            "masking.rate": [0.15, None],
            "masking.predict": [None, None],
            "untrained": [False, True],
            "head.parts": [None, ["u", "v"]],
        }
    ) == [
        'head.parts = ["u", "v"] (baseline: none)',
        "masking = NoNoise (baseline: Bernoulli)",
        "no masking.rate (baseline: 0.15)",
        "untrained = true (baseline: false)",
    ]


def test_matched_budgets() -> None:
    near = {"a": {"tokens": 1000.0, "steps": 10.0}, "b": {"tokens": 1009.0, "steps": 20.0}}
    require_matched(sweep("masking"), near)
    with pytest.raises(UserError, match=r"in steps \(a plans 10 and b plans 20\)"):
        require_matched(sweep("masking", matched="steps"), near)
    with pytest.raises(UserError, match="in tokens"):
        require_matched(sweep("masking"), {"a": {"tokens": 1000.0}, "b": {"tokens": 1020.0}})
