"""Heads that learn from tokens that a generator replaced: ELECTRA's, and those of its ablations toward BERT.

Clark et al. 2020, arXiv 2003.10555, sections 2 and 3.4. Batches carry `original_BL`, the text before noise.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, gelu, log_softmax, logsigmoid

from paribus.models.heads.head import Head, TokenHead
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import Batch, Network, Outputs

ORIGINAL = "original_BL"


def find_real(batch: Batch) -> Tensor:
    """[N]: flat places of [B, L] that are not padding, special tokens included."""
    column_L = torch.arange(batch["ids_BL"].shape[1], device=batch["length_B"].device)
    place_N: Tensor = (column_L < batch["length_B"][:, None]).flatten().nonzero()[:, 0]
    return place_N


class ReplacedHead(Head):
    """Is this token different from the original? dense, GELU, one score per token (ELECTRA, `modeling.py`).

    Args:
        width: of the states.
        everywhere: whether it predicts at every token; if not, only at the noised ones (the row "ELECTRA 15%").
    """

    def __init__(self, width: int, everywhere: bool = True) -> None:
        super().__init__()
        self.everywhere = everywhere
        self.denominator = "input_tokens" if everywhere else "predicted"
        self.dense = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return None if self.everywhere else [batch["slot_P"]]

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[N] logits at the positions it predicts; above 0: replaced."""
        place_N = find_real(batch) if self.everywhere else batch["slot_P"]
        score_N: Tensor = self.score(gelu(self.dense(outputs.at(place_N))))[:, 0]
        return score_N

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        place_N = find_real(batch) if self.everywhere else batch["slot_P"]
        replaced_N = (batch["ids_BL"] != batch[ORIGINAL]).flatten()[place_N]
        logits_N = self.logits(outputs, batch).float()
        return binary_cross_entropy_with_logits(logits_N, replaced_N.float(), reduction="sum")

    def answer(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.logits(outputs, batch) > 0


class CopyHead(TokenHead):
    """The original of every token: its own with probability D, else the masked LM's (the row "All-Tokens MLM").

    p(x) = D [x is read] + (1 - D) softmax(x), with D = sigmoid(w h + b) for each token.
    """

    denominator = "input_tokens"

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.words = MaskedLMHead(network)
        self.gate = nn.Linear(network.width, 1)

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return None

    def scores(self, hidden_PD: Tensor) -> Tensor:
        """[P, V] of the masked LM, without copying."""
        return self.words.scores(hidden_PD)

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, V]: logarithms of p at the predicted places."""
        hidden_PD, read_P = outputs.at(batch["slot_P"]), batch["ids_BL"].flatten()[batch["slot_P"]]
        gate_P1 = self.gate(hidden_PD).float()
        log_PV = logsigmoid(-gate_P1) + log_softmax(self.scores(hidden_PD).float(), -1)
        copied_P1 = torch.logaddexp(logsigmoid(gate_P1), log_PV.gather(1, read_P[:, None]))
        return log_PV.scatter(1, read_P[:, None], copied_P1)

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        place_N = find_real(batch)
        hidden_ND = outputs.at(place_N)
        read_N, original_N = (batch[name].flatten()[place_N] for name in ("ids_BL", ORIGINAL))
        return sum_copy_losses(self.scores(hidden_ND), self.gate(hidden_ND)[:, 0], read_N, original_N)


def sum_copy_losses(logits_NV: Tensor, gate_N: Tensor, read_N: Tensor, original_N: Tensor) -> Tensor:
    """The sum of -log p(original), in float32 and in log space."""
    gate_N = gate_N.float()
    written_N = logsigmoid(-gate_N) - cross_entropy(logits_NV.float(), original_N, reduction="none")
    copied_N = torch.logaddexp(logsigmoid(gate_N), written_N)
    return -torch.where(read_N == original_N, copied_N, written_N).sum()
