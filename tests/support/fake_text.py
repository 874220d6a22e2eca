"""Framed rows of made-up words, and noise for them."""

from __future__ import annotations

import numpy as np
from fake_store import CLS, PAD, SEP
from hypothesis import strategies as st

from paribus.core.noise import Noise
from paribus.data.sequences import Text

Rows = list[list[list[int]]]  # rows of sentences of word sizes, in tokens

SENTENCE = st.lists(st.integers(1, 5), min_size=1, max_size=25)
ROWS = st.lists(st.lists(SENTENCE, min_size=1, max_size=3), min_size=1, max_size=6)


def text_of(rows: Rows) -> Text:
    """`cls sentence sep sentence sep ...`, padded to a multiple of 8."""
    lengths = [1 + sum(sum(sentence) + 1 for sentence in row) for row in rows]
    shape = (len(rows), -(-max(lengths) // 8) * 8)
    ids, free, start = np.full(shape, PAD), np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    sentences = np.full(shape, -1, np.int16)
    for at, row in enumerate(rows):
        ids[at, 0], start[at, 0], place = CLS, True, 1
        for number, sentence in enumerate(row):
            for size in sentence:
                free[at, place : place + size], start[at, place] = True, True
                sentences[at, place : place + size] = number
                place += size
            ids[at, place], start[at, place] = SEP, True
            place += 1
    ids[free] = 5 + np.flatnonzero(free) % 900
    return Text(ids, np.array(lengths), free, start, sentences, np.zeros(shape, np.int8))


def made_up(rows: int, tokens: int = 126, seed: int = 0) -> Text:
    """Rows of one sentence of at least so many tokens, in words of one to four."""
    random = np.random.default_rng(seed)
    drawn = [random.choice([1, 1, 1, 1, 2, 2, 3, 4], tokens).tolist() for _ in range(rows)]
    return text_of([[sizes[: int(np.searchsorted(np.cumsum(sizes), tokens)) + 1]] for sizes in drawn])


def noise(rows: int, seed: int = 0, epoch: int = 0) -> Noise:
    return Noise.of(seed, (0, epoch), np.arange(rows))


def part(text: Text, rows: list[int]) -> Text:
    """Some of the rows."""
    arrays = (text.ids_BL, text.length_B, text.free_BL, text.start_BL, text.sentence_BL, text.part_BL)
    return Text(*(array[rows] for array in arrays))


def words_of(text: Text, row: int) -> list[list[int]]:
    """The columns of each word of a row."""
    words: list[list[int]] = []
    for column in np.flatnonzero(text.free_BL[row]).tolist():
        if text.start_BL[row, column] or not text.free_BL[row, column - 1]:
            words.append([])
        words[-1].append(column)
    return words


def spans_of(span_L: np.ndarray) -> list[list[int]]:  # type: ignore[type-arg]
    """The columns of each span of a row, in the order of their numbers."""
    return [np.flatnonzero(span_L == number).tolist() for number in range(1, int(span_L.max(initial=0)) + 1)]
