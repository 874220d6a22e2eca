"""Changes of one part of a BERT-style encoder, as plain settings; torch is imported when an encoder is built.

`model.changes` names them: `{position: Rotary(...)}`. Each says what it does to the modules of the encoder and to the
scores of its attention, which shapes it fits, what it costs, and whether `transformers` has a class for the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from paribus.core.errors import UserError

if TYPE_CHECKING:
    from paribus.models.attention import Score
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

ROFORMER_BASE: Final = 10000.0


class Change:
    """One part of an encoder that is not BERT's. A subclass is a frozen dataclass and states what differs."""

    semantics: ClassVar[int] = 1

    def check(self, shape: Bert) -> None:
        """Raise UserError for a shape that the change does not fit."""

    def alter(self, encoder: Encoder) -> None:
        """Replace modules of a new encoder, before its initial weights are drawn."""

    def score(self, shape: Bert) -> Score | None:
        """What every layer does to its queries and keys before they are multiplied; None for nothing."""
        return None

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Floating-point operations beyond those of BERT's own layers in a forward pass over `tokens` tokens."""
        return 0.0

    def lacks_class(self, shape: Bert) -> str | None:
        """Why `transformers` has no class for the changed encoder; None if it has one."""
        return f"transformers has no class for an encoder with {type(self).__name__}"


@dataclass(frozen=True)
class Rotary(Change):
    """Rotary positions (RoFormer, arXiv 2104.09864, section 3.2) instead of a learned table of them.

    Every pair of neighboring features of a query and of a key is rotated by position x base^(-2i / width of a head), so
    that scores depend on the distance alone. Raises UserError for a base that is not above 1.
    """

    base: float = ROFORMER_BASE

    def __post_init__(self) -> None:
        if not self.base > 1:
            raise UserError(f"model.changes.position.base={self.base} is not above 1", "give 10000, RoFormer's")

    def check(self, shape: Bert) -> None:
        if (width := shape.hidden // shape.heads) % 2:
            cause = f"model.position=rotary rotates pairs of features, but each head has {width}"
            raise UserError(cause, "choose model.hidden and model.heads so that hidden / heads is even")

    def alter(self, encoder: Encoder) -> None:
        from paribus.models.rotary import NoPositions

        encoder.backbone.embeddings.position_embeddings = NoPositions()

    def score(self, shape: Bert) -> Score:
        from paribus.models.rotary import RotaryScore

        return RotaryScore(shape.hidden // shape.heads, float(self.base))

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Each of the queries' and keys' pairs takes four products and two sums."""
        return tokens * shape.layers * 2 * shape.hidden * 3.0

    def lacks_class(self, shape: Bert) -> str | None:
        if shape.norm == "pre":
            return "transformers has no class for a pre-LN encoder with rotary positions"
        return None if self.base == ROFORMER_BASE else f"RoFormer in transformers rotates with base {ROFORMER_BASE:g}"
