"""Noise that is one run of consecutive tokens: MASS's fragment, T5's prefix language model, the answer of a triple."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.core.settings import within
from paribus.corruption.masking.pattern import NoiseCounts, NoisePattern
from paribus.corruption.masking.units import mark_runs
from paribus.data import annotators
from paribus.data.sequences import Marks, Text

FIRST, LAST = 0.2, 0.2  # shares of rows whose fragment is at the start, at the end


@dataclass(frozen=True)
class Fragment(NoisePattern):
    """round(rate * length) consecutive free tokens.   MASS (arXiv 1905.02450), sections 3.1 and 3.2, and its code

    In a fifth of the rows they are the first tokens, in a fifth the last ones, otherwise all places are equally likely.
    One token is BERT's objective, a rate of 1 that of a language model.
    Raises UserError for a rate outside (0, 1].
    """

    rate: float = field(default=0.5, metadata=within(0, 1))
    fixed: ClassVar[bool] = True
    single_span: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.rate, int | float) or not 0 < self.rate <= 1:
            raise UserError(
                f"masking.rate={self.rate} is out of range",
                "give a share above 0, at most 1 for whole rows, such as 0.5",
            )

    def counts(self, raw: int) -> NoiseCounts:
        return NoiseCounts(max(1, round(self.rate * raw)), 1)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        place_BL = np.cumsum(text.free_BL, axis=1) - 1
        free_B = place_BL[:, -1] + 1
        size_B = np.maximum(np.rint(self.rate * free_B), 1).astype(np.int64)
        draw_B2 = noise.bits("masking", 2)
        start_B = integers(draw_B2[:, 1], free_B - size_B + 1)
        start_B[draw_B2[:, 0] < below(FIRST)] = 0
        last_B = draw_B2[:, 0] >= below(1 - LAST)
        start_B[last_B] = (free_B - size_B)[last_B]
        inside_BL = (place_BL >= start_B[:, None]) & (place_BL < (start_B + size_B)[:, None])
        return Marks((inside_BL & text.free_BL).astype(np.int16))


@dataclass(frozen=True)
class Prefix(NoisePattern):
    """All free tokens after a prefix of uniform length in [1, length - 1]: read the beginning, write the rest.

    T5 (arXiv 1910.10683), section 3.3.1; its `random_prefix_noise_mask`
    """

    rate: float = field(default=0.5, init=False)
    single_span: ClassVar[bool] = True
    row_name: ClassVar[str] = "prefix"

    def check(self, length: int) -> None:
        """Raise UserError if a row has no room for a prefix and a rest."""
        if length < 2:
            raise UserError(f"rows of {length} tokens have no prefix", "raise input.length")

    def counts(self, raw: int) -> NoiseCounts:
        return NoiseCounts(raw / 2, 1.0)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        place_BL = np.cumsum(text.free_BL, axis=1)
        prefix_B = 1 + integers(noise.bits("masking", 1)[:, 0], np.maximum(place_BL[:, -1] - 1, 1))
        return Marks(((place_BL > prefix_B[:, None]) & text.free_BL).astype(np.int16))


@dataclass(frozen=True)
class Asked(NoisePattern):
    """All tokens of the annotated spans are noise: those after the colon of each line of `corpus=triples`.

    Raises UserError for text that is not annotated.
    """

    rate: float = field(default=1.0, init=False)
    annotator: annotators.Annotator = field(default_factory=annotators.Asked, init=False)
    rounds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """The rate is that of the text."""

    def counts(self, raw: int) -> NoiseCounts:
        """An upper bound: every line has a head, a colon and an answer."""
        return NoiseCounts(raw, raw / 3)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        if text.annotated_BL is None:
            raise UserError("masking=asked, but the text is not annotated", "prepare the data with its annotator")
        return mark_runs((text.annotated_BL > 0) & text.free_BL)
