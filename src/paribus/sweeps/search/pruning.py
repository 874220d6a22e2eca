"""Inside a run that is a trial of a search: report a metric at each validation, and stop if the pruner says so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.core.build import build
from paribus.core.errors import UserError
from paribus.sweeps.search.storage import open_storage
from paribus.verdict.metrics import LOSS, held_out_loss

if TYPE_CHECKING:
    from optuna.trial import Trial

PRUNER = "pruner"  # attribute of the study: the pruner's config


class UnknownObjective(UserError):
    """No run of the search has this objective, so that more trials would fail alike. `known`: what a run has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"hydra.sweeper.objective={name}: the run has no {name}", f"it has {', '.join(sorted(known))}")
        self.given = name, list(known)

    def __reduce__(self) -> tuple[type[UnknownObjective], tuple[str, list[str]]]:
        return type(self), self.given


@dataclass
class TrialReporter:
    """A trial as its run sees it. `metric`: the validation metric that the pruner compares."""

    trial: Trial
    metric: str

    def report(self, step: int, values: Mapping[str, float], tokens: int = 0) -> bool:
        """Report a validation; returns whether to stop. A resumed run may report a step again without effect.

        Raises UnknownObjective if the validation does not have the metric.
        """
        value = values.get(self.metric)
        if value is None and (self.metric != LOSS or (value := held_out_loss(values)) is None):
            raise UnknownObjective(self.metric, values)
        self.trial.report(float(value), step)
        self.trial.set_user_attr("tokens", tokens)
        return bool(self.trial.should_prune())


def reporter(node: Mapping[str, object] | None) -> TrialReporter | None:
    """The reporter of `cfg.trial`: {storage, study, id, metric}; None if the run is not a trial or nothing prunes it.

    Raises UserError if the storage cannot be opened.
    """
    if node is None or node.get("metric") is None:
        return None
    from optuna import load_study
    from optuna.trial import Trial

    study = load_study(study_name=str(node["study"]), storage=open_storage(str(node["storage"])))
    study.pruner = build(json.loads(study.user_attrs[PRUNER]))
    return TrialReporter(Trial(study, int(str(node["id"]))), str(node["metric"]))
