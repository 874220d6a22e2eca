"""Files that take seconds to make: once for all processes of one pytest session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paribus.core.files import alone


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """The folder after `make(folder)`, which only the first process calls; the others wait for it."""
    with alone(folder):
        if not (done := folder / ".made").exists():
            make(folder)
            done.touch()
    return folder
