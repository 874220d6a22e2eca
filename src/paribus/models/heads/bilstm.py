"""A BiLSTM between the encoder and a head, new in fine-tuning."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from paribus.models.encoder import Encoder, Outputs
from paribus.models.heads.wrapper import Wide, Wrapper


class OnBiLSTM(Wrapper):
    """Any head, on a BiLSTM over the final hidden states instead of these (BERT, section 5.1: "+ BiLSTM").

    One layer; each direction has half the encoder's width, so that the head keeps its shape. A row is summarized by the
    last states of both directions. The paper gives neither width nor summary. Padding is not read.
    """

    def __init__(self, encoder: Encoder | Wide, head: Any) -> None:
        super().__init__(head)
        self.lstm = nn.LSTM(encoder.width, encoder.width // 2, batch_first=True, bidirectional=True)

    @property
    def std(self) -> float:
        """Of the BiLSTM's initial weights: that of PyTorch's own."""
        return float((3 * self.lstm.hidden_size) ** -0.5)

    def read(self, outputs: Outputs, batch: dict[str, Any]) -> Outputs:
        """The states of both directions at every place, in full precision."""
        with torch.autocast(outputs.hidden_BLD.device.type, enabled=False):
            packed = pack_padded_sequence(
                outputs.hidden_BLD.float(), batch["length_B"].cpu(), batch_first=True, enforce_sorted=False
            )
            states, (last_2BD, _) = self.lstm(packed)
        hidden_BLD, _ = pad_packed_sequence(states, batch_first=True, total_length=outputs.hidden_BLD.shape[1])
        return Outputs(hidden_BLD, outputs.state, torch.cat(tuple(last_2BD), dim=-1))
