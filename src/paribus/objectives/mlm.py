"""Masked and left-to-right language modeling, alone or with a prediction from pairs of segments or span boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from paribus.core.errors import UserError
from paribus.corruption.collators.encoder import (
    BackwardCollator,
    BoundaryCollator,
    CausalCollator,
    EncoderCollator,
    RankedCollator,
    TwoWayCollator,
)
from paribus.corruption.corruption import Corruption
from paribus.objectives.spec import ObjectiveSpec, Statistics

if TYPE_CHECKING:
    from paribus.corruption.collators.collator import Collator
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.objective import Objective

PLACE: Final = 200  # width of the embedding of a place in a span, as in SpanBERT whatever the model's


@dataclass(frozen=True)
class MaskedLM(ObjectiveSpec):
    """Predict the noised positions of one text (BERT, section 3.1); `view` says what the network reads there.

    With `shuffling` the original words at places out of order are predicted too, by the same head and as a mean of
    their own (StructBERT, arXiv 1908.04577, section 2.2).
    """

    view: Any
    shuffling: Any = None
    semantics: ClassVar[int] = 1
    stages: ClassVar[int] = 2
    unset_values: ClassVar[Mapping[str, Any]] = {"shuffling": None}

    @property
    def collator(self) -> Collator:
        return EncoderCollator()

    def corruption(self, masking: NoisePattern) -> Corruption:
        return Corruption(masking, self.view, shuffling=self.shuffling)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.vocabulary import MaskedLMHead, WordOrderHead
        from paribus.objectives.objective import Objective

        tokens = MaskedLMHead(network)
        heads: dict[str, Head] = {self.loss_name: tokens, **self.further_heads(network)}
        if self.shuffling is not None:
            heads["word_order"] = WordOrderHead(tokens)
        return Objective(heads, self.loss_weights)

    @property
    def loss_name(self) -> str:
        """The name of the head on tokens, which the metrics of the held-out evaluation carry."""
        return "mlm"

    @property
    def loss_weights(self) -> dict[str, float]:
        """Weights of the losses that do not count as 1."""
        return {}

    def further_heads(self, network: Network) -> dict[str, Head]:
        """Heads beside that on tokens."""
        return {}

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        width, vocabulary = model.table_width, statistics.vocabulary
        return statistics.predicted * 2.0 * (model.hidden * width + width * vocabulary)


@dataclass(frozen=True)
class CausalLM(MaskedLM):
    """Predict each token of the text from those to its left (BERT, section 5.1: LTR), without noise.

    The hidden state of a place predicts the next token through the head of the masked LM. Targets are the tokens that
    a masked LM may be asked for: neither [CLS], [SEP], unknown words nor padding. The first of a row is predicted from
    [CLS] alone; the first of a second segment from all of the first segment and its [SEP].
    """

    semantics: ClassVar[int] = 1
    predicts_noise: ClassVar[bool] = False
    predicts_text: ClassVar[bool] = True
    needed_attention: ClassVar[str | None] = "left"
    loss_name: ClassVar[str] = "clm"

    @property
    def collator(self) -> Collator:
        return CausalCollator()


@dataclass(frozen=True)
class BackwardLM(CausalLM):
    """Predict each token of the text from those to its right: the right-to-left model of BERT, section 5.1."""

    semantics: ClassVar[int] = 1
    needed_attention: ClassVar[str | None] = "right"

    @property
    def collator(self) -> EncoderCollator:
        return BackwardCollator()


@dataclass(frozen=True)
class TwoWayLM(CausalLM):
    """Predict each token of the text from those to its left, and by another encoder from those to its right, without a
    shared weight (BERT, section 5.1: separate left-to-right and right-to-left models). The held-out loss is that of
    the left-to-right one.
    """

    semantics: ClassVar[int] = 1
    needed_attention: ClassVar[str | None] = "two_way"

    @property
    def collator(self) -> EncoderCollator:
        return TwoWayCollator()

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.vocabulary import SideLMHead
        from paribus.objectives.objective import Objective

        left, right = SideLMHead(network, "left", "slot_P"), SideLMHead(network, "right", "back_P")
        return Objective({self.loss_name: left, "clm_right": right})

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        return 2 * super().head_flops(statistics, model)


@dataclass(frozen=True)
class UnifiedLM(MaskedLM):
    """The noised positions of every row, each row under the attention mask that `attention_mask` draws for it, with one
    set of weights and one head (UniLM, arXiv 1905.03197, section 2.3).

    Its kinds of rows share their segment embeddings. The held-out evaluation and fine-tuning see both sides.
    """

    attention_mask: Any = None
    semantics: ClassVar[int] = 1
    needed_attention: ClassVar[str | None] = "full"
    brings_mask: ClassVar[bool] = True

    def corruption(self, masking: NoisePattern) -> Corruption:
        return replace(super().corruption(masking), attention_mask=self.attention_mask)

    @property
    def collator(self) -> EncoderCollator:
        return RankedCollator()


@dataclass(frozen=True)
class MaskedLMWithNSP(MaskedLM):
    """The sum of two means: over noised positions, and over pairs whose B follows A or is from another document (BERT,
    section 3.1). The head on pairs reads one position per row and is left out of `head_flops`.
    """

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "next"
    pair_loss_name: ClassVar[str] = "nsp"
    pair_kinds: ClassVar[int] = 2

    def further_heads(self, network: Network) -> dict[str, Head]:
        from paribus.models.heads.rows import PairHead

        return {self.pair_loss_name: PairHead(network.width, self.pair_kinds)}


@dataclass(frozen=True)
class MaskedLMWithSOP(MaskedLMWithNSP):
    """As with NSP, but with pairs whose segments follow each other or are swapped (ALBERT, section 3.1)."""

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "order"
    pair_loss_name: ClassVar[str] = "sop"


@dataclass(frozen=True)
class MaskedLMWithThree(MaskedLMWithNSP):
    """As with NSP, but with three kinds of pairs: B follows A, precedes it, or is from another document (StructBERT,
    arXiv 1908.04577, section 2.3).
    """

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "three"
    pair_loss_name: ClassVar[str] = "sentence"
    pair_kinds: ClassVar[int] = 3


@dataclass(frozen=True)
class MaskedLMWithSBO(MaskedLM):
    """The mean over noised positions, and `weight` times the sum over tokens of spans, each predicted from the states
    beside its span and its place in it, divided by their number + 1 (SpanBERT, section 3.2).

    Spans that touch an end of their segment have no such term. Raises UserError for settings out of range.
    """

    weight: float = 1.0
    max_pair_targets: int = 20
    semantics: ClassVar[int] = 1
    stages: ClassVar[int] = 3
    needs_spans: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.max_pair_targets, int) or self.max_pair_targets < 1:
            raise UserError(
                f"objective.max_pair_targets={self.max_pair_targets} is out of range", "give a whole number, at least 1"
            )
        if not isinstance(self.weight, int | float) or not self.weight >= 0:
            raise UserError(f"objective.weight={self.weight} is out of range", "give a number, at least 0")

    @property
    def collator(self) -> BoundaryCollator:
        return BoundaryCollator(self.max_pair_targets)

    @property
    def loss_weights(self) -> dict[str, float]:
        return {"sbo": float(self.weight)}

    def further_heads(self, network: Network) -> dict[str, Head]:
        from paribus.models.heads.vocabulary import SpanBoundaryHead

        return {"sbo": SpanBoundaryHead(network, self.max_pair_targets, PLACE)}

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """FLOPs of both heads, as if every predicted token were a target of both."""
        boundary = statistics.predicted * 2.0 * (2 * model.hidden + PLACE) * model.hidden
        return boundary + 2.0 * super().head_flops(statistics, model)
