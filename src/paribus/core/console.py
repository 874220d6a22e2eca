"""What the terminal shows: progress bars and short notes, both on stderr, bars only where someone is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")


def watched() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr.isatty()


def say(message: str) -> None:
    """One line for the reader, on stderr, so that stdout stays data."""
    print(message, file=sys.stderr, flush=True)


def progress(items: Iterable[Item], what: str, total: int | None = None, unit: str = "it") -> Iterator[Item]:
    """Iterate with a progress bar that is silent when stderr is no terminal."""
    from tqdm import tqdm

    return iter(tqdm(items, desc=what, total=total, unit=unit, disable=not watched(), leave=False))


@contextmanager
def bar(what: str, total: int | None = None, unit: str = "it", scale: bool = False) -> Iterator[Any]:
    """A bar to be moved by hand (`.update(n)`), silent when stderr is no terminal."""
    from tqdm import tqdm

    with tqdm(desc=what, total=total, unit=unit, unit_scale=scale, disable=not watched(), leave=False) as moved:
        yield moved
