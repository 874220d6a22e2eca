"""Examples and labels in words, and their rows for text-to-text models.   T5 (arXiv 1910.10683), section 2.4"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.data.sequences import Array, Arrays, Sequences
from paribus.tasks.examples import normalize
from paribus.tasks.rows import TaskRows, count_tokens, kept_places, locate, no_room, tokenize, truncate

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary

Parts = list[tuple[str, str]]  # (what announces a text, the text)
_PUNCTUATION = re.compile(f"([{re.escape(string.punctuation)}])")


class Fields(NamedTuple):
    """The names that precede the texts of a task: `name` comes first, then those of the text and of its pair."""

    name: str
    text: str
    pair: str | None = None

    def announce(self, text: str, pair: str | None = None) -> Parts:
        """`sst2 sentence: TEXT`, or for a pair `mnli hypothesis: PAIR premise: TEXT`, sorted by the names."""
        named = [(self.text, text)] if pair is None else sorted([(self.text, text), (self.pair or "pair", pair)])
        (first, said), rest = named[0], named[1:]
        return [(f"{self.name} {first}:".lstrip(), said), *((f"{name}:", more) for name, more in rest)]


def round_to_step(value: float, step: float) -> str:
    """The nearest multiple of `step` with one decimal, or as many as the step needs: 2.57 is "2.6" in steps of 0.2,
    "2.57" in steps of 0.01. Half rounds to even, in single precision as in T5 (`data/preprocessors.py`).
    """
    inverse, decimals = np.float32(1 / step), max(1, math.ceil(-math.log10(step)))
    return f"{np.rint(np.float32(value) * inverse) / inverse + np.float32(0):.{decimals}f}"


def pad_punctuation(text: str) -> str:
    """The text with a space on both sides of every ASCII punctuation mark, and no repeated spaces (T5,
    `data/preprocessors.py`, for questions and answers).
    """
    return " ".join(_PUNCTUATION.sub(r" \1 ", text).split())


def parse_number(text: str) -> float | None:
    """The finite number that a text is, if any."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def index_texts(texts: Sequence[str]) -> dict[str, int]:
    """{normalized text: its place}; the first place of equal texts."""
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(normalize(text), place)
    return places


@dataclass(frozen=True)
class Ragged:
    """N rows of different lengths, one after the other (T tokens)."""

    ids_T: Array  # int32
    length_N: Array  # int64

    @classmethod
    def of(cls, rows: Sequence[Array]) -> Ragged:
        return cls(np.concatenate(rows).astype(np.int32), count_tokens(rows))

    def pad(self, row_B: Array, pad: int, multiple: int) -> Sequences:
        """Some of the rows, padded on the right to a multiple of `multiple` tokens."""
        length_B = self.length_N[row_B]
        at_BL, real_BL = locate((np.cumsum(self.length_N) - self.length_N)[row_B], length_B, multiple)
        return Sequences(np.where(real_BL, self.ids_T[at_BL], pad).astype(np.int64), length_B)


@dataclass(frozen=True)
class TextRows(TaskRows):
    """The texts that the model reads and those that it must write, both with their end-of-sequence token."""

    read: Ragged
    write: Ragged
    collator: EncoderDecoderCollator
    pad: int
    most: int  # tokens that the model writes at most by itself
    tokenizer: Tokenizer

    @cached_property
    def length_N(self) -> Array:  # type: ignore[override]  # a dataclass field in other rows
        """Int64 [N]: tokens of both texts."""
        total_N: Array = self.read.length_N + self.write.length_N
        return total_N

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """The arrays of the model's collator, and `most`; losses are divided by the count of `predicted`."""
        read, write = self.read.pad(row_B, self.pad, multiple), self.write.pad(row_B, self.pad, 1)
        arrays = self.collator.join(read, write, self.pad)
        taken, predicted = int(arrays["length_B"].sum()), int(write.length_B.sum())
        counts = {"rows": len(row_B), "input_tokens": taken, "predicted": predicted}
        padding = int(arrays["ids_BL"].size) - taken
        return {**arrays, "most": np.array(self.most), "counts": {**counts, "padding": padding}}


def encode_sources(
    examples: Sequence[Parts], tokenizer: Tokenizer, vocabulary: Vocabulary, length: int, head: int
) -> list[Array]:
    """Rows of at most `length` tokens with their end. Texts that are too long are cut as in `rows.encode`; their
    prefix stays.

    Raises UserError if `length` leaves no room for a text.
    """
    sides = [list(side) for side in zip(*examples, strict=True)]
    heads = [tokenize([announced for announced, _ in side], tokenizer) for side in sides]
    texts = [tokenize([text for _, text in side], tokenizer) for side in sides]
    room_N = length - 1 - np.sum([count_tokens(rows) for rows in heads], axis=0)
    if room_N.min() < len(sides):
        raise no_room(length)
    kept = truncate(*map(count_tokens, texts), room=room_N)
    columns: list[list[Array]] = []
    for announced, rows, kept_N in zip(heads, texts, kept, strict=True):
        ids_T = np.concatenate(rows)[kept_places(count_tokens(rows), kept_N, head)]
        columns += announced, np.split(ids_T, np.cumsum(kept_N)[:-1])
    end = np.array([vocabulary.sep])
    return [np.concatenate([*row, end]) for row in zip(*columns, strict=True)]


def encode_targets(texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary, most: int) -> list[Array]:
    """Rows of at most `most` tokens, the last of which is their end."""
    return [np.append(ids[: most - 1], vocabulary.sep) for ids in tokenize(texts, tokenizer)]
