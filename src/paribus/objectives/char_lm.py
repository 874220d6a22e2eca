"""The vanilla character transformer's objective (Al-Rfou et al., arXiv 1808.04444, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.corruption.collators.stream import StreamCollator
from paribus.objectives.spec import Statistics
from paribus.objectives.stream_lm import StreamLM

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class CharacterLM(StreamLM):
    """A left-to-right language model with three auxiliary losses, each of which can be left out. Tokens may be of any
    kind.

    The loss is the sum of the means of all that is predicted. The held-out evaluation is that of `StreamLM`: it asks
    the last layer for the next token, at every position. The paper slides a window by one token and asks the last
    position alone, which costs a window per token: `spans=[1]` measures that as `init_loss`.

    Args:
        every_position: whether every position of a row predicts, or only the last.
        every_layer: whether the layers below the last predict too, layer l of n until l / 2n of the steps are done.
        second_weight: of the loss of the next token but one, at each layer that predicts; 0: it is not predicted.

    Raises UserError for a loss of the later half of the last position.
    """

    every_position: bool = True
    every_layer: bool = True
    second_weight: float = field(default=0.5, metadata=within(0, 1000))
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.late and not self.every_position:
            cause = "objective.late=true asks half of the positions, objective.every_position=false only the last"
            raise UserError(cause, "set objective.late=false")

    @property
    def collator(self) -> StreamCollator:
        return StreamCollator(self.late, last=not self.every_position, second=self.second_weight > 0)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.objectives.auxiliary import AuxiliaryLosses

        if self.every_layer:
            network.require_layers("set objective.every_layer=false")
        main = super().compose(network, vocabulary).named_heads[self.loss_name]
        return AuxiliaryLosses({self.loss_name: main, **self.further_heads(network)}, self.loss_weights)

    @property
    def loss_weights(self) -> dict[str, float]:
        return {"second": self.second_weight} if self.second_weight else {}

    def further_heads(self, network: Network) -> dict[str, Head]:
        from paribus.models.heads.auxiliary import LowerLayersHead, SecondTokenHead

        heads: dict[str, Head] = {"second": SecondTokenHead(network)} if self.second_weight else {}
        if self.every_layer and network.depth > 1:
            heads["layers"] = LowerLayersHead(network, self.second_weight)
        return heads

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """Each layer below the last predicts for l / 2n of the training: (n - 1) / 4 layers on average."""
        layers = (model.shape.layers - 1) / 4 if self.every_layer else 0.0
        classifiers = layers * (2 if self.second_weight else 1) + (1 if self.second_weight else 0)
        linear = statistics.predicted * 2.0 * model.hidden * statistics.vocabulary
        return super().head_flops(statistics, model) + classifiers * linear
