"""Examples as token ids, and the batches of one fine-tuning epoch. Numpy only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.example import Example

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary

Array = np.ndarray[Any, Any]
PAPER = 510  # tokens of text that the paper keeps; of these from the beginning:
HEADS = {"head": PAPER, "head_tail": 128, "tail": 0}
POOL = 64  # batches that are sorted by length together


class Rows(Protocol):
    """Rows of tokens of different lengths, as any form encodes its examples."""

    @property
    def length_N(self) -> Array:
        """Int64: tokens, by which rows are put together."""

    def batch(self, row_B: Array, multiple: int) -> dict[str, Any]:
        """What the model and the head read of these rows, padded to a multiple of so many tokens: `ids_BL`, `length_B`
        and what they need besides; and the `counts` of the batch, by which losses are divided.
        """


@dataclass(frozen=True)
class TextSettings:
    """What a task type reads of the settings if the task is part of pre-training."""

    length: int
    target_length: int
    truncation: str = "head"


@dataclass(frozen=True)
class Encoded:
    """Framed rows of different lengths, one after the other (T tokens, N rows)."""

    ids_T: Array  # int32
    part_T: Array  # uint8: 0 through the first [SEP], 1 after it
    start_N: Array  # int64: where a row starts in T
    length_N: Array  # int64: with special tokens
    label_N: Array  # [N, ...]: int64 class numbers, or float32 values
    pad: int

    def batch(self, row_B: Array, multiple: int) -> dict[str, Any]:
        """See `Rows.batch`: also `part_BL`, `label_B` and `row_B`."""
        arrays = gather(self, row_B, multiple)
        read = int(arrays["length_B"].sum())
        padding = int(arrays["ids_BL"].size) - read
        return {**arrays, "counts": {"rows": len(row_B), "input_tokens": read, "padding": padding}}


def encode(
    examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, length: int, truncation: str = "head"
) -> Encoded:
    """Rows `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]` of at most `length` tokens.

    A text that is too long is cut, of a pair the longer one, token by token. What is left is its beginning (`head`),
    its end (`tail`), or 128 parts of 510 from the beginning and the rest from the end (`head_tail`; Sun et al., arXiv
    1905.05583, section 5.3.1).

    Raises:
        UserError: for an unknown `truncation`, and where `length` leaves no room for text, or only some examples are
            pairs.
    """
    head = head_part(truncation)
    pairs = [row.pair for row in examples if row.pair is not None]
    if pairs and len(pairs) < len(examples):
        raise UserError(f"{len(pairs)} of {len(examples)} examples are pairs", "give all or none of them a second text")
    if length < (5 if pairs else 3):
        raise UserError(f"fine-tuning length {length} leaves no room for text", "raise it")
    first = tokens([row.text for row in examples], tokenizer)
    sides = [first, tokens(pairs, tokenizer)] if pairs else [first]
    kept = truncated(*(lengths(side) for side in sides), room=length - 1 - len(sides))
    return _framed(sides, kept, np.array([row.label for row in examples]), vocabulary, head)


def frame(sides: Sequence[list[Array]], label_N: Array, vocabulary: Vocabulary) -> Encoded:
    """Rows of one or two texts that are cut already, as ids."""
    return _framed(sides, [lengths(side) for side in sides], label_N, vocabulary, PAPER)


def head_part(truncation: str) -> int:
    """How many parts of `PAPER` are a long text's beginning. Raises UserError for an unknown name."""
    if truncation not in HEADS:
        raise UserError(f"finetune.truncation={truncation} is unknown", f"use {', '.join(HEADS)}")
    return HEADS[truncation]


def truncated(a_N: Array, b_N: Array | None = None, *, room: int | Array) -> list[Array]:
    """Lengths after cutting to `room` tokens, of all rows or of each: tokens go one by one from the longer text, from
    the second on a tie.
    """
    if b_N is None:
        return [np.minimum(a_N, room)]
    first_N = np.minimum(a_N, np.maximum(room - room // 2, room - b_N))
    return [first_N, np.minimum(b_N, room - first_N)]


def tokens(texts: Sequence[str], tokenizer: Tokenizer) -> list[Array]:
    """The ids of each text, without special tokens."""
    return [ids for ids, _ in tokenizer.encode(list(texts))]


def lengths(rows: Sequence[Array]) -> Array:
    """Int64: tokens of each row."""
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _framed(
    sides: Sequence[list[Array]], kept: Sequence[Array], label_N: Array, vocabulary: Vocabulary, head: int
) -> Encoded:
    length_N = np.sum(kept, axis=0) + 1 + len(sides)
    end_N = np.cumsum(length_N)
    ids_T = np.full(end_N[-1], vocabulary.sep, np.int32)
    part_T = np.zeros(end_N[-1], np.uint8)
    start_N = end_N - length_N
    ids_T[start_N] = vocabulary.cls
    at_N = start_N + 1
    for part, (rows, kept_N) in enumerate(zip(sides, kept, strict=True)):
        source_T = kept_tokens(lengths(rows), kept_N, head)
        ids_T[_ranges(at_N, kept_N)] = np.concatenate(rows)[source_T]
        part_T[_ranges(at_N, kept_N + 1)] = part
        at_N = at_N + kept_N + 1
    labels = label_N.astype(np.float32 if label_N.dtype.kind == "f" else np.int64)
    return Encoded(ids_T, part_T, start_N, length_N, labels, vocabulary.pad)


def kept_tokens(length_N: Array, kept_N: Array, head: int) -> Array:
    """Where the kept tokens of rows that stand one after the other are; `head` parts of `PAPER` are a row's first."""
    end_N = np.cumsum(length_N)
    head_N = np.where(kept_N < length_N, kept_N * head // PAPER, kept_N)
    tail_N = kept_N - head_N
    pieces = np.stack([end_N - length_N, end_N - tail_N], axis=1), np.stack([head_N, tail_N], axis=1)
    return _ranges(*(piece.ravel() for piece in pieces))


def _ranges(start_N: Array, length_N: Array) -> Array:
    """start..start+length-1 of every row, one after the other."""
    shift_N = start_N - (np.cumsum(length_N) - length_N)
    return np.repeat(shift_N, length_N) + np.arange(length_N.sum())


def order(length_N: Array, batch_size: int, seed: int, epoch: int, shuffle: bool) -> list[Array]:
    """The rows of each batch of one epoch, rows of similar length together; a pure function of its arguments.

    Shuffled rows are sorted by length in pools of `POOL` batches, then the batches are shuffled. Unshuffled, all rows
    are sorted by length. Only one batch may hold fewer than `batch_size` rows.
    """
    count = len(length_N)
    if not shuffle:
        return _cut(np.argsort(length_N, kind="stable"), batch_size)
    random = np.random.Philox(key=np.array([seed, epoch], np.uint64))
    row_N = np.argsort(random.random_raw(count), kind="stable")
    pool_N = np.arange(count) // (POOL * batch_size)
    batches = _cut(row_N[np.lexsort((length_N[row_N], pool_N))], batch_size)
    return [batches[i] for i in np.argsort(random.random_raw(len(batches)), kind="stable")]


def _cut(row_N: Array, batch_size: int) -> list[Array]:
    return [row_N[at : at + batch_size] for at in range(0, len(row_N), batch_size)]


def gather(encoded: Encoded, row_B: Array, multiple: int = 1) -> dict[str, Array]:
    """The arrays of one batch, padded to its longest row (rounded up to a multiple of `multiple`)."""
    length_B = encoded.length_N[row_B]
    width = -(-int(length_B.max()) // multiple) * multiple
    column_L = np.arange(width)
    real_BL = column_L < length_B[:, None]
    at_BL = np.where(real_BL, encoded.start_N[row_B][:, None] + column_L, 0)
    return {
        "ids_BL": np.where(real_BL, encoded.ids_T[at_BL], encoded.pad).astype(np.int64),
        "length_B": length_B,
        "part_BL": np.where(real_BL, encoded.part_T[at_BL], 0).astype(np.int64),
        "label_B": encoded.label_N[row_B],
        "row_B": row_B.astype(np.int64),
    }


def batches(
    encoded: Encoded, batch_size: int, seed: int = 0, epoch: int = 0, shuffle: bool = True, multiple: int = 1
) -> Iterator[dict[str, Array]]:
    """One epoch: `ids_BL`, `part_BL`, `length_B`, `label_B` and `row_B` (the place in the examples); see `order`."""
    for row_B in order(encoded.length_N, batch_size, seed, epoch, shuffle):
        yield gather(encoded, row_B, multiple)
