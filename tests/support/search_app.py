"""A small Hydra application for the sweeper's tests; it writes what it was given, and reports like a training run."""

from __future__ import annotations

import os
import time
from typing import Any

import hydra
import optuna
from hydra.core.config_store import ConfigStore
from optuna.trial import Trial

from paribus.core.plugins import register
from paribus.sweeps.search.pruning import reporter

STEPS = 10


def conditional(cfg: Any, trial: Trial) -> None:
    """y has an own parameter where it is b."""
    if trial.params.get("y") == "b":
        trial.suggest_float("z", 1.0, 2.0)


@hydra.main(version_base="1.3", config_path=None, config_name="config")
def main(cfg: Any) -> Any:
    with open(os.environ["SEARCH_LOG"], "a", encoding="ascii") as file:
        time.sleep(cfg.seconds)
        file.write(f"{cfg.x} {cfg.y} {cfg.seed} {cfg.z} {os.getpid()}\n")
    loss = (cfg.x - 0.3) ** 2 + cfg.seed
    heard, tokens = reporter(cfg.trial), 0
    for step in range(1, STEPS + 1):
        tokens += 1000
        if heard is not None and heard.report(step, {"loss": loss + 1 / step}, tokens):
            raise optuna.TrialPruned(f"pruned at step {step}")
    return {"loss": loss, "flops": 1 + cfg.x}


ConfigStore.instance().store(
    name="config", node={"x": 0.0, "y": "a", "z": 0.0, "seed": 0, "seconds": 0.0, "trial": None}
)

if __name__ == "__main__":
    register()
    main()
