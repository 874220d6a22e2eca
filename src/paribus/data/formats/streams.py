"""Streams: the text in its order, cut into stretches that are read side by side, for models with memory.

Batch row b of a step goes on where batch row b of the step before ended (Transformer-XL, arXiv 1901.02860, section 3.2;
the authors' `data_utils.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.data.formats.input_format import BareRows, Draw, InputFormat, Store
from paribus.data.formats.windows import check_window
from paribus.data.order import Block, Order, Read, StreamMarks, check_limits, check_passes
from paribus.data.sequences import Array, Ints


@dataclass(frozen=True)
class StreamIndex:
    """The segments of a split, stream by stream: segment t of stream b is row b x `steps` + t.

    Each has one token more than a model reads of it, the first of the next segment, which the last token predicts.
    """

    start_N: Ints
    length_N: NDArray[np.int32]
    steps: int  # segments of each stream
    left_out: int  # tokens of the text that no pass predicts

    @property
    def report(self) -> dict[str, float]:
        return {"never_predicted": float(self.left_out)}

    def segments(self, rows_B: Ints) -> BareRows:
        return BareRows(self.start_N[rows_B], self.length_N[rows_B].astype(np.int64))


@dataclass(frozen=True)
class Streams(InputFormat):
    """All documents as one stream of T tokens; B streams of floor(T / B) tokens each, if a batch has B rows.

    Streams are cut into segments of `length` tokens, of which the last may be shorter. The first token of each stream
    is never predicted, and the T mod B tokens at the end are not read. No token separates documents.
    Raises UserError for a length without room for text, and for text that is too short for two tokens in each stream.
    """

    length: int = field(metadata=within(1, 10**6))
    framed: ClassVar[bool] = False
    shuffled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_window(self.length)

    @property
    def count(self) -> int:
        """How many streams lie side by side: one, until a batch says how many rows it has."""
        return 1

    def arrange(self, examples: Read, seed: int, size: int, tokens: int | None) -> Order[Read]:
        """`size` streams side by side, never shuffled."""
        if tokens is not None:
            raise UserError("input=streams reads as many rows in every step", "set batch.by=sequences")
        if not hasattr(examples, "input"):
            raise UserError("input=streams reads text alone, without the examples of tasks", "set mixture=none")
        read: Any = examples
        return ParallelStreams(replace(read, input=_SideBySide(self.length, redraw=self.redraw, rows=size)))

    def index(self, store: Store, length: int, draw: Draw) -> StreamIndex:
        first, end = (int(store.sentence_start[store.document_start[at]]) for at in (0, -1))
        size = (end - first) // self.count
        if end - first < 2:
            cause = "a split of the text has fewer than two tokens, so that none can be predicted from another"
            raise UserError(cause, "give more text")
        if size < 2:
            cause = f"a text of {end - first:,} tokens is too short for {self.count} streams of two tokens"
            raise UserError(cause, f"set batch.size={(end - first) // 2} or less, or give more text")
        within_T = np.arange(0, size - (length - self.length), self.length)
        length_T = np.minimum(length, size - within_T)
        stream_B = first + size * np.arange(self.count)
        start_N = (stream_B[:, None] + within_T).reshape(-1)
        left_out = end - first - self.count * (size - 1)
        return StreamIndex(start_N, np.tile(length_T, self.count).astype(np.int32), len(within_T), left_out)


@dataclass(frozen=True)
class _SideBySide(Streams):
    """Streams for batches of this many rows."""

    rows: int = field(default=1, kw_only=True)

    @property
    def count(self) -> int:
        return self.rows


@dataclass(frozen=True)
class ParallelStreams(Order[Read]):
    """One segment of every stream in each step. Memory is empty at the beginning of every pass.

    Args:
        examples: whose input format is `Streams` with as many streams as a step has rows.
    """

    examples: Read

    @property
    def _index(self) -> StreamIndex:
        examples: Any = self.examples
        index: StreamIndex = examples.index(0)
        return index

    @property
    def _rows(self) -> int:
        return len(self._index.start_N) // self._index.steps

    def blocks(self, step: int) -> list[Block]:
        epoch, at = divmod(step, self._index.steps)
        return [(epoch, np.arange(self._rows) * self._index.steps + at)]

    def evaluation(self, rows: int = 1) -> Iterator[Block]:
        """One pass; `rows` are those of the streams."""
        for step in range(self._index.steps):
            yield from self.blocks(step)

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        limits = [] if max_steps is None else [int(max_steps)]
        if max_tokens is not None:
            check_passes([max_tokens], self.examples)
            passes, left = divmod(int(max_tokens), self.examples.tokens(0))
            full = self.examples.tokens(0) if self._index.steps == 1 else int(self.examples.lengths(0)[0]) * self._rows
            limits.append(passes * self._index.steps + -(-left // full))
        if max_epochs is not None:
            limits.append(round(max_epochs * self._index.steps))
        return min(limits)

    def split(self, epoch: int, rows: Array, most: int | None) -> Iterator[Array]:
        """Rows keep their places, so that each microbatch finds its own memory."""
        most = most or len(rows)
        for at in range(0, len(rows), most):
            yield rows[at : at + most]

    def marks(self, epoch: int, rows: Array) -> StreamMarks:
        return StreamMarks(rows % self._index.steps == 0)
