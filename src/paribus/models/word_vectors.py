"""Static word vectors as plain settings: a table, and one whose vectors are made of parts of words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.spec import ModelSpec

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network


@dataclass(frozen=True)
class WordVectors(ModelSpec):
    """One vector for each word, whatever stands beside it. A row is summarized by the mean of the vectors of its words:
    special tokens and unknown words are left out.

    Args:
        hidden: width of the vectors.
        initial_range: they begin uniform between plus and minus this; None: 0.5 / hidden, as in `word2vec.c`.
    """

    hidden: int = field(metadata=within(1, 10**5))
    initial_range: float | None = field(default=None, metadata=within(0, 100))
    semantics: ClassVar[int] = 1
    layers: ClassVar[int] = 0  # type: ignore[misc]

    @property
    def static(self) -> bool:
        return True

    @property
    def open_layers(self) -> bool:
        return False

    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        from paribus.models.vector_tables import VectorTable

        return VectorTable(self, vocabulary).fill(seed)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """The vectors of a row are added up."""
        return tokens * self.hidden


@dataclass(frozen=True)
class SubwordVectors(WordVectors):
    """The vector of a word is the mean of one of its own and those of its character n-grams (fastText, arXiv
    1607.04606, section 3.2, as `dictionary.cc` computes them).

    An n-gram has the vector of the bucket that it is hashed to. Buckets that no word of the vocabulary uses are left
    out: they would never be trained.

    Raises UserError for n-grams that begin above where they end.
    """

    smallest: int = field(default=3, metadata=within(1, 100))
    largest: int = field(default=6, metadata=within(1, 100))
    buckets: int = field(default=2_000_000, metadata=within(1, 2**31))
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.smallest > self.largest:
            cause = f"model.smallest={self.smallest} is above model.largest={self.largest}"
            raise UserError(cause, "give n-grams such as 3 to 6")

    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        from paribus.models.vector_tables import SubwordTable

        return SubwordTable(self, vocabulary).fill(seed)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """The sums of some twenty vectors for each token."""
        return 20.0 * tokens * self.hidden
