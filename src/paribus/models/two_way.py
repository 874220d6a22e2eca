"""Two encoders side by side, one left-to-right and one right-to-left.

BERT (arXiv 1810.04805, section 5.1) names this alternative to a masked model, "as ELMo does", and does not measure it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from paribus.models.encoder import Encoder
from paribus.models.network import Batch, Network, Outputs, State

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.spec import Shape


class TwoWay(Network):
    """A left-to-right and a right-to-left encoder of the same shape that share nothing.

    Their states are concatenated. A row is summarized by the states that have read all of it: the last token of the
    first, the first token of the second.
    """

    def __init__(self, spec: Shape, vocabulary: Vocabulary, encoders: Mapping[str, Any]) -> None:
        super().__init__(spec, vocabulary, 2 * spec.hidden, spec.layers)
        self.backbone = nn.ModuleDict(encoders)
        self.norm_eps = self.side("left").norm_eps

    def side(self, name: str) -> Encoder:
        """The encoder that reads to the left, or to the right."""
        encoder: Encoder = self.backbone[name]
        return encoder

    @property
    def sides(self) -> dict[str, Encoder]:
        return {name: self.side(name) for name in self.backbone}

    @property
    def table_VD(self) -> nn.Parameter:
        """That of the first encoder; heads on tokens know their own."""
        return self.side("left").table_VD

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """The states [B, L, 2 D] at all places."""
        whole = {name: value for name, value in batch.items() if name != "read_P"}
        sides = [encoder(whole) for encoder in self.sides.values()]
        hidden_BLD = torch.cat([side.hidden_BLD for side in sides], dim=-1)
        return Outputs(hidden_BLD, state, torch.cat([side.row_BD for side in sides], dim=-1))

    def compile(self, *_: object, **__: object) -> None:
        for encoder in self.sides.values():
            encoder.compile()

    def depth_of(self, parameter: str) -> int:
        return self.side("left").depth_of(parameter)

    def sublayers(self) -> Iterator[tuple[str, Any]]:
        for encoder in self.sides.values():
            yield from encoder.sublayers()

    def matrices(self) -> Iterator[tuple[str, str]]:
        for name, encoder in self.sides.items():
            yield from ((kind, f"{name}.backbone.{matrix}") for kind, matrix in encoder.matrices())

    def restore_sharing(self) -> None:
        for encoder in self.sides.values():
            encoder.restore_sharing()
