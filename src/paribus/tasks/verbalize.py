"""Examples and labels as T5 puts them into words.   arXiv 1910.10683, section 2.4; T5 `data/preprocessors.py`"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paribus.tasks.example import normalized

Parts = list[tuple[str, str]]  # (what announces a text, the text)


class Fields(NamedTuple):
    """What the texts of a task are called: `name`, announced first, and the names of the text and of its pair."""

    name: str
    text: str
    pair: str | None = None

    def parts(self, text: str, pair: str | None = None) -> Parts:
        """`sst2 sentence: TEXT`, or of a pair `mnli hypothesis: PAIR premise: TEXT`, by the alphabet of the names."""
        named = [(self.text, text)] if pair is None else sorted([(self.text, text), (self.pair or "pair", pair)])
        (first, said), rest = named[0], named[1:]
        return [(f"{self.name} {first}:".lstrip(), said), *((f"{name}:", more) for name, more in rest)]


def joined(parts: Parts) -> str:
    """What is read, as one text."""
    return " ".join(f"{announced} {text}" for announced, text in parts)


def rounded(value: float, step: float) -> str:
    """A value as the nearest multiple of `step`, with a decimal: 2.57 is "2.6" in steps of 0.2. Half goes to even, in
    single precision as T5 has it.
    """
    per = np.float32(1 / step)
    return f"{np.rint(np.float32(value) * per) / per + np.float32(0):.1f}"


def number(text: str) -> float | None:
    """The number that a text says, if any."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def places(texts: Sequence[str]) -> dict[str, int]:
    """{text, normalized: its place}; of equal ones the first."""
    found: dict[str, int] = {}
    for place, text in enumerate(texts):
        found.setdefault(normalized(text), place)
    return found
