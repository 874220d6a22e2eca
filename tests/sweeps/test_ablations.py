"""Arms that a sweep file lists as one block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.sweeps.control import audit
from paribus.sweeps.sweep import Sweep, jobs
from paribus.sweeps.sweep_file import load


def sweep(folder: Path, arms: dict[str, Any], baseline: str, varies: str = "masking.rate") -> Sweep:
    content = {
        "study": "mine", "varies": [varies, "optimizer.lr"], "matched": "tokens", "baseline": baseline,
        "columns": ["mlm_loss"], "arms": arms,
    }  # fmt: skip
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return load(str(path))


def test_leaving_one_out_gives_the_whole_and_all_but_each(tmp_path: Path) -> None:
    found = sweep(tmp_path, {"leave_one_out": ["masking.rate=0.4", "optimizer.lr=0.0007"]}, "full")
    assert found.arms == {
        "full": ("masking.rate=0.4", "optimizer.lr=0.0007"),
        "without_rate": ("optimizer.lr=0.0007",),
        "without_lr": ("masking.rate=0.4",),
    }
    configs = {job.arm: compose(job.overrides) for job in jobs(found, "smoke", seeds=(0,))}
    assert audit(found, configs)["differences"]["without_rate"] == {"masking.rate": [0.4, 0.15]}


def test_one_at_a_time_gives_the_base_and_each_change(tmp_path: Path) -> None:
    arms = {
        "one_at_a_time": ["masking.rate=0.1", "masking.rate=0.4"],
        "both": ["masking.rate=0.2", "optimizer.lr=0.01"],
    }
    found = sweep(tmp_path, arms, "base")
    assert found.arms == {
        "base": (),
        "rate_0.1": ("masking.rate=0.1",),
        "rate_0.4": ("masking.rate=0.4",),
        "both": ("masking.rate=0.2", "optimizer.lr=0.01"),
    }


def test_parts_can_be_named(tmp_path: Path) -> None:
    parts = {"heavy": ["masking.rate=0.4", "optimizer.lr=0.01"], "slow": "optimizer.lr=0.0001"}
    found = sweep(tmp_path, {"leave_one_out": parts}, "without_heavy")
    assert list(found.arms) == ["full", "without_heavy", "without_slow"]
    assert found.arms["without_heavy"] == ("optimizer.lr=0.0001",)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"leave_one_out": "masking.rate=0.4"}, "is not a list of overrides"),
        ({"one_at_a_time": []}, "is not a list of overrides"),
        (
            {"leave_one_out": ["masking.rate=0.1", "masking.rate=0.4"]},
            "two parts of 'arms.leave_one_out' are named 'rate'",
        ),
        ({"one_at_a_time": ["masking.rate=0.1"], "base": []}, "two arms are named 'base'"),
        ({"one_at_a_time": ["masking.rate"]}, "is not an override"),
        ({"leave_one_outt": ["masking.rate=0.1"]}, r"a sweep needs two arms or more: did you mean leave_one_out\?"),
    ],
)
def test_a_slip_is_refused(tmp_path: Path, arms: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        sweep(tmp_path, arms, "base")
