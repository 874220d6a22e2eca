"""Encoders that remember what their layers have read, as plain settings (Transformer-XL, arXiv 1901.02860)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.bert import Bert
from paribus.models.change import Positions
from paribus.models.changes.transformer_xl import TransformerXL

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.memory_encoder import MemoryEncoder


@dataclass(frozen=True)
class MemoryBert(Bert):
    """BERT's layers, left to right, whose queries also see the last `memory` inputs of their layer from earlier rows of
    the stream (arXiv 1901.02860, section 3.2), without gradients.

    Without `model/position` its positions are the paper's relative ones (section 3.3). With `same_length` a query sees
    `memory` keys, itself included, wherever it stands in its row (the authors' flag), and not all that came before.
    Beside the choices that other models have too, it differs from the authors' code by BERT's LayerNorm of the
    embeddings, biases of projections, and head on tokens.
    Raises UserError for another attention than "left", `same_length` without memory, and positions that every layer
    adds to its input, which a memory does not hold.
    """

    memory: int = field(default=0, metadata=within(0, 10**6))
    same_length: bool = False
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if "position" not in self.changes:
            object.__setattr__(self, "changes", {"position": TransformerXL(), **self.changes})
        super().__post_init__()
        if self.attention != "left":
            cause = f"model.attention={self.attention}, but a model with memory reads from left to right"
            raise UserError(cause, "set model.attention=left, or another model such as bert_mini")
        if self.same_length and not self.memory:
            raise UserError("model.same_length=true without memory hides every key", "set model.memory=64 or another")
        position = self.changes["position"]
        if self.memory and isinstance(position, Positions) and position.at_layers:
            cause = f"{type(position).__name__} adds positions to what every layer reads, which a memory does not hold"
            raise UserError(cause, "set model.memory=0, or model/position=transformer_xl")
        if self.sharing != "none" and self.memory:
            raise UserError(f"model.sharing={self.sharing} does not work with a memory", "set model.sharing=none")

    def without_memory(self) -> MemoryBert:
        return replace(self, memory=0, same_length=False)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """As of an encoder whose queries see `memory` more keys, which are projected anew in every step."""
        extra = self.memory - (length - 1) / 2 if self.same_length else self.memory
        read = self.heads * (self.key_size + self.value_size)
        scores = tokens * self.layers * 2.0 * extra * read
        projected = tokens / length * self.memory * self.layers * 2.0 * self.hidden * read
        further = sum(
            change.forward_flops(self, tokens, length + self.memory) - change.forward_flops(self, tokens, length)
            for change in self.changes.values()
        )
        return super().forward_flops(tokens, length, written, rows) + scores + projected + further

    def build_one(self, vocabulary: Vocabulary, seed: int) -> MemoryEncoder:
        from paribus.models.memory_encoder import MemoryEncoder

        return MemoryEncoder(self, vocabulary).begin(seed)
