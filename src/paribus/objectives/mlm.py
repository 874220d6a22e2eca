"""Masked language modeling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.corruption.collators.encoder import (
    BackwardCollator,
    CausalCollator,
    EncoderCollator,
    RankedCollator,
    TwoWayCollator,
)
from paribus.corruption.corruption import Corruption
from paribus.objectives.spec import ObjectiveSpec, Statistics

if TYPE_CHECKING:
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.objective import Objective


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
    def collator(self) -> EncoderCollator:
        return EncoderCollator()

    def corruption(self, masking: NoisePattern) -> Corruption:
        return Corruption(masking, self.view, shuffling=self.shuffling)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.vocabulary import MaskedLMHead, WordOrderHead
        from paribus.objectives.objective import Objective

        tokens = MaskedLMHead(network)
        shuffled = {} if self.shuffling is None else {"word_order": WordOrderHead(tokens)}
        return Objective({self.loss_name: tokens, **self.further_heads(network), **shuffled}, self.loss_weights)

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
    needed_attention: ClassVar[str | None] = "left"
    loss_name: ClassVar[str] = "clm"

    @property
    def collator(self) -> EncoderCollator:
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

        sides = {self.loss_name: ("left", "slot_P"), "clm_right": ("right", "back_P")}
        return Objective({name: SideLMHead(network, *own) for name, own in sides.items()})

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
