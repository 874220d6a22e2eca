"""The windows of static word vectors: which pairs, with which draws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_store import UNK, FakeVocabulary, random_store

from paribus.corruption.collators.word_windows import BagWindows, CountedWindows, PairWindows
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.windows import Windows
from paribus.data.mask_schedule import Dynamic
from paribus.data.tokens.word_counts import count_neighbors

STORE = random_store(60)


def examples_of(collator: Any, cross: bool = True) -> Examples:
    counts = np.bincount(STORE.ids, minlength=1000)
    vocabulary: Any = FakeVocabulary(count_V=counts, text=STORE)
    corruption = Corruption(NoNoise(schedule=Dynamic()), Unchanged())
    return Examples(STORE, Windows(32, cross=cross), corruption, collator, vocabulary, 0, 32)


def pairs_of(batch: dict[str, Any]) -> list[tuple[int, int]]:
    return list(zip(batch["slot_P"].tolist(), batch["target_P"].tolist(), strict=True))


def test_a_word_and_one_near_it_are_a_pair_in_both_directions() -> None:
    collator = replace(PairWindows(2, None, drawn=False), negatives=1)
    batch = examples_of(collator).batch(0, [0, 1])
    ids_BL = batch["ids_BL"]
    wanted = Counter(
        (row * 32 + near, int(ids_BL[row, at]))
        for row in range(2)
        for at in range(32)
        for near in range(max(0, at - 2), min(32, at + 3))
        if near != at
    )
    assert Counter(pairs_of(batch)) == wanted
    reads = examples_of(replace(collator, center_reads=True)).batch(0, [0, 1])
    assert Counter(pairs_of(reads)) == wanted  # over a text both directions are the same pairs


def test_words_that_vanish_let_windows_reach_further() -> None:
    examples = examples_of(PairWindows(1, None, drawn=False, negatives=1))
    views = examples.views(0, [0])
    views.text.ids_BL[0, 1::2] = UNK
    batch = examples.collator.pack(views, examples.vocabulary)
    assert sorted(set(batch["slot_P"].tolist())) == list(range(0, 32, 2))
    assert batch["counts"]["kept_words"] == 16
    assert len(batch["slot_P"]) == 30


def test_a_distance_is_read_as_often_as_a_uniform_width_reaches_it() -> None:
    collator = PairWindows(5, None)
    pairs, _ = collator.find_neighbors(examples_of(collator).views(0, range(25)), examples_of(collator).vocabulary)
    shares = np.bincount(pairs.distance_P, minlength=6)[1:] / (pairs.distance_P == 1).sum()
    assert shares == pytest.approx([1, 0.8, 0.6, 0.4, 0.2], abs=0.08)


@pytest.mark.parametrize("collator", [PairWindows(redraw=True, sample=1e-3), BagWindows(), CountedWindows(5, None)])
def test_a_row_is_a_pure_function_of_its_number_and_the_pass(collator: Any) -> None:
    def targets(batch: dict[str, Any], row: int) -> list[tuple[int, ...]]:
        keys = ["target_P", *(["negative_PK"] if "negative_PK" in batch else []), *(["share_P"] * ("share_P" in batch))]
        chosen = batch["slot_P"] // 32 == row
        columns = [batch[key][chosen].reshape(int(chosen.sum()), -1) for key in keys]
        return sorted(map(tuple, np.hstack([batch["slot_P"][chosen, None] % 32, *columns]).tolist()))

    examples = examples_of(collator)
    alone, beside = examples.batch(3, [4]), examples.batch(3, [7, 4, 1])
    assert targets(alone, 0) == targets(beside, 1) != []
    if not isinstance(collator, CountedWindows):  # which draws nothing
        assert targets(examples.batch(2, [4]), 0) != targets(alone, 0)


def test_a_negative_that_is_the_target_is_skipped_or_drawn_again() -> None:
    skipped = examples_of(PairWindows(negatives=40, sample=None)).batch(0, range(8))
    again = examples_of(PairWindows(negatives=40, sample=None, redraw=True)).batch(0, range(8))
    equal_PK = again["negative_PK"] == skipped["negative_PK"]
    assert (equal_PK == (skipped["negative_PK"] >= 0)).all()
    assert not equal_PK.all()
    assert (again["negative_PK"] != again["target_P"][:, None]).all()


def test_a_bag_holds_the_words_near_its_center() -> None:
    batch = examples_of(BagWindows(2, None, drawn=False, negatives=1)).batch(0, [0])
    near = {at: batch["read_C"][batch["bag_C"] == at].tolist() for at in range(len(batch["target_P"]))}
    assert sorted(near[0]) == [1, 2]
    assert sorted(near[10]) == [8, 9, 11, 12]
    assert batch["target_P"].tolist() == batch["ids_BL"][0].tolist()


def test_the_shares_of_a_pass_sum_to_the_counts() -> None:
    examples = examples_of(CountedWindows(4, None, False), cross=False)
    batch = examples.batch(0, range(examples.size(0)))
    seen: Counter[tuple[int, int]] = Counter()
    for slot, target, share in zip(batch["slot_P"], batch["target_P"], batch["share_P"], strict=True):
        seen[int(batch["ids_BL"].reshape(-1)[slot]), int(target)] += float(share)
    counted = count_neighbors(STORE, examples.vocabulary, 4)
    total = counted.count_N.sum()
    assert 0.85 * total < sum(seen.values()) <= total + 1e-6  # the ends of rows cut some pairs apart
    whole = [
        count for pair, count in seen.items() if count == pytest.approx(float(counted.at(*np.array(pair)[:, None])[0]))
    ]
    assert len(whole) > 0.8 * len(seen)
