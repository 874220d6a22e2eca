"""Heads that predict tokens: masked and permutation LM, words out of order, span boundaries, language model, and those
that learn from tokens that a generator replaced (ELECTRA, arXiv 2003.10555, sections 2 and 3.4; batches carry
`original_BL`, the text before noise).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, gelu, linear, log_softmax, logsigmoid
from transformers.activations import ACT2FN

from paribus.models.heads.head import Head, TokenHead, summed_cross_entropy
from paribus.models.network import Batch, Network, Outputs, find_real, initialize

ORIGINAL = "original_BL"


class MaskedLMHead(TokenHead):
    """dense, GELU, LayerNorm, the tied word embeddings, an output bias (BERT, `run_pretraining.py`).

    The dense layer leads to the width of the embeddings if that is another one (ALBERT, `run_pretraining.py`). A
    left-to-right LM has this head too: its targets are one place to the right of the state that predicts them. A
    network may say that the table is not tied, and where the bias begins (`head_untied`, `head_counts`).
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = [network]  # held, not registered: its parameters belong to the network
        words, width = network.table_VD.shape
        self.dense = nn.Linear(network.width, width, bias="dense" not in network.head_unbiased)
        self.activation: nn.Module = ACT2FN[network.head_activation]
        self.norm = nn.LayerNorm(width, eps=network.norm_eps, bias="norm" not in network.head_unbiased)
        self.bias = nn.Parameter(torch.zeros(words))
        self.own_table_VD = nn.Parameter(torch.zeros(words, width)) if network.head_untied else None
        self.logit_scale = network.logit_scale
        self.initial_values = {"bias": initial_bias(network)}

    @property
    def tied_VD(self) -> Tensor:
        """The word embeddings, to which it is tied unless it has a table of its own."""
        return self._network[0].table_VD

    @property
    def table_VD(self) -> Tensor:
        """The output table."""
        return self.tied_VD if self.own_table_VD is None else self.own_table_VD

    def scores(self, hidden_PD: Tensor) -> Tensor:
        state_PD = self.norm(self.activation(self.dense(hidden_PD)))
        return linear(state_PD if self.logit_scale == 1.0 else state_PD * self.logit_scale, self.table_VD, self.bias)


class SideLMHead(MaskedLMHead):
    """The head of one of two encoders side by side: it reads their half of the states, at the places `slots`."""

    def __init__(self, network: Any, side: str, slots: str) -> None:
        super().__init__(network.side(side))
        self._network, self.side, self.slots = [network], side, slots

    @property
    def tied_VD(self) -> Tensor:
        network: Any = self._network[0]
        table_VD: Tensor = network.side(self.side).table_VD
        return table_VD

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch[self.slots]]

    def scores(self, hidden_PD: Tensor) -> Tensor:
        return super().scores(hidden_PD.chunk(2, -1)[self.side == "right"])

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.scores(outputs.at(batch[self.slots]))


class WordOrderHead(Head):
    """The masked-LM head, applied to tokens out of order (StructBERT, arXiv 1908.04577, section 2.2).

    Reads `moved_P` and `moved_target_P`.
    """

    denominator = "moved"

    def __init__(self, head: MaskedLMHead) -> None:
        super().__init__()
        self._head = [head]  # held, not registered: its parameters are those of the masked-LM head

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["moved_P"]]

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, V] for the P tokens out of order."""
        return self._head[0].scores(outputs.at(batch["moved_P"]))

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return summed_cross_entropy(self.logits(outputs, batch), batch["moved_target_P"])


class SpanBoundaryHead(Head):
    """Two layers, each with GELU and LayerNorm, the tied word embeddings and its own output bias (SpanBERT, section
    3.2), on the states beside the span and an embedding, of width `place`, of the place in it, one of `most`.

    Reads `left_S`, `right_S` (flat positions in [B, L]), `place_S` and `inside_S`, the target; its loss is 0 if no span
    has a boundary.
    """

    denominator = "boundary"
    extra_count = 1  # as in SpanBERT's `spanbert_loss.py`

    def __init__(self, network: Network, most: int, place: int) -> None:
        super().__init__()
        self._network = [network]  # held, not registered: its parameters belong to the network
        (words, width), eps = network.table_VD.shape, network.norm_eps
        self.place = nn.Embedding(most, place)
        self.first = nn.Linear(2 * network.width + place, network.width)
        self.first_norm = nn.LayerNorm(network.width, eps=eps)
        self.second = nn.Linear(network.width, width)
        self.second_norm = nn.LayerNorm(width, eps=eps)
        self.bias = nn.Parameter(torch.zeros(words))
        self.own_table_VD = nn.Parameter(torch.zeros(words, width)) if network.head_untied else None
        self.initial_values = {"bias": initial_bias(network)}

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["left_S"], batch["right_S"]]

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[S, V] for the S tokens of spans."""
        beside = [outputs.at(batch[side]) for side in ("left_S", "right_S")]
        read_SE = torch.cat([*beside, self.place(batch["place_S"])], dim=-1)
        first_SD = self.first_norm(gelu(self.first(read_SE)))
        table_VD = self._network[0].table_VD if self.own_table_VD is None else self.own_table_VD
        return linear(self.second_norm(gelu(self.second(first_SD))), table_VD, self.bias)

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return summed_cross_entropy(self.logits(outputs, batch), batch["inside_S"])


class LanguageModelHead(TokenHead):
    """The tied word embeddings on states scaled by 1 / sqrt(width), or a separate matrix (T5, section 2.1; T5 v1.1).

    Positions refer to what is written.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = [network]  # held, not registered: its parameters belong to the network
        self.weight = None if network.spec.tied_head else nn.Parameter(torch.zeros_like(network.table_VD))

    def scores(self, hidden_PD: Tensor) -> Tensor:
        network = self._network[0]
        if self.weight is not None:
            return linear(hidden_PD, self.weight)
        return linear(hidden_PD * network.width**-0.5, network.table_VD)


class TiedHead(TokenHead):
    """The tied word embeddings and an output bias, without a layer between (XLNet, arXiv 1906.08237, section 2.3).

    Reads `slot_P`, where the states of a network with two streams are those of its query stream.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = [network]  # held, not registered: its parameters belong to the network
        self.bias = nn.Parameter(torch.zeros(len(network.table_VD)))
        self.initial_values = {"bias": initial_bias(network)}

    def scores(self, hidden_PD: Tensor) -> Tensor:
        return linear(hidden_PD, self._network[0].table_VD, self.bias)


def initial_bias(network: Network) -> float | Tensor:
    """0, or float32 [V]: the logarithms of add-one frequencies in the training text, if the network asks for them."""
    if not network.head_counts:
        return 0.0
    count_V = torch.from_numpy(network.vocabulary.count_V) + 1.0
    return (count_V / count_V.sum()).log().float()


def start_head(head: Head, network: Network, seed: int, weights: Mapping[str, Tensor] | None) -> Head:
    """The head with these weights, or with initial ones that depend on seed, name and shape alone."""
    initialize(head, seed, network.spec.initializer_range)
    if weights:
        head.load_state_dict(dict(weights))
    return head


def find_places(batch: Batch) -> Tensor:
    """[N]: flat places of [B, L] that are not padding, special tokens included."""
    return find_real(batch["length_B"], batch["ids_BL"].shape[1]).flatten().nonzero()[:, 0]


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
        place_N = find_places(batch) if self.everywhere else batch["slot_P"]
        score_N: Tensor = self.score(gelu(self.dense(outputs.at(place_N))))[:, 0]
        return score_N

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        place_N = find_places(batch) if self.everywhere else batch["slot_P"]
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
        place_N = find_places(batch)
        hidden_ND = outputs.at(place_N)
        read_N, original_N = (batch[name].flatten()[place_N] for name in ("ids_BL", ORIGINAL))
        return sum_copy_losses(self.scores(hidden_ND), self.gate(hidden_ND)[:, 0], read_N, original_N)


def sum_copy_losses(logits_NV: Tensor, gate_N: Tensor, read_N: Tensor, original_N: Tensor) -> Tensor:
    """The sum of -log p(original), in float32 and in log space."""
    gate_N = gate_N.float()
    written_N = logsigmoid(-gate_N) - cross_entropy(logits_NV.float(), original_N, reduction="none")
    copied_N = torch.logaddexp(logsigmoid(gate_N), written_N)
    return -torch.where(read_N == original_N, copied_N, written_N).sum()
