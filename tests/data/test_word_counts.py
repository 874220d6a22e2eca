"""What static word vectors count in a text, and how words are cut and hashed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from fake_store import FakeStore, FakeVocabulary

from paribus.core.noise import Noise
from paribus.data.tokens.ngrams import cut_ngrams, hash_text
from paribus.data.tokens.word_counts import Draws, count_neighbors, keep_shares


def vocabulary_of(*counts: int) -> FakeVocabulary:
    """Words with these counts, after the special tokens."""
    return FakeVocabulary(5 + len(counts), count_V=np.array([0, 900, 0, 0, 0, *counts]))


@pytest.mark.parametrize(
    ("sample", "share", "kept"),
    [
        (1e-3, 0.1, 0.11),
        (1e-3, 0.05, 0.16142),
        (1e-3, 0.01, 0.41623),
        (1e-3, 2.618e-3, 1.0),
        (1e-4, 0.1, 0.03262),
        (1e-4, 0.01, 0.11),
        (1e-4, 1e-3, 0.41623),
    ],
)
def test_frequent_words_are_thinned_as_in_word2vec(sample: float, share: float, kept: float) -> None:
    total = 1_000_000
    vocabulary = vocabulary_of(round(share * total), total - round(share * total))
    share_V = keep_shares(vocabulary, sample)  # type: ignore[arg-type]
    assert share_V[5] == pytest.approx(kept, abs=6e-6)
    assert not share_V[:5].any()  # neither special tokens nor unknown words, which are no part of the total


@pytest.mark.parametrize(
    ("power", "wanted"), [(0.75, [0.826822, 0.147032, 0.026146]), (0.5, [0.706101, 0.223289, 0.070610])]
)
def test_negatives_are_drawn_by_a_power_of_counts(power: float, wanted: list[float]) -> None:
    draws = Draws.of(vocabulary_of(100, 10, 1), power)  # type: ignore[arg-type]
    share_N = np.zeros(3)
    for column in range(3):
        own = float(draws.bound_N[column]) / 2**32
        share_N[column] += own / 3
        share_N[draws.other_N[column]] += (1 - own) / 3
    assert share_N == pytest.approx(wanted, abs=1e-6)
    drawn_P = draws(Noise.of(0, (), np.arange(1)).bits("draws", 60_000)[0])
    assert [float((drawn_P == word).mean()) for word in (5, 6, 7)] == pytest.approx(wanted, abs=0.006)


def test_shares_and_negatives_are_those_of_gensim() -> None:
    word2vec = pytest.importorskip("gensim.models").Word2Vec
    counts = {"often": 700, "sometimes": 250, "seldom": 50}
    model = word2vec(vector_size=4, min_count=1, sample=1e-2)
    model.build_vocab_from_freq(counts)
    vocabulary: Any = vocabulary_of(*counts.values())
    kept = [model.wv.get_vecattr(word, "sample_int") / 2**32 for word in counts]
    assert keep_shares(vocabulary, 1e-2)[5:] == pytest.approx(kept, abs=1e-6)
    theirs = np.diff(model.cum_table, prepend=0) / model.cum_table[-1]
    drawn_P = Draws.of(vocabulary, 0.75)(Noise.of(0, (), np.arange(1)).bits("draws", 60_000)[0])
    assert [float((drawn_P == word).mean()) for word in (5, 6, 7)] == pytest.approx(theirs, abs=0.006)


def test_neighbors_count_as_one_by_their_distance_and_not_across_documents() -> None:
    a, b, c = 5, 6, 7
    ids = np.array([a, b, c, a, b, 1, c])  # the unknown word vanishes
    store = FakeStore(ids, np.ones(7), np.array([0, 2, 4, 7]), np.array([0, 2, 3]))
    vocabulary = vocabulary_of(2, 2, 2)
    counted = count_neighbors(store, vocabulary, 2)  # type: ignore[arg-type]
    pairs = [(a, b), (a, c), (b, c), (a, a)]
    first_P, second_P = (np.array(each) for each in zip(*pairs, strict=True))
    assert counted.at(first_P, second_P).tolist() == [1.5, 1.5, 2.0, 0.0]
    assert counted.at(second_P, first_P).tolist() == [1.5, 1.5, 2.0, 0.0]


@pytest.mark.parametrize(
    ("text", "number"),
    [("<wh", 1048167652), ("her", 4105473420), ("<her>", 1702972692), ("é", 1023043777), ("<中", 3006752166)],
)
def test_hashes_are_those_of_fasttext(text: str, number: int) -> None:
    assert hash_text(text) == number


def test_a_word_is_cut_into_ngrams_between_marks() -> None:
    sizes = Counter(map(len, cut_ngrams("where", 3, 6)))
    assert sizes == {3: 5, 4: 4, 5: 3, 6: 2}
    assert list(cut_ngrams("her", 5, 6)) == ["<her>"]
    assert list(cut_ngrams("a", 1, 2)) == ["<a", "a", "a>"]
