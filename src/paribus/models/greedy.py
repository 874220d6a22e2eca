"""Greedy decoding: the likeliest token, again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from paribus.models.encoder import Batch
from paribus.models.ensemble import mean, pairs_of
from paribus.models.text_to_text import TextToText


def greedy(model: nn.Module, head: Any, batch: Batch, most: int) -> list[list[int]]:
    """What the model writes for each row: at most `most` tokens, up to its end-of-sequence token, which is left out.

    An ensemble writes by the mean of its models' logits at every token. What the batch holds of targets is not read.
    """
    pairs = pairs_of(model, head)
    writers = [_writer(each, own, batch, most) for each, own in pairs]
    first: Any = pairs[0][0]
    end = first.vocabulary.sep
    ended_B = torch.zeros(len(batch["length_B"]), dtype=torch.bool, device=batch["ids_BL"].device)
    written: list[Tensor] = []
    while len(written) < most and not bool(ended_B.all()):
        last_B = written[-1] if written else None
        token_B = mean([scores(last_B) for scores in writers]).argmax(-1)
        written.append(torch.where(ended_B, end, token_B))
        ended_B |= token_B == end
    return [_upto(row, end) for row in torch.stack(written, dim=1).tolist()]


def _writer(model: Any, head: Any, batch: Batch, most: int) -> Callable[[Tensor | None], Tensor]:
    """What gives the logits [B, V] of the next token from the last one that was written, if any."""
    after = _Stream(model, batch, most) if model.spec.single else _Decoder(model, batch)
    return lambda token_B: head.scores(after(token_B))


def _upto(row: list[int], end: int) -> list[int]:
    return row[: row.index(end)] if end in row else row


class _Decoder:
    """States [B, D] behind what is written so far, keys and values of which are kept."""

    def __init__(self, model: TextToText, batch: Batch) -> None:
        self.decoder: Any = model.backbone.decoder
        self.mask_BL = model.real(batch)
        self.read_BLD = model.backbone.encoder(input_ids=batch["ids_BL"], attention_mask=self.mask_BL).last_hidden_state
        self.start_B = torch.full_like(batch["length_B"], model.vocabulary.pad)
        self.kept: Any = None

    def __call__(self, token_B: Tensor | None) -> Tensor:
        found = self.decoder(
            input_ids=(self.start_B if token_B is None else token_B)[:, None],
            encoder_hidden_states=self.read_BLD,
            encoder_attention_mask=self.mask_BL,
            past_key_values=self.kept,
            use_cache=True,
        )
        self.kept = found.past_key_values
        state_BD: Tensor = found.last_hidden_state[:, -1]
        return state_BD


class _Stream:
    """The same of one stream, which is read anew for every token: a stack without cross-attention keeps nothing."""

    def __init__(self, model: TextToText, batch: Batch, most: int) -> None:
        self.backbone, self.prefix_B = model.backbone, batch["prefix_length_B"]
        self.row_B = torch.arange(len(self.prefix_B), device=self.prefix_B.device)
        self.length_B = self.prefix_B.clone()
        width = int(self.prefix_B.max())
        read_BL = batch["ids_BL"][:, :width]
        hidden_BL = torch.arange(width, device=read_BL.device) >= self.prefix_B[:, None]
        room_BM = read_BL.new_full((len(read_BL), most), model.vocabulary.pad)
        self.ids_BL = torch.cat([read_BL.masked_fill(hidden_BL, model.vocabulary.pad), room_BM], dim=1)

    def __call__(self, token_B: Tensor | None) -> Tensor:
        if token_B is not None:
            self.ids_BL[self.row_B, self.length_B] = token_B
            self.length_B = self.length_B + 1
        hidden_BLD = self.backbone(self.ids_BL[:, : int(self.length_B.max())], self.prefix_B)
        state_BD: Tensor = hidden_BLD[self.row_B, self.length_B - 1]
        return state_BD
