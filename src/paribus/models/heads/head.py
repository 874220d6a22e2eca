"""What all heads share: the base classes, the loss of a row's label, and cross-entropy over a vocabulary.

A head reads the states of a network and returns the sum of a loss with a named denominator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, nll_loss, softmax

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.models.network import Batch, Outputs

CACHED, RESIDENT = 1 << 19, 1 << 27  # values of a piece: on a processor it stays in the cache, elsewhere launches count
SMALLEST = 2.0**-24  # of 1 - p in single precision, if that is not 0

RowLoss = Callable[[Tensor, Tensor], Tensor]  # outputs [B, C] and labels [B] -> the sum of the rows' losses


class Head(nn.Module, ABC):
    """Reads the outputs of a network and the targets of a batch.

    Attributes:
        denominator: the count in `batch["counts"]` by which the sum of losses is divided, over the whole step.
        extra_count: added to that count.
        reads_layers: whether the states after each layer are read, `Outputs.layers`.
    """

    denominator: str
    extra_count: int = 0
    reads_layers: bool = False

    def reads(self, batch: Batch) -> list[Tensor] | None:
        """Flat places in [B, L] whose states are read beside the first of each row; None: all of them."""
        return None

    @abstractmethod
    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """A score for each possible answer, in the last dimension."""

    @abstractmethod
    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        """The sum of the losses, a scalar, in nats."""

    def answer(self, outputs: Outputs, batch: Batch) -> Tensor:
        """The best answers."""
        return self.logits(outputs, batch).argmax(-1)

    def report(self) -> dict[str, float]:
        """Numbers about the trained head, by name: they are recorded beside the task's metrics."""
        return {}

    def penalty(self) -> Tensor | None:
        """A scalar that is added to the loss of each step once, if any."""
        return None


class TokenHead(Head):
    """Predicts entries of the vocabulary: the held-out evaluation uses it, and a checkpoint keeps it.

    Reads `slot_P` (flat positions in [B, L]) and `target_P`.
    """

    denominator = "predicted"

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["slot_P"]]

    @abstractmethod
    def scores(self, hidden_PD: Tensor) -> Tensor:
        """[P, V] for states [P, D]."""

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, V] for the P predicted positions."""
        return self.scores(outputs.at(batch["slot_P"]))

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return summed_cross_entropy(self.logits(outputs, batch), batch["target_P"])


class Wrapper(Head):
    """Any head, on the network's outputs as `read` transforms them."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.denominator, self.reads_layers = head.denominator, head.reads_layers
        self.head = head

    @abstractmethod
    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        """What the head reads."""

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.head.logits(self.read(outputs, batch), batch)

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        loss: Tensor = self.head(self.read(outputs, batch), batch)
        return loss

    def answer(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.head.answer(self.read(outputs, batch), batch)

    def report(self) -> dict[str, float]:
        return self.head.report()

    def penalty(self) -> Tensor | None:
        return self.head.penalty()


class StateReader(Protocol):
    """Anything that names the places whose states it reads: a head, an ensemble, a measurement."""

    def reads(self, batch: Batch) -> list[Tensor] | None: ...


def name_places(readers: Iterable[StateReader], batch: Batch) -> Batch:
    """The batch, and as `read_P` the places that these heads read if each of them names its own; `layers` says that one
    of them reads the states after each layer, `predicts_tokens` that one predicts tokens.
    """
    readers = list(readers)
    if any(isinstance(reader, TokenHead) for reader in readers):
        batch = {**batch, "predicts_tokens": True}
    if any(isinstance(reader, Head) and reader.reads_layers for reader in readers):
        return {**batch, "layers": True}
    read = [reader.reads(batch) for reader in readers]
    if any(places is None for places in read):
        return batch
    named = [places_P for places in read for places_P in places or ()]
    return {**batch, "read_P": torch.cat([batch["length_B"].new_zeros(0), *named])}


@dataclass(frozen=True)
class Loss:
    """The sum over rows of the cross-entropy, in nats, or of one of its variants.

    `smoothing` spreads this share of the target over all classes (arXiv 1512.00567, section 7). `focal` is the gamma of
    (1 - p) ** gamma, which gives rows that are already right less weight (arXiv 1708.02002, section 3.2).
    Raises UserError for values outside their range and for both at once.
    """

    smoothing: float = 0.0
    focal: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise UserError(f"finetune.label_smoothing={self.smoothing} is outside [0, 1)", "use 0.1, or 0 for none")
        if self.focal < 0:
            raise UserError(f"finetune.focal={self.focal} is negative", "use 2, or 0 for plain cross-entropy")
        if self.smoothing and self.focal:
            raise UserError("finetune.label_smoothing and finetune.focal are both set", "set one of them to 0")

    def __call__(self, logits_BC: Tensor, label_B: Tensor) -> Tensor:
        if not self.focal:
            return cross_entropy(logits_BC, label_B, reduction="sum", label_smoothing=self.smoothing)
        loss_B = cross_entropy(logits_BC, label_B, reduction="none")
        wrong_B = 1 - (-loss_B).exp()
        focal_B = wrong_B.clamp_min(SMALLEST) ** self.focal * loss_B  # a power below 1 has no slope at 0
        return focal_B.where(wrong_B > 0, 0.0).sum()


def loss_of(settings: FineTuning) -> Loss:
    """The loss that a fine-tuning asks for."""
    return Loss(settings.label_smoothing, settings.focal)


def squared_error(value_B1: Tensor, label_B: Tensor) -> Tensor:
    """The sum over rows of the squared differences."""
    return (value_B1.squeeze(-1) - label_B).square().sum()


def summed_cross_entropy(logits_PV: Tensor, target_P: Tensor) -> Tensor:
    """The sum of the cross-entropies of P rows in float32, in nats, as `cross_entropy(logits.float(), target,
    reduction="sum")`: to the bit without a gradient, to rounding with one.

    That holds up to three float32 arrays [P, V] at a time; with 32,000 words their making costs a processor many times
    the arithmetic. Here probabilities are made for a few rows, and the gradient with them, in the logits' type.
    """
    loss: Tensor = _ByRows.apply(logits_PV, target_P)  # type: ignore[no-untyped-call]
    return loss


class _ByRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_PV: Tensor, target_P: Tensor) -> Tensor:
        log_share_P = torch.empty(target_P.shape, dtype=torch.float32, device=logits_PV.device)
        gradient_PV = torch.empty_like(logits_PV) if ctx.needs_input_grad[0] else None
        parts = [logits_PV, target_P[:, None], log_share_P[:, None], *([] if gradient_PV is None else [gradient_PV])]
        for logits_RV, target_R1, log_share_R1, *gradient_RV in cut_rows(*parts):
            if not gradient_RV:
                torch.gather(log_softmax(logits_RV, 1, dtype=torch.float32), 1, target_R1, out=log_share_R1)
                continue
            # The exponentials of a row are taken once: the largest share and its logit say what they were divided by
            share_RV = softmax(logits_RV, 1, dtype=torch.float32)
            log_sum_R1 = logits_RV.amax(1, keepdim=True).float() - share_RV.amax(1, keepdim=True).log_()
            log_share_R1.copy_(logits_RV.gather(1, target_R1).float().sub_(log_sum_R1))
            gradient_RV[0].copy_(share_RV.scatter_add_(1, target_R1, torch.full_like(log_sum_R1, -1.0)))
        ctx.save_for_backward(gradient_PV)
        # This reduction adds up by halves, as `cross_entropy` does
        return nll_loss(log_share_P[:, None], torch.zeros_like(target_P), reduction="sum")

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (gradient_PV,) = ctx.saved_tensors
        return gradient_PV * gradient, None


def cut_rows(*parts_PN: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Chunks of a few rows of each part, so small that a chunk of the first part stays in the cache."""
    first = parts_PN[0]
    rows = max(1, (CACHED if first.device.type == "cpu" else RESIDENT) // first.shape[1])
    return zip(*(torch.split(part, rows) for part in parts_PN), strict=True)
