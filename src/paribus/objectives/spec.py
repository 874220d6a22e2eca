"""The base class of objective settings; torch is imported when the objective is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Replace, Unchanged
from paribus.data.mask_schedule import Static

if TYPE_CHECKING:
    from paribus.core.settings import HeldOut
    from paribus.corruption.collators.collator import Collator
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.annotators import Annotator
    from paribus.data.formats.input_format import InputFormat
    from paribus.data.tokens.prepare import Data
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.evaluation import Evaluation
    from paribus.objectives.objective import Objective

BACKWARD: Final = 2.0  # a backward pass costs two forward passes


class Statistics(NamedTuple):
    """Statistics of the batches of a training.

    Attributes:
        counts: sums over all batches, under the names of `batch["counts"]`: "input_tokens", "predicted" ...
        length: tokens of a full row.
        vocabulary: entries of the vocabulary.
    """

    counts: Mapping[str, float]
    length: float
    vocabulary: int

    @property
    def predicted(self) -> float:
        """Positions that a head on tokens predicts, words out of order included."""
        return self.counts["predicted"] + self.counts.get("moved", 0)


class HeldOutText(NamedTuple):
    """What the held-out evaluation asks: the rows of the validation split and what is predicted in them.

    Attributes:
        input: how the text is cut into rows.
        corruption: of the rows, the same in every pass.
        collator: that packs them; None for the model's.
        targets: a short plain name of the set of places that are predicted. Arms whose sets have different names
            share no column.
    """

    input: InputFormat
    corruption: Corruption
    collator: Collator | None
    targets: str


class RunSettings(Protocol):
    """What a further evaluation may know of its run."""

    @property
    def evaluation(self) -> HeldOut: ...

    @property
    def input(self) -> InputFormat: ...

    @property
    def masking(self) -> NoisePattern: ...

    @property
    def model(self) -> ModelSpec: ...

    @property
    def root_seed(self) -> int: ...


class ObjectiveSpec(ABC):
    """What is predicted, and its loss. A subclass is a frozen dataclass that overrides these defaults.

    Attributes:
        stages: a version number; increased when what it takes over from the stage before changes.
        needed_pairs: the kind of pairs that it predicts from: "next", "order" or "three"; None for single texts.
        needed_attention: the attention that the model must have: "left", "right", "two_way" or "full"; None for any.
        brings_mask: whether each row has its own attention mask.
        predicts_noise: whether it predicts the noised positions; if not, it predicts all of the text.
        needs_spans: whether noise must come in spans.
        writes_text: whether it needs a text-to-text model.
        predicts_text: whether the held-out evaluation predicts all of the text from one side, so that its loss is also
            one per character and per word.
        needs_two_streams: whether it needs a model whose second stream predicts tokens that it does not see.
        needs_static: whether it needs a table of word vectors, whose states know nothing of the words beside them.
        framed: whether its rows need [CLS] and [SEP], if it writes no text.
    """

    semantics: ClassVar[int] = 1
    stages: ClassVar[int] = 3
    needed_pairs: ClassVar[str | None] = None
    needed_attention: ClassVar[str | None] = None
    brings_mask: ClassVar[bool] = False
    predicts_noise: ClassVar[bool] = True
    needs_spans: ClassVar[bool] = False
    writes_text: ClassVar[bool] = False
    needs_two_streams: ClassVar[bool] = False
    needs_static: ClassVar[bool] = False
    framed: ClassVar[bool] = True
    predicts_text: ClassVar[bool] = False

    @property
    def annotator(self) -> Annotator | None:
        """The annotator that finds the spans that the objective predicts; None if it needs none."""
        return None

    @property
    def continues(self) -> bool:
        """Whether it needs a stage before it that is a masked LM."""
        return False

    @property
    def computes_weights(self) -> bool:
        """Whether weights of the network are sums of others while it is trained, so that it cannot be saved then."""
        return False

    @property
    def text_tasks(self) -> dict[str, int]:
        """{task: its steps in a cycle} if each step trains one of several tasks on the text; else nothing."""
        return {}

    @property
    def alone(self) -> ObjectiveSpec:
        """The objective without further tasks."""
        return self

    @property
    def collator(self) -> Collator | None:
        """The collator that turns views into the arrays of a batch; None for the model's."""
        return None

    @abstractmethod
    def corruption(self, masking: NoisePattern) -> Corruption:
        """What is read, and what is written, under this masking."""

    def held_out(self, settings: HeldOut) -> HeldOutText:
        """What the held-out evaluation asks its head on tokens, the same for every arm with this objective.

        By default the evaluation's own masking, inputs and targets, if it has them. Otherwise BERT's 80/10/10 at
        `settings.rate`, or every token of the text for an objective that never sees noise.
        """
        if settings.masking is not None:
            corruption = Corruption(settings.masking, settings.inputs, settings.targets)
            predicted = "predicted" if settings.targets is None else "written"
            pattern = f"{type(settings.masking).__name__} at {100 * settings.masking.rate:g}%"
            return HeldOutText(settings.input, corruption, None, f"what is {predicted} under {pattern}")
        if self.predicts_noise:
            corruption = Corruption(Bernoulli(settings.rate, schedule=Static()), Replace())
            return HeldOutText(settings.input, corruption, None, f"{100 * settings.rate:g}% of the tokens, masked")
        corruption = Corruption(NoNoise(schedule=Static()), Unchanged())
        return HeldOutText(settings.input, corruption, self.collator, "every token")

    def evaluations(self, run: RunSettings, data: Data) -> Sequence[Evaluation]:
        """Further evaluations of a trained network, opened before the first step; by default none.

        Raises UserError for text that does not allow them.
        """
        return ()

    def build(self, network: Network, vocabulary: Vocabulary, seed: int) -> Objective:
        """The objective with its initial weights, a pure function of (self, network's shape, vocabulary, seed).

        Weights that belong to `network` are not drawn again, so that arms share initial weights.
        """
        from paribus.models.network import initialize

        objective = self.compose(network, vocabulary)
        std = objective.std(network.spec.initializer_range)
        initialize(objective, seed, std, keep=network.parameters())
        return objective

    @abstractmethod
    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        """The objective with its heads and further networks, before initial weights are drawn."""

    def flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """Floating-point operations of training on batches with these statistics: forward and backward passes."""
        counts, predicted = statistics.counts, statistics.predicted
        forward = model.forward_flops(
            counts["input_tokens"], statistics.length, predicted, counts.get("sequences", 0.0)
        )
        return (1.0 + BACKWARD) * float(forward + self.head_flops(statistics, model))

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """Of one forward pass of the heads; those that read one position per row are left out."""
        return 0.0
