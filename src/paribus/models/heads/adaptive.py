"""The adaptive softmax (Grave et al., arXiv 1609.04309), as Transformer-XL has for the words of WikiText-103."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.heads.head import TokenHead
from paribus.models.network import Batch, Network, Outputs


class AdaptiveHead(TokenHead):
    """torch's `AdaptiveLogSoftmaxWithLoss` over the vocabulary in the order of how frequent its entries are in the
    training text: the entries up to the first cut in full width, those up to the next in a quarter of it, and so on.

    It is not tied to the word embeddings. Raises UserError for cuts that are not ascending and inside the vocabulary.
    """

    def __init__(self, network: Network, cutoffs: Sequence[int]) -> None:
        super().__init__()
        size = network.vocabulary.size
        if list(cutoffs) != sorted({cut for cut in cutoffs if 0 < cut < size}):
            cause = f"objective.cutoffs={list(cutoffs)} does not cut {size:,} entries in ascending order"
            raise UserError(cause, f"give numbers between 1 and {size - 1:,}, as [{size // 10}, {size // 3}]")
        order_V = torch.from_numpy(-network.vocabulary.count_V).argsort(stable=True)
        self.rank_V: Tensor
        self.register_buffer("rank_V", order_V.argsort())
        self.words = nn.AdaptiveLogSoftmaxWithLoss(network.width, size, list(cutoffs))

    def scores(self, hidden_PD: Tensor) -> Tensor:
        """[P, V]: logarithms of probabilities."""
        with torch.autocast(hidden_PD.device.type, enabled=False):  # torch's module mixes types otherwise
            return torch.index_select(self.words.log_prob(hidden_PD.float()), 1, self.rank_V)

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        """The losses are summed: torch gives them cluster by cluster."""
        hidden_PD = outputs.at(batch["slot_P"])
        with torch.autocast(hidden_PD.device.type, enabled=False):
            return -torch.sum(self.words(hidden_PD.float(), self.rank_V[batch["target_P"]]).output)
