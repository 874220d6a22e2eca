"""Errors that a user can fix, and what to type instead of an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from traceback import extract_tb


class UserError(Exception):
    """Bad input: one line that names the cause (key or file) and the fix. The command exits with status 2."""

    def __init__(self, cause: str, mend: str = "") -> None:
        text = f"{cause}: {mend}" if mend else cause
        super().__init__(" ".join(text.split()))


class Unavailable(UserError):
    """A component that this machine lacks, such as a tagger that is not installed.

    A sweep lists its arm as not run, with this message as the reason, and runs the other arms.
    """


@contextmanager
def permitted() -> Iterator[None]:
    """Raises UserError that names the file or folder if the block may not read or write one, or cannot make a folder.

    A file that is missing where the block expects it is a fault of ours, and stays a FileNotFoundError.
    """
    try:
        yield
    except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
        made = extract_tb(error.__traceback__)[-1].name in ("mkdir", "makedirs")
        if error.filename is None or (isinstance(error, FileNotFoundError) and not made):
            raise
        cause = f"{error.filename} cannot be read or written ({error.strerror})"
        mend = "change its permissions, or choose" if isinstance(error, PermissionError) else "choose"
        raise UserError(cause, f"{mend} another file or folder") from error


@contextmanager
def located(place: str) -> Iterator[None]:
    """Raises the block's UserError with the key or file that it is about in front."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{place}: {error}") from error


def nearest(name: str, known: Iterable[str], cutoff: float = 0.55) -> list[str]:
    """Up to three known names with the most similar spelling, with a `difflib` ratio of at least the cutoff.

    The choice `none` is never one of them.
    """
    ratios = {other: difflib.SequenceMatcher(None, other, name).ratio() for other in known if other != "none"}
    best = max(ratios.values(), default=0.0)
    return [other for other, ratio in ratios.items() if ratio >= max(cutoff, best - 0.02)][:3]


def suggest(name: str, known: Sequence[str]) -> str:
    """What to type instead of `name`: similar names, or all known names if none is similar."""
    near = nearest(name, known)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
