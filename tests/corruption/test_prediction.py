"""Corruption apart from prediction, and one draw of the replacement for a token, a word or a span."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_store import MASK, FakeVocabulary, examples_of, random_store
from fake_text import ROWS, Rows, made_up, noise, part, spans_of, text_of, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import measure
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.masking.ngram import NGram
from paribus.corruption.masking.prediction import mark_rows
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_word import WholeWord
from paribus.corruption.views.replace import Replace
from paribus.data.sequences import Text, Views

VOCABULARY: Any = FakeVocabulary()
KINDS: dict[str, Callable[..., Any]] = {
    "bernoulli": Bernoulli,
    "whole_word": WholeWord,
    "geometric_span": GeometricSpan,
    "ngram": NGram,
}


def views_of(text: Text, masking: Any, view: Replace | None = None, seed: int = 0) -> Views:
    return Corruption(masking, view or Replace())(text, noise(len(text.length_B), seed), VOCABULARY)


@pytest.mark.parametrize("kind", KINDS)
@given(ROWS, st.floats(0.2, 0.8), st.floats(0.1, 1.0), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_a_part_of_the_noise_is_predicted(kind: str, rows: Rows, rate: float, share: float, seed: int) -> None:
    text, masking = text_of(rows), KINDS[kind](rate)
    plain, thin = (views_of(text, m, seed=seed) for m in (masking, replace(masking, predict=rate * share)))
    assert np.array_equal(thin.inputs.ids_BL, plain.inputs.ids_BL)
    assert np.array_equal(thin.marks.span_BL, plain.marks.span_BL)
    predicted_BL = np.zeros(text.ids_BL.shape, np.bool_)
    predicted_BL.reshape(-1)[thin.marks.slot_P] = True
    assert not predicted_BL[thin.marks.span_BL == 0].any()
    for span_L, predicted_L in zip(thin.marks.span_BL, predicted_BL, strict=True):
        noisy = int((span_L > 0).sum())
        assert predicted_L.sum() == min(noisy, max(1, round(rate * share / rate * noisy)))
        kept = [predicted_L[span].sum() for span in spans_of(span_L)]
        cut = [n for n, span in zip(kept, spans_of(span_L), strict=True) if 0 < n < len(span)]
        assert len(cut) <= 1


@pytest.mark.parametrize("kind", KINDS)
@given(ROWS, st.integers(2, 8), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_a_row_is_read_with_disjoint_parts_of_its_noise(kind: str, rows: Rows, times: int, seed: int) -> None:
    text, masking = text_of(rows), KINDS[kind](0.8 / times, predict=0.8)
    views = views_of(text, masking, seed=seed)
    whole = KINDS[kind](0.8)(text, noise(len(rows), seed)).span_BL
    assert np.array_equal(views.text.ids_BL, np.repeat(text.ids_BL, times, axis=0))
    parts = views.marks.span_BL.reshape(len(rows), times, -1)
    assert np.array_equal((parts > 0).sum(axis=1), whole > 0)
    for span_TL, whole_L in zip(parts, whole, strict=True):
        found = [span for span_L in span_TL for span in spans_of(span_L)]
        assert sorted(found) == spans_of(whole_L)
        assert all(span for span in found)
        even, widest = (whole_L > 0).sum() / times, max((len(span) for span in found), default=0)
        assert (abs((span_TL > 0).sum(axis=1) - even) <= widest + 1).all()
    noisy = views.inputs.ids_BL != views.text.ids_BL
    assert not noisy[views.marks.span_BL == 0].any()
    assert np.array_equal(views.marks.slot_P, views.marks.noise_P)


def test_single_tokens_are_dealt_out_evenly() -> None:
    span_BL = views_of(text_of([[[1] * 98]] * 50), Bernoulli(0.1, predict=0.4)).marks.span_BL
    assert ((span_BL > 0).sum(axis=1) == 10).all()


@pytest.mark.parametrize("predict", [0.1, 0.8])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_does_not_depend_on_its_batch(kind: str, predict: float) -> None:
    text, masking, drawn = made_up(30), KINDS[kind](0.4, predict=predict), noise(30)
    rows, times = [4, 29, 0], 2 if predict > 0.4 else 1
    _, _, whole = mark_rows(masking, text, drawn)
    _, _, some = mark_rows(masking, part(text, rows), Noise(drawn.row_B[rows]))
    same = [row * times + reading for row in rows for reading in range(times)]
    assert np.array_equal(some.span_BL, whole.span_BL[same])
    if predict < 0.4:
        assert whole.predicted_BL is not None
        assert some.predicted_BL is not None
        assert np.array_equal(some.predicted_BL, whole.predicted_BL[rows])


def test_the_batch_holds_every_reading_and_counts_what_is_read() -> None:
    store, rows = random_store(900), np.arange(20)
    plain, more, less = (
        examples_of(store, masking=masking)
        for masking in (Bernoulli(0.2), Bernoulli(0.1, predict=0.4), Bernoulli(0.4, predict=0.2))
    )
    assert (plain.readings, more.readings, less.readings) == (1, 4, 1)
    assert np.array_equal(more.lengths(0), 4 * plain.lengths(0))
    batch = more.batch(0, rows)
    assert batch["ids_BL"].shape[0] == 80
    assert batch["counts"]["input_tokens"] == more.lengths(0)[rows].sum()
    assert len(batch["slot_P"]) == batch["counts"]["noise"] == batch["counts"]["predicted"]
    thin = less.batch(0, rows)["counts"]
    assert abs(thin["predicted"] / thin["noise"] - 0.5) < 0.03


def test_realised_rates_tell_corruption_from_prediction() -> None:
    store = random_store(2000)
    thin = measure(examples_of(store, masking=Bernoulli(0.4, predict=0.2)), VOCABULARY)
    more = measure(examples_of(store, masking=Bernoulli(0.1, predict=0.4)), VOCABULARY)
    assert abs(thin["corruption_rate"] / thin["masking_rate"] - 2) < 0.1
    assert abs(more["predicted_share"] - 0.1) < 0.01
    assert more["corruption_rate"] == more["masking_rate"]


@pytest.mark.parametrize("unit", ["token", "word", "span"])
def test_one_draw_decides_a_unit(unit: str) -> None:
    text = made_up(256)
    views = views_of(text, GeometricSpan(0.3), Replace(0.5, 0.25, 0.25, unit))
    read, original, marks = views.inputs.ids_BL, text.ids_BL, views.marks
    kinds_BL = np.where(read == MASK, 1, np.where(read == original, 2, 3))
    mixed = {"word": 0, "span": 0}
    for row in range(256):
        spans = spans_of(marks.span_BL[row])
        words = [[column for column in word if marks.span_BL[row, column]] for word in words_of(text, row)]
        mixed["span"] += sum(len(set(kinds_BL[row, span].tolist())) > 1 for span in spans)
        mixed["word"] += sum(len(set(kinds_BL[row, word].tolist())) > 1 for word in words)
    chance = 20  # a random token that equals the original reads as kept
    assert {name: count < chance for name, count in mixed.items()} == {
        "word": unit != "token",
        "span": unit == "span",
    }
    noise_kinds = kinds_BL.reshape(-1)[marks.noise_P]
    assert abs((noise_kinds == 1).mean() - 0.5) < 0.05
    assert abs((noise_kinds == 2).mean() - 0.25) < 0.05


def test_random_tokens_of_a_span_are_drawn_one_by_one() -> None:
    text = text_of([[[1] * 100]] * 64)
    views = views_of(text, GeometricSpan(0.4), Replace(0, 1, 0, "span"))
    drawn = views.inputs.ids_BL.reshape(-1)[views.marks.noise_P]
    assert len(set(drawn.tolist())) > 800
    assert (drawn[1:] == drawn[:-1]).mean() < 0.01


def test_the_unit_moves_no_mask_and_no_first_draw() -> None:
    text, masking = made_up(64), WholeWord(0.3)
    token, word, span = (views_of(text, masking, Replace(unit=unit)) for unit in ("token", "word", "span"))
    assert np.array_equal(token.marks.span_BL, word.marks.span_BL)
    assert np.array_equal(word.inputs.ids_BL, span.inputs.ids_BL)  # each word is a span
    first = [row * text.ids_BL.shape[1] + s[0] for row, L in enumerate(word.marks.span_BL) for s in spans_of(L)]
    assert np.array_equal(token.inputs.ids_BL.reshape(-1)[first], word.inputs.ids_BL.reshape(-1)[first])


REFUSED = {
    "objective.view.unit=page is unknown: choose token, word, span": lambda: Replace(unit="page"),
    "sum to 1": lambda: Replace(0.8, 0.1, 0.2),
    "masking.predict=0.5 is not a multiple of masking.rate=0.2": lambda: Bernoulli(0.2, predict=0.5),
    "masking.predict=0": lambda: Bernoulli(0.2, predict=0),
    "masking.predict=0.001 of input.length=64": lambda: Bernoulli(0.2, predict=0.001).check(64),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_settings_are_named(message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        REFUSED[message]()
