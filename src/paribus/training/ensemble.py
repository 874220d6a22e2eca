"""What several pre-trained models predict together.   T5 (arXiv 1910.10683), section 3.6"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble
from paribus.training.evaluate import placed
from paribus.training.pretrain import Stage

Part = dict[str, Any]  # a stage's part of the record


def together(stages: Sequence[Stage], parts: Sequence[Part]) -> Part:
    """The part of the record of one model, or that of several: the metrics of the mean of their logits, the budget of
    all. What else is in it is of the first.
    """
    first, part = stages[0], parts[0]
    if len(stages) == 1:
        return part
    for stage in stages:  # one that was found done has no head yet
        checkpoint.load_head(stage.encoder, stage.head, stage.folder / "model")
    ensemble: Any = Ensemble([(stage.encoder, stage.head) for stage in stages])
    with placed(first.profile.device, ensemble):
        metrics = first.evaluation.measure(ensemble, ensemble)
    return {
        **part,
        "metrics": metrics,
        "budget": {key: sum(own["budget"][key] for own in parts) for key in part["budget"]},
        "realised": {**part["realised"], "members": len(stages)},
    }
