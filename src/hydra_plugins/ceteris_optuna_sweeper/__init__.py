"""`hydra/sweeper=optuna`: Optuna 5 under Hydra 1.3, with resume, pruning, seeds and shared storage.

ceteris train -m search=optuna_lr scale=smoke
"""

from __future__ import annotations

from hydra_plugins.ceteris_optuna_sweeper.optuna_sweeper import OptunaSweeper

__all__ = ["OptunaSweeper"]
