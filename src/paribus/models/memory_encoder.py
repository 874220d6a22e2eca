"""An encoder that remembers the inputs of its layers (Transformer-XL, arXiv 1901.02860, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache

from paribus.core.errors import UserError
from paribus.models.encoder import Encoder
from paribus.models.in_order import read_in_order
from paribus.models.network import Batch, Outputs, State, recording

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.memory import MemoryBert


class Remembered(NamedTuple):
    """What a row leaves to the next row of its stream.

    Attributes:
        input_BMD: the last inputs of each layer, [B, M, D], the oldest first.
        length_B: int64, how many of them, counted from the end, belong to the stream.
    """

    input_BMD: tuple[Tensor, ...]
    length_B: Tensor


class MemoryEncoder(Encoder):
    """A left-to-right encoder whose queries see their row and what each layer read before it.

    Keys and values of the memory are projected anew by the weights of the step. A batch that does not say where rows
    begin has no memory. Training is not compiled: the inputs of layers are read while they are computed.

    Attributes:
        memory: how many places before a row are remembered; 0 for none.
    """

    reads_in_order = True

    def __init__(self, spec: MemoryBert, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary)
        self.memory, self.same_length = spec.memory, spec.same_length
        kinds = {type(layer.attention.self).__name__ for layer in self.backbone.encoder.layer}
        if spec.memory and (other := sorted(kinds - {"BertSelfAttention", "RobertaPreLayerNormSelfAttention"})):
            cause = f"model.changes put {other[0]} into the layers, which cannot read a memory"
            raise UserError(cause, "leave out that change, or set model.memory=0")

    def compile(self, *args: Any, **options: Any) -> None:
        if not self.memory:
            super().compile(*args, **options)

    @contextmanager
    def remembering(self, memory: int) -> Iterator[None]:
        """A context in which this many places are remembered, whatever the model was trained with."""
        usual, self.memory = self.memory, memory
        try:
            yield
        finally:
            self.memory = usual

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """As `Encoder.forward`, with the last `memory` places before each row; `state` is `Remembered`. Windows of
        texts are read in order.
        """
        if "window_W" in batch:
            return read_in_order(self, batch)
        if "begins_B" not in batch or not self.memory:
            return super().forward(batch)._replace(state=None)
        past = self._forget(state, batch)
        with recording(self.recorded) as states:
            hidden_BLD = self._read(batch, past)
        left = self._remember(past, states[:-1], batch)
        outputs = Outputs(hidden_BLD, left, self.summarize(hidden_BLD, batch))
        if not batch.get("layers"):
            return outputs
        return outputs._replace(layers=self.name_layers(states, hidden_BLD), summarize=self.summarize)

    def pick_rows(self, state: Remembered, row_R: Tensor) -> Remembered:
        return Remembered(tuple(input_BMD[row_R] for input_BMD in state.input_BMD), state.length_B[row_R])

    def _forget(self, state: Remembered | None, batch: Batch) -> Remembered:
        """What is remembered of the streams that go on."""
        begins_B = batch["begins_B"]
        if state is None:
            empty = self.table_VD.new_zeros(len(begins_B), 0, self.width)
            return Remembered((empty,) * self.depth, torch.zeros_like(batch["length_B"]))
        inputs = tuple(input_BMD[:, -self.memory :] for input_BMD in state.input_BMD)
        return Remembered(inputs, state.length_B.masked_fill(begins_B, 0).clamp(max=self.memory))

    def _read(self, batch: Batch, past: Remembered) -> Tensor:
        """[B, L, D]"""
        before, length = past.input_BMD[0].shape[1], batch["ids_BL"].shape[1]
        device = batch["ids_BL"].device
        cache = DynamicCache()
        if before:
            for number, (layer, input_BMD) in enumerate(zip(self.backbone.encoder.layer, past.input_BMD, strict=True)):
                attention = layer.attention.self
                read_BMD = layer.attention.LayerNorm(input_BMD) if self.spec.norm == "pre" else input_BMD
                key, value = (
                    project(read_BMD).unflatten(-1, (self.spec.heads, -1)).transpose(1, 2)
                    for project in (attention.key, attention.value)
                )
                cache.update(key, value, number)
        place_K = torch.arange(before + length, device=device)
        distance_LK = place_K[before:, None] - place_K
        sees_LK = distance_LK >= 0
        if self.same_length:
            sees_LK = sees_LK & (distance_LK < self.memory)
        own_BK = place_K >= before - past.length_B[:, None]
        mask_B1LK = sees_LK[None, None] & own_BK[:, None, None]
        return self.call(batch, mask_B1LK, past_key_values=cache, place_BQ=place_K[None, before:])

    def _remember(self, past: Remembered, inputs: list[Tensor], batch: Batch) -> Remembered:
        """The last `memory` inputs of each layer; rows that are padded leave what precedes their padding."""
        length_B, width = batch["length_B"], batch["ids_BL"].shape[1]
        known_B = (past.length_B + length_B).clamp(max=self.memory)
        joined = [torch.cat(pair, 1) for pair in zip(past.input_BMD, inputs, strict=True)]
        most = min(self.memory, joined[0].shape[1])
        if batch["full"]:
            return Remembered(tuple(input_BMD[:, -most:].detach() for input_BMD in joined), known_B)
        end_B = joined[0].shape[1] - width + length_B
        at_BM = (end_B[:, None] - most + torch.arange(most, device=end_B.device)).clamp(min=0)
        return Remembered(
            tuple(input_BMD.take_along_dim(at_BM[:, :, None], 1).detach() for input_BMD in joined), known_B
        )
