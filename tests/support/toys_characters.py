"""A network whose word vectors are made of characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import embedding_bag
from toys import Table, WordVectors

from paribus.models.network import Batch, Network, Outputs, initialize


@dataclass(frozen=True)
class Characters(WordVectors):
    """Each word vector gets the mean of the vectors of its characters; frequent words have a scale of their own."""

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = CharacterTable(self, vocabulary)
        initialize(network, seed, network.std)
        return network


class CharacterTable(Table):
    def __init__(self, spec: Characters, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary)
        letters = sorted({letter for text in vocabulary.spellings for letter in text})
        number = {letter: at for at, letter in enumerate(letters)}
        spelled = [[number[letter] for letter in text] for text in vocabulary.spellings]
        self.letters = nn.Embedding(len(letters), spec.hidden)
        self.register_buffer("letter_T", torch.tensor([at for row in spelled for at in row]), persistent=False)
        sizes = torch.tensor([0, *map(len, spelled[:-1])])
        self.register_buffer("first_V", sizes.cumsum(0), persistent=False)
        self.register_buffer("frequent_V", torch.tensor(vocabulary.count_V > 10), persistent=False)

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        spelled_VD = embedding_bag(self.letter_T, self.letters.weight, self.first_V)
        spelled_VD = spelled_VD * (1.0 + self.frequent_V[:, None])
        hidden_BLD = self.backbone(batch["ids_BL"]) + spelled_VD[batch["ids_BL"]]
        return Outputs(hidden_BLD, state, self.summarize(hidden_BLD, batch))
