"""The base class of input formats, and the framed rows that all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.core.settings import within
from paribus.data.mask_schedule import MaskSchedule, Static
from paribus.data.order import Order, Read, StepPlan
from paribus.data.sequences import Array, Flags, Ints, Text, concatenate_ranges, exclusive_cumsum
from paribus.data.tokens.vocabulary import Vocabulary

WIDTH = 8  # rows are padded to a multiple of this
SEPARATORS = ("sentences", "segments")  # what a separator comes after

Draw = Callable[[Ints], Noise]  # the noise of these ids in one pass


class Store(Protocol):
    """One split as arrays, usually memory-mapped."""

    @property
    def ids(self) -> Array: ...  # [T]

    @property
    def word_start(self) -> Array: ...  # [T], 1 if the token starts a word

    @property
    def sentence_start(self) -> Array: ...  # int64 [S + 1], in tokens

    @property
    def document_start(self) -> Array: ...  # int64 [D + 1], in sentences

    @property
    def annotated(self) -> Array | None: ...  # [T], 1 at the start of an annotated span, 2 inside, else 0


class Segments(NamedTuple):
    """Runs of store tokens, row by row and in order; a row is the first special, then each run and its separators."""

    row_S: Ints  # ascending
    start_S: Ints
    length_S: Ints  # tokens; may be 0
    close_S: Ints  # separators after the run
    part_S: Ints | None = None  # 0 or 1, the first or second of a pair; None: all 0
    label_B: Ints | None = None
    reused_B: Ints | None = None  # as in `Text`
    reversed_B: Flags | None = None


class BareRows(NamedTuple):
    """Rows of one run of store tokens each, without a frame."""

    start_B: Ints
    length_B: Ints


class Index(Protocol):
    """One pass over the data: the examples in the corpus' order."""

    @property
    def length_N(self) -> NDArray[np.int32]: ...  # of each framed row

    @property
    def report(self) -> dict[str, float]: ...  # statistics of the sampling, by name; empty if nothing is sampled

    def segments(self, rows_B: Ints) -> Segments | BareRows: ...


@dataclass(frozen=True)
class InputFormat(ABC):
    """Decides which runs of store tokens make one example.

    length: tokens that the model reads, special tokens included. redraw: when the rows are sampled again.
    """

    length: int = field(metadata=within(1, 10**6))
    redraw: MaskSchedule = field(default_factory=Static, kw_only=True)
    semantics: ClassVar[int] = 1
    framed: ClassVar[bool] = True  # special tokens open the rows and close the segments
    shuffled: ClassVar[bool] = True  # `arrange` shuffles the rows, so that none goes on from another

    @property
    def pairs(self) -> str | None:
        """What the labels of pairs say: `next`, `order` or `three`; None: rows of one text."""
        return None

    def arrange(self, examples: Read, seed: int, size: int, tokens: int | None) -> Order[Read]:
        """The order in which training reads the examples; by default every epoch is shuffled."""
        return StepPlan(examples, seed, size, tokens)

    @abstractmethod
    def index(self, store: Store, length: int, draw: Draw) -> Index:
        """The rows of at most `length` tokens; `draw(ids)` gives the noise of what is sampled."""


def check_separators(separators: str) -> None:
    """Raise UserError if separators follow neither sentences nor segments."""
    if separators not in SEPARATORS:
        raise UserError(f"input.separators={separators} is unknown", f"choose {' or '.join(SEPARATORS)}")


def gather(store: Store, segments: Segments | BareRows, rows: int, vocabulary: Vocabulary) -> Text:
    """Rows of text: cls, then each segment and its separators, padded to a multiple of WIDTH that holds the longest.

    Bare rows get no frame, all of their tokens are free (even unknown words), and they are padded to the longest.
    """
    if isinstance(segments, BareRows):
        return _gather_bare(store, segments, vocabulary)
    row_S, start_S, length_S, close_S, part_S, label_B, reused_B, reversed_B = segments
    size_S = length_S + close_S
    length_B = 1 + np.bincount(row_S, weights=size_S, minlength=rows).astype(np.int64)
    shape = (rows, -(-int(length_B.max(initial=1)) // WIDTH) * WIDTH)
    into_S = row_S * shape[1] + 1 + exclusive_cumsum(size_S) - exclusive_cumsum(length_B - 1)[row_S]
    into_P, from_P = concatenate_ranges(into_S, length_S), concatenate_ranges(start_S, length_S)
    separator_P = concatenate_ranges(into_S + length_S, close_S)

    ids_P = store.ids[from_P]
    ids_BL = _fill(vocabulary.pad, np.int64, shape, (into_P, ids_P), (separator_P, vocabulary.sep))
    ids_BL[:, 0] = vocabulary.cls
    ordinary_V = np.ones(vocabulary.size, np.bool_)
    ordinary_V[list(vocabulary.specials)] = False
    free_P = ordinary_V[ids_P]  # text can hold special ids, such as that of unknown words
    start_BL = _fill(False, np.bool_, shape, (into_P, store.word_start[from_P] | ~free_P), (separator_P, True))
    start_BL[:, 0] = True
    count_S = np.cumsum(length_S > 0)  # empty segments have no number of their own
    number_S = count_S - 1 - (count_S - (length_S > 0))[np.searchsorted(row_S, row_S)]
    if part_S is None:
        part_BL = np.zeros(shape, np.int8)
    else:
        part_BL = _fill(0, np.int8, shape, (concatenate_ranges(into_S, size_S), np.repeat(part_S, size_S)))
    annotated = store.annotated
    return Text(
        ids_BL=ids_BL,
        length_B=length_B,
        free_BL=_fill(False, np.bool_, shape, (into_P, free_P)),
        start_BL=start_BL,
        sentence_BL=_fill(-1, np.int16, shape, (into_P, np.repeat(number_S, length_S))),
        part_BL=part_BL,
        label_B=label_B,
        annotated_BL=None if annotated is None else _fill(0, np.uint8, shape, (into_P, annotated[from_P])),
        reused_B=reused_B,
        reversed_B=reversed_B,
    )


def _fill(background: int, dtype: DTypeLike, shape: tuple[int, int], *layers: tuple[Array, ArrayLike]) -> Array:
    """An array of one value, with other values written at flat places."""
    flat = np.full(shape[0] * shape[1], background, dtype)
    for place_P, value in layers:
        flat[place_P] = value
    return flat.reshape(shape)


def _gather_bare(store: Store, segments: BareRows, vocabulary: Vocabulary) -> Text:
    start_B, length_B = segments
    column_L = np.arange(int(length_B.max(initial=1)))
    real_BL = column_L < length_B[:, None]
    from_BL = start_B[:, None] + column_L
    ragged = not real_BL.all()
    if ragged:
        np.minimum(from_BL, len(store.ids) - 1, out=from_BL)
    ids_BL = store.ids[from_BL].astype(np.int64)
    start_BL = store.word_start[from_BL].astype(np.bool_)
    sentence_BL = _number_sentences(store, segments, len(column_L))
    if ragged:
        ids_BL[~real_BL], sentence_BL[~real_BL] = vocabulary.pad, -1
        start_BL &= real_BL
    annotated_BL = None if store.annotated is None else np.where(real_BL, store.annotated[from_BL], np.uint8(0))
    part_BL = np.zeros(ids_BL.shape, np.int8)
    return Text(ids_BL, length_B, real_BL, start_BL, sentence_BL, part_BL, annotated_BL=annotated_BL)


def _number_sentences(store: Store, segments: BareRows, width: int) -> NDArray[np.int16]:
    """int16 [B, L]: the number of the sentence in the row; a row may begin within one."""
    edge, (start_B, length_B) = store.sentence_start, segments
    first_B = np.searchsorted(edge, start_B, side="right")
    count_B = np.searchsorted(edge, start_B + length_B, side="left") - first_B
    row_offset_E = np.repeat(np.arange(len(start_B)) * width - start_B, count_B)
    begins_BL = np.zeros((len(start_B), width), np.int16)
    begins_BL.reshape(-1)[edge[concatenate_ranges(first_B, count_B)] + row_offset_E] = 1
    number_BL: NDArray[np.int16] = np.cumsum(begins_BL, axis=1, dtype=np.int16)
    return number_BL
