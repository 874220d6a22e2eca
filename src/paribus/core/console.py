"""Notes and progress bars on stderr, so that stdout stays data. Bars appear only in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

Item = TypeVar("Item")


def watched() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr.isatty()


def say(message: str) -> None:
    """Print one line on stderr."""
    print(message, file=sys.stderr, flush=True)


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
