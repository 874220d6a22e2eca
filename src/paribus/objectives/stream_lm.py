"""Left-to-right language modeling on the whole text as a stream, with or without memory (Transformer-XL, arXiv
1901.02860).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import HeldOut
from paribus.corruption.collators.stream import StreamCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.streams import Streams
from paribus.data.mask_schedule import Static
from paribus.objectives.mlm import CausalLM
from paribus.objectives.spec import HeldOutText, RunSettings, Statistics

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.evaluation import Evaluation
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class StreamLM(CausalLM):
    """Predict each token of the text from those before it, in rows without [CLS] and [SEP].

    With `input=streams` rows go on where those of the step before ended, and a model with memory remembers them;
    with `input=windows` they are shuffled. The held-out evaluation reads the validation split as one stream, each
    segment from the memory of the one before, and predicts all of its tokens but the first.

    Args:
        late: train on the targets of the later half of each row alone ("half loss" in the paper's table 6).
        cutoffs: of an adaptive softmax, in entries of the vocabulary, the most frequent first; empty for the plain one.
        protocols: measure the model in segments, with memory and in a window that slides by one (`Protocols`).
        spans: attention lengths at the end, as multiples of that of the training (`AttentionLengths`).
        quarters: the loss in the quarters of a segment (`Fragmentation`).
        contexts: context lengths, ascending, of which the longest that helps is found (`EffectiveContext`).
        slid_tokens: predictions that these evaluations ask for at most; null for all of the validation split.

    Raises UserError for lists that are not ascending, and for multiples without 1.
    """

    late: bool = False
    cutoffs: Sequence[int] = ()
    protocols: bool = False
    spans: Sequence[int] = ()
    quarters: bool = False
    contexts: Sequence[int] = ()
    slid_tokens: int | None = 1024
    semantics: ClassVar[int] = 1
    framed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, values in (("spans", self.spans), ("contexts", self.contexts)):
            if list(values) != sorted({value for value in values if value > 0}):
                cause = f"objective.{name}={list(values)} is not a list of ascending numbers above 0"
                raise UserError(cause, f"set objective.{name}=[1, 2, 4]")
        if self.spans and self.spans[0] != 1:
            raise UserError(f"objective.spans={list(self.spans)} lacks 1, that of the training", "begin with 1")
        if len(self.contexts) == 1:
            raise UserError("objective.contexts has one length, with nothing to compare", "give two or more")
        if self.slid_tokens is not None and self.slid_tokens < 2:
            raise UserError(f"objective.slid_tokens={self.slid_tokens} is below 2", "give 1024, or null for all")

    @property
    def collator(self) -> StreamCollator:
        return StreamCollator(self.late)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        if not self.cutoffs:
            return super().compose(network, vocabulary)
        from paribus.models.heads.adaptive import AdaptiveHead
        from paribus.objectives.objective import Objective

        return Objective({self.loss_name: AdaptiveHead(network, self.cutoffs)})

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """With an adaptive softmax those of the most frequent entries: the others are rarely asked for."""
        if not self.cutoffs:
            return super().head_flops(statistics, model)
        return statistics.predicted * 2.0 * model.hidden * (self.cutoffs[0] + len(self.cutoffs))

    def held_out(self, settings: HeldOut) -> HeldOutText:
        corruption = Corruption(NoNoise(schedule=Static()), Unchanged())
        targets = "every token of the stream but its first"
        return HeldOutText(Streams(settings.input.length), corruption, StreamCollator(), targets)

    def evaluations(self, run: RunSettings, data: Data) -> Sequence[Evaluation]:
        from paribus.corruption.examples import open_examples
        from paribus.models.memory import MemoryBert
        from paribus.objectives import stream_evaluations as ways

        if self.spans and isinstance(run.model, MemoryBert) and run.model.same_length:
            cause = "objective.spans counts keys of segment and memory, but model.same_length=true shows fewer"
            raise UserError(cause, "set model.same_length=false, or objective.spans=[]")
        if self.protocols and not isinstance(run.model, MemoryBert):
            cause = "objective.protocols=true reads the model with memory, which it cannot have"
            raise UserError(cause, "set model=transformer_xl_tiny, or objective.protocols=false")
        if not (self.protocols or self.quarters or self.spans or self.contexts):
            return ()
        text = self.held_out(run.evaluation)
        examples = open_examples(data, "validation", text.input, text.corruption, run.evaluation.seed, text.collator)
        tokens = len(examples.store.ids) if self.slid_tokens is None else self.slid_tokens
        if tokens > ways.MOST_SLID:
            cause = f"windows would slide over {tokens:,} tokens, a pass of the network for each"
            raise UserError(cause, "set objective.slid_tokens=10000")
        for times in self.spans:
            run.model.check_length(times * (examples.length + run.model.memory), "the longest of objective.spans")
        if self.contexts:
            run.model.check_length(self.contexts[-1], "the longest of objective.contexts")
        given = examples, self.slid_tokens, self.loss_name, run.model.memory
        segments = examples, run.evaluation.examples * examples.length, self.loss_name, run.model.memory
        found: list[Evaluation] = [ways.Protocols(*given)] if self.protocols else []
        found += [ways.Fragmentation(*segments)] if self.quarters else []
        found += [ways.AttentionLengths(*given, self.spans)] if self.spans else []
        found += [ways.EffectiveContext(*given, self.contexts)] if self.contexts else []
        return found
