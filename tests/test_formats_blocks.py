"""Block formation as fairseq's compiled original, by its golden vectors and by a plain re-statement of the rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.data.formats.blocks import cut_blocks

SIZES = [3, 4, 2, 1, 5, 3]
GOLDEN = {
    "none": [(0, 7), (7, 14), (14, 18)],
    "eos": [(0, 3), (3, 7), (7, 9), (9, 10), (10, 15), (15, 18)],
    "complete": [(0, 7), (7, 10), (10, 15), (15, 18)],
    "complete_doc": [(0, 7), (7, 9), (10, 15), (15, 18)],
}


def ranges(sizes: list[int], mode: str, budget: int) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, end in cut_blocks(sizes, mode, budget)]


@pytest.mark.parametrize("mode", GOLDEN)
def test_golden_vector(mode: str) -> None:
    assert ranges(SIZES, mode, 7) == GOLDEN[mode]


def test_a_line_over_the_budget_is_a_block_of_its_own() -> None:
    assert ranges([9, 2], "complete", 7) == [(0, 9), (9, 11)]
    assert ranges([2, 9, 2], "complete_doc", 7) == [(0, 2), (2, 11), (11, 13)]


def test_documents_of_one_token_are_dropped() -> None:
    assert ranges([1, 1, 3, 1, 1], "complete_doc", 7) == [(2, 5)]


def test_nothing_gives_nothing() -> None:
    assert all(ranges([], mode, 7) == [] for mode in GOLDEN)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UserError, match="complete_doc"):
        cut_blocks(SIZES, "whole", 7)


def one_by_one(sizes: list[int], budget: int, documents: bool) -> list[tuple[int, int]]:
    """Lines are taken one at a time, as the rule says it."""
    found, start, size = [], 0, 0
    for line in sizes:
        if documents and line == 1:
            found.append((start, start + size))
            start, size = start + size + 1, 0
        elif size and size + line > budget:
            found.append((start, start + size))
            start, size = start + size, line
        else:
            size += line
    found.append((start, start + size))
    return [(a, b) for a, b in found if b - a > (1 if documents else 0)]


@given(st.lists(st.integers(1, 12), max_size=60), st.integers(1, 25))
@settings(max_examples=200, deadline=None)
def test_blocks_follow_the_rule(sizes: list[int], budget: int) -> None:
    assert ranges(sizes, "complete", budget) == one_by_one(sizes, budget, documents=False)
    assert ranges(sizes, "complete_doc", budget) == one_by_one(sizes, budget, documents=True)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=60), st.integers(1, 25))
@settings(max_examples=50, deadline=None)
def test_none_cuts_the_stream_evenly(sizes: list[int], budget: int) -> None:
    found = cut_blocks(sizes, "none", budget)
    assert np.array_equal(np.concatenate([np.arange(a, b) for a, b in found]), np.arange(sum(sizes)))
    assert ((found[:-1, 1] - found[:-1, 0]) == budget).all()
