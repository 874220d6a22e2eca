"""Whole words and n-grams of words: the rules played one word at a time, the budgets, three families of tokenizers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_store import FakeStore, examples_of, store_of
from fake_text import ROWS, Rows, made_up, noise, spans_of, text_of, words_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from stories import story

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.examples import Examples
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.masking.ngram import NGram
from paribus.corruption.masking.whole_word import WholeWord
from paribus.data.sequences import Text
from paribus.data.tokens.store import MemoryStore
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.data.tokens.trained import BPE, Trained, Unigram, WordPiece

RATES = st.floats(0.05, 0.8)
CAPS = st.none() | st.integers(1, 20)


def visited(text: Text, row: int, drawn: Noise) -> list[list[list[int]]]:
    """The words of a row in random order, each with all that follow it."""
    words, bits_L = words_of(text, row), drawn.bits("masking", text.ids_BL.shape[1])[row]
    order = sorted(range(len(words)), key=lambda at: bits_L[words[at][0]] >> 10)
    return [words[at:] for at in order]


def allowed(text: Text, row: int, rate: float, cap: int | None) -> int:
    """BERT's budget."""
    budget = max(1, round(rate * int(text.length_B[row])))
    return min(budget, int(text.free_BL[row].sum()), budget if cap is None else cap)


@given(ROWS, RATES, CAPS, st.integers(0, 99))
@settings(max_examples=120, deadline=None)
def test_whole_words_are_those_of_bert_s_loop(rows: Rows, rate: float, cap: int | None, seed: int) -> None:
    text, drawn = text_of(rows), noise(len(rows), seed)
    span_BL = WholeWord(rate, max_predictions=cap)(text, drawn).span_BL
    for row, span_L in enumerate(span_BL):
        budget, taken = allowed(text, row, rate, cap), list[list[int]]()
        for word, *_ in visited(text, row, drawn):
            if sum(map(len, taken)) + len(word) <= budget:
                taken.append(word)
        assert spans_of(span_L) == sorted(taken)


@given(ROWS, RATES, CAPS, st.integers(0, 99), st.integers(1, 4), st.booleans())
@example([[[3, 1, 1, 1, 1, 3]]], 0.5, 4, 5, 2, False)  # a later round meets what an earlier one took
@settings(max_examples=120, deadline=None)
def test_n_grams_are_those_of_albert_s_loop(
    rows: Rows, rate: float, cap: int | None, seed: int, longest: int, shorter: bool
) -> None:
    text, drawn = text_of(rows), noise(len(rows), seed)
    masking = NGram(rate, longest, shorter, cap)
    for row, span_L in enumerate(masking(text, drawn).span_BL):
        budget, taken, covered = allowed(text, row, rate, cap), list[list[int]](), set[int]()
        for words in visited(text, row, drawn):
            share_N = masking.shares()[min(len(words), longest) - 1]
            bits = drawn.at("n-gram length", [row], [words[0][0]])
            n = 1 + int((bits >= np.rint(np.cumsum(share_N) * 2**32)).sum())
            while n and len(covered) + sum(map(len, words[:n])) > budget:
                n -= 1
            columns = [column for word in words[:n] for column in word]
            if n and not covered & set(columns):
                covered |= set(columns)
                taken.append(columns)
        assert spans_of(span_L) == sorted(taken)


@given(ROWS, st.floats(0.01, 0.99), CAPS, st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_the_budget_is_never_passed_and_words_stay_whole(rows: Rows, rate: float, cap: int | None, seed: int) -> None:
    text, drawn = text_of(rows), noise(len(rows), seed)
    for masking in (WholeWord(rate, max_predictions=cap), NGram(rate, max_predictions=cap)):
        span_BL = masking(text, drawn).span_BL
        assert not span_BL[~text.free_BL].any()
        for row, span_L in enumerate(span_BL):
            words = words_of(text, row)
            assert {span_L[word].astype(bool).sum() in (0, len(word)) for word in words} == {True}
            room = allowed(text, row, rate, cap) - (span_L > 0).sum()
            assert room >= 0
            left = [len(word) for word in words if not span_L[word[0]]]
            assert isinstance(masking, NGram) or not left or room < min(left)  # an n-gram may meet an earlier one


def test_words_of_one_token_fill_the_budget() -> None:
    text = text_of([[[1] * length] for length in (5, 40, 126)])
    for masking in (WholeWord(0.15), NGram(0.15)):
        assert (masking(text, noise(3)).span_BL > 0).sum(axis=1).tolist() == [1, 6, 19]


def test_fairseq_s_budget_counts_words() -> None:
    text = text_of([[[3, 1] * 25, [2] * 10]] * 4000)
    span_BL = WholeWord(0.15, "words")(text, noise(4000)).span_BL
    words_B = span_BL.max(axis=1)
    assert set(words_B.tolist()) == {9}  # 60 words: no rounding
    assert abs((span_BL > 0).sum(axis=1).mean() - 0.15 * 120) < 0.2
    odd = WholeWord(0.15, "words")(text_of([[[1, 4, 2] * 11]] * 4000), noise(4000)).span_BL.max(axis=1)
    assert abs(odd.mean() - 0.15 * 33) < 0.05
    assert set(odd.tolist()) == {4, 5}
    assert WholeWord(0.5, "words", 3)(text, noise(4000)).span_BL.max() == 3


def test_every_word_is_as_likely() -> None:
    text = text_of([[[1] * 126]] * 8192)
    counts = (WholeWord(0.15)(text, noise(8192)).span_BL > 0).sum(axis=0)[1:127]
    assert stats.chisquare(counts).pvalue > 1e-7


def test_n_has_the_published_distribution() -> None:
    assert NGram(0.15).shares()[2].round(3).tolist() == [0.545, 0.273, 0.182]
    assert NGram(0.15, favor_shorter=False).shares()[2].round(3).tolist() == [0.182, 0.273, 0.545]
    assert NGram(0.15).shares()[0].tolist() == [1, 0, 0]
    text = text_of([[[1] * 400]] * 500)
    spans = [len(span) for span_L in NGram(0.05)(text, noise(500)).span_BL for span in spans_of(span_L)]
    assert abs(np.mean(spans) - 1.64) < 0.08


MASKINGS: dict[str, Callable[[], Any]] = {
    "whole_word": lambda: WholeWord(0.3),
    "words": lambda: WholeWord(0.3, "words"),
    "ngram": lambda: NGram(0.3),
}


def test_the_marks_are_these() -> None:
    text = text_of([[[1, 2, 1, 1, 3, 1, 2, 1, 1, 1, 2, 4, 1, 1, 2, 1, 1, 1, 3, 1]], [[2, 2, 1], [1, 3, 1, 1, 2]]])
    whole, grams = (
        [spans_of(span_L) for span_L in masking(text, noise(2)).span_BL] for masking in (WholeWord(0.3), NGram(0.3))
    )
    assert whole == [[[2, 3], [12], [14], [17, 18, 19, 20], [25], [27]], [[3, 4], [5], [7], [11]]]
    assert grams == [[[2, 3], [12, 13], [17, 18, 19, 20], [25], [27]], [[7], [11, 12, 13, 14]]]


KINDS: dict[str, tuple[type[Trained], int]] = {
    "wordpiece": (WordPiece, 150),
    "bpe": (BPE, 330),
    "unigram": (Unigram, 100),
}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [story(number) for number in range(40)]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    kind, size = KINDS[request.param]
    return kind(size).build(texts, tmp_path_factory.mktemp(request.param))


def stored(tokenizer: Tokenizer, texts: list[str]) -> MemoryStore:
    """The texts' sentences as one document."""
    rows = tokenizer.encode([sentence for text in texts for sentence in re.split(r"(?<=\.)\s", text)])
    ids, starts = (np.concatenate(arrays) for arrays in zip(*rows, strict=True))
    return MemoryStore(ids, starts, np.cumsum([0, *(len(ids) for ids, _ in rows)]), np.array([0, len(rows)]))


@pytest.mark.parametrize("name", MASKINGS)
def test_words_are_whole_in_three_families_of_tokenizers(name: str, tokenizer: Tokenizer, texts: list[str]) -> None:
    store, known = stored(tokenizer, texts), set(re.findall(r"\w+|\.", " ".join(texts).lower()))
    for seed in range(3):
        made = examples_of(store, 128, seed, MASKINGS[name]())
        examples = Examples(store, made.input, made.corruption, made.collator, tokenizer.vocabulary, seed, 128)
        views = examples.views(0, np.arange(40))
        pieces = 0
        for ids_L, span_L in zip(views.text.ids_BL, views.marks.span_BL, strict=True):
            for span in spans_of(span_L):
                kept = [column for column in span if ids_L[column] not in tokenizer.vocabulary.specials]
                shown = tokenizer.backend.decode(ids_L[kept].tolist()).lower()
                assert set(re.findall(r"\w+|\.", shown)) <= known, shown
                pieces += len(span) > 1
        assert pieces > 40  # the vocabulary is small: many words are of several tokens


def unmarked(store: FakeStore) -> FakeStore:
    """The store of a tokenizer that tells where sentences start, and no words."""
    start = np.zeros(len(store.ids), np.uint8)
    start[store.sentence_start[:-1]] = 1
    return FakeStore(store.ids, start, store.sentence_start, store.document_start)


@pytest.mark.parametrize("masking", [WholeWord(0.15), NGram(0.15), GeometricSpan(0.15)])
def test_a_text_without_word_starts_is_refused(masking: Any) -> None:
    with pytest.raises(UserError, match="does not report where words start"):
        examples_of(unmarked(store_of([[12, 9], [30]])), masking=masking)
    examples_of(store_of([[12, 9], [30]]), masking=masking)
    examples_of(unmarked(store_of([[1, 1], [1]])), masking=masking)  # sentences of one word
    examples_of(unmarked(store_of([[12, 9], [30]])), masking=GeometricSpan(0.15, unit="token"))


REFUSED = {
    "masking.rate=0": lambda: WholeWord(0),
    "masking.rate=half": lambda: NGram("half"),  # type: ignore[arg-type]
    "masking.budget=bernoulli": lambda: WholeWord(0.15, "bernoulli"),
    "masking.max_predictions=0": lambda: NGram(0.15, max_predictions=0),
    "masking.max_length=0": lambda: NGram(0.15, 0),
    "masking.rate=0.003 of input.length=64": lambda: examples_of(store_of([[5]]), masking=WholeWord(0.003)),
    "masking.predict=0.002 of input.length=64": lambda: examples_of(store_of([[5]]), masking=NGram(0.1, predict=0.002)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_settings_are_named(message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        REFUSED[message]()


def test_any_rate_from_5_to_80_percent_is_reached() -> None:
    text = made_up(64)
    for rate in (0.05, 0.15, 0.4, 0.8):
        for masking in (WholeWord(rate), NGram(rate)):
            share = (masking(text, noise(64)).span_BL > 0).sum() / text.length_B.sum()
            assert math.isclose(share, rate, abs_tol=0.01)
