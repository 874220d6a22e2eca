"""`hydra/sweeper=optuna`: Optuna 5 under Hydra 1.3, with resume, pruning, seeds and shared storage.

paribus train -m search=optuna_lr scale=smoke
"""

from __future__ import annotations

from hydra_plugins.paribus_optuna_sweeper.optuna_sweeper import OptunaSweeper

__all__ = ["OptunaSweeper"]
