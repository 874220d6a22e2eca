"""SENTENCE-PAIR: two single natural sentences.   RoBERTa (arXiv 1907.11692), section 4.2"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from paribus.data.formats.pairs import FRAME, Draw, PairIndex, Sampler, check
from paribus.data.formats.segments import Store
from paribus.data.schedule import Dynamic, Schedule


@dataclass(frozen=True)
class SentencePair:
    """BERT's sampler with chunks of two sentences: a sentence and the one after it, or one of another document, after
    which the unused sentence starts the next pair. Rows are far shorter than the budget, so batch by token count.

    Raises UserError for bad settings, and when an index is made of documents that allow no pairs.
    """

    length: int
    pairs: str = "next"
    redraw: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self.length, self.pairs)

    def index(self, store: Store, length: int, draw: Draw) -> PairIndex:
        return Sampler(self.pairs, length - FRAME, 0.0, single=True).index(store, draw)
