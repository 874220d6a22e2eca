"""Initial weights that are smaller in deeper encoders (GPT-2: Radford et al. 2019, section 2.3)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class DepthScaled(Change):
    """The projection at the end of each sublayer begins at 1 / root of 2 x layers, the number of residual sums, of
    model.initializer_range, so that the sums do not grow with the depth.
    """

    sets: ClassVar[Set[str]] = frozenset({"initial weights"})
    exact_at_places: ClassVar[bool] = True
    keeps_class: ClassVar[bool] = True

    def std(self, shape: Bert, name: str) -> float | None:
        ends_sublayer = ".layer." in name and name.endswith(".output.dense.weight")
        return shape.initializer_range * (2 * shape.layers) ** -0.5 if ends_sublayer else None
