"""A noise pattern for triples: exactly the part that a line asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.masking.pattern import Counts, NoisePattern
from paribus.corruption.masking.units import mark_runs
from paribus.data.annotators.annotator import Annotator
from paribus.data.annotators.asked import Asked as AskedPart
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Asked(NoisePattern):
    """All tokens of the annotated spans are noise: those after the colon of each line of `corpus=triples`.

    Raises UserError for text that is not annotated.
    """

    rate: float = field(default=1.0, init=False)
    annotator: Annotator = field(default_factory=AskedPart, init=False)
    rounds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """The rate is that of the text."""

    def counts(self, raw: int) -> Counts:
        """An upper bound: every line has a head, a colon and an asked part."""
        return Counts(raw, raw / 3)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        if text.annotated_BL is None:
            raise UserError("masking=asked, but the text is not annotated", "prepare the data with its annotator")
        return mark_runs((text.annotated_BL > 0) & text.free_BL)
