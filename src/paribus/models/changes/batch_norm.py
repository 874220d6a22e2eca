"""Norms over the tokens of a batch (batch normalization, arXiv 1502.03167)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.change import Change
from paribus.models.network import Network, find_real
from paribus.models.norms import Norm, replace_norms

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

EPSILON: Final = 1e-5  # the default of torch


@dataclass(frozen=True)
class BatchNorm(Change):
    """Each feature is centered and scaled by its mean and variance over all tokens of the batch.

    In training, every state depends on all rows and, also in a left-to-right model, on the tokens to its right: it has
    seen what it predicts. In evaluation, running averages of the statistics take their place. Nothing leaks then, but
    they may differ from the statistics that the weights were trained with. Batches have to stay in one piece.

    Attributes:
        masked: whether padding is left out of the statistics.
        momentum: the share of the newest batch in the running averages.

    Raises UserError for a momentum outside of (0, 1] and for layers that share their norms.
    """

    masked: bool = True
    momentum: float = field(default=0.1, metadata=within(0, 1))
    sets: ClassVar[Set[str]] = frozenset({"norms"})
    whole_batches: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if not 0 < self.momentum <= 1:
            raise UserError(f"batch_norm has momentum={self.momentum}, outside of (0, 1]", "give 0.1")
        if shape.sharing != "none":
            cause = f"batch_norm keeps statistics of each layer, but model.sharing={shape.sharing}"
            raise UserError(cause, "set model.sharing=none")

    def alter(self, encoder: Encoder) -> None:
        replace_norms(encoder, lambda norm: BatchNormModule(norm.normalized_shape[0], self.momentum))
        if self.masked:
            encoder.register_forward_pre_hook(_name_real_places)


class BatchNormModule(Norm):
    """[B, L, D] to the same; with `real_BL`, a bool [B, L], statistics are those of the real places."""

    def __init__(self, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.running_mean: Tensor
        self.running_variance: Tensor
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))
        self.real_BL: Tensor | None = None

    def forward(self, state_BLD: Tensor) -> Tensor:
        state_BLD = state_BLD.float()
        mean_D, variance_D = self.running_mean, self.running_variance
        if self.training:
            seen_ND = state_BLD.flatten(0, 1) if self.real_BL is None else state_BLD[self.real_BL]
            variance_D, mean_D = torch.var_mean(seen_ND, 0, correction=0)
            unbiased_D = variance_D.detach() * (len(seen_ND) / max(1, len(seen_ND) - 1))
            self.running_mean.lerp_(mean_D.detach(), self.momentum)
            self.running_variance.lerp_(unbiased_D, self.momentum)
        return (state_BLD - mean_D) * torch.rsqrt(variance_D + EPSILON) * self.weight + self.bias


def _name_real_places(network: Network, arguments: tuple[Any, ...]) -> None:
    """Tell the norms of an encoder which places of its batch are not padding."""
    batch = arguments[0]
    real_BL = None if batch["full"] else find_real(batch["length_B"], batch["ids_BL"].shape[1])
    for norm in network.norms():
        if isinstance(norm, BatchNormModule):
            norm.real_BL = real_BL
