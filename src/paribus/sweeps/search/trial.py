"""Inside a run that is a trial: report a value at each validation through the study's storage, and stop if told to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import Trial

PRUNER = "pruner"  # attribute of the study: the pruner's config


@dataclass
class Reporter:
    """A trial as its run sees it.

    Args:
        trial: Optuna's.
        metric: what is reported of the values of a validation.
    """

    trial: Trial
    metric: str

    def report(self, step: int, values: Mapping[str, float], tokens: int = 0) -> bool:
        """Whether to stop, after this validation. A step that was reported before (a resumed run) is left as it was.

        Raises KeyError where the validation has no such metric.
        """
        self.trial.report(float(values[self.metric]), step)
        self.trial.set_user_attr("tokens", tokens)
        return bool(self.trial.should_prune())


def reporter(node: Mapping[str, Any] | None) -> Reporter | None:
    """The reporter of `cfg.trial`: {storage, study, id, metric}; None where the run is no trial or nothing prunes.

    Raises UserError where the storage cannot be opened.
    """
    if node is None or node.get("metric") is None:
        return None
    import json

    from hydra.utils import instantiate
    from optuna import load_study
    from optuna.trial import Trial

    from paribus.sweeps.search.storage import open_storage

    study = load_study(study_name=str(node["study"]), storage=open_storage(str(node["storage"])))
    study.pruner = instantiate(json.loads(study.user_attrs[PRUNER]))
    return Reporter(Trial(study, int(node["id"])), str(node["metric"]))
