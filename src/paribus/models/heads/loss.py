"""What a wrong class costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import cross_entropy

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning

RowLoss = Callable[[Tensor, Tensor], Tensor]  # outputs [B, C] and labels [B] -> the sum of the rows' losses
SMALLEST = 2.0**-24  # of 1 - p in single precision, if that is not 0


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
    return Loss(settings.label_smoothing, settings.focal)


def squared_error(value_B1: Tensor, label_B: Tensor) -> Tensor:
    """The sum over rows of the squared differences."""
    return (value_B1.squeeze(-1) - label_B).square().sum()
