"""Which weights fine-tuning trains, and at which rates: all, some layers, or layers one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError

if TYPE_CHECKING:
    from torch import nn

    from paribus.models.network import Network

HEAD = -1  # the stage of `ChainThaw` in which the head alone moves
EMBEDDINGS = ("decayed", "full")
ROUNDING = 1e-9  # of a share of the steps
SCHEDULES = ("layers", "released")


class Method:
    """What a method does to the loaded encoder. The head trains at the full rate; this base class changes nothing."""

    moves: ClassVar[bool] = True  # something besides a head; otherwise the encoder stays in evaluation mode
    enters_layers: ClassVar[bool] = False  # puts modules inside them
    cached: bool = False  # whether the states of the encoder are computed once for each set of a task

    def check(self, layers: int) -> None:
        """Raise UserError if the method needs layers that an encoder of this depth does not have."""

    def check_network(self, encoder: Network) -> None:
        """Raise UserError if the method would do nothing because the encoder does not say what is in its layers."""

    def shape(self, encoder: Network, seed: int) -> None:
        """Insert modules and freeze parameters, before the optimizer is built. New weights follow (seed, name)."""

    def rate(self, encoder: Network, name: str) -> float:
        """The learning rate of a parameter of the encoder, as a share of the optimizer's."""
        return 1.0

    def set_trainable(self, encoder: Network, done: float) -> None:
        """Freeze and unfreeze parameters; called before every step with the share of fine-tuning that is done."""

    def set_head_trainable(self, head: nn.Module, layers: int, done: float) -> None:
        """The same for the head on an encoder of this depth."""


@dataclass(frozen=True)
class Full(Method):
    """Every parameter is trained, at one rate (BERT, section 3.2)."""

    semantics: ClassVar[int] = 1


@dataclass(frozen=True)
class Frozen(Method):
    """Only the head is trained, on states without dropout (BERT, arXiv 1810.04805, section 5.3).

    `finetune/head/layers` says which states a head on an encoder reads. A text-to-text model needs a separate head.

    `cached`: the states are computed once for each set of a task, for all seeds, and kept in half precision, so that
    scores differ slightly.
    """

    cached: bool = False
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"cached": False}
    moves: ClassVar[bool] = False

    def shape(self, encoder: Network, seed: int) -> None:
        encoder.requires_grad_(False)
        encoder.remove_dropout()


@dataclass(frozen=True)
class TopKLayers(Method):
    """The top `k` layers and what follows them are trained (Houlsby et al., arXiv 1902.00751, "variable fine-tuning").

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

    def check_network(self, encoder: Network) -> None:
        encoder.require_depths(f"finetune.method ({type(self).__name__})", "set finetune/method=full")

    def shape(self, encoder: Network, seed: int) -> None:
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) > encoder.depth - self.k)


@dataclass(frozen=True)
class LayerwiseDecay(Method):
    """rate(d) = decay ** (layers + top_gap - d): d is 0 for embeddings, i + 1 for layer i; the head has the full rate.

    ELECTRA (arXiv 2003.10555) is published with `top_gap=2`, a level left over from a pooler that was removed; 1
    corrects that, and is ULMFiT's rule with decay = 1 / 2.6 (arXiv 1801.06146, section 3.2). With 0 the top layer has
    the full rate; so have the embeddings with `embeddings="full"` (both: Sun et al., arXiv 1905.05583, section 5.4.3,
    whose code names the layers alone). Layers of encoder and decoder at the same height have the same rate; embeddings
    have theirs even if the head is tied to them. Raises UserError for values outside these ranges.
    """

    decay: float
    top_gap: int = 2
    embeddings: str = "decayed"
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"embeddings": "decayed"}

    def __post_init__(self) -> None:
        _check_decay(self.decay, self.top_gap)
        if self.embeddings not in EMBEDDINGS:
            raise UserError(
                f"finetune.method.embeddings={self.embeddings} is unknown", f"use {' or '.join(EMBEDDINGS)}"
            )

    def check_network(self, encoder: Network) -> None:
        encoder.require_depths(f"finetune.method ({type(self).__name__})", "set finetune/method=full")

    def rate(self, encoder: Network, name: str) -> float:
        if self.embeddings == "full" and encoder.depth_of(name) == 0:
            return 1.0
        return _decayed(self.decay, self.top_gap, encoder, name)


def _check_decay(decay: float, top_gap: int) -> None:
    if not 0 < decay <= 1:
        raise UserError(f"finetune.method.decay={decay} is outside (0, 1]", "give a factor per layer, such as 0.9")
    if top_gap not in (0, 1, 2):
        raise UserError(f"finetune.method.top_gap={top_gap} is unknown", "use 0, 1 or 2")


def _decayed(decay: float, top_gap: int, encoder: Network, name: str) -> float:
    return float(decay ** (encoder.depth + top_gap - encoder.depth_of(name)))


@dataclass(frozen=True)
class GradualUnfreezing(Method):
    """First the upper parts are trained, then also the lower ones. `spread`: the share of fine-tuning that the pieces
    take.

    `schedule="layers"`: the top layer and the head, then one layer more in each of equal pieces, the embeddings last.
    ULMFiT (arXiv 1801.06146, section 3.3) adds one layer per epoch, T5 (arXiv 1910.10683, section 3.5.1) one in each of
    as many pieces as there are layers, in encoder and decoder in parallel; word embeddings to which the head is tied
    move throughout. `schedule="released"`: as ULMFiT's authors ran it (fastai, `train_clas.py`), the head alone for
    half of `spread`, the top layer with it for the other half, then everything; each half took one epoch.

    The rates are those of `LayerwiseDecay` with the same `decay` and `top_gap`: 1 / 2.6 and 1 are ULMFiT's.
    Raises UserError for values outside these ranges.
    """

    spread: float = 1.0
    decay: float = 1.0
    top_gap: int = 0
    schedule: str = "layers"
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"top_gap": 0, "schedule": "layers"}

    def __post_init__(self) -> None:
        _check_spread(self.spread)
        _check_decay(self.decay, self.top_gap)
        if self.schedule not in SCHEDULES:
            raise UserError(f"finetune.method.schedule={self.schedule} is unknown", f"use {' or '.join(SCHEDULES)}")

    def check_network(self, encoder: Network) -> None:
        encoder.require_depths(f"finetune.method ({type(self).__name__})", "set finetune/method=full")

    def rate(self, encoder: Network, name: str) -> float:
        return _decayed(self.decay, self.top_gap, encoder, name)

    def lowest(self, layers: int, done: float, last: int = 0) -> int:
        """The lowest depth that moves (0: embeddings, i + 1: layer i) once the share `done` is over; `layers` + 1 if
        the head moves alone. `last` is the depth that is opened last.
        """
        if self.schedule == "released":
            return last if done >= self.spread else layers + int(done < self.spread / 2)
        return max(last, layers - int(done / self.spread * (layers + 1 - last)))

    def set_trainable(self, encoder: Network, done: float) -> None:
        throughout = encoder.head_weights
        lowest = self.lowest(encoder.depth, done, 1 if throughout else 0)
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) >= lowest or name in throughout)


def _check_spread(spread: float) -> None:
    if not 0 < spread <= 1:
        raise UserError(f"finetune.method.spread={spread} is outside (0, 1]", "give a share of the fine-tuning")


@dataclass(frozen=True)
class ChainThaw(Method):
    """First the new head is trained alone, then the embeddings, then each layer alone from the bottom, and finally
    everything.

    Felbo et al. (arXiv 1708.00524, section 3.3), a row of ULMFiT's table 7 (arXiv 1801.06146, section 5). Felbo et al.
    end a stage when the validation loss no longer falls, ULMFiT's authors after an epoch (fastai, `train_clas.py`);
    here head, embeddings and layers take turns for equal pieces of the share `spread`, and everything moves for the
    rest. What follows the last layer moves with it; word embeddings to which a head is tied are the head.
    Raises UserError for a share outside (0, 1].
    """

    spread: float = 0.5
    semantics: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _check_spread(self.spread)

    def check_network(self, encoder: Network) -> None:
        encoder.require_depths(f"finetune.method ({type(self).__name__})", "set finetune/method=full")

    def stage(self, layers: int, done: float) -> int:
        """What moves once the share `done` is over: HEAD, a depth (0: embeddings, i + 1: layer i), layers + 1: all."""
        return min(HEAD + int(done / self.spread * (layers + 2) + ROUNDING), layers + 1)

    def set_trainable(self, encoder: Network, done: float) -> None:
        stage = self.stage(encoder.depth, done)
        for name, parameter in encoder.named_parameters():
            is_head = stage == HEAD and name in encoder.head_weights
            depth = HEAD if is_head else encoder.depth_of(name)
            parameter.requires_grad_(stage in (depth, encoder.depth + 1))

    def set_head_trainable(self, head: nn.Module, layers: int, done: float) -> None:
        head.requires_grad_(self.stage(layers, done) in (HEAD, layers + 1))
