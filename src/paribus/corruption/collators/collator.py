"""The base class of collators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.corruption.corruption import Corruption
from paribus.data.text import Arrays, Views
from paribus.data.tokens.vocabulary import Vocabulary


class Places(NamedTuple):
    """The predicted positions of a batch: their tokens, the tokens beside them, and what the model is shown there."""

    target_P: NDArray[np.int64]
    near_KP: list[NDArray[np.int64]]  # ids of the places of which a trivial model knows the kind
    shown_P: NDArray[np.int64] | None = None  # None: nothing is shown in the place itself
    row_P: NDArray[np.int64] | None = None  # of text that is written from left to right


@dataclass(frozen=True)
class Collator(ABC):
    """Turns views into the arrays of one kind of architecture, and computes the resulting lengths and rates.

    row_keys: add `row_key_B` (int64 [B], the bits of the rows' noise keys) to the arrays, from which an objective draws
    noise on the device (`models.device_noise`).
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
