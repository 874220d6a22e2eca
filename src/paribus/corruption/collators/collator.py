"""The base class of collators, and those of unmasked text with labels, per row or per token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.corruption.corruption import Corruption
from paribus.data.sequences import Arrays, Ints, Views
from paribus.data.tokens.vocabulary import Vocabulary


class Places(NamedTuple):
    """The predicted positions of a batch: their tokens, the tokens beside them, and what the model is shown there."""

    target_P: Ints
    near_KP: list[Ints]  # ids of the places of which a trivial model knows the kind
    shown_P: Ints | None = None  # None: nothing is shown in the place itself
    row_P: Ints | None = None  # of text that is written from left to right


@dataclass(frozen=True)
class Collator(ABC):
    """Turns views into the arrays of one kind of architecture, and computes the resulting lengths and rates.

    row_keys: add `row_key_B` (int64 [B], the bits of the rows' noise keys) to the arrays, from which an objective draws
    noise on the device (`objectives.generated`).
    """

    row_keys: bool = field(default=False, kw_only=True)
    semantics: ClassVar[int] = 1

    def pack(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """`arrays`, with the row keys if `row_keys` is set."""
        arrays = self.arrays(views, vocabulary)
        if self.row_keys:
            assert views.row_key_B is not None
            arrays["row_key_B"] = views.row_key_B.view(np.int64)
        return arrays

    @abstractmethod
    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays that the model reads, and `counts`: Python ints of the batch."""

    @abstractmethod
    def check(self, corruption: Corruption) -> None:
        """Raise UserError for a corruption that this kind of architecture cannot be trained on."""

    def raw_length(self, budget: int, corruption: Corruption) -> int:
        """Tokens of the rows that the input format cuts, if the model reads at most `budget` tokens."""
        return budget

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        """int32 [N]: tokens that the model reads of rows of these lengths."""
        return raw_N

    def count_shown(self, arrays: Arrays, vocabulary: Vocabulary) -> dict[str, int]:
        """Counts of how the predicted tokens are shown in place."""
        return {}

    @abstractmethod
    def find_places(self, arrays: Arrays) -> Places:
        """The tokens beside each predicted position of packed arrays."""

    @abstractmethod
    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """The measured noise, by name, from counts that are added up over batches."""


@dataclass(frozen=True)
class _Labels(Collator):
    """The text as it is; no entry of the vocabulary is predicted."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """ids_BL, part_BL [B, L], length_B: int64; counts: ints."""
        text, taken = views.text, int(views.text.length_B.sum())
        counts = {"raw_tokens": text.tokens, "input_tokens": taken, "padding": text.ids_BL.size - taken}
        none = dict.fromkeys(("predicted", "noise", "spans"), 0)
        return {
            "ids_BL": text.ids_BL,
            "length_B": text.length_B,
            "part_BL": text.part_BL.astype(np.int64),
            "counts": {**counts, **none, "sequences": len(text.length_B)},
        }

    def check(self, corruption: Corruption) -> None:
        """Any text will do."""

    def find_places(self, arrays: Arrays) -> Places:
        """None."""
        return Places(np.zeros(0, np.int64), [])

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """padding_share: of positions."""
        return {"padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1)}


@dataclass(frozen=True)
class RowLabels(_Labels):
    """Rows with the label that the input format gives them."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """Also label_B, int64 [B]."""
        arrays, label_B = super().arrays(views, vocabulary), views.text.label_B
        assert label_B is not None
        return {**arrays, "label_B": label_B, "counts": {**arrays["counts"], "rows": len(label_B)}}


@dataclass(frozen=True)
class TokenLabels(_Labels):
    """Tokens with the label 1 if they are annotated, else 0; special tokens have none."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """Also tag_BL, int64 [B, L], -1 without a label."""
        arrays, text = super().arrays(views, vocabulary), views.text
        assert text.annotated_BL is not None
        tag_BL = np.where(text.free_BL, text.annotated_BL > 0, -1).astype(np.int64)
        return {**arrays, "tag_BL": tag_BL, "counts": {**arrays["counts"], "words": int((tag_BL >= 0).sum())}}
