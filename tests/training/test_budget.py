"""Budgets in predictions and in floating-point operations, against what the runs really use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.run import run

OBJECTIVES = {
    "mlm": ["objective=mlm"],
    "clm": ["objective=clm", "masking=none", "model.attention=left"],
    "electra": ["objective=electra"],
}
COMMON = ["logger=none", "task=none", "trainer.max_steps=null", "trainer.max_epochs=null", "batch.size=4"]
LIMITS = {"predictions": ("trainer.max_predictions", 2000), "flops": ("trainer.max_flops", 4e9)}
SPENT = {"predictions": "predicted_tokens", "flops": "flops"}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("unit", LIMITS)
def test_a_budget_is_met_within_a_step(unit: str, objective: str, arguments: list[str]) -> None:
    key, limit = LIMITS[unit]
    cfg = compose([*arguments, *OBJECTIVES[objective], *COMMON, f"{key}={limit}"])
    plan = planned(Run.of(cfg))
    step = plan[unit] / plan["steps"]
    assert limit - step < plan[unit] < limit + step
    found: dict[str, Any] = json.loads((run(cfg) / "result.json").read_text())
    assert found["budget"]["steps"] == plan["steps"] > 5
    assert found["budget"][SPENT[unit]] == pytest.approx(plan[unit])


def test_the_smallest_budget_counts(arguments: list[str]) -> None:
    def steps(*limits: str) -> int:
        found = planned(Run.of(compose([*arguments, *COMMON, *limits])))["steps"]
        assert isinstance(found, int)
        return found

    few, many = steps("trainer.max_tokens=800"), steps("trainer.max_predictions=2000")
    assert 0 < few < many
    assert steps("trainer.max_tokens=800", "trainer.max_predictions=2000") == few
    assert steps("trainer.max_steps=3", "trainer.max_flops=1e12") == 3
    assert steps("trainer.max_flops=0") == 0
    with pytest.raises(UserError, match="more than a million times"):
        steps("trainer.max_flops=1e30")


def test_a_run_without_the_new_budgets_keeps_its_name(arguments: list[str]) -> None:
    plain = Run.of(compose(arguments)).identity.signature
    assert Run.of(compose([*arguments, "trainer.max_flops=null"])).identity.signature == plain
    assert Run.of(compose([*arguments, "trainer.max_flops=1e9"])).identity.signature != plain
