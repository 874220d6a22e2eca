"""How much a model forgets of the text that it was first trained on, in nats of the held-out loss."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paribus.core.sources import MODEL
from paribus.models import checkpoint
from paribus.models.heads.head import Head
from paribus.models.network import Network
from paribus.training.evaluate import HeldOutEvaluation, placed

if TYPE_CHECKING:
    from paribus.training.stage import Stage

FORGETTING = "forgetting"  # the metric of a fine-tuning; of the later stages alone it is stage_forgetting


@dataclass(frozen=True)
class Memory:
    """The held-out evaluation of a run's first stage, with fixed masks, to be repeated after fine-tuning.

    Attributes:
        encoder, head: as the last stage left them; the head may be tied to the word embeddings.
        before: the metrics at the end of the first stage; empty if the head is not trained.
    """

    evaluation: HeldOutEvaluation
    encoder: Network
    head: Head
    before: Mapping[str, float]

    def ask(self, tuned: Network, device: str, rehearsed: Head | None = None) -> dict[str, float]:
        """{"forgetting": nats} of a fine-tuned copy of the encoder; empty if there is nothing to forget.

        Its head is the one that fine-tuning trained on text, or else that of pre-training.
        """
        if not self.before:
            return {}
        head = rehearsed or copy.deepcopy(self.head, {id(self.encoder): tuned})
        with placed(device, head):
            return compare(self.before, self.evaluation.measure(tuned, head))


def compare(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """{"forgetting": by how many nats the held-out loss rose}; empty if it was not measured both times."""
    name = next((name for name in after if name.endswith("_loss") and name in before), None)
    return {} if name is None else {FORGETTING: after[name] - before[name]}


def remember(stage: Stage, part: dict[str, Any]) -> Memory | None:
    """The data for replay and forgetting in fine-tuning, if requested; `part`: the last stage's part of the record."""
    settings = stage.run.finetune
    if stage.head is None or not (settings.forgetting or settings.replay):
        return None
    first = part["stages"][0] if "stages" in part else part
    evaluation = stage.earlier[0] if stage.earlier else stage.evaluation
    checkpoint.load_head(stage.encoder, stage.head, stage.folder / MODEL)  # a stage that was found done has none yet
    return Memory(evaluation, stage.encoder, stage.head, first["metrics"] if stage.speaks else {})
