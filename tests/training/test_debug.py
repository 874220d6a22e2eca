"""`debug=`: short runs that no table counts, one of them under Lightning's profiler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paribus.core.config import compose
from paribus.core.config_names import choices
from paribus.core.errors import UserError
from paribus.training.run import run


@pytest.mark.parametrize("name", choices("debug"))
def test_a_debug_run_belongs_to_no_table(name: str) -> None:
    cfg = compose([f"debug={name}", "scale=paper", "family=t5"])
    assert (cfg.study, dict(cfg.tasks)) == ("debug", {})
    assert cfg.logger._target_.endswith("Nothing")
    assert cfg.trainer.max_steps <= 300
    assert cfg.trainer.train_tokens <= 20000


def test_one_batch_runs_and_the_profiler_writes_where_the_time_went(arguments: list[str], tmp_path: Path) -> None:
    shape = ["debug=profiler", "trainer.max_steps=1"]
    folder = run(compose([*arguments, *shape]))
    record = json.loads((folder / "result.json").read_text())
    assert (record["study"], record["status"], record["budget"]["steps"]) == ("debug", "done", 1)
    assert folder.parent == tmp_path / "runs" / "debug" / "run"
    assert "run_training_batch" in (folder / "fit-profile.txt").read_text()


def test_an_unknown_profiler_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UserError, match=r"profile\.profiler=fast is unknown: use null, simple, advanced, pytorch"):
        run(compose([*arguments, "debug=one_batch", "profile.profiler=fast"]))


def test_a_few_batches_are_memorized(arguments: list[str]) -> None:
    more = ["debug=overfit", "trainer.max_steps=60", "trainer.train_tokens=200", "optimizer.lr=5e-3"]
    folder = run(compose([*arguments, *more]))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [line["train/mlm_loss"] for line in lines if "train/mlm_loss" in line]
    assert losses[-1] < 0.6 * losses[0]
