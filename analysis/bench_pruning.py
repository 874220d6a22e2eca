"""What pruning saves: the same search of a learning rate with and without it, real runs at a tiny scale.

Both searches draw the same rates, so that the best value is the same unless its trial is pruned; printed is the ratio
of the tokens that were trained on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from turns import Row, main

from paribus.sweeps.search.status import status_reader

TRIALS = 10
UNPRUNED = {"all": 10_000, "pruned": 4}  # first trials that are never pruned
BUDGET = ["trainer.max_tokens=30000", "trainer.max_epochs=null", "trainer.train_tokens=50000"]
FIXED = ["scale=smoke", "seed=100", "task=none", "logger=none", "profile.threads=1", "evaluation.examples=128"]


def searched(folder: Path, unpruned: int) -> dict[str, float]:
    """Tokens and best loss of one search."""
    start = f"hydra.sweeper.pruner.n_startup_trials={unpruned}"
    given = [f"paths.runs={folder}", f"hydra.sweeper.n_trials={TRIALS}", "hydra/sweeper/sampler=random"]
    command = [sys.executable, "-m", "paribus", "train", "-m", "search=optuna_lr", *FIXED, *BUDGET, *given, start]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    status = status_reader(folder / "optuna_lr-smoke.search")()
    done = [row.values[0] for row in status.rows if row.state == "done"]
    tokens = sum(row.tokens or 0 for row in status.rows)
    return {"tokens": tokens, "best": min(done), "pruned": status.count("pruned")}


def rows() -> list[Row]:
    """The ratio of the tokens; it means something only if both searches found the same best value."""
    with tempfile.TemporaryDirectory() as name:
        found = {kind: searched(Path(name) / kind, first) for kind, first in UNPRUNED.items()}
    if found["pruned"]["best"] != found["all"]["best"]:
        raise RuntimeError(f"the best trial was pruned: {found}")
    ratio = found["pruned"]["tokens"] / found["all"]["tokens"]
    return [Row(f"pruning: share of the tokens of {TRIALS} trials, same best value", ratio, "", most=0.9)]


if __name__ == "__main__":
    sys.exit(main(rows, __doc__))
