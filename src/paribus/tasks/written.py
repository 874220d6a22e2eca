"""Examples as rows that are read and rows that are written. Numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.errors import UserError
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.data.text import Sequences
from paribus.tasks.encode import Array, kept_tokens, lengths, tokens, truncated
from paribus.tasks.verbalize import Parts

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths, one after the other (T tokens, N rows)."""

    ids_T: Array  # int32
    length_N: Array  # int64

    @classmethod
    def of(cls, rows: Sequence[Array]) -> Ragged:
        """Rows one after the other."""
        return cls(np.concatenate(rows).astype(np.int32), lengths(rows))

    def sequences(self, row_B: Array, pad: int, multiple: int) -> Sequences:
        """Some of them, padded on the right to a multiple of so many tokens."""
        length_B = self.length_N[row_B]
        column_L = np.arange(-(-int(length_B.max()) // multiple) * multiple)
        start_B = (np.cumsum(self.length_N) - self.length_N)[row_B]
        real_BL = column_L < length_B[:, None]
        at_BL = np.where(real_BL, start_B[:, None] + column_L, 0)
        return Sequences(np.where(real_BL, self.ids_T[at_BL], pad).astype(np.int64), length_B)


@dataclass(frozen=True)
class Written:
    """What is read and what is to be written, both with their end-of-sequence token."""

    read: Ragged
    write: Ragged
    collator: EncoderDecoderCollator
    pad: int
    most: int  # tokens that are written at most when nobody says what
    tokenizer: Tokenizer

    @property
    def length_N(self) -> Array:
        """See `Rows.length_N`: of both."""
        total_N: Array = self.read.length_N + self.write.length_N
        return total_N

    def batch(self, row_B: Array, multiple: int) -> dict[str, Any]:
        """See `Rows.batch`: the arrays of the model's layout, and `most`; losses are divided by the count of
        `predicted`.
        """
        read, write = self.read.sequences(row_B, self.pad, multiple), self.write.sequences(row_B, self.pad, 1)
        arrays = self.collator.join(read, write, self.pad)
        taken, predicted = int(arrays["length_B"].sum()), int(write.length_B.sum())
        counts = {"rows": len(row_B), "input_tokens": taken, "predicted": predicted}
        padding = int(arrays["ids_BL"].size) - taken
        return {**arrays, "most": np.array(self.most), "counts": {**counts, "padding": padding}}


def no_room(length: int) -> UserError:
    """What is wrong with rows of so many tokens."""
    return UserError(f"finetune.length={length} leaves no room for text behind its prefix", "raise it")


def sources(
    examples: Sequence[Parts], tokenizer: Tokenizer, vocabulary: Vocabulary, length: int, head: int
) -> list[Array]:
    """Rows of at most `length` tokens with their end. Of what is too long the texts are cut, as `encode.encode` cuts
    them; what announces them stays.

    Raises UserError where `length` leaves no room for a text.
    """
    sides = [list(side) for side in zip(*examples, strict=True)]
    heads = [tokens([announced for announced, _ in side], tokenizer) for side in sides]
    texts = [tokens([text for _, text in side], tokenizer) for side in sides]
    room_N = length - 1 - np.sum([lengths(rows) for rows in heads], axis=0)
    if room_N.min() < len(sides):
        raise no_room(length)
    kept = truncated(*(lengths(rows) for rows in texts), room=room_N)
    cut = [_cut(rows, kept_N, head) for rows, kept_N in zip(texts, kept, strict=True)]
    end = [np.array([vocabulary.sep])]
    columns = [column for pair in zip(heads, cut, strict=True) for column in pair]
    return [np.concatenate([*row, *end]) for row in zip(*columns, strict=True)]


def _cut(rows: list[Array], kept_N: Array, head: int) -> list[Array]:
    ids_T = np.concatenate(rows)[kept_tokens(lengths(rows), kept_N, head)]
    return np.split(ids_T, np.cumsum(kept_N)[:-1])


def targets(texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary, most: int) -> list[Array]:
    """Rows of at most `most` tokens, the last of which is their end."""
    return [np.append(ids[: most - 1], vocabulary.sep) for ids in tokens(texts, tokenizer)]
