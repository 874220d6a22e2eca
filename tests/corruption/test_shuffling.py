"""StructBERT's shuffled trigrams: what may move, where to, how much of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_store import FakeVocabulary, examples_of, random_store
from fake_text import ROWS, Rows, made_up, noise, part, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Measured
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.shuffling import ORDERS, ShuffledTrigrams, find_runs
from paribus.corruption.views.replace import Replace
from paribus.data.sequences import Text, Views

VOCABULARY: Any = FakeVocabulary()
PLAIN = Corruption(Bernoulli(0.15), Replace())


def shuffled(text: Text, share: float = 0.05, seed: int = 0, masking: Any = None) -> Views:
    corruption = Corruption(masking or Bernoulli(0.15), Replace(), shuffling=ShuffledTrigrams(share))
    return corruption(text, noise(len(text.length_B), seed), VOCABULARY)


def moved(views: Views) -> np.ndarray[Any, Any]:
    """int [T, 3]: flat places of each trigram."""
    assert views.marks.moved_P is not None
    return views.marks.moved_P.reshape(-1, 3)


@given(ROWS, st.floats(0.01, 1.0), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_only_plain_tokens_move_and_only_inside_their_trigram(rows: Rows, share: float, seed: int) -> None:
    text = text_of(rows)
    views, plain = shuffled(text, share, seed), PLAIN(text, noise(len(rows), seed), VOCABULARY)
    assert np.array_equal(views.marks.span_BL, plain.marks.span_BL)
    assert np.array_equal(views.marks.slot_P, plain.marks.slot_P)
    place_T3 = moved(views)
    assert (np.diff(place_T3.reshape(-1)) > 0).all()  # none over another
    assert (np.diff(place_T3, axis=1) == 1).all()
    assert (place_T3[:, 0] // text.ids_BL.shape[1] == place_T3[:, 2] // text.ids_BL.shape[1]).all()
    free_T3, noisy_T3 = (array.reshape(-1)[place_T3] for array in (text.free_BL, text_noise(views)))
    assert free_T3.all()
    assert not noisy_T3.any()
    read_T3, own_T3 = (view.ids_BL.reshape(-1)[place_T3] for view in (views.inputs, text))
    assert np.array_equal(np.sort(read_T3), np.sort(own_T3))
    assert (read_T3 != own_T3).any(axis=1).all()  # ids of neighbors differ in these rows
    rest = np.ones(text.ids_BL.size, np.bool_)
    rest[place_T3.reshape(-1)] = False
    assert np.array_equal(views.inputs.ids_BL.reshape(-1)[rest], plain.inputs.ids_BL.reshape(-1)[rest])


def text_noise(views: Views) -> np.ndarray[Any, Any]:
    noisy: np.ndarray[Any, Any] = views.marks.span_BL > 0
    return noisy


def test_the_share_is_of_the_runs_without_noise() -> None:
    text = made_up(400)
    for share in (0.05, 0.1):
        views = shuffled(text, share)
        runs_B = find_runs(text.free_BL & (views.marks.span_BL == 0)).sum(axis=1)
        trigrams_B = np.bincount(moved(views)[:, 0] // text.ids_BL.shape[1], minlength=400)
        assert np.array_equal(trigrams_B, np.maximum(1, np.rint(share * runs_B)))
        tokens = 3 * trigrams_B.sum() / text.tokens
        assert tokens == pytest.approx(3 * share * 0.85**3, rel=0.1)
    assert len(moved(shuffled(text, 1.0))) < find_runs(text.free_BL).sum() / 2  # no more have room


def test_every_other_order_is_as_likely() -> None:
    text = made_up(3000)
    views = shuffled(text, 0.1)
    place_T3 = moved(views)
    read_T3, own_T3 = (view.ids_BL.reshape(-1)[place_T3] for view in (views.inputs, text))
    order_T = (read_T3[:, None] == own_T3[:, ORDERS]).all(axis=-1).argmax(axis=1)
    count = np.bincount(order_T, minlength=5)
    expected = len(order_T) / 5
    assert ((count - expected) ** 2 / expected).sum() < 18.5  # chi-square with 4 degrees of freedom, p = 0.001


def test_golden_trigrams() -> None:
    views = shuffled(made_up(2, 30), 0.1, seed=3)
    width = views.text.ids_BL.shape[1]
    found = [
        (*divmod(int(place[0]), width), *views.inputs.ids_BL.reshape(-1)[place].tolist()) for place in moved(views)
    ]
    assert found == [
        (0, 18, 25, 24, 23),
        (0, 23, 30, 28, 29),
        (1, 2, 49, 48, 47),
        (1, 12, 59, 58, 57),
    ]  # (row, column, ids read)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_row_does_not_depend_on_its_batch(share: float) -> None:
    text, rows = made_up(30), [4, 29, 0]
    whole = shuffled(text, share)
    corruption = Corruption(Bernoulli(0.15), Replace(), shuffling=ShuffledTrigrams(share))
    some = corruption(part(text, rows), Noise(noise(30).row_B[rows]), VOCABULARY)
    assert np.array_equal(some.inputs.ids_BL, whole.inputs.ids_BL[rows])


def test_a_row_without_room_moves_nothing() -> None:
    views = shuffled(text_of([[[1, 1]], [[1] * 9]]), masking=Bernoulli(0.1))
    assert set((moved(views)[:, 0] // views.text.ids_BL.shape[1]).tolist()) == {1}


def test_the_batch_tells_what_was_moved_and_the_realised_rate() -> None:
    examples = examples_of(random_store(900), 64)
    object.__setattr__(examples, "corruption", Corruption(Bernoulli(0.15), Replace(), shuffling=ShuffledTrigrams()))
    batch, total = examples.batch(0, np.arange(40)), Measured(examples.collator)
    original = examples.views(0, np.arange(40)).text.ids_BL.reshape(-1)
    assert np.array_equal(batch["moved_target_P"], original[batch["moved_P"]])
    assert batch["counts"]["moved"] == len(batch["moved_P"])
    assert not set(batch["moved_P"].tolist()) & set(batch["slot_P"].tolist())
    total.add(batch, VOCABULARY)
    assert total.rates()["moved_rate"] == batch["counts"]["moved"] / batch["counts"]["raw_tokens"]
    assert abs(total.rates()["mask"] - 0.8) < 0.1


@pytest.mark.parametrize("share", [0, -0.1, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(UserError, match=f"objective.shuffling.share={share}"):
        ShuffledTrigrams(share)
