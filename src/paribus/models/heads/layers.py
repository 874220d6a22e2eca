"""Which of the encoder's states a head reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from paribus.models.encoder import Encoder, Outputs
from paribus.models.heads.wrapper import Wrapper

COMBINATIONS = ("concat", "mean", "max", "weighted")


class OnLayers(Wrapper):
    """Any head, on the states after chosen layers (0: the embeddings, l: layer l, counted from 1).

    Several are put side by side, averaged, or reduced to their largest values (Sun et al., arXiv 1905.05583, section
    5.3.2), or are summed with learned weights: gamma * softmax(w), as in ELMo (arXiv 1802.05365, section 3.2). The
    final LayerNorm of a pre-LN encoder is applied to every layer but the embeddings, as it is to the last.
    """

    def __init__(self, encoder: Encoder, layers: Sequence[int], combine: str, head: Any) -> None:
        super().__init__(head)
        self.layers, self.combine, self.left = tuple(layers), combine, encoder.left
        if combine == "weighted":
            self.weight_N = nn.Parameter(torch.zeros(len(self.layers)))
            self.gamma = nn.Parameter(torch.ones(()))
        self._states: dict[int, Tensor] = {}
        for layer in self.layers:
            encoder.watch(layer, self._keeper(layer))

    @staticmethod
    def width(encoder: Encoder, layers: Sequence[int], combine: str) -> int:
        """Of what the head reads."""
        return int(encoder.width) * (len(layers) if combine == "concat" else 1)

    def read(self, outputs: Outputs, batch: dict[str, Any]) -> Outputs:
        """The combined states of the forward pass that has just ended."""
        states_NBLD = [self._states[layer] for layer in self.layers]
        self._states.clear()
        hidden_BLD = self._combined(states_NBLD)
        if not self.left:
            return Outputs(hidden_BLD, outputs.state)
        row_B = torch.arange(len(hidden_BLD), device=hidden_BLD.device)
        return Outputs(hidden_BLD, outputs.state, hidden_BLD[row_B, batch["length_B"] - 1])

    def _combined(self, states: list[Tensor]) -> Tensor:
        if self.combine == "concat":
            return torch.cat(states, dim=-1)
        stacked_NBLD = torch.stack(states)
        if self.combine == "mean":
            return stacked_NBLD.mean(0)
        if self.combine == "max":
            return stacked_NBLD.amax(0)
        return self.gamma * torch.einsum("n,nbld->bld", self.weight_N.softmax(0).to(stacked_NBLD.dtype), stacked_NBLD)

    def _keeper(self, layer: int) -> Any:
        def keep(state_BLD: Tensor) -> None:
            self._states[layer] = state_BLD

        return keep
