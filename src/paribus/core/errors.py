"""The one kind of error that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """Bad input: one line that names the cause (key or file) and the mend. The command exits with status 2."""

    def __init__(self, cause: str, mend: str = "") -> None:
        text = f"{cause}: {mend}" if mend else cause
        super().__init__(" ".join(text.split()))


class Unavailable(UserError):
    """A component that this machine cannot give, such as a tagger that is not installed.

    A sweep lists its arm as not run, with this line as the reason, and runs the others.
    """
