"""What static word vectors count in a text: how often words are kept and drawn, and which stand near each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import below
from paribus.data.formats.input_format import Store
from paribus.data.sequences import Ints
from paribus.data.tokens.vocabulary import Vocabulary

CHUNK: Final = 1 << 18  # tokens whose neighbors are counted at a time


def find_words(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """bool [V]: the words that the training text has. Neither special tokens nor unknown words are among them.

    Raises UserError for a vocabulary without counts.
    """
    word_V: NDArray[np.bool_] = vocabulary.count_V > 0
    word_V[list(vocabulary.specials)] = False
    return word_V


def keep_shares(vocabulary: Vocabulary, sample: float) -> NDArray[np.float64]:
    """[V]: how likely a word is to be kept, min(1, sqrt(t / f) + t / f) for its share f of all words; 0 for others.

    As in `word2vec.c` and `dictionary.cc` of fastText; the paper has sqrt(t / f) (arXiv 1310.4546, section 2.3).
    """
    word_V = find_words(vocabulary)
    share_V = np.where(word_V, vocabulary.count_V, 0) / max(1, vocabulary.count_V[word_V].sum())
    ratio_V = np.divide(sample, share_V, out=np.zeros(len(share_V)), where=word_V)
    kept_V: NDArray[np.float64] = np.minimum(np.sqrt(ratio_V) + ratio_V, 1.0)
    return kept_V


@dataclass(frozen=True, eq=False)
class Draws:
    """Words drawn with probabilities proportional to a power of their counts, in constant time (Walker's aliases)."""

    word_N: Ints  # the words that are drawn
    bound_N: NDArray[np.uint64]  # of the coin below which a column gives its own word
    other_N: Ints  # the column whose word it gives otherwise

    @classmethod
    def of(cls, vocabulary: Vocabulary, power: float) -> Draws:
        """Walker's tables (Vose 1991, "A linear algorithm for generating random numbers with a given distribution")."""
        word_N = np.flatnonzero(find_words(vocabulary))
        weight_N = vocabulary.count_V[word_N].astype(np.float64) ** power
        share_N = weight_N * (len(word_N) / weight_N.sum())
        other_N = np.arange(len(word_N))
        small, large = (list(np.flatnonzero(chosen)) for chosen in (share_N < 1.0, share_N >= 1.0))
        while small and large:
            low, high = small.pop(), large[-1]
            other_N[low] = high
            share_N[high] -= 1.0 - share_N[low]
            if share_N[high] < 1.0:
                small.append(large.pop())
        share_N[small + large] = 1.0
        return cls(word_N, np.round(share_N * 2.0**32).astype(np.uint64), other_N)

    def __call__(self, bits_P: NDArray[np.uint32]) -> Ints:
        """int64 [P]: a word for each draw; its upper part chooses a column, the rest is the coin."""
        product_P = bits_P.astype(np.uint64) * np.uint64(len(self.word_N))
        column_P = (product_P >> np.uint64(32)).astype(np.int64)
        own_P = (product_P & np.uint64(0xFFFFFFFF)) < self.bound_N[column_P]
        drawn_P: Ints = self.word_N[np.where(own_P, column_P, self.other_N[column_P])]
        return drawn_P


def keep_bounds(vocabulary: Vocabulary, sample: float | None) -> NDArray[np.uint64]:
    """uint64 [V]: the bounds below which a draw keeps a word; all words are kept if `sample` is None."""
    share_V = find_words(vocabulary).astype(np.float64) if sample is None else keep_shares(vocabulary, sample)
    return np.array([below(share) for share in share_V], np.uint64)


@dataclass(frozen=True, eq=False)
class Cooccurrences:
    """How often words stand near each other, as a sparse symmetric matrix.

    Attributes:
        key_N: first x V + second, ascending.
        count_N: sums of 1 / distance.
        size: V.
    """

    key_N: Ints
    count_N: NDArray[np.float64]
    size: int

    def at(self, first_P: Ints, second_P: Ints) -> NDArray[np.float64]:
        """[P]: the counts of these pairs; 0 for one that was not counted."""
        key_P = first_P * self.size + second_P
        place_P = np.minimum(np.searchsorted(self.key_N, key_P), len(self.key_N) - 1)
        counted_P: NDArray[np.float64] = np.where(self.key_N[place_P] == key_P, self.count_N[place_P], 0.0)
        return counted_P


_COUNTED: dict[tuple[int, int], tuple[Store, Cooccurrences]] = {}  # the last one, by the text's identity and window


def keep_neighbors(store: Store, vocabulary: Vocabulary, window: int) -> Cooccurrences:
    """`count_neighbors`, counted once for the training and all evaluations of a text."""
    key = (id(store), window)
    if key not in _COUNTED:
        counted = count_neighbors(store, vocabulary, window)
        _COUNTED.clear()
        _COUNTED[key] = (store, counted)
    return _COUNTED[key][1]


def count_neighbors(store: Store, vocabulary: Vocabulary, window: int) -> Cooccurrences:
    """The co-occurrences within `window` words of each document, as `cooccur.c` of GloVe counts them in a line.

    Raises UserError for a text without two words near each other.
    """
    word_V, size = find_words(vocabulary), vocabulary.size
    edge_D = np.asarray(store.sentence_start)[np.unique(np.asarray(store.document_start))]
    document_T = np.repeat(np.arange(len(edge_D) - 1), np.diff(edge_D))
    ids_T = np.asarray(store.ids[edge_D[0] : edge_D[-1]], np.int64)
    kept_T = word_V[ids_T]
    ids_T, document_T = ids_T[kept_T], document_T[kept_T]
    key_N, count_N = np.zeros(0, np.int64), np.zeros(0, np.float64)
    for start in range(0, len(ids_T), CHUNK):
        stop = min(start + CHUNK, len(ids_T))
        keys, weights = [key_N], [count_N]
        for distance in range(1, window + 1):
            last = min(stop, len(ids_T) - distance)
            left, right = slice(start, last), slice(start + distance, last + distance)
            near = document_T[left] == document_T[right]
            first_P, second_P = ids_T[left][near], ids_T[right][near]
            keys += [first_P * size + second_P, second_P * size + first_P]
            weights += [np.full(len(first_P), 1.0 / distance)] * 2
        key_N, place_P = np.unique(np.concatenate(keys), return_inverse=True)
        count_N = np.bincount(place_P, weights=np.concatenate(weights)).astype(np.float64)
    if not len(key_N):
        raise UserError("the training text has no two words near each other", "give more text")
    return Cooccurrences(key_N, count_N, size)
