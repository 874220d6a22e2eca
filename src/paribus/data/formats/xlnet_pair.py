"""XLNet's rows: text that the next row reads on from, then a pair of segments.   XLNet (arXiv 1906.08237), section 2.5
and its `data_utils.py`

A row is `text A [SEP] B [SEP] [CLS]`. Here [CLS] opens every row, and a network that reads it last, as XLNet does, has
the published one. The next row of a stream begins where the text of this one ends: there A is read again, as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.data.formats.input_format import Draw, InputFormat, Segments, Store
from paribus.data.formats.pairs import FRAME, count_kept
from paribus.data.formats.streams import ParallelStreams
from paribus.data.mask_schedule import MaskSchedule, Static
from paribus.data.order import Order, Read
from paribus.data.sequences import Flags, Ints

RANDOM = 1  # the label of a B from elsewhere; 0: B follows A


@dataclass(frozen=True)
class XLNetPair(InputFormat):
    """Streams of rows that are filled with text, A and B, all of `length` tokens.

    reuse_len: tokens of the text; null for half of the row. reversed_rows: half of the streams are the others read
    backwards, from right to left; so a step has as many rows of both. redraw: when A and B are drawn again. With the
    defaults a pass reads each token four times: as text and in a pair, in both directions.

    A ends with a sentence. In half of the rows B follows, in the others it is from anywhere in the stream, grown to
    whole sentences; both are cut at the end that is read last, the longer one first. XLNet's token between documents is
    left out, since no tokenizer here has one. Raises UserError for lengths without room and an odd row of two halves.
    """

    reuse_len: int | None = None
    reversed_rows: bool = True
    redraw: MaskSchedule = field(default_factory=Static, kw_only=True)
    shuffled: ClassVar[bool] = False
    pairs: ClassVar[str | None] = "next"

    def __post_init__(self) -> None:
        if not isinstance(self.length, int) or self.length < 2 * (FRAME + 2):
            mend = f"give a whole number, at least {2 * (FRAME + 2)}: half a row has room for two segments"
            raise UserError(f"input.length={self.length} is not valid", mend)
        if self.reuse_len is None and self.length % 2:
            cause = f"input.length={self.length} is odd, but input=xlnet_pair has two halves"
            raise UserError(cause, f"give {self.length + 1}, or set input.reuse_len")
        if self.reuse_len is not None and not 1 <= self.reuse_len <= self.length - FRAME - 2:
            cause = f"input.reuse_len={self.reuse_len} leaves no room for two segments in rows of {self.length}"
            raise UserError(cause, f"give 1 to {self.length - FRAME - 2}, or null for half of the row")

    @property
    def count(self) -> int:
        """How many streams lie side by side, until a batch says how many rows it has: one of each direction."""
        return 2 if self.reversed_rows else 1

    def arrange(self, examples: Read, seed: int, size: int, tokens: int | None) -> Order[Read]:
        """`size` streams side by side, never shuffled; a single one is read forwards."""
        if tokens is not None:
            raise UserError("input=xlnet_pair reads as many rows in every step", "set batch.by=sequences")
        if not hasattr(examples, "input"):
            raise UserError("input=xlnet_pair reads text alone, without the examples of tasks", "set mixture=none")
        if self.reversed_rows and size % 2 and size > 1:
            cause = f"batch.size={size} is odd, but half of the rows are read backwards"
            raise UserError(cause, f"give {size + 1}, or set input.reversed_rows=false")
        both, read = self.reversed_rows and size > 1, examples
        own = {name: getattr(self, name) for name in ("length", "reuse_len", "redraw")}
        found: Any = replace(read, input=_SideBySide(**own, reversed_rows=both, rows=size))  # type: ignore[type-var]
        return _PairStreams(found)

    def index(self, store: Store, length: int, draw: Draw) -> XLNetIndex:
        reused = length // 2 if self.reuse_len is None else self.reuse_len
        stretches = self.count // 2 if self.reversed_rows else self.count
        first, end = (int(store.sentence_start[store.document_start[at]]) for at in (0, -1))
        size = (end - first) // stretches
        if size < length:
            cause = f"a text of {end - first:,} tokens is too short for {stretches} streams of rows of {length}"
            raise UserError(cause, "set a smaller batch.size or input.length, or give more text")
        begin_T = np.arange(0, size - length + 1, reused)
        read: list[_Rows] = []
        for backwards in (False, True) if self.reversed_rows else (False,):
            for number in range(stretches):
                stretch = _Stretch(first + number * size, size, backwards)
                row_T = len(read) * len(begin_T) + np.arange(len(begin_T))
                room = length - reused - FRAME
                read.append(stretch.draw_rows(begin_T, reused, room, stretch.ends(store), draw(row_T)))
        rows = _Rows(*(np.concatenate(columns) for columns in zip(*read, strict=True)))
        return XLNetIndex(rows, len(begin_T), reused, length)


@dataclass(frozen=True)
class _SideBySide(XLNetPair):
    """Streams for batches of this many rows."""

    rows: int = field(default=1, kw_only=True)

    @property
    def count(self) -> int:
        return self.rows


@dataclass(frozen=True)
class _PairStreams(ParallelStreams[Read]):
    """Parallel streams. A held-out evaluation reads rows from all of the text, many at a time and without memory."""

    def evaluation(self, rows: int = 1) -> None:  # type: ignore[override]
        return None


class _Rows(NamedTuple):
    """N rows: first tokens and lengths of their text, A and B. A row that is read backwards, from right to left,
    reads the last token of each first.
    """

    start_N3: Ints
    length_N3: Ints
    label_N: Ints
    backwards_N: Flags


@dataclass(frozen=True)
class XLNetIndex:
    """The rows of one pass, stream by stream: row t of stream b is b x `steps` + t."""

    rows: _Rows
    steps: int
    reused: int
    length: int

    @property
    def start_N(self) -> Ints:
        """The first token of each row's text."""
        start_N: Ints = self.rows.start_N3[:, 0]
        return start_N

    @property
    def length_N(self) -> NDArray[np.int32]:
        return np.full(len(self.start_N), self.length, np.int32)

    @property
    def report(self) -> dict[str, float]:
        """The share of rows whose B is from elsewhere."""
        return {"label_rate": float(self.rows.label_N.mean())}

    def segments(self, rows_B: Ints) -> Segments:
        """Forwards `text A [SEP] B [SEP]`; backwards, in the order of the text, `[SEP] B [SEP] A text`: its separators
        are runs of no tokens before B and A.
        """
        start_B3, length_B3 = self.rows.start_N3[rows_B], self.rows.length_N3[rows_B]
        label_B, backwards_B = self.rows.label_N[rows_B], self.rows.backwards_N[rows_B]
        none_B = np.zeros(len(rows_B), np.int64)
        backwards_B1 = backwards_B[:, None]

        def by_direction(forward: Sequence[ArrayLike], back: Sequence[ArrayLike]) -> Ints:
            """[B, 5]: of each run of a row; a row that is read forwards has three."""
            rows = [np.stack(np.broadcast_arrays(*each, none_B)[:-1], axis=1) for each in ((*forward, 0, 0), back)]
            return np.where(backwards_B1, rows[1], rows[0])

        (text, a, b), (text_length, a_length, b_length) = start_B3.T, length_B3.T
        start_B5 = by_direction((text, a, b), (0, b, 0, a, text))
        length_B5 = by_direction((text_length, a_length, b_length), (0, b_length, 0, a_length, text_length))
        close_B5, part_B5 = by_direction((0, 1, 1), (1, 0, 1, 0, 0)), by_direction((0, 0, 1), (1, 1, 0, 0, 0))
        kept_B5 = backwards_B1 | (np.arange(5) < 3)
        start_S, length_S, close_S, part_S = (each[kept_B5] for each in (start_B5, length_B5, close_B5, part_B5))
        reused_B = np.full(len(rows_B), self.reused)
        row_S = np.nonzero(kept_B5)[0]
        return Segments(row_S, start_S, length_S, close_S, part_S, label_B, reused_B, backwards_B)


@dataclass(frozen=True)
class _Stretch:
    """A stretch of the text, read forwards or backwards; places in it are counted in the order of reading."""

    first: int  # token
    size: int
    backwards: bool

    def ends(self, store: Store) -> Ints:
        """The ends of sentences in it, ascending, its own end the last."""
        edge_E = np.unique(store.sentence_start) - self.first
        edge_E = self.size - edge_E[::-1] if self.backwards else edge_E
        return np.append(edge_E[(edge_E > 0) & (edge_E < self.size)], self.size)

    def tokens(self, place_N3: Ints, length_N3: Ints) -> Ints:
        """The first tokens of runs that begin at these places."""
        return self.first + (self.size - place_N3 - length_N3 if self.backwards else place_N3)

    def draw_rows(self, begin_N: Ints, reused: int, room: int, end_E: Ints, noise: Noise) -> _Rows:
        """The rows whose text begins at these places and has `reused` tokens, before A and B of `room` tokens."""
        a_N = begin_N + reused
        low_N, high_N = np.searchsorted(end_E, a_N, side="right"), np.searchsorted(end_E, a_N + room, side="left")
        cuts_N, whole_N = high_N - low_N, end_E[high_N]  # the ends of sentences in the room, and the one after it
        cut_N = end_E[low_N + integers(noise.bits("cut", 1)[:, 0], np.maximum(cuts_N, 1))]
        random_N = (cuts_N == 0) | (noise.bits("label", 1)[:, 0] < below(0.5))
        a_end_N = np.where(cuts_N == 0, whole_N, cut_N)

        wanted_N = np.maximum(1, room - (a_end_N - a_N))
        place_N = integers(noise.bits("place", 1)[:, 0], self.size - wanted_N)
        begin_E = np.append(0, end_E[:-1])
        elsewhere_N = begin_E[np.searchsorted(begin_E, place_N, side="right") - 1]
        grown_N = end_E[np.searchsorted(end_E, place_N + wanted_N, side="left")]
        b_N, b_end_N = np.where(random_N, elsewhere_N, a_end_N), np.where(random_N, grown_N, whole_N)

        kept = count_kept(a_end_N - a_N, b_end_N - b_N, room)
        length_N3 = np.stack([np.full_like(begin_N, reused), *kept], axis=1)
        start_N3 = self.tokens(np.stack([begin_N, a_N, b_N], axis=1), length_N3)
        return _Rows(start_N3, length_N3, random_N * RANDOM, np.full(len(begin_N), self.backwards))
