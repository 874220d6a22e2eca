"""The networks of static word vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from paribus.data.sequences import exclusive_cumsum
from paribus.data.tokens.ngrams import cut_ngrams, hash_text
from paribus.models.network import Batch, Network, Outputs, State, initialize, named_generator

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.word_vectors import SubwordVectors, WordVectors


class VectorTable(Network):
    """A table of vectors: the state of a token is its vector."""

    spec: WordVectors
    special_V: Tensor
    gives_layers = True

    def __init__(self, spec: WordVectors, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary, spec.hidden, 0)
        self.backbone = nn.Module()
        self.backbone.words = nn.Embedding(vocabulary.size, spec.hidden, padding_idx=vocabulary.pad)
        special_V = torch.zeros(vocabulary.size, dtype=torch.bool)
        special_V[list(vocabulary.specials)] = True
        self.register_buffer("special_V", special_V, persistent=False)

    def fill(self, seed: int) -> Self:
        """The network with its initial weights."""
        initialize(self, seed, self.spec.initializer_range)
        most = 0.5 / self.width if self.spec.initial_range is None else self.spec.initial_range
        with torch.no_grad():
            for name, table in self.backbone.named_parameters():
                table.uniform_(-most, most, generator=named_generator(seed, f"uniform {name}"))
            self.table_VD[self.vocabulary.pad] = 0.0
        return self

    @property
    def table_VD(self) -> nn.Parameter:
        table_VD: nn.Parameter = self.backbone.words.weight
        return table_VD

    def look_up(self, ids_N: Tensor) -> Tensor:
        """[..., D]: the vectors of these tokens."""
        vectors: Tensor = self.backbone.words(ids_N)
        return vectors

    def vectors_VD(self) -> Tensor:
        with torch.no_grad():
            return self.look_up(torch.arange(self.vocabulary.size, device=self.table_VD.device))

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        hidden_BLD = self.look_up(batch["ids_BL"])
        if batch.get("layers"):
            return Outputs(hidden_BLD, state, self.summarize(hidden_BLD, batch), None, (hidden_BLD,), self.summarize)
        return Outputs(hidden_BLD, state, None if "slot_P" in batch else self.summarize(hidden_BLD, batch))

    def summarize(self, hidden_BLD: Tensor, batch: Batch) -> Tensor:
        """The mean of the words of each row; zeros for a row without a word."""
        word_BL1 = (~self.special_V[batch["ids_BL"]])[..., None].to(hidden_BLD.dtype)
        return (hidden_BLD * word_BL1).sum(1) / word_BL1.sum(1).clamp_min(1.0)


class SubwordTable(VectorTable):
    """A table of words and one of the buckets of their n-grams, of which vectors are means."""

    spec: SubwordVectors
    part_T: Tensor
    size_V: Tensor
    first_V: Tensor

    def __init__(self, spec: SubwordVectors, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary)
        specials = set(vocabulary.specials)
        buckets = [
            [] if number in specials else [hash_text(part) % spec.buckets for part in self._cut(text)]
            for number, text in enumerate(vocabulary.spellings)
        ]
        used, part_T = np.unique([each for word in buckets for each in word], return_inverse=True)
        size_V = np.array([len(word) for word in buckets])
        self.backbone.parts = nn.Embedding(max(1, len(used)), spec.hidden)
        for name, numbers in (("part_T", part_T), ("size_V", size_V), ("first_V", exclusive_cumsum(size_V))):
            self.register_buffer(name, torch.from_numpy(numbers.astype(np.int64)), persistent=False)

    def _cut(self, word: str) -> list[str]:
        return list(cut_ngrams(word, self.spec.smallest, self.spec.largest))

    def look_up(self, ids_N: Tensor) -> Tensor:
        asked_U, at_N = torch.unique(ids_N, return_inverse=True)  # each word is composed once
        size_U = self.size_V[asked_U]
        start_U = size_U.cumsum(0) - size_U
        within_T = torch.arange(int(size_U.sum()), device=asked_U.device) - start_U.repeat_interleave(size_U)
        part_T = self.part_T[self.first_V[asked_U].repeat_interleave(size_U) + within_T]
        table = self.backbone.parts
        parts_UD = embedding_bag(part_T, table.weight, start_U, mode="sum", sparse=table.sparse)
        vectors_UD = (self.backbone.words(asked_U) + parts_UD) / (1 + size_U)[:, None]
        vectors: Tensor = vectors_UD[at_N]
        return vectors
