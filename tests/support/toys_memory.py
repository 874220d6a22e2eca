"""A recurrent network with memory, and an input format whose steps read parallel streams of text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor, nn

from paribus.data.formats.full_sentences import FullSentences
from paribus.data.order import Block, Order, StreamMarks, check_limits
from paribus.models.network import Batch, Network, Outputs, initialize
from paribus.models.spec import ModelSpec


@dataclass(frozen=True)
class Recurrent(ModelSpec):
    """Word embeddings and an LSTM, which reads on where the row of the step before ended."""

    hidden: int
    layers: int = 1
    dropout: float = 0.0
    semantics: ClassVar[int] = 1

    @property
    def attention(self) -> str:
        return "left"

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = RecurrentNetwork(self, vocabulary)
        initialize(network, seed, network.std)
        return network

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        return tokens * self.layers * 16.0 * self.hidden**2


class Cells(NamedTuple):
    """What an LSTM leaves: both [layers, B, D]."""

    hidden_NBD: Tensor
    cell_NBD: Tensor


class RecurrentNetwork(Network):
    def __init__(self, spec: Recurrent, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary, spec.hidden, spec.layers)
        words = nn.Embedding(vocabulary.size, spec.hidden, padding_idx=vocabulary.pad)
        lstm = nn.LSTM(spec.hidden, spec.hidden, spec.layers, batch_first=True, dropout=spec.dropout)
        self.backbone = nn.ModuleDict({"words": words, "lstm": lstm})

    @property
    def table_VD(self) -> nn.Parameter:
        return self.backbone["words"].weight  # type: ignore[no-any-return]

    def forward(self, batch: Batch, state: Cells | None = None) -> Outputs:
        if state is not None:
            keep_B1 = ~batch["begins_B"][:, None]
            state = Cells(state.hidden_NBD * keep_B1, state.cell_NBD * keep_B1)
        hidden_BLD, left = self.backbone["lstm"](self.backbone["words"](batch["ids_BL"]), state)
        return Outputs(hidden_BLD, Cells(*left))


@dataclass(frozen=True)
class ParallelStreams(Order[Any]):
    """`size` contiguous streams of rows, one row of each per step."""

    examples: Any
    size: int

    @property
    def per_epoch(self) -> int:
        return int(self.examples.size(0)) // self.size

    def blocks(self, step: int) -> list[Block]:
        epoch, at = divmod(step, self.per_epoch)
        return [(epoch, np.arange(self.size) * self.per_epoch + at)]

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        tokens = self.examples.tokens(0) / self.examples.size(0) * self.size
        limits = (max_steps, max_tokens and max_tokens / tokens, max_epochs and max_epochs * self.per_epoch)
        return int(min(limit for limit in limits if limit is not None))

    def split(self, epoch: int, rows: Any, most: int | None) -> Iterator[Any]:
        yield from np.split(rows, range(most, len(rows), most) if most else [])

    def marks(self, epoch: int, rows: Any) -> StreamMarks:
        return StreamMarks(rows % self.per_epoch == 0)


@dataclass(frozen=True)
class Streams(FullSentences):
    """Rows of whole sentences, in the order of the text."""

    def arrange(self, examples: Any, seed: int, size: int, tokens: int | None) -> Any:
        return ParallelStreams(examples, size)
