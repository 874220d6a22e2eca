"""Word embeddings that are multiplied before positions are added (Vaswani et al., arXiv 1706.03762, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class ScaledEmbeddings(Change):
    """What is read of the word embeddings is multiplied by `scale`; null is the root of their width, the paper's.

    A head on tokens that is tied to the table reads it as it is. Raises UserError for a scale that is not above 0.
    """

    scale: float | None = None
    sets: ClassVar[frozenset[str]] = frozenset({"scale of embeddings"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.scale is not None and not self.scale > 0:
            raise UserError(
                f"embeddings have scale={self.scale}, not above 0", "give a number, or null for sqrt(width)"
            )

    def alter(self, encoder: Encoder) -> None:
        embeddings, scale = encoder.backbone.embeddings, self.scale or encoder.spec.table_width**0.5
        embeddings.word_embeddings = ScaledWords(embeddings.word_embeddings, scale)

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        return tokens * shape.table_width


class ScaledWords(nn.Embedding):
    """A table of the size of another, whose rows are multiplied when they are read."""

    def __init__(self, words: nn.Embedding, scale: float) -> None:
        super().__init__(words.num_embeddings, words.embedding_dim, words.padding_idx)
        self.scale = scale

    def forward(self, ids_BL: Tensor) -> Tensor:
        return super().forward(ids_BL) * self.scale
