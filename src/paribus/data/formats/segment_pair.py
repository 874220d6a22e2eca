"""SEGMENT-PAIR: two segments of whole sentences up to the budget.   BERT (arXiv 1810.04805), section A.2"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from paribus.core.errors import UserError
from paribus.data.formats.pairs import FRAME, Draw, PairIndex, Sampler, check
from paribus.data.formats.segments import Store
from paribus.data.schedule import Dynamic, Schedule


@dataclass(frozen=True)
class SegmentPair:
    """Chunks of a document up to a target length, split in two; see `Sampler` for `pairs`.

    short_seq_prob: share of documents whose target of a pass is drawn from [2, length - 3] instead of being length - 3.
    Raises UserError for bad settings, and when an index is made of documents that allow no pairs.
    """

    length: int
    pairs: str = "next"
    short_seq_prob: float = 0.1
    redraw: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self.length, self.pairs)
        share = self.short_seq_prob
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise UserError(f"input.short_seq_prob={share}", "give a share from 0 to 1")

    def index(self, store: Store, length: int, draw: Draw) -> PairIndex:
        return Sampler(self.pairs, length - FRAME, self.short_seq_prob, single=False).index(store, draw)
