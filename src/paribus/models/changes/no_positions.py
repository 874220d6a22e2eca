"""No positions at all."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.models.change import Positions


@dataclass(frozen=True)
class NoPositions(Positions):
    """A model that sees both sides reads its text as a bag of words. A left-to-right one still knows the order, because
    each place sees other words than the one before.
    """
