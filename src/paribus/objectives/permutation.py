"""Permutation language modeling: predict the noise token by token in a random order (XLNet, arXiv 1906.08237)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.corruption.collators.permutation import PermutationCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.permutation_span import PermutationSpan
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.permutation import AllAtOnce, Permutation
from paribus.corruption.views.replace import Replace, Unchanged
from paribus.data.mask_schedule import Static
from paribus.objectives.spec import HeldOutText, ObjectiveSpec, Statistics

if TYPE_CHECKING:
    from paribus.core.settings import HeldOut
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.tokens.prepare import Data
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.evaluation import Evaluation
    from paribus.objectives.objective import Objective
    from paribus.objectives.spec import RunSettings


@dataclass(frozen=True)
class PermutationLM(ObjectiveSpec):
    """Predict each noise token from all text and from the noise before it in a random order, by the query stream.

    `masking` says what is predicted, as XLNet's spans (`masking=permutation_span`); nothing is hidden in the text.

    Its held-out loss, plm_loss, asks for XLNet's spans in fixed orders. Beside it stands mlm_loss: the places that the
    held-out evaluation of masked language models asks for, each predicted from all text that is not asked for. There
    BERT reads [MASK], or a random token or the original in every tenth place each, so that the two are other sets of
    targets; with `evaluation.inputs` that shows [MASK] alone they are the same question.
    """

    semantics: ClassVar[int] = 1
    needs_two_streams: ClassVar[bool] = True

    @property
    def collator(self) -> PermutationCollator:
        return PermutationCollator()

    def corruption(self, masking: NoisePattern) -> Corruption:
        return Corruption(masking, Unchanged(), attention_mask=Permutation())

    def held_out(self, settings: HeldOut) -> HeldOutText:
        spans = PermutationSpan(schedule=Static())
        targets = f"1 in {spans.context:g} tokens, in spans and in a fixed order"
        return HeldOutText(settings.input, self.corruption(spans), self.collator, targets)

    def evaluations(self, run: RunSettings, data: Data) -> Sequence[Evaluation]:
        """What a masked language model is asked."""
        from paribus.corruption.examples import open_examples
        from paribus.objectives.evaluation import AskedAsMasked

        settings, train_ids = run.evaluation, data.stores["train"].ids
        asked = super().held_out(settings)
        targets = asked.targets
        if settings.masking is None:
            masking: NoisePattern = Bernoulli(settings.rate, schedule=Static())
            targets = f"{100 * settings.rate:g}% of the tokens, unseen"
        else:
            masking = settings.masking
            if not (isinstance(settings.inputs, Replace) and settings.inputs.mask == 1.0):
                targets = f"{targets}, unseen"
        corruption = Corruption(masking, Unchanged(), attention_mask=AllAtOnce())
        examples = open_examples(data, "validation", settings.input, corruption, settings.seed, self.collator)
        return [AskedAsMasked(examples, settings.examples, "mlm", targets, train_ids)]

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.vocabulary import TiedHead
        from paribus.objectives.objective import Objective

        return Objective({"plm": TiedHead(network), **self.further_heads(network)})

    def further_heads(self, network: Network) -> dict[str, Head]:
        """Heads beside that on tokens."""
        return {}

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """Of the query stream and the softmax."""
        counts, shape = statistics.counts, model.shape
        queries = shape.query_flops(statistics.predicted, counts["input_tokens"], statistics.length)
        return queries + statistics.predicted * 2.0 * model.hidden * statistics.vocabulary


@dataclass(frozen=True)
class PermutationLMWithNSP(PermutationLM):
    """Also whether B follows A, from the state of [CLS], which the paper left out again (section 3.4, row 8)."""

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "next"

    def further_heads(self, network: Network) -> dict[str, Head]:
        from paribus.models.heads.rows import PairHead

        return {"nsp": PairHead(network.width, 2)}
