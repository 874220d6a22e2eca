"""Block formation as fairseq's compiled original, by its golden vectors and by a plain re-statement of the rule."""

from __future__ import annotations

import pytest
from fake_store import token_blocks
from hypothesis import given, settings
from hypothesis import strategies as st

SIZES = [3, 4, 2, 1, 5, 3]
GOLDEN = {
    False: [(0, 7), (7, 10), (10, 15), (15, 18)],
    True: [(0, 7), (7, 9), (10, 15), (15, 18)],
}


@pytest.mark.parametrize("documents", GOLDEN)
def test_golden_vector(documents: bool) -> None:
    assert token_blocks(SIZES, documents, 7) == GOLDEN[documents]


def test_a_line_over_the_budget_is_a_block_of_its_own() -> None:
    assert token_blocks([9, 2], False, 7) == [(0, 9), (9, 11)]
    assert token_blocks([2, 9, 2], True, 7) == [(0, 2), (2, 11), (11, 13)]


def test_documents_of_one_token_are_dropped() -> None:
    assert token_blocks([1, 1, 3, 1, 1], True, 7) == [(2, 5)]


def test_nothing_gives_nothing() -> None:
    assert all(token_blocks([], documents, 7) == [] for documents in GOLDEN)


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
    assert token_blocks(sizes, False, budget) == one_by_one(sizes, budget, documents=False)
    assert token_blocks(sizes, True, budget) == one_by_one(sizes, budget, documents=True)
