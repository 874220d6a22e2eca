"""From stretches of the token store to framed rows: what every input format shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise
from paribus.data.schedule import Schedule
from paribus.data.text import Array, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary

WIDTH = 8  # rows are padded to a multiple of this


class Store(Protocol):
    """One split as arrays, usually memory-mapped."""

    @property
    def ids(self) -> Array: ...  # [T]

    @property
    def word_start(self) -> Array: ...  # [T], 1 where a token starts a word

    @property
    def sentence_start(self) -> Array: ...  # int64 [S + 1], in tokens

    @property
    def document_start(self) -> Array: ...  # int64 [D + 1], in sentences

    @property
    def annotated(self) -> Array | None: ...  # [T], 1 where an annotated span starts, 2 where it goes on, else 0


class Segments(NamedTuple):
    """Runs of store tokens, row by row and in order; a row is the first special, then each run and its separators."""

    row_S: NDArray[np.int64]  # ascending
    start_S: NDArray[np.int64]
    length_S: NDArray[np.int64]  # tokens; may be 0
    close_S: NDArray[np.int64]  # separators after the run
    part_S: NDArray[np.int64] | None = None  # segment; None: all 0
    label_B: NDArray[np.int64] | None = None


class Stretches(NamedTuple):
    """Rows that are one run of store tokens each and get no frame."""

    start_B: NDArray[np.int64]
    length_B: NDArray[np.int64]


class Index(Protocol):
    """One pass over the data: the examples in the corpus' order."""

    @property
    def length_N(self) -> NDArray[np.int32]: ...  # of each framed row

    @property
    def report(self) -> dict[str, float]: ...  # what sampling gave, by name; empty where nothing is sampled

    def segments(self, rows_B: NDArray[np.int64]) -> Segments | Stretches: ...


class InputFormat(Protocol):
    """Which stretches of the store make one example."""

    semantics: ClassVar[int]

    @property
    def length(self) -> int: ...  # the model's input budget in tokens, specials included

    @property
    def pairs(self) -> str | None: ...  # what the labels of pairs say, "next" or "order"; None: no pairs

    @property
    def redraw(self) -> Schedule: ...  # the key of an epoch's index

    def index(self, store: Store, length: int, draw: Callable[[NDArray[np.int64]], Noise]) -> Index:
        """The rows of at most `length` tokens; `draw(ids)` gives noise for what is sampled."""


def gather(store: Store, segments: Segments | Stretches, rows: int, vocabulary: Vocabulary) -> Text:
    """Frame rows: cls, then each piece and its separators; padded to the longest row, a multiple of WIDTH.

    Stretches stay as they are, all of their tokens free (unknown words, too), padded to the longest.
    """
    if isinstance(segments, Stretches):
        return _bare(store, segments, vocabulary)
    row_S, start_S, length_S, close_S = segments[:4]
    size_S = length_S + close_S
    length_B = 1 + np.bincount(row_S, weights=size_S, minlength=rows).astype(np.int64)
    width = -(-int(length_B.max(initial=1)) // WIDTH) * WIDTH
    into_S = row_S * width + 1 + before(size_S) - before(length_B - 1)[row_S]
    into_P, from_P = runs(into_S, length_S), runs(start_S, length_S)
    separator_P = runs(into_S + length_S, close_S)
    ids_P = store.ids[from_P]
    free_P = _ordinary(vocabulary)[ids_P]
    return Text(
        ids_BL=_ids(ids_P, into_P, separator_P, (rows, width), vocabulary),
        length_B=length_B,
        free_BL=_placed(False, np.bool_, (rows, width), (into_P, free_P)),
        start_BL=_starts(store.word_start[from_P] | ~free_P, into_P, separator_P, (rows, width)),
        sentence_BL=_placed(-1, np.int16, (rows, width), (into_P, np.repeat(_numbers(row_S, length_S), length_S))),
        part_BL=_parts(segments, into_S, size_S, (rows, width)),
        label_B=segments.label_B,
        annotated_BL=_annotated(store, from_P, into_P, (rows, width)),
    )


def _bare(store: Store, segments: Stretches, vocabulary: Vocabulary) -> Text:
    start_B, length_B = segments
    column_L = np.arange(int(length_B.max(initial=1)))
    real_BL = column_L < length_B[:, None]
    from_BL = start_B[:, None] + column_L
    ragged = not real_BL.all()
    if ragged:
        np.minimum(from_BL, len(store.ids) - 1, out=from_BL)
    ids_BL = store.ids[from_BL].astype(np.int64)
    starts_BL = store.word_start[from_BL].astype(np.bool_)
    sentence_BL = _sentences(store, segments, len(column_L))
    if ragged:
        ids_BL[~real_BL], sentence_BL[~real_BL] = vocabulary.pad, -1
        starts_BL &= real_BL
    annotated_BL = None if store.annotated is None else np.where(real_BL, store.annotated[from_BL], np.uint8(0))
    parts_BL = np.zeros(ids_BL.shape, np.int8)
    return Text(ids_BL, length_B, real_BL, starts_BL, sentence_BL, parts_BL, annotated_BL=annotated_BL)


def _sentences(store: Store, segments: Stretches, width: int) -> NDArray[np.int16]:
    """[B, L]: the number of the sentence in the row; a row may begin within one."""
    edge, (start_B, length_B) = store.sentence_start, segments
    first_B = np.searchsorted(edge, start_B, side="right")
    count_B = np.searchsorted(edge, start_B + length_B, side="left") - first_B
    place_E = edge[runs(first_B, count_B)] + np.repeat(np.arange(len(start_B)) * width - start_B, count_B)
    begins_BL = np.zeros((len(start_B), width), np.int16)
    begins_BL.reshape(-1)[place_E] = 1
    number_BL: NDArray[np.int16] = np.cumsum(begins_BL, axis=1, dtype=np.int16)
    return number_BL


def _ordinary(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """[V]: the id is not special; text can hold special ids, such as the one for unknown words."""
    table_V = np.ones(vocabulary.size, np.bool_)
    table_V[list(vocabulary.specials)] = False
    return table_V


def before(count_S: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of all earlier counts."""
    return np.cumsum(count_S) - count_S


def runs(start_S: NDArray[np.int64], length_S: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... of each run, one run after the other."""
    return np.repeat(start_S - before(length_S), length_S) + np.arange(length_S.sum())


def _placed(ground: Any, kind: Any, shape: tuple[int, int], *layers: tuple[Array, Any]) -> Array:
    """An array of `ground` with values written at flat places."""
    flat = np.full(shape[0] * shape[1], ground, kind)
    for place_P, value in layers:
        flat[place_P] = value
    return flat.reshape(shape)


def _ids(ids_P: Array, into_P: Array, separator_P: Array, shape: tuple[int, int], vocabulary: Vocabulary) -> Array:
    ids_BL = _placed(vocabulary.pad, np.int64, shape, (into_P, ids_P), (separator_P, vocabulary.sep))
    ids_BL[:, 0] = vocabulary.cls
    return ids_BL


def _starts(start_P: Array, into_P: Array, separator_P: Array, shape: tuple[int, int]) -> Array:
    start_BL = _placed(False, np.bool_, shape, (into_P, start_P), (separator_P, True))
    start_BL[:, 0] = True
    return start_BL


def _annotated(store: Store, from_P: Array, into_P: Array, shape: tuple[int, int]) -> Array | None:
    return None if store.annotated is None else _placed(0, np.uint8, shape, (into_P, store.annotated[from_P]))


def _parts(segments: Segments, into_S: Array, size_S: Array, shape: tuple[int, int]) -> Array:
    if segments.part_S is None:
        return np.zeros(shape, np.int8)
    return _placed(0, np.int8, shape, (runs(into_S, size_S), np.repeat(segments.part_S, size_S)))


def _numbers(row_S: NDArray[np.int64], length_S: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each piece in its row, pieces without tokens not counted."""
    count_S = np.cumsum(length_S > 0)
    first_S = np.searchsorted(row_S, row_S)
    return count_S - 1 - (count_S - (length_S > 0))[first_S]
