"""Errors that a user can fix."""

from __future__ import annotations


class UserError(Exception):
    """Bad input: one line with the cause (the key or file) and the fix. The command exits with status 2."""

    def __init__(self, cause: str, mend: str = "") -> None:
        text = f"{cause}: {mend}" if mend else cause
        super().__init__(" ".join(text.split()))


class Unavailable(UserError):
    """A component that this machine lacks, such as a tagger that is not installed.

    A sweep lists its arm as not run, with this message as the reason, and runs the other arms.
    """
