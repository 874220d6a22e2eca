"""Greedy decoding: always the likeliest next token."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from paribus.models.ensemble import Ensemble, mean, pairs_of
from paribus.models.heads.head import TokenHead
from paribus.models.network import Batch, Network


def greedy(model: Network | Ensemble, head: TokenHead | Ensemble, batch: Batch, most: int) -> list[list[int]]:
    """What the model writes for each row: at most `most` tokens, up to its end-of-sequence token, which is left out.

    An ensemble decodes from the mean of its models' logits. Targets in the batch are not read.
    """
    pairs = pairs_of(model, head)
    writers = [(cast(TokenHead, own), network.writer(batch, most)) for network, own in pairs]
    end = pairs[0][0].vocabulary.sep
    ended_B = torch.zeros(len(batch["length_B"]), dtype=torch.bool, device=batch["ids_BL"].device)
    written: list[Tensor] = []
    while len(written) < most and not bool(ended_B.all()):
        last_B = written[-1] if written else None
        token_B = mean([own.scores(write(last_B)) for own, write in writers]).argmax(-1)
        written.append(torch.where(ended_B, end, token_B))
        ended_B |= token_B == end
    rows = torch.stack(written, dim=1).tolist()
    return [row[: row.index(end)] if end in row else row for row in rows]
