"""Models of characters without a neural network: what a language model of any tokens must beat, in bits."""

from __future__ import annotations

import lzma
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONGEST: Final = 8  # characters of an n-gram
CODE_POINTS: Final = 0x110000  # what a character that the training text lacks is one of


def count_xz_bits(train: str, held_out: str) -> float:
    """Bits by which the held-out text makes the training text larger, both compressed by xz at its strongest."""

    def compress(text: bytes) -> int:
        strongest = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": max(4096, len(text))}
        return len(lzma.compress(text, format=lzma.FORMAT_XZ, check=lzma.CHECK_NONE, filters=[strongest]))

    before, added = train.encode(), held_out.encode()
    return 8.0 * (compress(before + added) - compress(before))


def count_ngram_bits(train: str, held_out: str, longest: int = LONGEST) -> float:
    """Bits of the held-out text under n-grams of the training text's characters, interpolated as by Witten and Bell.

    p(c after h) = (count(h c) + kinds(h) p(c after h without its first character)) / (count(h) + kinds(h)), where
    kinds(h) is how many different characters follow h (Witten and Bell 1991, method C). Below single characters all
    that the training text has are equally likely, and so is "any other one", whose code point costs 20 bits more.

    Args:
        longest: characters of an n-gram; fewer if the alphabet is too large for 62 bits.
    """
    alphabet = np.unique(_read_codes(train))
    other, edge = len(alphabet), len(alphabet) + 1  # a character that is not in the alphabet; before a text
    symbols = len(alphabet) + 2
    order = min(longest, int(62 / math.log2(symbols)))
    train_T, held_out_T = (_number(text, alphabet, order, edge, other) for text in (train, held_out))
    p_T = np.full(len(held_out), 1.0 / (len(alphabet) + 1))
    for length in range(1, order + 1):
        gram_G, count_G = np.unique(_join(train_T, length, order, symbols), return_counts=True)
        context_H, first_H = np.unique(gram_G // symbols, return_index=True)
        total_H = np.add.reduceat(count_G, first_H)
        kinds_H = np.diff(np.append(first_H, len(gram_G)))
        asked_T = _join(held_out_T, length, order, symbols)
        count_T = _look_up(asked_T, gram_G, count_G)
        total_T, kinds_T = (_look_up(asked_T // symbols, context_H, values) for values in (total_H, kinds_H))
        seen_T = total_T > 0
        p_T[seen_T] = (count_T + kinds_T * p_T)[seen_T] / (total_T + kinds_T)[seen_T]
    unknown = int(np.count_nonzero(held_out_T[order - 1 :] == other))
    return float(-np.log2(p_T).sum()) + unknown * math.log2(CODE_POINTS)


def _read_codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def _number(text: str, alphabet: NDArray[np.uint32], order: int, edge: int, other: int) -> NDArray[np.int64]:
    """The characters by their place in the alphabet, after as many edges as the longest context has characters."""
    codes = _read_codes(text)
    place_T = np.minimum(np.searchsorted(alphabet, codes), len(alphabet) - 1)
    numbers_T: NDArray[np.int64] = np.where(alphabet[place_T] == codes, place_T, other).astype(np.int64)
    return np.concatenate([np.full(order - 1, edge, np.int64), numbers_T])


def _join(number_T: NDArray[np.int64], length: int, order: int, symbols: int) -> NDArray[np.int64]:
    """One number for the `length` characters that end at each character of the text."""
    joined = np.zeros(len(number_T) - order + 1, np.int64)
    for back in range(length - 1, -1, -1):
        end = len(number_T) - back
        joined = joined * symbols + number_T[end - len(joined) : end]
    return joined


def _look_up(asked_T: NDArray[np.int64], known_K: NDArray[np.int64], value_K: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value of each key; 0 for one that is not known."""
    place_T = np.minimum(np.searchsorted(known_K, asked_T), len(known_K) - 1)
    values_T: NDArray[np.int64] = np.where(known_K[place_T] == asked_T, value_K[place_T], 0)
    return values_T
