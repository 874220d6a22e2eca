"""BERT-style encoders as plain settings; torch is imported when one is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.models.bert_shape import SIDES, BertShape
from paribus.models.spec import ModelSpec

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.encoder import Encoder
    from paribus.models.network import Network


@dataclass(frozen=True)
class Bert(BertShape, ModelSpec):
    """An encoder in the shape of BERT (arXiv 1810.04805, section 3), with initial weights."""

    semantics: ClassVar[int] = 1

    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        from paribus.models.two_way import TwoWay

        if self.attention == "two_way":
            encoders = {side: self.one_side(side).build_one(vocabulary, seed) for side in SIDES}
            return TwoWay(self, vocabulary, encoders)
        return self.build_one(vocabulary, seed)

    def build_one(self, vocabulary: Vocabulary, seed: int) -> Encoder:
        """A single encoder with its initial weights."""
        from paribus.models.encoder import Encoder
        from paribus.models.network import initialize

        encoder = Encoder(self, vocabulary)
        initialize(encoder, seed, encoder.std)
        return encoder
