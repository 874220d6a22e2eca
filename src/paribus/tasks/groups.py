"""Examples of several rows each: the windows of a long text, or the two texts of a pair apart. Numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.encode import Array, Encoded, frame, truncated
from paribus.tasks.example import Example

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Groups:
    """N examples over W framed rows, those of an example one after the other. At most `most` rows make a batch, but an
    example's stay together.
    """

    rows: Encoded  # label_N: unused
    first_N: Array  # int64 [N + 1]: where an example's rows start
    label_N: Array
    most: int

    @property
    def length_N(self) -> Array:
        """Int64: tokens of all rows of an example."""
        return np.add.reduceat(self.rows.length_N, self.first_N[:-1])

    def batch(self, row_B: Array, multiple: int) -> dict[str, Any]:
        """See `Rows.batch`: rows [W, L] of B examples, `part_BL`, and beside them `place_BK`, int64: the rows of each
        example, -1 behind its last; `label_B`.
        """
        count_B = self.first_N[row_B + 1] - self.first_N[row_B]
        column_K = np.arange(count_B.max())
        real_BK = column_K < count_B[:, None]
        row_W = (self.first_N[row_B][:, None] + column_K)[real_BK]
        place_BK = np.full(real_BK.shape, -1, np.int64)
        place_BK[real_BK] = np.arange(len(row_W))
        found = self.rows.batch(row_W, multiple)
        counts = {**found["counts"], "rows": len(row_B)}
        return {**found, "place_BK": place_BK, "label_B": self.label_N[row_B], "row_B": row_B, "counts": counts}

    def pieces(self, row_B: Array) -> list[Array]:
        """A batch in parts of at most `most` rows, or of one example."""
        count_B = self.first_N[row_B + 1] - self.first_N[row_B]
        cuts, held = [0], 0
        for at, count in enumerate(count_B.tolist()):
            if held and held + count > self.most:
                cuts.append(at)
                held = 0
            held += count
        return [row_B[a:b] for a, b in pairwise([*cuts, len(row_B)])]


def windows(
    examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: Any, batch: int
) -> Groups:
    """Each text in windows of `length` tokens, frame included, that begin `stride` tokens apart (null: half a window).

    Of a text that needs more than `most_windows` the first ones are read, and the one at its end.
    Raises UserError for a length that leaves no room.
    """
    room = settings.length - 2
    if room < 1:
        raise UserError(f"fine-tuning length {settings.length} leaves no room for text", "raise it")
    stride = max(1, room // 2) if settings.head.windows.stride is None else int(settings.head.windows.stride)
    texts = [ids for ids, _ in tokenizer.encode([row.text for row in examples])]
    starts = [window_starts(len(ids), room, stride, settings.head.windows.most) for ids in texts]
    cut = [ids[at : at + room] for ids, own in zip(texts, starts, strict=True) for at in own]
    return _groups([cut], [len(own) for own in starts], examples, vocabulary, batch)


def window_starts(length: int, room: int, stride: int, most: int) -> list[int]:
    """Where the windows of a text of `length` tokens begin; the last one ends with the text."""
    last = max(0, length - room)
    found = [*range(0, last, stride), last]
    return found if len(found) <= most else [*found[: most - 1], last]


def apart(
    examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: Any, batch: int
) -> Groups:
    """The two texts of each example as rows of their own, each cut to `length` tokens."""
    texts = [text for row in examples for text in (row.text, row.pair or "")]
    ids = [ids for ids, _ in tokenizer.encode(texts)]
    kept = truncated(np.array([len(row) for row in ids]), room=settings.length - 2)[0]
    cut = [row[:count] for row, count in zip(ids, kept.tolist(), strict=True)]
    return _groups([cut], [2] * len(examples), examples, vocabulary, batch)


def _groups(
    sides: Sequence[list[Array]], counts: Sequence[int], examples: Sequence[Example], vocabulary: Vocabulary, most: int
) -> Groups:
    rows = frame(sides, np.zeros(sum(counts), np.int64), vocabulary)
    label_N = np.array([row.label for row in examples])
    labels = label_N.astype(np.float32 if label_N.dtype.kind == "f" else np.int64)
    return Groups(rows, np.concatenate([[0], np.cumsum(counts)]), labels, most)
