"""Left-to-right language modeling on the encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.corruption.collators.encoder import CausalCollator
from paribus.objectives.mlm import MaskedLM

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class CausalLM(MaskedLM):
    """Predict each token of the text from those to its left (BERT, section 5.1: LTR), without noise.

    The hidden state of a place predicts the next token through the head of the masked LM. Targets are the tokens that
    a masked LM may be asked for: neither [CLS], [SEP], unknown words nor padding. The first of a row is predicted from
    [CLS] alone; the first of a second segment from all of the first segment and its [SEP].
    """

    semantics: ClassVar[int] = 1
    noisy: ClassVar[bool] = False
    attention: ClassVar[str | None] = "left"

    @property
    def collator(self) -> Any:
        return CausalCollator()

    def _heads(self, encoder: Encoder) -> dict[str, Any]:
        from paribus.models.heads.mlm import MaskedLMHead

        return {"clm": MaskedLMHead(encoder)}
