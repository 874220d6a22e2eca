"""Which examples a step reads, and what a budget buys."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from fake_store import examples_of, random_store
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.core.settings import Batch
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.data.order import StepPlan, compose_order
from paribus.training.steps import PretrainingSteps


class Lengths:
    """Examples that are nothing but their lengths."""

    def __init__(self, lengths: list[int]) -> None:
        self.known = np.array(lengths, np.int32)

    def size(self, epoch: int) -> int:
        return len(self.known)

    def tokens(self, epoch: int) -> int:
        return int(self.known.sum())

    def lengths(self, epoch: int) -> Any:
        return self.known


def stream(plan: StepPlan, steps: int) -> list[tuple[int, int]]:
    return [(epoch, int(row)) for step in range(steps) for epoch, rows in plan.blocks(step) for row in rows]


@given(st.lists(st.integers(2, 40), min_size=1, max_size=30), st.integers(1, 50), st.integers(0, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_epoch_reads_every_example_once(lengths: list[int], size: int, seed: int, by_tokens: bool) -> None:
    plan = StepPlan(Lengths(lengths), seed, size, size * 10 if by_tokens else None)  # type: ignore[arg-type]
    seen = stream(plan, 3 * sum(lengths) // size + 3)
    for epoch in (0, 1):
        rows = [row for at, row in seen if at == epoch]
        assert sorted(rows) == list(range(len(lengths)))
    assert [at for at, _ in seen] == sorted(at for at, _ in seen)


def test_steps_by_sequences_have_the_size_and_cross_epochs() -> None:
    plan = StepPlan(Lengths([5] * 7), 0, 4)  # type: ignore[arg-type]
    assert [sum(len(rows) for _, rows in plan.blocks(step)) for step in range(5)] == [4] * 5
    assert [epoch for epoch, _ in plan.blocks(1)] == [0, 1]


def test_steps_by_tokens_hold_equal_tokens() -> None:
    lengths = np.random.default_rng(0).integers(2, 60, 400).tolist()
    plan = StepPlan(Lengths(lengths), 1, 8, 480)  # type: ignore[arg-type]
    sums = [sum(lengths[row] for _, rows in plan.blocks(step) for row in rows) for step in range(20)]
    assert all(abs(total - 480) < 60 for total in sums)
    assert abs(np.cumsum(sums)[-1] - 20 * 480) < 60


def test_order_depends_on_seed_and_epoch_alone() -> None:
    first, again = (StepPlan(Lengths([3] * 50), 7, 4) for _ in range(2))  # type: ignore[arg-type]
    first.order(3)
    assert (first.order(0) == again.order(0)).all()
    assert (first.order(0) != first.order(1)).any()
    assert (first.order(0) != StepPlan(Lengths([3] * 50), 8, 4).order(0)).any()  # type: ignore[arg-type]


def test_a_plan_travels_to_workers() -> None:
    plan = StepPlan(Lengths([3, 4, 5]), 7, 2)  # type: ignore[arg-type]
    assert stream(pickle.loads(pickle.dumps(plan)), 4) == stream(plan, 4)


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        ((5, None, None), 5),
        ((0, None, None), 0),
        ((None, 100, None), 5),  # 10 examples of 10 tokens, two a step
        ((None, 101, None), 6),
        ((None, None, 2), 10),
        ((None, None, 0.5), 3),
        ((4, 100, 2), 4),
        ((9, 1, 2), 1),
    ],
)
def test_budgets(limits: tuple[Any, Any, Any], steps: int) -> None:
    assert StepPlan(Lengths([10] * 10), 0, 2).steps_for(*limits) == steps  # type: ignore[arg-type]


@given(st.lists(st.integers(2, 40), min_size=1, max_size=20), st.integers(1, 9), st.integers(1, 900))
@settings(max_examples=60, deadline=None)
def test_a_token_budget_is_reached_and_not_passed_by_a_step(lengths: list[int], size: int, tokens: int) -> None:
    plan = StepPlan(Lengths(lengths), 0, size)  # type: ignore[arg-type]
    steps = plan.steps_for(None, tokens, None)
    sums = [sum(lengths[row] for _, rows in plan.blocks(step) for row in rows) for step in range(steps)]
    assert sum(sums) >= tokens > sum(sums[:-1])


def test_bad_budgets_are_named() -> None:
    plan = StepPlan(Lengths([10]), 0, 2)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="trainer has no budget"):
        plan.steps_for(None, None, None)
    with pytest.raises(UserError, match=r"trainer\.max_steps=-1"):
        plan.steps_for(-1, None, None)
    with pytest.raises(UserError, match=r"batch\.size=0"):
        StepPlan(Lengths([10]), 0, 0)  # type: ignore[arg-type]


def test_microbatches_hold_every_reading_and_stay_within_their_size() -> None:
    examples = examples_of(random_store(400), 64, masking=Bernoulli(0.1, predict=0.4))
    whole, cut = (PretrainingSteps(StepPlan(examples, 0, 6), 2, microbatch)[1] for microbatch in (None, 8))
    assert [len(batch["length_B"]) for batch in whole] == [24]
    assert [len(batch["length_B"]) for batch in cut] == [8, 8, 8]
    for name in ("sequences", "input_tokens", "predicted"):
        assert sum(batch["counts"][name] for batch in cut) == whole[0]["counts"][name]


def test_a_batch_that_leaves_a_part_of_a_microbatch_is_refused() -> None:
    examples: Any = Lengths([10] * 20)
    for by, size, micro in (("sequences", 8, 4), ("sequences", 8, 32), ("sequences", 8, None), ("tokens", 8, 3)):
        compose_order(examples, StepPlan, Batch(by, size), 16, seed=0, microbatch=micro)
    with pytest.raises(UserError, match=r"batch\.size=8 does not divide into profile\.microbatch=3"):
        compose_order(examples, StepPlan, Batch("sequences", 8), 16, seed=0, microbatch=3)
