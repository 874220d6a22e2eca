"""A model is asked in rows longer than those that it was trained on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.training.checks import check_longer
from paribus.training.description import Run
from paribus.training.run import run
from paribus.verdict.metrics import find_metric, whole_columns


def test_the_loss_in_rows_twice_as_long_is_in_the_record(arguments: list[str]) -> None:
    cfg = compose([*arguments, "model/position=alibi", "evaluation.lengths=[2]", "trainer.max_steps=2", "task=[]"])
    record = json.loads((run(cfg) / "result.json").read_text())
    assert record["metrics"]["mlm_loss_x2"] == pytest.approx(record["metrics"]["mlm_loss"], abs=0.5)
    assert record["baselines"]["mlm_loss_x2"]["unigram"] > 0
    places = {loss: found["places"] for loss, found in record["targets"].items()}
    assert places["mlm_loss_x2"] != places["mlm_loss"]
    assert "mlm_loss_x2" in whole_columns()
    assert find_metric("mlm_loss_x2").lower_is_better


def test_a_factor_that_columns_do_not_know_is_refused(arguments: list[str]) -> None:
    described: Any = Run.of(compose(arguments))
    for lengths in ([1], [2, 2], [4, 2], [3]):
        with pytest.raises(UserError, match="is not valid: give some of 2, 4, 8 once"):
            check_longer(replace(described, evaluation=replace(described.evaluation, lengths=lengths)))


def test_rows_beyond_the_positions_are_refused(arguments: list[str]) -> None:
    described: Any = Run.of(compose([*arguments, "model.positions=64", "input.length=48", "evaluation.lengths=[2]"]))
    with pytest.raises(UserError, match=r"2 times evaluation.input.length=96 exceeds model.positions=64"):
        check_longer(described)
