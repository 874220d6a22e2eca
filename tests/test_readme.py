"""What the README shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paribus.commands.cli import VERBS
from paribus.core.config import compose
from paribus.sweeps.control import audit
from paribus.sweeps.sweep import jobs, load

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_arm_of_ten_lines_is_a_fair_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert len(example.splitlines()) <= 11
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "my_rates.yaml").write_text(example)
    monkeypatch.chdir(tmp_path)
    sweep = load("my_rates")
    runs = jobs(sweep, "smoke", seeds=(0,))
    found = audit(sweep, {job.arm: compose(job.overrides) for job in runs})
    assert found["differences"]["r40"] == {"masking.rate": [0.15, 0.4]}


def test_every_command_is_a_verb_and_every_verb_is_shown() -> None:
    shown = set(re.findall(r"^paribus (\w+)", README, re.MULTILINE))
    assert shown == set(VERBS)


def test_no_placeholder_is_left() -> None:
    assert "@" not in README
