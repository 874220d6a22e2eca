"""A pre-training that is composed and checked: what its parts know of each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.corruption.examples import Stream
from paribus.data.order import Order
from paribus.data.tokens.prepare import Data
from paribus.models.network import Network
from paribus.objectives.objective import Objective
from paribus.runs.folder import STAGES
from paribus.tasks.types.base import Pooler
from paribus.training.callbacks import Reporter
from paribus.training.description import Run
from paribus.training.evaluate import HeldOutEvaluation, Probe
from paribus.training.in_distribution import OwnEvaluation
from paribus.training.probe import TrainedProbe
from paribus.training.profile import Profile

OPTIMIZER = "optimizer.pt"  # in a stage's folder: {name of a parameter: its state}


@dataclass
class Stage:
    """A pre-training before its first step."""

    run: Run
    data: Data
    profile: Profile
    folder: Path
    plan: Order[Stream]
    steps: int
    encoder: Network
    objective: Objective
    evaluation: HeldOutEvaluation
    own: OwnEvaluation | None
    probes: list[Probe | TrainedProbe]
    pooler: Pooler | None = None  # of the checkpoint that it starts from, if it trains no head on pairs
    reporter: Reporter | None = None  # of a run that is a trial of a search
    earlier: tuple[HeldOutEvaluation, ...] = ()  # those of the stages before, which are asked again
    speaks: bool = True  # whether its head on tokens is trained
    hands_on: bool = False  # whether the next stage asks for its optimizer

    @property
    def before(self) -> Path | None:
        """The folder of the stage whose weights this one starts from."""
        if self.run.before is None:
            return None
        return (self.folder.parent if self.run.stage else self.folder / STAGES) / self.run.before.stage

    @property
    def kept(self) -> list[str]:
        """Files that the next stage asks for beside the checkpoint."""
        return [OPTIMIZER] if self.hands_on else []

    @property
    def head(self) -> Any:
        return self.objective.token_head

    @property
    def pair_head(self) -> Any:
        return self.objective.pair_head
