"""Heads that train static word vectors: negative samples, GloVe's weighted least squares, Bengio's network.

The network gives the vectors that are read; each head has a table of its own for the words that are predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from paribus.models.heads.head import Head, TokenHead
from paribus.models.network import Batch, Network, Outputs


class ContextVectors(nn.Embedding):
    """A table that begins at 0, as the output vectors of `word2vec.c`."""

    initial_values: ClassVar[Mapping[str, float]] = {"weight": 0.0}


class NegativeSamples(Head):
    """Which words are near: the target is, the negatives are not (arXiv 1310.4546, equation 4).

    Reads target_P and negative_PK, -1 for one that is skipped.
    """

    denominator = "predicted"

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.context = ContextVectors(*network.table_VD.shape)

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["slot_P"]]

    def read(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, D]: the vector that makes each prediction."""
        return outputs.at(batch["slot_P"])

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, 1 + K]: the products of what is read with the target and the negatives."""
        asked_PK = torch.cat([batch["target_P"][:, None], batch["negative_PK"].clamp_min(0)], 1)
        asked_U, at_PK = torch.unique(asked_PK, return_inverse=True)  # each row of the table is read once
        read_PD, table_UD = self.read(outputs, batch).float(), self.context(asked_U).float()
        products: Tensor = Products.apply(read_PD, table_UD, at_PK)  # type: ignore[no-untyped-call]
        return products

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        logit_PK = self.logits(outputs, batch)
        drawn_PK = (batch["negative_PK"] >= 0).to(logit_PK.dtype)
        near: Tensor = logsigmoid(logit_PK[:, 0]).sum()
        far: Tensor = (logsigmoid(-logit_PK[:, 1:]) * drawn_PK).sum()
        return -(near + far)


class Products(torch.autograd.Function):
    """[P, K]: the products of P rows with K rows each of another table, without a copy of a row for each product.

    Such copies cost some five times as long as what is computed from them. The products are the entries of a sparse
    matrix, and so are their gradients: those of the tables are its products with the tables. Sparse matrices exist in
    single precision alone.
    """

    @staticmethod
    def forward(ctx: Any, read_PD: Tensor, table_UD: Tensor, at_PK: Tensor) -> Tensor:
        wide_UD = pad(table_UD, (0, 0, 0, max(0, at_PK.shape[1] - len(table_UD))))  # a row has K places or more
        empty_PU = _sparse(at_PK, torch.zeros_like(at_PK, dtype=read_PD.dtype), len(wide_UD))
        ctx.save_for_backward(read_PD, wide_UD, at_PK)
        ctx.rows = len(table_UD)
        with torch.autocast(read_PD.device.type, enabled=False):
            products: Tensor = torch.sparse.sampled_addmm(empty_PU, read_PD, wide_UD.t()).values().view(at_PK.shape)
        return products

    @staticmethod
    def backward(ctx: Any, gradient_PK: Tensor) -> tuple[Tensor, Tensor, None]:
        read_PD, wide_UD, at_PK = ctx.saved_tensors
        gradient_PU = _sparse(at_PK, gradient_PK, len(wide_UD))
        with torch.autocast(read_PD.device.type, enabled=False):
            return gradient_PU @ wide_UD, (gradient_PU.t() @ read_PD)[: ctx.rows], None


def _sparse(at_PK: Tensor, value_PK: Tensor, columns: int) -> Tensor:
    """The sparse matrix with these values in these columns; a column may be named twice."""
    rows, each = at_PK.shape
    start_P = torch.arange(rows + 1, device=at_PK.device) * each
    return torch.sparse_csr_tensor(
        start_P, at_PK.reshape(-1), value_PK.reshape(-1), (rows, columns), check_invariants=False
    )


class BagOfWords(NegativeSamples):
    """The same, from the mean of the words in a window, read_C, grouped by bag_C.

    undivided: each of them gets the gradient of the mean whole, as in `word2vec.c`; if not, its share of it.
    """

    def __init__(self, network: Network, undivided: bool) -> None:
        super().__init__(network)
        self.undivided = undivided

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["read_C"]]

    def read(self, outputs: Outputs, batch: Batch) -> Tensor:
        read_CD, bag_C = outputs.at(batch["read_C"]), batch["bag_C"]
        bags = len(batch["target_P"])
        sum_PD = read_CD.new_zeros(bags, read_CD.shape[1]).index_add(0, bag_C, read_CD)
        mean_PD = sum_PD / torch.bincount(bag_C, minlength=bags)[:, None]
        return mean_PD.detach() + (sum_PD - sum_PD.detach()) if self.undivided else mean_PD


class GloVe(Head):
    """The weighted squared error of the logarithm of a count: f(X) / 2 (w v + b + c - ln X)^2 with f(X) = min(1,
    (X / x_max) ^ power) (Pennington et al. 2014, equation 8, with the half of `glove.c`).

    Reads target_P, count_P and share_P (`CountedWindows`).
    """

    denominator = "predicted"

    def __init__(self, network: Network, x_max: float, power: float) -> None:
        super().__init__()
        words, width = network.table_VD.shape
        self.x_max, self.power = x_max, power
        self.context, self.bias, self.context_bias = (nn.Embedding(words, size) for size in (width, 1, 1))

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["slot_P"]]

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, 1]: the estimates of ln X."""
        slot_P, target_P = batch["slot_P"], batch["target_P"]
        product_P1 = (outputs.at(slot_P) * self.context(target_P)).sum(-1, keepdim=True)
        estimate_P1: Tensor = product_P1 + self.bias(batch["ids_BL"].reshape(-1)[slot_P]) + self.context_bias(target_P)
        return estimate_P1

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        count_P = batch["count_P"]
        residual_P = self.logits(outputs, batch)[:, 0] - count_P.log()
        weight_P = (count_P / self.x_max).pow(self.power).clamp_max(1.0)
        loss: Tensor = 0.5 * (batch["share_P"] / count_P * weight_P * residual_P.square()).sum()
        return loss


class NeuralLM(TokenHead):
    """y = b + W x + U tanh(d + H x), x being the vectors of the last n - 1 words side by side (Bengio et al. 2003,
    equation 1); before the first word of a row they are 0.

    Args:
        words: n - 1.
        hidden: width of tanh.
        direct: whether there is W.
    """

    def __init__(self, network: Network, words: int, hidden: int, direct: bool) -> None:
        super().__init__()
        self.words = words
        entries, width = network.table_VD.shape
        self.hidden = nn.Linear(words * width, hidden)
        self.output = nn.Linear(hidden, entries)
        self.direct = nn.Linear(words * width, entries, bias=False) if direct else None

    def reads(self, batch: Batch) -> list[Tensor] | None:
        """Also places before those that predict."""
        return None

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        hidden_BLD = outputs.hidden_BLD
        length = hidden_BLD.shape[1]
        padded_BLD = pad(hidden_BLD, (0, 0, self.words - 1, 0))
        last = [padded_BLD[:, self.words - 1 - back :][:, :length] for back in range(self.words)]
        return self.scores(torch.cat(last, -1).flatten(0, 1)[batch["slot_P"]])

    def scores(self, hidden_PD: Tensor) -> Tensor:
        """[P, V] for vectors side by side, the last word's first."""
        logits_PV: Tensor = self.output(torch.tanh(self.hidden(hidden_PD)))
        return logits_PV if self.direct is None else logits_PV + self.direct(hidden_PD)
