"""Masked language modeling and the span-boundary objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from paribus.core.errors import UserError
from paribus.corruption.collators.encoder import BoundaryCollator
from paribus.objectives.mlm import MaskedLM
from paribus.objectives.spec import Statistics

if TYPE_CHECKING:
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec


PLACE: Final = 200  # width of the embedding of a place in a span, as in SpanBERT whatever the model's


@dataclass(frozen=True)
class MaskedLMWithSBO(MaskedLM):
    """The mean over noised positions, and `weight` times the sum over tokens of spans, each predicted from the states
    beside its span and its place in it, divided by their number + 1 (SpanBERT, section 3.2).

    Spans that touch an end of their segment have no such term. Raises UserError for settings out of range.
    """

    weight: float = 1.0
    max_pair_targets: int = 20
    semantics: ClassVar[int] = 1
    stages: ClassVar[int] = 3
    needs_spans: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.max_pair_targets, int) or self.max_pair_targets < 1:
            raise UserError(
                f"objective.max_pair_targets={self.max_pair_targets} is out of range", "give a whole number, at least 1"
            )
        if not isinstance(self.weight, int | float) or not self.weight >= 0:
            raise UserError(f"objective.weight={self.weight} is out of range", "give a number, at least 0")

    @property
    def collator(self) -> BoundaryCollator:
        return BoundaryCollator(self.max_pair_targets)

    @property
    def loss_weights(self) -> dict[str, float]:
        return {"sbo": float(self.weight)}

    def further_heads(self, network: Network) -> dict[str, Head]:
        from paribus.models.heads.vocabulary import SpanBoundaryHead

        return {"sbo": SpanBoundaryHead(network, self.max_pair_targets, PLACE)}

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        """FLOPs of both heads, as if every predicted token were a target of both."""
        boundary = statistics.predicted * 2.0 * (2 * model.hidden + PLACE) * model.hidden
        return boundary + 2.0 * super().head_flops(statistics, model)
