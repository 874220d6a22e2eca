"""Learning from every token: a generator replaces some, and the network predicts which, or the originals.

The settings and weights of the losses; `models/heads/vocabulary.py` computes that of replaced tokens (`ReplacedHead`),
`objectives/generated.py` lets the generator write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from paribus.core.errors import UserError
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.corruption import Corruption
from paribus.objectives.spec import BACKWARD, ObjectiveSpec, Statistics

if TYPE_CHECKING:
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.bert import Bert
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec, Shape
    from paribus.objectives.objective import Objective

ASKED: Final = ("replaced", "original")
OVER: Final = ("all", "noised")
GDES: Final = "gdes"
TIES: Final = ("none", "embeddings", "all", GDES)
HEAD_WIDTH: Final = 64  # of a generator's attention heads


@dataclass(frozen=True)
class Electra(ObjectiveSpec):
    """The generator's masked LM, and `weight` times the network's loss on what the generator wrote (ELECTRA, arXiv
    2003.10555, section 2). A position where it wrote the original counts as original.

    Attributes:
        view: what the generator reads at noised places, or what the network itself reads if there is no generator.
        generator: its width as a share of the network's, at equal depth; None: no generator, so that the view's random
            tokens are what is replaced.
        tie: what generator and network share: "none", "embeddings" (of words, positions and segments, with their
            LayerNorm) or "all" weights; "gdes": the network reads the generator's words and positions, to which its
            own loss has no gradient, plus tables of its own that begin at 0 (DeBERTaV3, arXiv 2111.09543, section 3.3).
        asks: whether a token is "replaced", or what its "original" is.
        over: "all" tokens, special ones included, or the "noised" ones. If it predicts the original of all
            tokens, the network may also copy.
        weight: of the network's loss; 50 balances a binary one. The paper does not state the weight of other losses:
            use 1.
        temperature: of the generator's samples.
        disallow_correct: never sample the original.
        joint: whether both networks learn together. If not, the stage before has trained the generator alone, which
            then stays as it is, and the network starts from its weights (section 3.2): both have one size.

    Raises UserError for settings out of range.
    """

    view: Any
    generator: float | None = 0.25
    tie: str = "embeddings"
    asks: str = "replaced"
    over: str = "all"
    weight: float = 50.0
    temperature: float = 1.0
    disallow_correct: bool = False
    joint: bool = True
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"joint": True}
    needed_attention: ClassVar[str | None] = "full"

    def __post_init__(self) -> None:
        for key, value, known in (("tie", self.tie, TIES), ("asks", self.asks, ASKED), ("over", self.over, OVER)):
            if value not in known:
                raise UserError(f"objective.{key}={value} is unknown", f"use {', '.join(known)}")
        for key, number in (("weight", self.weight), ("temperature", self.temperature)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not number > 0:
                raise UserError(f"objective.{key}={number} is not a number above 0", f"set objective.{key}=1.0")
        if not self.joint and (self.generator != 1 or self.tie != "none"):
            cause = "objective.joint=false with a generator that is not the network of the stage before"
            raise UserError(cause, "set objective.generator=1.0 and objective.tie=none")
        if self.generator is None:
            if self.tie != "none" or self.disallow_correct or self.temperature != 1.0:
                cause = "objective.generator=null leaves nothing to tie or to sample from"
                raise UserError(cause, "set objective.tie=none, and leave temperature and disallow_correct as they are")
            return
        if isinstance(self.generator, bool) or not isinstance(self.generator, int | float) or self.generator <= 0:
            raise UserError(
                f"objective.generator={self.generator} is out of range", "give a share of the model's width, or null"
            )
        if self.generator > 1 and self.tie != "none":
            cause = f"objective.generator={self.generator} is wider than the embeddings that it is tied to"
            raise UserError(cause, "give at most 1.0, or set objective.tie=none")
        if self.tie == "all" and self.generator != 1:
            cause = f"objective.tie=all with objective.generator={self.generator}: the networks differ in size"
            raise UserError(cause, "set objective.generator=1.0")

    @property
    def continues(self) -> bool:
        return not self.joint

    @property
    def collator(self) -> EncoderCollator:
        return EncoderCollator(row_keys=self.generator is not None)

    def corruption(self, masking: NoisePattern) -> Corruption:
        return Corruption(masking, self.view)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.vocabulary import CopyHead, MaskedLMHead, ReplacedHead
        from paribus.objectives.generated import FromGenerator, FromNoise

        head: Head
        if self.asks == "replaced":
            head = ReplacedHead(network.width, everywhere=self.over == "all")
        else:
            head = CopyHead(network) if self.over == "all" else MaskedLMHead(network)
        heads, weights = {self.loss_name: head}, {self.loss_name: float(self.weight)}
        if self.generator is None:
            return FromNoise(heads, weights)
        generator = None
        if self.tie != "all":
            generator = self.generator_spec(network.spec).build_one(vocabulary, 0)  # the objective draws its weights
            if self.tie == "embeddings":
                generator.share_embeddings(network)
        return FromGenerator(
            heads,
            weights,
            generator,
            MaskedLMHead(network if generator is None else generator),
            temperature=self.temperature,
            disallow_correct=self.disallow_correct,
            learns=self.joint,
            disentangled=self.tie == GDES,
        )

    @property
    def computes_weights(self) -> bool:
        return self.tie == GDES

    @property
    def loss_name(self) -> str:
        """The name of the network's loss."""
        return "replaced" if self.asks == "replaced" else "mlm"

    def generator_spec(self, model: Shape) -> Bert:
        """The shape of the generator of this model: feed-forward layers are four times as wide as the states, heads 64
        wide, and embeddings are those of the model.

        Raises UserError for a model that is not an encoder trained from its first step.
        """
        from paribus.models.bert import Bert

        model = model.shape
        if type(model) is not Bert:
            raise UserError(
                "a generator needs an encoder of ours, trained from scratch", "set model=bert_tiny, or another size"
            )
        assert self.generator is not None
        if not self.joint:
            return model
        hidden = max(1, round(self.generator * model.hidden))
        heads = max(count for count in range(1, max(1, hidden // HEAD_WIDTH) + 1) if hidden % count == 0)
        return replace(model, hidden=hidden, heads=heads, intermediate=4 * hidden, embedding=model.table_width)

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """Of the network's head, and of all of the generator, whose backward pass is left out if it does not learn."""
        read, hidden, table = statistics.counts["input_tokens"], model.hidden, model.table_width
        asked = read if self.over == "all" else statistics.predicted
        per_token = hidden * (hidden + 1) if self.asks == "replaced" else hidden * table + table * statistics.vocabulary
        head = 2.0 * asked * per_token
        if self.generator is None:
            return head
        spec = model if self.tie == "all" else self.generator_spec(model)
        words = statistics.predicted * (spec.hidden * table + table * statistics.vocabulary)
        generator = 2.0 * words + spec.forward_flops(read, statistics.length)
        return head + (generator if self.joint else generator / (1.0 + BACKWARD))
