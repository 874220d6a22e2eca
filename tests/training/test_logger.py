"""W&B: offline without a key, one id a stage over interruptions, never in the way of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.runs import wandb_tracker as service
from paribus.training import callbacks
from paribus.training.logger import Wandb
from paribus.training.run import run

STEPS = ["trainer.max_steps=8", "trainer.log_every=1"]
SECRET = "s3cret" + "0" * 34  # of the form of a key


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    monkeypatch.setattr(service._Server, "lost", False)


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def segments(folder: Path, wandb_id: str) -> list[Path]:
    return [path.parent for path in sorted(folder.glob(f"wandb/*run-*/run-{wandb_id}.wandb"))]


def inspected(segment: Path, *flags: str) -> list[dict[str, Any]]:
    """What `wandb leet inspect` reads of one segment."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *flags, str(segment)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(text)] if flags else [json.loads(line) for line in text.splitlines()]


def history(segment: Path) -> list[dict[str, Any]]:
    return [line["history"]["item"] for line in inspected(segment) if line["type"] == "history"]


def steps(segment: Path) -> list[int]:
    return [row["trainer/global_step"] for row in history(segment)]


def lines(folder: Path) -> list[int]:
    """The steps of the run's own curves."""
    return [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_each_stage_is_an_offline_run_named_by_its_signature(arguments: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    folder = run(compose([*arguments, *task, *STEPS, "logger=wandb", "study=s", "arm=a"]))
    found = record(folder)
    assert found["wandb_id"].startswith(found["signature"])
    (pretraining,), (finetuning,) = (segments(folder, found["wandb_id"] + end) for end in ("", "-finetune"))
    head = next(line["run"] for line in inspected(pretraining) if line["type"] == "run")
    assert (head["run_group"], head["job_type"], head["resume"]) == ("s-test", "pretrain", True)
    assert head["tags"] == ["s", "test", "a"]
    assert head["config"]["update"]["versions"] == found["versions"]
    assert steps(pretraining) == lines(folder)
    axis = next(line["metric"] for line in inspected(pretraining) if line["type"] == "metric")
    assert axis["step_metric"] == "trainer/global_step"
    (told,) = inspected(finetuning, "--summary")
    assert told["summary"]["sst2/accuracy"] == found["metrics"]["sst2/accuracy"]
    assert told["summary"]["status"] == "done"
    assert any("sst2/seed0/train_loss" in row for row in history(finetuning))


def test_an_offline_run_does_not_report_to_a_server(tmp_path: Path) -> None:
    code = """
import sys
from paribus.runs.wandb_tracker import WandbInit, Destination, Tracked
from pathlib import Path
about = WandbInit("id1", "name", "group", "pretrain", (), {}, Path("runs"))
tracked = Tracked(about, Destination("p", None, lambda: False))
tracked.log({"loss": 1.0}, 1)
assert tracked.alive
tracked.close("done")
print("opentelemetry.sdk" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_an_interrupted_run_goes_on_under_its_id(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cfg = compose([*arguments, *STEPS, "profile.checkpoint_steps=3", "logger=wandb"])
    save = callbacks.LastCheckpoint.save

    def save_and_die(self: callbacks.LastCheckpoint, trainer: Any) -> None:
        save(self, trainer)
        if trainer.global_step == 6:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(cfg)
    folder = run(cfg)
    first, second = segments(folder, record(folder)["wandb_id"])
    assert steps(first) + steps(second) == lines(folder)
    assert max(steps(first)) == 6
    assert inspected(first, "--summary")[0]["summary"]["status"] == "failed"
    assert inspected(second, "--summary")[0]["summary"]["status"] == "done"


def test_a_service_that_dies_in_the_middle_is_started_again(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = callbacks.Curves.write

    def write_and_kill(self: callbacks.Curves, trainer: Any, step: int, values: dict[str, float]) -> None:
        write(self, trainer, step, values)
        if step == 4:
            own = [child for child in psutil.Process().children(recursive=True) if child.name().startswith("wandb-")]
            assert own
            for child in own:
                child.kill()
            time.sleep(0.5)

    monkeypatch.setattr(callbacks.Curves, "write", write_and_kill)
    folder = run(compose([*arguments, *STEPS, "logger=wandb"]))
    found = record(folder)
    assert found["status"] == "done"
    assert "continues without it" in capsys.readouterr().err
    last = segments(folder, found["wandb_id"])[-1]
    assert steps(last) == lines(folder)
    assert inspected(last, "--summary")[0]["summary"]["mlm_loss"] == found["metrics"]["mlm_loss"]


@pytest.mark.parametrize("key", ["wrong", SECRET])
def test_a_wrong_key_or_no_network_leaves_the_run_offline(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], key: str
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", key)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(service, "INIT_SECONDS", 3.0)
    folder = run(compose([*arguments, *STEPS, "logger=wandb", "logger.mode=online"]))
    found = record(folder)
    out, err = capfd.readouterr()
    assert "W&B is logged offline" in err
    offline = [path for path in segments(folder, found["wandb_id"]) if path.name.startswith("offline-")]
    assert steps(offline[-1]) == lines(folder)
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in written + (out + err).encode()


def test_a_service_that_cannot_start_does_not_stop_the_run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import wandb

    def broken(*unused: Any, **named: Any) -> None:
        raise OSError("no service")

    monkeypatch.setattr(wandb, "init", broken)
    found = record(run(compose([*arguments, "logger=wandb"])))
    assert found["status"] == "done"
    assert found["wandb_id"] is None
    assert "W&B is off for this run: no service" in capsys.readouterr().err


def test_arms_of_one_pretraining_each_have_its_curves(arguments: list[str]) -> None:
    first, second = (run(compose([*arguments, *STEPS, "logger=wandb", f"arm={arm}"])) for arm in ("a", "b"))
    ids = record(first)["wandb_id"], record(second)["wandb_id"]
    assert ids[0] != ids[1]
    (own,), (adopted,) = segments(first, ids[0]), segments(second, ids[1])
    shown = [
        [(row["trainer/global_step"], row.get("train/mlm_loss")) for row in history(one)] for one in (own, adopted)
    ]
    assert shown[0] == shown[1]


def test_what_is_staged_for_upload_lies_beside_the_run_or_where_the_user_says(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = (run(compose([*arguments, "logger=wandb", f"seed={seed}"])) for seed in (1, 2))
    assert first != second
    assert os.environ["WANDB_DATA_DIR"] == str(second / "wandb")
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path))
    run(compose([*arguments, "logger=wandb", "seed=3"]))
    assert os.environ["WANDB_DATA_DIR"] == str(tmp_path)


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(UserError, match=r"logger\.mode=sometimes"):
        Wandb(mode="sometimes")
