"""Which places a held-out loss is a mean over."""

from __future__ import annotations

from typing import NamedTuple


class TargetSet(NamedTuple):
    """Which places a held-out loss is a mean over. Losses over other sets cannot be compared.

    Attributes:
        what: a short plain name, such as "15% of the tokens, masked".
        places: how many there are.
    """

    what: str
    places: int
