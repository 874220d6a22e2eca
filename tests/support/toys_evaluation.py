"""A recurrent network with memory and an evaluation of its own, and a network that is asked for every token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from toys import Table, WordVectors

from paribus.core.settings import HeldOut
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.examples import open_examples
from paribus.data.formats.full_sentences import FullSentences
from paribus.data.order import Block, Order, StreamMarks, check_limits
from paribus.data.tokens.prepare import Data
from paribus.models.network import Batch, Network, Outputs, initialize
from paribus.objectives.evaluation import Evaluation, HeldOutEvaluation
from paribus.objectives.mlm import CausalLM
from paribus.objectives.objective import Objective
from paribus.objectives.spec import HeldOutText, RunSettings


@dataclass(frozen=True)
class Gated(WordVectors):
    """Word vectors and a GRU, which reads on where the row before ended."""

    attention: ClassVar[str] = "left"  # type: ignore[misc]

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = GatedNetwork(self, vocabulary)
        initialize(network, seed, network.std)
        return network


class GatedNetwork(Network):
    """`began`: for each forward pass, whether it was given a state."""

    def __init__(self, spec: Gated, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary, spec.hidden, 1)
        words = nn.Embedding(vocabulary.size, spec.hidden, padding_idx=vocabulary.pad)
        self.backbone = nn.ModuleDict({"words": words, "gru": nn.GRU(spec.hidden, spec.hidden, batch_first=True)})

    @property
    def table_VD(self) -> nn.Parameter:
        return self.backbone["words"].weight  # type: ignore[no-any-return]

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        past_1BD = None if state is None else (state["last_BD"] * ~batch["begins_B"][:, None])[None]
        hidden_BLD, _ = self.backbone["gru"](self.backbone["words"](batch["ids_BL"]), past_1BD)
        rows_B = torch.arange(len(hidden_BLD), device=hidden_BLD.device)
        return Outputs(hidden_BLD, {"last_BD": hidden_BLD[rows_B, batch["length_B"] - 1]})


@dataclass(frozen=True)
class Side(Order[Any]):
    """`size` contiguous streams of rows side by side, one row of each per step."""

    examples: Any
    size: int

    @property
    def per_epoch(self) -> int:
        return int(self.examples.size(0)) // self.size

    def blocks(self, step: int) -> list[Block]:
        epoch, at = divmod(step, self.per_epoch)
        return [(epoch, np.arange(self.size) * self.per_epoch + at)]

    def evaluation(self, rows: int = 1) -> Iterator[Block]:
        for at in range(self.examples.size(0) // rows):
            yield 0, np.arange(rows) * (self.examples.size(0) // rows) + at

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        assert max_steps is not None
        return max_steps

    def split(self, epoch: int, rows: Any, most: int | None) -> Iterator[Any]:
        yield from np.split(rows, range(most, len(rows), most) if most else [])

    def marks(self, epoch: int, rows: Any) -> StreamMarks:
        return StreamMarks(rows % self.per_epoch == 0)


@dataclass(frozen=True)
class Contiguous(FullSentences):
    """Rows of whole sentences, in the order of the text."""

    def arrange(self, examples: Any, seed: int, size: int, tokens: int | None) -> Any:
        return Side(examples, size)


@dataclass(frozen=True)
class StreamLM(CausalLM):
    """A left-to-right language model whose held-out text is read with memory, and once more without."""

    def held_out(self, settings: HeldOut) -> HeldOutText:
        return super().held_out(settings)._replace(input=Contiguous(settings.input.length))

    def evaluations(self, run: RunSettings, data: Data) -> Sequence[Evaluation]:
        return [MemoryGain(*(self._read(run, data, kind) for kind in (Contiguous, FullSentences)))]

    def _read(self, run: RunSettings, data: Data, kind: type[FullSentences]) -> HeldOutEvaluation:
        _, corruption, collator, _ = self.held_out(run.evaluation)
        rows = kind(run.evaluation.input.length)
        examples = open_examples(data, "validation", rows, corruption, run.evaluation.seed, collator)
        return HeldOutEvaluation(examples, run.evaluation.examples, "clm")


class MemoryGain(Evaluation):
    """How many nats the memory saves."""

    metrics = ("memory_gain",)

    def __init__(self, remembering: HeldOutEvaluation, forgetting: HeldOutEvaluation) -> None:
        self.remembering, self.forgetting = remembering, forgetting

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        losses = [each.measure(network, objective)["clm_loss"] for each in (self.forgetting, self.remembering)]
        return {"memory_gain": losses[0] - losses[1]}

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        return {"memory_gain": {"no_memory": 0.0}}


@dataclass(frozen=True)
class Beside(WordVectors):
    """The state of a place is the mean of the vectors of its two neighbors: it does not see itself."""

    attention: ClassVar[str] = "full"  # type: ignore[misc]

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = BesideNetwork(self, vocabulary)
        initialize(network, seed, network.std)
        return network


class BesideNetwork(Table):
    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        word_BLD: Tensor = self.backbone(batch["ids_BL"])
        return Outputs((word_BLD.roll(1, 1) + word_BLD.roll(-1, 1)) / 2)


@dataclass(frozen=True)
class EveryToken(CausalLM):
    """Each token from both sides of it; `what` names the set."""

    what: str = "every token from both sides"
    needed_attention: ClassVar[str | None] = None
    loss_name: ClassVar[str] = "center"

    @property
    def collator(self) -> EncoderCollator:
        return EncoderCollator()

    def held_out(self, settings: HeldOut) -> HeldOutText:
        return super().held_out(settings)._replace(targets=self.what)
