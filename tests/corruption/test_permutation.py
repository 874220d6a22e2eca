"""Who sees whom: the ranks of permutation language models against the masks of XLNet's `data_utils.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from fake_store import FakeVocabulary
from fake_text import made_up, noise, text_of

from paribus.corruption.collators.permutation import PermutationCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.permutation_span import PermutationSpan
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.permutation import AllAtOnce, Permutation
from paribus.corruption.views.replace import Unchanged
from paribus.data.sequences import Text, Views

VOCABULARY: Any = FakeVocabulary()


def permuted(text: Text, masking: Any = None, seed: int = 0) -> Views:
    corruption = Corruption(masking or PermutationSpan(), Unchanged(), attention_mask=Permutation())
    return corruption(text, noise(len(text.length_B), seed), VOCABULARY)


def local_perm(is_masked: Any, functional: Any, index: Any) -> tuple[Any, Any]:
    """`_local_perm`, given the permutation: (perm_mask, target_mask); perm_mask[i, j]: i does not see j."""
    plain = ~is_masked & ~functional
    rev_index = np.where(plain, -1, index)
    target = ~plain & ~functional
    self_rev_index = np.where(target, rev_index, rev_index + 1)
    return (self_rev_index[:, None] <= rev_index[None]) & ~plain, target


def test_the_masks_are_those_of_the_published_code() -> None:
    text = made_up(3, 60)
    text = replace(text, reused_B=text.length_B // 2)
    views = permuted(text)
    rank_BL: Any = views.inputs.rank_BL  # type: ignore[union-attr]
    for row in range(3):
        length, half = int(text.length_B[row]), int(text.length_B[row]) // 2
        read = [*range(1, length), 0]
        rank, masked = rank_BL[row, read], views.marks.span_BL[row, read] > 0
        functional = text.sentence_BL[row, read] < 0
        wanted = np.ones((length, length), np.bool_)
        wanted[half:, :half] = False  # the second half sees all of the first, which sees nothing of it
        targets = []
        for part in (slice(0, half), slice(half, length)):
            index = np.where(rank[part] % (1 << 20) > 0, rank[part] % (1 << 20) - 1, 0)
            wanted[part, part], target = local_perm(masked[part], functional[part], index)
            targets += target.tolist()
        query = ~(rank[None] < rank[:, None])
        content = ~(rank[None] <= rank[:, None])
        assert np.array_equal(query[targets], wanted[targets]), "what a target sees"
        assert np.array_equal(content, wanted & ~np.eye(length, dtype=np.bool_)), "and a token itself too"
        slots = views.marks.slot_P[views.marks.slot_P // text.ids_BL.shape[1] == row] % text.ids_BL.shape[1]
        assert sorted(slots) == sorted(np.array(read)[targets].tolist())


def test_all_orders_are_equally_likely_and_follow_from_the_row_alone() -> None:
    text = text_of([[[1] * 3]] * 6000)
    whole = permuted(text, PermutationSpan(context=1.5))
    rank_BL: Any = whole.inputs.rank_BL  # type: ignore[union-attr]
    chosen = (whole.marks.span_BL > 0).sum(1) == 3
    orders = rank_BL[chosen][:, 1:4].argsort(1) @ [1, 3, 9]
    _, counts = np.unique(orders, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 0.85 * counts.mean()

    long = text_of([[[1] * 30], [[1] * 3]])
    alone = permuted(text_of([[[1] * 30]]))
    assert np.array_equal(permuted(long).inputs.rank_BL[:1], alone.inputs.rank_BL)  # type: ignore[index, union-attr]


def test_a_token_that_sees_nothing_is_not_asked_for() -> None:
    text = text_of([[[1] * 9]] * 200)
    views = permuted(text, PermutationSpan(context=1))
    rank_BL: Any = views.inputs.rank_BL  # type: ignore[union-attr]
    width = text.ids_BL.shape[1]
    for slot in views.marks.slot_P:
        row = rank_BL[slot // width, : text.length_B[0]]
        assert (row < row[slot % width]).any()
    assert len(views.marks.slot_P) < np.count_nonzero(text.free_BL)


def test_a_masked_language_model_is_asked_for_the_same_from_all_else() -> None:
    text = made_up(4, 60)
    corruption = Corruption(Bernoulli(0.15), Unchanged(), attention_mask=AllAtOnce())
    views = corruption(text, noise(4), VOCABULARY)
    assert np.array_equal(views.marks.slot_P, Bernoulli(0.15)(text, noise(4)).slot_P)
    rank_BL: Any = views.inputs.rank_BL  # type: ignore[union-attr]
    assert np.array_equal(rank_BL, views.marks.span_BL > 0)


def test_the_trivial_model_is_told_of_the_neighbors_that_a_target_sees() -> None:
    text = made_up(2, 60)
    views = permuted(text)
    arrays = PermutationCollator().pack(views, VOCABULARY)
    places = PermutationCollator().find_places(arrays)
    rank_BL: Any = views.inputs.rank_BL  # type: ignore[union-attr]
    for number, slot in enumerate(arrays["slot_P"].tolist()):
        for side, beside in zip(places.near_KP, (slot - 1, slot + 1), strict=True):
            seen = rank_BL.flat[beside] < rank_BL.flat[slot] or beside % text.ids_BL.shape[1] == 0
            assert side[number] == (text.ids_BL.flat[beside] if seen else VOCABULARY.mask)
    assert np.array_equal(arrays["ids_BL"], text.ids_BL), "nothing is hidden in the text"
