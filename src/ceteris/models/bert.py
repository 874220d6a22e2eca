"""BERT-style encoders as plain settings; torch is imported when one is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ceteris.errors import UserError

if TYPE_CHECKING:
    from ceteris.models.encoder import Encoder
    from ceteris.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Bert:
    """Size and shape of an encoder (BERT, arXiv 1810.04805, section 3).

    `norm="post"` is BERT; `norm="pre"` puts the LayerNorm before each sublayer and one at the end
    (arXiv 2002.04745). `attention="left"` hides from every token those to its right, in fine-tuning too (BERT, section
    5.1: LTR). Raises UserError for a shape that cannot be built.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    positions: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.1
    norm: str = "post"
    attention: str = "full"
    initializer_range: float = 0.02
    semantics: ClassVar[int] = 1
    neutral: ClassVar[dict[str, Any]] = {"attention": "full"}

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise UserError(
                f"model.hidden={self.hidden} is no multiple of model.heads={self.heads}", "change one of them"
            )
        if self.norm not in ("post", "pre"):
            raise UserError(f"model.norm={self.norm} is unknown", "use post or pre")
        if self.attention not in ("full", "left"):
            raise UserError(f"model.attention={self.attention} is unknown", "use full or left")
        if min(self.layers, self.hidden, self.heads, self.intermediate, self.positions) < 1:
            raise UserError("model has a size below 1", "sizes are positive whole numbers")

    def check_length(self, length: int, key: str) -> None:
        """Raises UserError where an input of `length` tokens has no position."""
        if length > self.positions:
            raise UserError(
                f"{key}={length} exceeds model.positions={self.positions}", "shorten it or raise the positions"
            )

    def build(self, vocabulary: Vocabulary, seed: int) -> Encoder:
        """The encoder with its initial weights, a pure function of (self, vocabulary, seed)."""
        from ceteris.models.encoder import Encoder
        from ceteris.models.weights import initialise

        encoder = Encoder(self, vocabulary)
        initialise(encoder, seed, self.initializer_range)
        return encoder

    def matmul_parameters(self) -> int:
        """Weights that every token is multiplied by: the layers, without embeddings and heads."""
        return self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.intermediate)

    def forward_flops(self, tokens: int, length: float) -> float:
        """Floating-point operations of one forward pass over `tokens` in rows of `length`, heads left out."""
        seen = length if self.attention == "full" else (length + 1) / 2
        return tokens * (2.0 * self.matmul_parameters() + 4.0 * self.layers * seen * self.hidden)
