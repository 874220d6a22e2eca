"""The code and package versions that made a record."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus import __version__
from paribus.runs.store import RESULTS

PACKAGES = (
    "torch", "pytorch-lightning", "transformers", "tokenizers", "datasets", "hydra-core", "omegaconf", "numpy",
    "scipy", "torchmetrics", "wandb", "optuna",
)  # fmt: skip


@cache
def versions() -> Mapping[str, str]:
    """{package: version} of what computes the numbers, with Python's and our own. What is imported does not change."""
    found = {"python": platform.python_version(), "paribus": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return MappingProxyType(found)


def git_state() -> dict[str, Any] | None:
    """{"commit", "dirty"} of the checkout that this code runs from; None outside of one.

    Committed results compute nothing: a sweep that adds its records to them leaves the checkout clean.
    """
    top = Path(__file__).parents[3]
    if not (top / ".git").exists():
        return None
    commit = _git(top, "rev-parse", "HEAD")
    changed = _git(top, "status", "--porcelain", "-uno", "--", ":/", f":(exclude,top){RESULTS}")
    return {"commit": commit, "dirty": bool(changed)} if commit else None


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
