"""What a record says of the code that made it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASK = "from paribus.runs.provenance import git_state; print(git_state()['dirty'])"


def git(folder: Path, *arguments: str) -> None:
    own = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "-C", folder, *own, *arguments], check=True, capture_output=True)


def test_only_results_may_change_in_a_clean_checkout(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    result, code = tmp_path / "analysis/results/cpu/t/cpu.json", tmp_path / "src/paribus/core/noise.py"
    result.parent.mkdir(parents=True)
    result.write_text("{}")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")

    def is_dirty() -> str:
        command = [sys.executable, "-c", ASK]
        found = subprocess.run(command, env={"PYTHONPATH": str(tmp_path / "src")}, capture_output=True, text=True)
        return found.stdout.strip()

    assert is_dirty() == "False"
    result.write_text('{"runs": {}}')
    assert is_dirty() == "False"
    code.write_text(code.read_text() + "\n")
    assert is_dirty() == "True"
