"""Wrappers between a network and any head: chosen layers, a BiLSTM, a different summary of a row or a text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from paribus.models.heads.head import Head, RowLoss, Wrapper
from paribus.models.network import Batch, Outputs, find_real

WIDTHS = (3, 4, 5)  # tokens that a filter of the TextCNN spans (arXiv 1408.5882, section 3.1)
FILTERS = 100  # of each width
HEAD_WIDTH = 64  # of the transformer over windows


class OnLayers(Wrapper):
    """Any head, on the states after chosen layers (0: the embeddings, l: layer l, counted from 1).

    Several are put side by side, averaged, or reduced to their largest values (Sun et al., arXiv 1905.05583, section
    5.3.2), or are summed with learned weights: gamma * softmax(w), as in ELMo (arXiv 1802.05365, section 3.2). The
    final LayerNorm of a pre-LN encoder is applied to every layer but the embeddings, as it is to the last.

    `strength` times the sum of the squared weights is added to the loss of a step, so that the weights stay alike
    (ELMo, section 3.2: lambda).
    """

    initial_values: ClassVar[Mapping[str, float]] = {"weight_N": 0.0, "gamma": 1.0}

    def __init__(self, layers: Sequence[int], combine: str, strength: float, head: Head) -> None:
        super().__init__(head)
        self.reads_layers = True
        self.layers, self.combine, self.strength = tuple(layers), combine, strength
        if combine == "weighted":
            self.weight_N = nn.Parameter(torch.zeros(len(self.layers)))
            self.gamma = nn.Parameter(torch.ones(()))

    def report(self) -> dict[str, float]:
        """Of learned weights the share of each layer, `mix_l0` and so on, the mean layer (`centre_of_gravity`; Tenney
        et al., arXiv 1905.05950, section 3.2), and how far the shares are from equal ones (`mix_kl`, in bits).
        """
        numbers = super().report()
        if self.combine == "weighted":
            share_N = self.weight_N.detach().double().cpu().softmax(0)
            numbers |= {f"mix_l{layer}": float(share) for layer, share in zip(self.layers, share_N, strict=True)}
            numbers["centre_of_gravity"] = float(share_N @ torch.tensor(self.layers, dtype=torch.double))
            numbers["mix_kl"] = float(torch.special.xlogy(share_N, share_N * len(share_N)).sum()) / math.log(2)
        return numbers

    def penalty(self) -> Tensor | None:
        below = super().penalty()
        if not self.strength:
            return below
        squares = self.strength * self.weight_N.square().sum()
        return squares if below is None else squares + below

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        """The combined states."""
        assert outputs.layers is not None
        states = [outputs.layers[layer] for layer in self.layers]
        if self.combine == "concat":
            hidden_BLD = torch.cat(states, dim=-1)
        elif self.combine == "mean":
            hidden_BLD = torch.stack(states).mean(0)
        elif self.combine == "max":
            hidden_BLD = torch.stack(states).amax(0)
        else:
            states_NBLD = torch.stack(states)
            share_N = self.weight_N.softmax(0).to(states_NBLD.dtype)
            hidden_BLD = self.gamma * torch.einsum("n,nbld->bld", share_N, states_NBLD)
        summary_BD = None if outputs.summarize is None else outputs.summarize(hidden_BLD, batch)
        return Outputs(hidden_BLD, outputs.state, summary_BD)


class _ZeroBiasLSTM(nn.LSTM):
    """An LSTM of one layer in both directions whose biases all begin at 0, those of forget gates too."""

    initial_values: ClassVar[Mapping[str, float]] = {
        f"bias_{side}_l0{direction}": 0.0 for side in ("ih", "hh") for direction in ("", "_reverse")
    }


class OnBiLSTM(Wrapper):
    """Any head, on a BiLSTM over the final hidden states instead of these (BERT, section 5.1: "+ BiLSTM").

    One layer; each direction has half the encoder's width, so that the head keeps its shape. A row is summarized by the
    last states of both directions. The paper gives neither width nor summary. Padding is not read.
    """

    def __init__(self, width: int, head: Head) -> None:
        super().__init__(head)
        self.lstm = _ZeroBiasLSTM(width, width // 2, batch_first=True, bidirectional=True)

    @property
    def std(self) -> float:
        """Standard deviation of the BiLSTM's initial weights: that of PyTorch's own."""
        return float((3 * self.lstm.hidden_size) ** -0.5)

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        """The states of both directions at every place, in full precision."""
        with torch.autocast(outputs.hidden_BLD.device.type, enabled=False):
            packed = pack_padded_sequence(
                outputs.hidden_BLD.float(), batch["length_B"].cpu(), batch_first=True, enforce_sorted=False
            )
            states, (last_2BD, _) = self.lstm(packed)
        hidden_BLD, _ = pad_packed_sequence(states, batch_first=True, total_length=outputs.hidden_BLD.shape[1])
        return Outputs(hidden_BLD, outputs.state, torch.cat(tuple(last_2BD), dim=-1))


class OnPooled(Wrapper):
    """Any head, on the first (`cls`), the last (`sep`) or both (`cls_sep`), the mean or the largest values of a row's
    states, special tokens included and padding left out.
    """

    def __init__(self, kind: str, head: Head) -> None:
        super().__init__(head)
        self.kind = kind

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        return Outputs(outputs.hidden_BLD, outputs.state, pool(self.kind, outputs.hidden_BLD, batch["length_B"]))


class OnTextCNN(Wrapper):
    """Any head, on the largest values of new convolutions over a row's states (TextCNN, arXiv 1408.5882)."""

    width = len(WIDTHS) * FILTERS

    def __init__(self, width: int, head: Head) -> None:
        super().__init__(head)
        self.filters = nn.ModuleList(nn.Conv1d(width, FILTERS, size, padding=size - 1) for size in WIDTHS)

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        """Padding reads as zeros, as it does beyond the end of a row."""
        hidden_BLD = outputs.hidden_BLD
        hidden_BDL = (hidden_BLD * find_real(batch["length_B"], hidden_BLD.shape[1])[..., None]).transpose(1, 2)
        largest: list[Tensor] = []
        for conv in self.filters:
            feature_BFL = conv(hidden_BDL).relu()
            # Only windows that hold a real token count, so that a row's padding has no effect
            windows_B = batch["length_B"] + feature_BFL.shape[2] - hidden_BDL.shape[2]
            inside_BL = torch.arange(feature_BFL.shape[2], device=windows_B.device) < windows_B[:, None]
            largest.append((feature_BFL * inside_BL[:, None]).amax(2))
        return Outputs(hidden_BLD, outputs.state, torch.cat(largest, dim=-1))


class OnWindows(Wrapper):
    """Any head, on what is made of the summaries of a text's windows.

    Their largest values, their mean, a sum weighted by a learned query, v tanh(U x), as in hierarchical attention
    (Sun et al., arXiv 1905.05583, section 5.3.1), or the mean after one transformer layer over them with learned
    positions (Pappagari et al., arXiv 1910.10781).
    """

    def __init__(self, kind: str, width: int, most: int, head: Head) -> None:
        super().__init__(head)
        self.kind = kind
        if kind == "attention":
            self.key, self.query = nn.Linear(width, width), nn.Linear(width, 1, bias=False)
        elif kind == "transformer":
            heads = max(1, width // HEAD_WIDTH)
            self.position = nn.Embedding(most, width)
            self.layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        row_BKD, real_BK1 = gather_rows(outputs.row_BD, batch["place_BK"])
        if self.kind == "max":
            row_BD = row_BKD.masked_fill(~real_BK1, float("-inf")).amax(1)
        elif self.kind == "attention":
            score_BK1 = self.query(self.key(row_BKD).tanh()).masked_fill(~real_BK1, float("-inf"))
            row_BD = (score_BK1.softmax(1) * row_BKD).sum(1)
        else:
            if self.kind == "transformer":
                place_K = torch.arange(row_BKD.shape[1], device=row_BKD.device)
                row_BKD = self.layer(row_BKD + self.position(place_K), src_key_padding_mask=~real_BK1[..., 0])
            row_BD = (row_BKD * real_BK1).sum(1) / real_BK1.sum(1)
        return Outputs(outputs.hidden_BLD, outputs.state, row_BD)


class OnLastRow(Wrapper):
    """Any head, on the summary of the last row of each example."""

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        place_BK = batch["place_BK"]  # -1 behind the last row
        return Outputs(outputs.hidden_BLD, outputs.state, outputs.row_BD[place_BK.amax(1)])


class OnSum(Wrapper):
    """Any head, on the sum of the summaries of an example's rows."""

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        row_BKD, real_BK1 = gather_rows(outputs.row_BD, batch["place_BK"])
        return Outputs(outputs.hidden_BLD, outputs.state, (row_BKD * real_BK1).sum(1))


class OnOptions(Wrapper):
    """A head with one output, on the rows of all options of an example; a softmax compares their scores."""

    def __init__(self, head: Any) -> None:
        super().__init__(head)
        self.loss: RowLoss = head.loss

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        """The summaries of each example's rows, [B, K, D]."""
        row_BKD, _ = gather_rows(outputs.row_BD, batch["place_BK"])
        return Outputs(outputs.hidden_BLD, outputs.state, row_BKD)

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, K], -inf after the last option of an example."""
        return super().logits(outputs, batch)[..., 0].masked_fill(batch["place_BK"] < 0, float("-inf"))

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.loss(self.logits(outputs, batch).float(), batch["label_B"])


def pool(kind: str, hidden_BLD: Tensor, length_B: Tensor) -> Tensor:
    """[B, D], or [B, 2 D] for `cls_sep`: the summary of each row of so many tokens, as `OnPooled` has it."""
    if kind == "cls":
        return hidden_BLD[:, 0]
    if kind in ("sep", "cls_sep"):
        last_BD = hidden_BLD[torch.arange(len(hidden_BLD), device=hidden_BLD.device), length_B - 1]
        return last_BD if kind == "sep" else torch.cat([hidden_BLD[:, 0], last_BD], dim=-1)
    real_BL1 = find_real(length_B, hidden_BLD.shape[1])[..., None]
    if kind == "max":
        return hidden_BLD.masked_fill(~real_BL1, float("-inf")).amax(1)
    return (hidden_BLD * real_BL1).sum(1) / length_B[:, None].to(hidden_BLD.dtype)


def gather_rows(row_WD: Tensor, place_BK: Tensor) -> tuple[Tensor, Tensor]:
    """([B, K, D] the rows of each example, [B, K, 1] which of them there are)."""
    return row_WD[place_BK.clamp_min(0)], (place_BK >= 0)[..., None]
