"""Self-attention whose keys and values may differ in width."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from paribus.models.attention import count_heads


class SizedAttention(nn.Module):
    """The self-attention of a layer of `transformers`, which takes keys and values for equally wide, without that."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        self.config, self.is_causal, self.scaling = given.config, given.is_causal, given.scaling
        self.num_attention_heads = given.num_attention_heads
        self.query, self.key, self.value, self.dropout = given.query, given.key, given.value, given.dropout

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, first_B: Tensor | None = None, **_: object
    ) -> tuple[Tensor, None]:
        """[B, L, heads x width of a value], and no probabilities."""
        query, key, value = (
            project(hidden_states).unflatten(-1, (count_heads(self), -1)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        options: dict[str, Any] = {"dropout": self.dropout.p if self.training else 0.0, "first_B": first_B}
        read_BLHE, _ = attend(self, query, key, value, attention_mask, scaling=self.scaling, **options)
        return read_BLHE.flatten(2), None
