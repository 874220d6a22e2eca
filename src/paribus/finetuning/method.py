"""What may change in fine-tuning, and how fast: all weights, some layers, or layers one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError

if TYPE_CHECKING:
    from torch import nn

    from paribus.models.network import Network

HEAD = -1  # the stage of `ChainThaw` in which the head alone moves


class Method:
    """What a method does to the loaded encoder. The head moves, at the full rate; this class changes nothing."""

    moves: ClassVar[bool] = True  # something besides a head

    def check(self, layers: int) -> None:
        """Raise UserError if the method needs layers that an encoder of this depth does not have."""

    def shape(self, encoder: Network, seed: int) -> None:
        """Put modules in and freeze parameters, before the optimizer is made. New weights follow (seed, name)."""

    def rate(self, encoder: Network, name: str) -> float:
        """The learning rate of a parameter of the encoder, as a share of the optimizer's."""
        return 1.0

    def open(self, encoder: Network, done: float) -> None:
        """Called before every step with the share of fine-tuning that is done: what is frozen for a while."""

    def open_head(self, head: nn.Module, layers: int, done: float) -> None:
        """The same for the head on an encoder of this depth."""


@dataclass(frozen=True)
class Full(Method):
    """Every parameter moves, at one rate (BERT, section 3.2)."""

    semantics: ClassVar[int] = 1


@dataclass(frozen=True)
class Frozen(Method):
    """Only the head is trained, on states without dropout (BERT, arXiv 1810.04805, section 5.3).

    `finetune/head/layers` says which states a head on an encoder reads. A model that writes needs a separate head.
    """

    semantics: ClassVar[int] = 1
    moves: ClassVar[bool] = False

    def shape(self, encoder: Network, seed: int) -> None:
        encoder.requires_grad_(False)
        encoder.silence()


@dataclass(frozen=True)
class TopKLayers(Method):
    """The `k` uppermost layers and what follows them move (Houlsby et al., arXiv 1902.00751, "variable fine-tuning").

    Of encoder and decoder those of each; embeddings stay even if the head is tied to them. Weights that layers share
    belong to the lowest of them. Raises UserError for a `k` below 1.
    """

    k: int
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(
                f"finetune.method.k={self.k} trains no layer", "give 1 or more, or use finetune/method=frozen"
            )

    def check(self, layers: int) -> None:
        if self.k > layers:
            raise UserError(
                f"finetune.method.k={self.k} exceeds the model's {layers} layers",
                f"set finetune.method.k to {layers} or less",
            )

    def shape(self, encoder: Network, seed: int) -> None:
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) > encoder.depth - self.k)


@dataclass(frozen=True)
class LayerwiseDecay(Method):
    """rate(d) = decay ** (layers + top_gap - d): d is 0 for embeddings, i + 1 for layer i; the head has the full rate.

    ELECTRA (arXiv 2003.10555) is published with `top_gap=2`, a level left over from a pooler that was removed; 1 is its
    mend, and ULMFiT's rule with decay = 1 / 2.6 (arXiv 1801.06146, section 3.2). With 0 the top layer has the full rate
    (Sun et al., arXiv 1905.05583, section 5.4.3). Layers of encoder and decoder at the same height have the same rate;
    embeddings have theirs even if the head is tied to them. Raises UserError for values outside these ranges.
    """

    decay: float
    top_gap: int = 2
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise UserError(
                f"finetune.method.decay={self.decay} is outside (0, 1]", "give a factor per layer, such as 0.9"
            )
        if self.top_gap not in (0, 1, 2):
            raise UserError(f"finetune.method.top_gap={self.top_gap} is unknown", "use 0, 1 or 2")

    def rate(self, encoder: Network, name: str) -> float:
        return float(self.decay ** (encoder.depth + self.top_gap - encoder.depth_of(name)))


@dataclass(frozen=True)
class GradualUnfreezing(Method):
    """First the top layer and the head move, then one layer more in each of equal pieces, the embeddings last.

    ULMFiT (arXiv 1801.06146, section 3.3) adds a layer an epoch, T5 (arXiv 1910.10683, section 3.5.1) one in each of as
    many pieces as there are layers, in encoder and decoder in parallel; word embeddings to which the head is tied move
    throughout. `spread` is the share of fine-tuning after which everything moves. Below the top layer each has `decay`
    times the rate of the one above (ULMFiT's discriminative fine-tuning, section 3.2: 1 / 2.6).
    Raises UserError for a share or a decay outside (0, 1].
    """

    spread: float = 1.0
    decay: float = 1.0
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 < self.spread <= 1:
            raise UserError(
                f"finetune.method.spread={self.spread} is outside (0, 1]", "give a share of the fine-tuning"
            )
        if not 0 < self.decay <= 1:
            raise UserError(
                f"finetune.method.decay={self.decay} is outside (0, 1]", "give a factor per layer, such as 0.385"
            )

    def rate(self, encoder: Network, name: str) -> float:
        return float(self.decay ** (encoder.depth - encoder.depth_of(name)))

    def lowest(self, layers: int, done: float, last: int = 0) -> int:
        """The lowest depth that moves (0: embeddings, i + 1: layer i) once the share `done` is over.

        `last` is the depth that is opened last.
        """
        return max(last, layers - int(done / self.spread * (layers + 1 - last)))

    def open(self, encoder: Network, done: float) -> None:
        throughout = encoder.head_weights
        lowest = self.lowest(encoder.depth, done, 1 if throughout else 0)
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) >= lowest or name in throughout)


@dataclass(frozen=True)
class ChainThaw(Method):
    """First the new head moves alone, then the embeddings, then each layer alone from the bottom, at last everything.

    Felbo et al. (arXiv 1708.00524, section 3.3), a row of ULMFiT's table 7 (arXiv 1801.06146, section 5). They end a
    stage when the validation loss no longer falls; here stages are equal pieces, so that every method has the same
    number of steps. What follows the last layer moves with it; word embeddings to which a head is tied are the head.
    """

    semantics: ClassVar[int] = 1

    def stage(self, layers: int, done: float) -> int:
        """What moves once the share `done` is over: HEAD, a depth (0: embeddings, i + 1: layer i), layers + 1: all."""
        return min(HEAD + int(done * (layers + 3)), layers + 1)

    def open(self, encoder: Network, done: float) -> None:
        stage = self.stage(encoder.depth, done)
        for name, parameter in encoder.named_parameters():
            own = HEAD if stage == HEAD and name in encoder.head_weights else encoder.depth_of(name)
            parameter.requires_grad_(stage in (own, encoder.depth + 1))

    def open_head(self, head: nn.Module, layers: int, done: float) -> None:
        head.requires_grad_(self.stage(layers, done) in (HEAD, layers + 1))
