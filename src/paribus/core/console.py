"""Notes and progress bars on stderr, so that stdout stays data. Bars appear only in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

Item = TypeVar("Item")
EVERY = 30.0  # seconds between two lines on the progress of what nobody watches


class _Screen:
    """Whether a live display has the terminal."""

    covered: bool = False


def watched() -> bool:
    """Whether stderr is a terminal that can show a moving bar."""
    return sys.stderr.isatty() and not _Screen.covered


@contextmanager
def cover() -> Iterator[None]:
    """Mark the terminal as used by a live display during the block; otherwise each bar update would print a line above
    it.
    """
    _Screen.covered = True
    try:
        yield
    finally:
        _Screen.covered = False


def say(message: str) -> None:
    """Print one line on stderr."""
    print(message, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Such as `43 s`, `12 min`, `3.5 h`, `12 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def progress(items: Iterable[Item], what: str, total: int | None = None, unit: str = "it") -> Iterator[Item]:
    """Iterate with a progress bar."""
    from tqdm import tqdm

    return iter(tqdm(items, desc=what, total=total, unit=unit, disable=not watched(), leave=False))


@contextmanager
def bar(what: str, total: int | None = None, unit: str = "it", scale: bool = False) -> Iterator[tqdm[None]]:
    """A progress bar that the caller moves with `.update(n)`; `scale` writes 1200000 as 1.20M."""
    from tqdm import tqdm

    with tqdm(desc=what, total=total, unit=unit, unit_scale=scale, disable=not watched(), leave=False) as moved:
        yield moved
