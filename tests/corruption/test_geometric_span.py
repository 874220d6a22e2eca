"""Geometric spans: lengths, the budget, alignment, merging, and the rule played one draw at a time."""

from __future__ import annotations

import math
from itertools import count, pairwise

import numpy as np
import pytest
from fake_text import ROWS, Rows, made_up, noise, spans_of, text_of, words_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paribus.core.errors import UserError
from paribus.core.noise import integers
from paribus.corruption.masking.geometric_span import GeometricSpan, geometric
from paribus.data.sequences import Text

PUBLISHED = (0.224, 0.179, 0.143, 0.115, 0.092, 0.073, 0.059, 0.047, 0.038, 0.030)  # SpanBERT, figure 2
RATES = st.floats(0.05, 0.8)


def played(text: Text, row: int, masking: GeometricSpan, seed: int) -> set[int]:
    """The paper's rule as a plain loop over the same draws: the columns that are noise."""
    columns = np.flatnonzero(text.free_BL[row]).tolist()
    words = words_of(text, row) if masking.unit == "word" else [[column] for column in columns]
    home = {column: number for number, word in enumerate(words) for column in word}
    bound = np.rint(np.cumsum(geometric(masking.mean_length, masking.max_length)) * 2**32)
    budget, found, drawn = math.ceil(masking.rate * len(columns)), set[int](), noise(row + 1, seed)
    for draw in count():
        if len(found) >= budget:
            return found
        length = 1 + int((drawn.at("span length", [row], [draw]) >= bound[:-1]).sum())
        anchor = columns[int(integers(drawn.at("anchor", [row], [draw]), len(columns))[0])]
        if anchor in found:
            continue
        for column in (column for word in words[home[anchor] : home[anchor] + length] for column in word):
            if len(found) < budget:
                found.add(column)
    raise AssertionError


@given(ROWS, RATES, st.sampled_from(["word", "token"]), st.integers(0, 99), st.integers(1, 10))
@settings(max_examples=120, deadline=None)
def test_marks_are_those_of_the_plain_loop(rows: Rows, rate: float, unit: str, seed: int, longest: int) -> None:
    text, masking = text_of(rows), GeometricSpan(rate, max_length=longest, unit=unit)
    span_BL = masking(text, noise(len(rows), seed)).span_BL
    for row, span_L in enumerate(span_BL):
        assert set(np.flatnonzero(span_L).tolist()) == played(text, row, masking, seed)


@given(ROWS, st.floats(0.001, 0.999), st.sampled_from(["word", "token"]), st.integers(0, 99))
@settings(max_examples=120, deadline=None)
def test_the_budget_is_exact_and_only_free_tokens_are_noise(rows: Rows, rate: float, unit: str, seed: int) -> None:
    text = text_of(rows)
    span_BL = GeometricSpan(rate, unit=unit)(text, noise(len(rows), seed)).span_BL
    assert (span_BL > 0).sum(axis=1).tolist() == [math.ceil(rate * free) for free in text.free_BL.sum(axis=1)]
    assert not span_BL[~text.free_BL].any()


@given(ROWS, RATES, st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_spans_start_with_a_word_never_touch_and_are_whole_but_for_one(rows: Rows, rate: float, seed: int) -> None:
    text = text_of(rows)
    for row, span_L in enumerate(GeometricSpan(rate)(text, noise(len(rows), seed)).span_BL):
        spans, words = spans_of(span_L), words_of(text, row)
        assert all(span == list(range(span[0], span[-1] + 1)) for span in spans)
        assert all(one[-1] + 1 < other[0] for one, other in pairwise(spans))
        assert {span[0] for span in spans} <= {word[0] for word in words}
        marked = set(np.flatnonzero(span_L).tolist())
        assert sum(0 < len(marked & set(word)) < len(word) for word in words) <= 1


def test_lengths_have_the_published_distribution() -> None:
    assert geometric(5, 10).round(3).tolist() == list(PUBLISHED)
    assert geometric(5, 10) @ np.arange(1, 11) == pytest.approx(3.797, abs=5e-4)
    bound = np.rint(np.cumsum(geometric(5, 10)) * 2**32)[:-1]
    bits = noise(4000).bits("span length", 16).reshape(-1)
    lengths = 1 + np.searchsorted(bound, bits, side="right")
    counts = np.bincount(lengths, minlength=11)[1:]
    expected = np.array(PUBLISHED) / sum(PUBLISHED) * len(lengths)
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    assert abs(lengths.mean() - 3.80) < 0.03


def test_spanbert_s_numbers_at_510_tokens() -> None:
    """Every token a word: 77 noise tokens and about 20 merged spans (the authors' code)."""
    span_BL = GeometricSpan(0.15)(text_of([[[1] * 510]] * 300), noise(300)).span_BL
    assert ((span_BL > 0).sum(axis=1) == 77).all()
    assert abs(span_BL.max(axis=1).mean() - 19.5) < 1.5


def test_every_token_can_be_noise_but_one() -> None:
    text = made_up(8)
    assert ((GeometricSpan(0.999)(text, noise(8)).span_BL > 0) == text.free_BL).all()


def test_the_mask_is_this() -> None:
    text = text_of([[[1, 2, 1, 1, 3, 1, 2, 1, 1, 1, 2, 4, 1, 1, 2, 1, 1, 1, 3, 1]], [[2, 2, 1], [1, 3, 1, 1, 2]]])
    found = [spans_of(span_L) for span_L in GeometricSpan(0.3)(text, noise(2)).span_BL]
    assert found == [[[6, 7, 8, 9, 10, 11], [23, 24, 25, 26]], [[1, 2, 3, 4]]]


REFUSED = {
    "masking.rate=1.2": lambda: GeometricSpan(1.2),
    "masking.mean_length=0.5": lambda: GeometricSpan(0.15, 0.5),
    "masking.mean_length=inf": lambda: GeometricSpan(0.15, math.inf),
    "masking.max_length=0": lambda: GeometricSpan(0.15, max_length=0),
    "masking.max_length=2.5": lambda: GeometricSpan(0.15, max_length=2.5),  # type: ignore[arg-type]
    "masking.unit=page": lambda: GeometricSpan(0.15, unit="page"),
    "masking.predict=2": lambda: GeometricSpan(0.15, predict=2),
    "masking.predict=0.4 is not a multiple": lambda: GeometricSpan(0.15, predict=0.4),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_settings_are_named(message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        REFUSED[message]()
