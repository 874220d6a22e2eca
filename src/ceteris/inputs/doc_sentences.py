"""DOC-SENTENCES: whole sentences up to the budget, within one document.   RoBERTa, section 4.2"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ceteris.corruption import Schedule
from ceteris.inputs.pieces import Index, Store
from ceteris.inputs.sentences import check_length, sentence_index
from ceteris.masking.schedule import Static
from ceteris.noise import Noise


@dataclass(frozen=True)
class DocSentences:
    """fairseq's `complete_doc`; rows are shorter than those of full sentences, so batch by token count."""

    length: int
    redraw: Schedule = field(default_factory=Static)
    pairs: ClassVar[None] = None
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_length(self.length)

    def index(self, store: Store, length: int, draw: Callable[[NDArray[np.int64]], Noise]) -> Index:
        return sentence_index(store, length, cross=False)
