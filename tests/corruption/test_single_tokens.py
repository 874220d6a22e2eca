"""Single-token masks: exact budgets, no special touched, pure in (seed, key, example), and evenly spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_store import CLS, MASK, PAD, SEP, FakeVocabulary, examples_of, random_store, store_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import measure
from paribus.corruption.masking.single_tokens import Bernoulli, choose_lowest
from paribus.corruption.views.replace import Replace, ordinary_ids
from paribus.data.mask_schedule import Copies, Dynamic, Static
from paribus.data.sequences import Text

VOCABULARY = FakeVocabulary()


def text_of(lengths: list[int]) -> Text:
    """Rows `cls tokens sep`, padded."""
    length_B, width = np.array(lengths), -(-max(lengths) // 8) * 8
    place_BL = np.broadcast_to(np.arange(width), (len(lengths), width))
    free_BL = (place_BL > 0) & (place_BL < length_B[:, None] - 1)
    ids_BL = np.where(free_BL, 5 + place_BL % 900, PAD)
    ids_BL[:, 0] = CLS
    ids_BL[np.arange(len(lengths)), length_B - 1] = SEP
    sentence_BL = np.where(free_BL, 0, -1).astype(np.int16)
    return Text(ids_BL, length_B, free_BL, free_BL, sentence_BL, np.zeros(ids_BL.shape, np.int8))


def noise(rows: int, seed: int = 0, epoch: int = 0) -> Noise:
    return Noise.of(seed, (0, epoch), np.arange(rows))


LENGTHS = st.lists(st.integers(3, 90), min_size=1, max_size=12)


@given(LENGTHS, st.floats(0.01, 0.99), st.integers(0, 99), st.none() | st.integers(1, 20))
@settings(max_examples=150, deadline=None)
def test_the_budget_is_bert_s(lengths: list[int], rate: float, seed: int, cap: int | None) -> None:
    """min(cap, max(1, round(rate * length))) with specials counted, and never more than are free."""
    text = text_of(lengths)
    span_BL = Bernoulli(rate, max_predictions=cap)(text, noise(len(lengths), seed)).span_BL
    most = cap or max(lengths)
    wanted = [min(most, max(1, round(rate * length)), length - 2) for length in lengths]
    assert (span_BL > 0).sum(axis=1).tolist() == wanted
    assert not span_BL[~text.free_BL].any()
    for row, count in zip(span_BL, wanted, strict=True):
        assert row[row > 0].tolist() == list(range(1, count + 1))


@given(LENGTHS, st.floats(0.01, 0.99), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_independent_draws_leave_specials_and_padding_alone(lengths: list[int], rate: float, seed: int) -> None:
    text = text_of(lengths)
    assert not Bernoulli(rate, "bernoulli")(text, noise(len(lengths), seed)).span_BL[~text.free_BL].any()


@pytest.mark.parametrize("budget", ["exact", "bernoulli"])
@given(LENGTHS, st.floats(0.02, 0.5), st.floats(0.0, 0.45), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_masks_of_two_rates_are_nested(budget: str, lengths: list[int], rate: float, more: float, seed: int) -> None:
    """Common random numbers: a higher rate adds noise and moves none."""
    text, drawn = text_of(lengths), noise(len(lengths), seed)
    few, many = (Bernoulli(r, budget)(text, drawn).span_BL > 0 for r in (rate, rate + more))
    assert not (few & ~many).any()


def test_the_mask_is_this() -> None:
    """Golden: who changes it raises `semantics`."""
    views = Corruption(Bernoulli(0.15), Replace())(text_of([40, 24]), noise(2, seed=11), VOCABULARY)
    assert [np.flatnonzero(row).tolist() for row in views.marks.span_BL] == [[6, 9, 19, 33, 37, 38], [12, 15, 16, 20]]
    assert views.inputs.ids_BL.reshape(-1)[views.marks.slot_P].tolist() == [4, 414, 4, 285, 4, 4, 4, 4, 4, 577]


def test_random_tokens_may_be_as_frequent_as_in_the_text() -> None:
    count_V = np.zeros(VOCABULARY.size, np.int64)
    count_V[[0, 50, 60, 70]] = 9000, 700, 200, 100
    counted = replace(VOCABULARY, count_V=count_V)
    shown = Replace(mask=0.0, random=1.0, keep=0.0, draw="unigram")
    assert shown.needs_counts
    assert not Replace(random=0.0, keep=0.2, draw="unigram").needs_counts
    views = Corruption(Bernoulli(0.5), shown)(text_of([130] * 400), noise(400), counted)
    drawn, count = np.unique(views.inputs.ids_BL.reshape(-1)[views.marks.slot_P], return_counts=True)
    assert drawn.tolist() == [50, 60, 70]  # specials are never drawn
    assert np.allclose(count / count.sum(), [0.7, 0.2, 0.1], atol=0.02)
    with pytest.raises(UserError, match=r"objective\.view\.draw=zipf"):
        Replace(draw="zipf")


@pytest.mark.parametrize("budget", ["exact", "bernoulli"])
def test_every_place_is_as_likely(budget: str) -> None:
    text = text_of([130] * 8192)
    counts = (Bernoulli(0.15, budget)(text, noise(8192)).span_BL > 0).sum(axis=0)[1:129]
    assert stats.chisquare(counts).pvalue > 1e-6
    nominal = 20 / 128 if budget == "exact" else 0.15
    assert abs(counts.sum() / 8192 / 128 - nominal) < 0.002


def test_pairs_of_places_are_drawn_independently() -> None:
    """Without replacement 19 of 126: the chance that two given places are both noise is 19/126 * 18/125."""
    span_BL = Bernoulli(0.15)(text_of([128] * 16384), noise(16384)).span_BL > 0
    both = [(span_BL[:, 1:-gap] & span_BL[:, 1 + gap :])[:, : 126 - gap].mean() for gap in (1, 2, 3, 8)]
    assert np.allclose(both, 19 / 126 * 18 / 125, atol=5e-4)


def test_rows_too_long_for_the_packed_key_choose_alike() -> None:
    """The 64-bit keys of wide batches order as the 32-bit keys of narrow ones, so company cannot change a row."""
    free_BL = np.zeros((3, 2048), bool)
    free_BL[:, 1:2047] = True
    bits_BL = noise(3).bits("masking", 2048)
    bits_BL[:, 5:9] = bits_BL[:, 4:5]  # ties
    count_B = np.array([1, 300, 2046])
    wide = [np.pad(array, ((0, 0), (0, 512))) for array in (bits_BL, free_BL)]
    assert np.array_equal(choose_lowest(bits_BL, free_BL, count_B), choose_lowest(wide[0], wide[1], count_B)[:, :2048])
    assert choose_lowest(bits_BL, free_BL, count_B).sum(axis=1).tolist() == count_B.tolist()


def test_long_rows_keep_their_budget() -> None:
    text = text_of([5000, 3000])
    assert (Bernoulli(0.15)(text, noise(2)).span_BL > 0).sum(axis=1).tolist() == [750, 450]


def places(schedule: Any, epoch: int) -> list[int]:
    examples = examples_of(random_store(300), 64, masking=Bernoulli(0.15, schedule=schedule))
    found: list[int] = examples.batch(epoch, np.arange(16))["slot_P"].tolist()
    return found


def test_schedules_say_when_masks_are_redrawn() -> None:
    dynamic = [places(Dynamic(), epoch) for epoch in range(8)]
    assert all(dynamic[a] != dynamic[b] for a in range(8) for b in range(a))
    assert [places(Static(), epoch) for epoch in (0, 1, 7)] == [dynamic[0]] * 3
    assert [places(Copies(3), epoch) for epoch in range(7)] == [dynamic[epoch % 3] for epoch in range(7)]


def test_the_run_s_seed_moves_the_masks() -> None:
    store = random_store(300)
    one, other = (examples_of(store, seed=seed).batch(0, np.arange(16))["slot_P"].tolist() for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize(
    "shares", [(0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.5, 0.3, 0.2)]
)
def test_replacement_has_its_shares(shares: tuple[float, float, float]) -> None:
    text = text_of([128] * 2048)
    views = Corruption(Bernoulli(0.15), Replace(*shares))(text, noise(2048), VOCABULARY)
    read, original = (ids.reshape(-1)[views.marks.slot_P] for ids in (views.inputs.ids_BL, text.ids_BL))
    kept = shares[2] + shares[1] / (VOCABULARY.size - 5)
    assert abs((read == MASK).mean() - shares[0]) < 0.01
    assert abs((read == original).mean() - kept) < 0.01
    untouched = np.setdiff1d(np.arange(text.ids_BL.size), views.marks.slot_P)
    assert np.array_equal(views.inputs.ids_BL.reshape(-1)[untouched], text.ids_BL.reshape(-1)[untouched])
    assert views.targets is None


@given(st.sets(st.integers(0, 39), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_random_tokens_are_uniform_and_never_special(specials: set[int]) -> None:
    vocabulary: Any = FakeVocabulary(size=40, specials=tuple(sorted(specials)))
    drawn = ordinary_ids(noise(64).bits("random token", 512).reshape(-1), vocabulary)
    counts = np.bincount(drawn, minlength=40)
    assert counts[sorted(specials)].sum() == 0
    assert stats.chisquare(np.delete(counts, sorted(specials))).pvalue > 1e-7


REFUSED = {
    "masking.rate=0": lambda: Bernoulli(0),
    "masking.rate=1.0": lambda: Bernoulli(1.0),
    "masking.rate=nan": lambda: Bernoulli(float("nan")),
    "masking.budget=about": lambda: Bernoulli(0.15, "about"),
    "masking.max_predictions=0": lambda: Bernoulli(0.15, max_predictions=0),
    "masking.schedule.copies=0": lambda: Copies(0),
    "masking.rate=0.003 of input.length=64": lambda: examples_of(store_of([[5]]), masking=Bernoulli(0.003)),
    "sum to 1": lambda: Replace(0.8, 0.1, 0.2),
    "mask=-0.1": lambda: Replace(-0.1, 0.1, 1.0),
    "objective.view.unit=page": lambda: Replace(unit="page"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_settings_are_named(message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        REFUSED[message]()


def test_realised_rates_are_measured() -> None:
    rates = measure(examples_of(random_store(3000), 64), VOCABULARY)  # type: ignore[arg-type]
    assert abs(rates["predicted_share"] - 0.15) < 0.005
    assert rates["masking_rate"] > rates["predicted_share"]
    assert abs(rates["mask"] - 0.8) < 0.02
    assert abs(rates["random"] - 0.1) < 0.02
    assert rates["mask"] + rates["random"] + rates["keep"] == pytest.approx(1)
    assert rates["mean_span_length"] == 1
    assert 0 < rates["padding_share"] < 0.3
