"""Training on a CUDA device: the same bits each time, the losses of a CPU, sweeps whose runs share a device."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from run_files import lines, record, weights
from text_to_text import T5

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.core.processes import Stopped
from paribus.training import callbacks
from paribus.training.run import run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is visible"),
]

RUNS = {
    "masked": [],
    "pairs": ["input=segment_pair", "objective=mlm_nsp"],
    "spans": ["masking=geometric_span", "objective=mlm_sbo"],
    "electra": ["objective=electra"],
    "left_to_right": ["objective=clm", "masking=none", "model.attention=left"],
    "prefix": ["objective=unilm"],
    "large_steps": ["batch.size=16", "profile.microbatch=4", "trainer.clip=1.0"],
    "text_to_text": T5,
    "prefix_lm": [*T5, "model.architecture=prefix_lm"],
}


@pytest.fixture(params=RUNS)
def asked(request: pytest.FixtureRequest, arguments: list[str]) -> list[str]:
    """Overrides of a run of eight steps."""
    given = [text for text in arguments if not text.startswith(("profile.precision=", "paths.runs="))]
    return [*given, *RUNS[request.param], "trainer.max_steps=8", "trainer.log_every=1", "logger=none"]


@pytest.fixture
def tuned(asked: list[str], task_folder: Path) -> list[str]:
    """The run with a task, in the precision that the device is fastest in."""
    own = ["columns.text=sentence", "classes=[dull,bright]", "splits.validation=validation", f"path={task_folder}"]
    return [*asked, "task=ag_news", *(f"tasks.ag_news.{setting}" for setting in own)]


def test_a_run_has_the_same_bits_each_time_and_after_a_stop(
    tuned: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = (run(compose([*tuned, f"paths.runs={tmp_path / name}"])) for name in ("first", "again"))
    other = compose([*tuned, f"paths.runs={tmp_path / 'stopped'}"])
    count = iter(range(10**6))
    monkeypatch.setattr(callbacks, "asked_to_stop", lambda: signal.SIGTERM if next(count) == 5 else None)
    with pytest.raises(Stopped):
        run(other)
    monkeypatch.setattr(callbacks, "asked_to_stop", lambda: None)
    resumed = run(other)
    assert record(first)["profile"]["accelerator"] == "gpu"
    assert record(first)["metrics"] == record(again)["metrics"] == record(resumed)["metrics"]
    assert weights(first) == weights(again) == weights(resumed)


def test_losses_are_those_of_a_cpu(asked: list[str], tmp_path: Path) -> None:
    plain = ["model.dropout=0", "task=none", "profile.precision=32-true"]
    plain += ["model.attention_dropout=0"] if "family=t5" not in asked else []
    there, here = (
        run(compose([*asked, *plain, f"profile.accelerator={name}", f"paths.runs={tmp_path / name}"]))
        for name in ("gpu", "cpu")
    )
    on_gpu, on_cpu = (
        [{key: value for key, value in line.items() if key.endswith("loss")} for line in lines(folder)]
        for folder in (there, here)
    )
    assert sum(map(bool, on_cpu)) >= 8, "each step has a loss"
    assert on_gpu == [pytest.approx(losses, rel=1e-3) for losses in on_cpu]


def test_runs_of_a_sweep_share_a_device(equal_arms: list[str], tmp_path: Path) -> None:
    assert main(["run", *equal_arms, "slots=2", f"runs={tmp_path / 'runs'}"]) == 0
    found = [json.loads(path.read_text()) for path in (tmp_path / "runs").rglob("result.json")]
    assert len(found) == 4
    assert {each["profile"]["accelerator"] for each in found} == {"gpu"}
    assert all(each["status"] == "done" for each in found)
