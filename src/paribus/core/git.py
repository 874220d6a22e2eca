"""What the version control of a folder knows; nothing outside of a repository, or without git."""

from __future__ import annotations

import subprocess
from pathlib import Path


def ask_git(folder: Path, *arguments: str) -> bytes | None:
    """What git prints in a folder, or in the nearest one above that exists; None if it fails."""
    while not folder.is_dir():
        folder = folder.parent
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def is_ancestor(folder: Path, commit: str, later: str) -> bool | None:
    """Whether a commit came before another one or is the same; None if one of them is not here."""
    if any(ask_git(folder, "cat-file", "-e", f"{one}^{{commit}}") is None for one in (commit, later)):
        return None
    return ask_git(folder, "merge-base", "--is-ancestor", commit, later) is not None
