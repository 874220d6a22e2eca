"""Absolute positions that enter only before tokens are predicted (DeBERTa, arXiv 2006.03654, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.change import Change
from paribus.models.last_layer import LastLayer, allow_positions, take

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

PASSES: Final = 2


@dataclass(frozen=True)
class MaskDecoder(Change):
    """The enhanced mask decoder, as in the authors' code: where tokens are predicted, the last layer is applied twice.

    Its keys and values are both times the states before it. Its first queries are these states plus a learned vector of
    their position, its second ones what the first pass gave. Other heads, as those of tasks, read the last layer as it
    is in BERT, but a head that is trained beside one on tokens reads what that reads. Choose `model/position=none` or
    relative positions for a model without absolute positions elsewhere. Raises UserError for a last layer of a class
    that another change brings.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"positions at the output"})
    exact_at_places: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        layer = encoder.backbone.encoder.layer[-1]
        if not allow_positions(layer):
            cause = f"the mask decoder does not know the layer {type(layer).__name__} of another change"
            raise UserError(cause, "leave one of them out of model.changes")
        layer.__class__ = type("DecodingLayer", (DecodingLayer, type(layer)), {})
        layer.decoder_table = nn.Embedding(encoder.spec.positions, encoder.spec.hidden)

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Of the second pass where tokens are predicted: all of a layer but its projections to keys and values."""
        widths = shape.heads * (shape.key_size + shape.value_size)
        matrices = shape.hidden * widths + 2 * shape.hidden * shape.intermediate
        return tokens * 2.0 * (matrices + length * widths)


class DecodingLayer(LastLayer):
    """The last layer, which decodes for heads on tokens."""

    decoder_table: nn.Embedding

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *rest: object, **more: object
    ) -> Any:
        if not self.decodes:
            return super().forward(hidden_states, attention_mask, *rest, **more)
        placed_BLD = hidden_states + self.decoder_table.weight[: hidden_states.shape[1]].to(hidden_states.dtype)
        asking_BQD = placed_BLD if self.column_BQ is None else take(placed_BLD, self.column_BQ)
        attention, seen_BLD = self.attention.self, self.before_attention(hidden_states)
        key_BLD, value_BLD = attention.key(seen_BLD), attention.value(seen_BLD)
        for _ in range(PASSES):
            query_BQD = attention.query(self.before_attention(asking_BQD))
            read_BQD = self.attend(query_BQD, key_BLD, value_BLD, attention_mask, **more)
            asking_BQD = self.feed_forward_chunk(self.attention.output(read_BQD, asking_BQD))
        return asking_BQD
