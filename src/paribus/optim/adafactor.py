"""Adafactor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.optim.spec import OptimizerSpec, Rates, parameter_groups

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


@dataclass(frozen=True)
class Adafactor(OptimizerSpec):
    """Factored second moments and update clipping (arXiv 1804.04235); the rate is relative to a weight's root mean
    square and follows the schedule, as T5 trains (arXiv 1910.10683, section 3.1.2). Raises UserError for values outside
    their range.
    """

    lr: float
    clip_threshold: float = 1.0
    decay_rate: float = 0.8
    weight_decay: float = 0.0
    semantics: ClassVar[int] = 1
    shards: ClassVar[bool] = False  # its means are over rows and columns of whole matrices

    def __post_init__(self) -> None:
        for name in ("lr", "clip_threshold", "decay_rate"):
            if getattr(self, name) <= 0:
                raise UserError(f"optimizer.{name}={getattr(self, name)} is not positive", "give a number above 0")

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        from transformers import Adafactor as TransformersAdafactor

        settings: dict[str, Any] = {"clip_threshold": self.clip_threshold, "decay_rate": -self.decay_rate}
        optimizer: Optimizer = TransformersAdafactor(  # type: ignore[no-untyped-call]
            parameter_groups(named, self.weight_decay, rates),
            lr=self.lr,
            scale_parameter=True,
            relative_step=False,
            warmup_init=False,
            **settings,
        )
        return optimizer
