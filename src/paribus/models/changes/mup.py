"""Initial weights and rates that fit every width (maximal update parametrization: muP, arXiv 2203.03466, table 8)."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from torch import Tensor

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

HIDDEN: Final = re.compile(r"\.layer\.\d+\..*(query|key|value|dense)\.weight$")  # matrices from a width to a width


@dataclass(frozen=True)
class Mup(Change):
    """With m = model.hidden / `base_hidden`, so that a rate found at the base width fits the others.

    Matrices of the layers begin at m^(-1/2) of model.initializer_range and learn at 1 / m of the rate. Scores of tokens
    are divided by m if the head reads a table of the width of the states. If heads are wider than those of the base,
    scores of attention are divided by width and no longer by its root. All else is as it is: embeddings, biases and
    norms, and the head. Feed-forward layers should grow with the states. Weight decay falls with the rate; the authors'
    code (mup) raises it by m to make up for that. At the base width nothing differs.

    Raises UserError for a base with sizes below 1 or heads that do not divide it.
    """

    base_hidden: int = field(default=128, metadata=within(1, 10**5))
    base_heads: int = field(default=2, metadata=within(1, 10**4))
    sets: ClassVar[Set[str]] = frozenset({"initial weights"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if min(self.base_hidden, self.base_heads) < 1 or self.base_hidden % self.base_heads:
            cause = f"mup has base_hidden={self.base_hidden} and base_heads={self.base_heads}"
            raise UserError(cause, "give the width of the base model and a number of heads that divides it")

    def wider(self, shape: Bert) -> float:
        """How many times as wide as the base the encoder is."""
        return shape.hidden / self.base_hidden

    def alter(self, encoder: Encoder) -> None:
        if encoder.spec.table_width == encoder.spec.hidden:
            encoder.logit_scale = 1 / self.wider(encoder.spec)

    def attention(self, shape: Bert, layer: int) -> AttentionPart | None:
        wider = self.wider(shape) * self.base_heads / shape.heads
        return None if wider == 1 else MupPart(wider**-0.5)

    def std(self, shape: Bert, name: str) -> float | None:
        return shape.initializer_range * self.wider(shape) ** -0.5 if HIDDEN.search(name) else None

    def rate(self, shape: Bert, name: str) -> float:
        return 1 / self.wider(shape) if HIDDEN.search(name) else 1.0


class MupPart(AttentionPart):
    """Makes queries `times` as long, after all other turns."""

    turn_order = 3

    def __init__(self, times: float) -> None:
        super().__init__()
        self.times = times

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        return query * self.times, key

    def turn_scaled(
        self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        return query * (self.times * scale), key
