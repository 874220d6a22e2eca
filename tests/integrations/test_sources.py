"""The loader: records, offline W&B runs and a W&B server give one frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_wandb import project, server
from pandas.testing import assert_frame_equal

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.integrations.wandb.frames import Frames, StageLog, join_stages, load
from paribus.integrations.wandb.sources import Offline, Online, Records, read_segment
from paribus.training import callbacks
from paribus.training.run import run


@pytest.fixture(scope="module")
def runs(text_folder: Path, cache: Path, task_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two arms of one study, one of them fine-tuned and one interrupted, and a run of another scale's group."""
    root = tmp_path_factory.mktemp("tracked")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_DATA_DIR"):
            patch.delenv(name, raising=False)
        patch.setenv("NETRC", str(root / "none"))
        given = [
            "scale=test", "corpus=text", f"corpus.path={text_folder}", "tokenizer.vocab_size=150",
            f"paths.cache={cache}", f"paths.runs={root / 'runs'}", "profile.threads=1", "profile.precision=32-true",
            "study=s", "logger=wandb", "trainer.max_steps=6", "trainer.log_every=1", "profile.checkpoint_steps=2",
        ]  # fmt: skip
        run(compose([*given, "arm=a", "task=sst2", f"tasks.sst2.path={task_folder}"]))
        interrupted = compose([*given, "arm=b", "seed=3"])
        with patch.context() as broken:
            broken.setattr(callbacks.LastCheckpoint, "save", _saved_then_killed)
            with pytest.raises(MemoryError):
                run(interrupted)
        run(interrupted)
        run(compose([*given, "study=other"]))
        yield root / "runs"


_save = callbacks.LastCheckpoint.save


def _saved_then_killed(self: callbacks.LastCheckpoint, trainer: Any) -> None:
    """The step after the checkpoint is logged, lost, and made again."""
    if trainer.global_step < 4:
        _save(self, trainer)
    else:
        raise MemoryError


def equal(one: Frames, other: Frames) -> None:
    assert_frame_equal(one.runs, other.runs)
    assert_frame_equal(one.curves, other.curves)


def served(roots: list[Path]) -> list[dict[str, Any]]:
    """What a server holds after `wandb sync` of these folders: segments of an id joined, their steps renumbered."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(path for root in roots for path in root.glob("*/*/seed*/wandb/*run-*/run-*.wandb")):
        head, log, _ = read_segment(path)
        empty: dict[str, Any] = {"config": {}, "summary": {}, "history": []}
        whole = found.setdefault(
            head["run_id"], {"id": head["run_id"], "group": head["run_group"], "job_type": head["job_type"], **empty}
        )
        whole["config"] |= log.config
        whole["summary"] |= log.summary
        whole["history"] += [{**row, "_step": len(whole["history"]) + at} for at, row in enumerate(log.history)]
    return list(found.values())


def test_records_and_offline_runs_are_one_frame(runs: Path) -> None:
    ours = load(Records([runs]), "s", "test")
    assert list(ours.runs["arm"]) == ["a", "b"]
    assert set(ours.runs["status"]) == {"done"}
    assert {"mlm_loss", "sst2/accuracy", "budget/flops"} <= set(ours.runs.columns)
    assert ours.runs["sst2/accuracy"].isna().tolist() == [False, True]
    steps = ours.curves.query("arm == 'b' and metric == 'train/mlm_loss'")["step"].tolist()
    assert steps == [1, 2, 3, 4, 5, 6]
    equal(ours, load(Offline([runs]), "s", "test"))


@pytest.mark.slow
def test_a_server_gives_the_same_frame(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    with server(project(served([runs]))) as (url, asked):
        online = load(Online(entity="e", base_url=url), "s", "test")
    assert {"Runs", "HistoryPage"} <= set(asked)
    equal(load(Records([runs]), "s", "test"), online)


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "wrong")
    with pytest.raises(UserError, match="W&B cannot be reached"):
        load(Online(entity="e", base_url="http://127.0.0.1:9"), "s", "test")


def test_a_study_without_runs_is_an_empty_frame(tmp_path: Path) -> None:
    ours, theirs = load(Records([tmp_path]), "s", "test"), load(Offline([tmp_path]), "s", "test")
    equal(ours, theirs)
    assert len(ours.runs) == 0


def test_a_run_that_is_not_over_is_left_out() -> None:
    config = {"arm": "a", "seed": 0, "signature": "x", "tasks": {"sst2": {}}}
    pretrained = StageLog({**config, "stage": "pretrain"}, {"status": "done", "mlm_loss": 2.0})
    assert join_stages([pretrained], None) == []
    tuning = StageLog({**config, "stage": "finetune"}, {"sst2/accuracy": 0.5})
    assert join_stages([pretrained, tuning], None) == []
    tuning.summary["status"] = "done"
    (found,) = join_stages([pretrained, tuning], None)
    assert found.values == {"mlm_loss": 2.0, "sst2/accuracy": 0.5}
