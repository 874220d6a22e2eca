"""Arrays of a left-to-right language model on the encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.corruption.collators.encoder import Encoder
from paribus.data.text import Arrays, Views


@dataclass(frozen=True)
class Causal(Encoder):
    """As an encoder's, but each target is predicted at the place before it: the usual shift by one.

    The first token of a row is never a target, so that the place before is in the same row.
    """

    semantics: ClassVar[int] = 1

    def pack(self, views: Views, vocabulary: Any) -> Arrays:
        """See `Encoder.pack`; slot_P is where a target is read off, one to the left of it."""
        arrays = super().pack(views, vocabulary)
        return {**arrays, "slot_P": arrays["slot_P"] - 1}

    def shown(self, arrays: Arrays, vocabulary: Any) -> dict[str, int]:
        """No token is shown as anything in its own place."""
        return {"masked": 0, "kept": 0, "randomized": 0}
