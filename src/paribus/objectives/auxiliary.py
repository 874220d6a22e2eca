"""The objective whose lower layers predict for a part of the training."""

from __future__ import annotations

from paribus.models.heads.auxiliary import LowerLayersHead
from paribus.objectives.objective import Objective


class AuxiliaryLosses(Objective):
    """Heads of which some stop counting while the training goes on (Al-Rfou et al., arXiv 1808.04444, section 3)."""

    def begin_step(self, done: float) -> None:
        for head in self.heads.values():
            if isinstance(head, LowerLayersHead):
                head.begin_step(done)
