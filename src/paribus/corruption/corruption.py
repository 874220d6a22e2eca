"""A corruption is masking x view read x view written, a row of T5's table of objectives (arXiv 1910.10683, table 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.masking.prediction import marked, readings
from paribus.corruption.protocols import AttentionMask, Masking, Shuffling
from paribus.corruption.views.pairs import check_pair
from paribus.data.text import Marks, Text, Views

DEVIATIONS: Final = 4.0  # above the mean, to which the sentinels must reach where the spans of a row vary
LONGEST: Final = 64  # times the budget that a window may hold
NAMES: Final = {"prefix_d_d": "prefix_lm", "all_p_f": "all_permute", "all_n_f": "lm"}  # T5's own for some rows


@dataclass(frozen=True)
class Corruption:
    """Masking, then the two views, then `shuffling` in what is read, and `sight` of it; `targets` None predicts in
    place.
    """

    masking: Masking
    inputs: Any  # Encoding
    targets: Any = None  # Encoding | None
    shuffling: Shuffling | None = None
    attention_mask: AttentionMask | None = None

    @property
    def readings(self) -> int:
        """How often each row is read: the views hold that many rows of it in turn."""
        return readings(self.masking.rate, self.masking.predict)

    @property
    def moved_rate(self) -> float:
        """The expected share of the tokens that is predicted out of order, beside the noise."""
        return 0.0 if self.shuffling is None else self.shuffling.rate(self.masking.rate)

    @property
    def name(self) -> str:
        """The row in T5's table, such as span_3_15_u_u: pattern, density, how inputs and targets show it."""
        row = getattr(self.masking, "row", type(self.masking).__name__.lower())
        name = f"{row}_{self.inputs.letter}_{self.targets.letter}"
        return NAMES.get(name, name)

    def __call__(self, text: Text, noise: Noise, vocabulary: Any) -> Views:
        text, noise, marks = marked(self.masking, text, noise)
        if self._unique and not hasattr(self.masking, "fixed"):
            marks = limited(marks, vocabulary.sentinels)
        read = self.inputs(*reordered(text, marks), noise, vocabulary)
        written = self.targets(text, marks, noise, vocabulary) if self.targets else None
        views = Views(text, marks, text if read is None else read, written)
        for step in (self.shuffling, self.attention_mask):
            views = views if step is None else step(views, noise)
        return views

    def lengths(self, raw: int) -> tuple[float, float]:
        """(tokens read, tokens written) of a window of `raw` tokens; expected ones where the noise varies."""
        noise, spans = self._counts(raw)
        return self.inputs.length(raw, noise, spans), self.targets.length(raw, noise, spans)

    def raw_length(self, budget: int) -> int:
        """The longest window of which at most `budget` tokens are read, as T5's length calculator finds it.

        Where the noise of a row varies, the window is one token below the budget, so that every row fits. At a rate of
        one half a row that would be written longer than it is read loses one token, as in T5.
        """
        raw = budget - 1
        if not hasattr(self.masking, "fixed") or not self.lengths(raw)[0]:
            return raw
        while self.lengths(raw + 1)[0] <= budget and raw < LONGEST * budget:
            raw += 1
        read, written = self.lengths(raw)
        return raw - (self.masking.rate == 0.5 and written > read)

    def read_lengths(self, raw_N: NDArray[np.int32]) -> NDArray[np.int32]:
        """int32 [N]: tokens read of windows of these lengths; the most where the noise of a row varies."""
        if not hasattr(self.masking, "fixed"):
            return raw_N + np.int32(1)
        found, at_N = np.unique(raw_N, return_inverse=True)
        return np.array([self.lengths(int(raw))[0] for raw in found], np.int32)[at_N]

    def _counts(self, raw: int) -> tuple[float, float]:
        """(noise tokens, spans) of a window; where they vary the mean, of single tokens unless the masking knows."""
        given = getattr(self.masking, "fixed", None) or getattr(self.masking, "expected", None)
        if given is not None:
            noise, spans = given(raw)
            return noise, spans
        rate = self.masking.rate
        return rate * raw, rate * (1 - rate) * (raw - 1) + rate

    def check(self, raw: int, vocabulary: Any) -> None:
        """Raise UserError for views that do not fit, or sentinels fewer than windows of `raw` tokens have spans."""
        if self.targets is None:
            return
        check_pair(self.masking, self.inputs, self.targets)
        if self._unique:
            spans = self._counts(raw)[1]
            most = spans if hasattr(self.masking, "fixed") else spans + DEVIATIONS * spans**0.5
            most += getattr(self.masking, "single", False)  # text on both sides of it
            check_sentinels(raw, most, vocabulary.sentinels)
        elif any(getattr(view, "symbol", "") == "sentinel" or view.letter == "s" for view in self._views):
            check_sentinels(raw, 1, vocabulary.sentinels)

    @property
    def _views(self) -> tuple[Any, ...]:
        return self.inputs, self.targets

    @property
    def _unique(self) -> bool:
        return self.targets is not None and any(view.letter == "u" for view in self._views)


def limited(marks: Marks, sentinels: int) -> Marks:
    """Noise that varies may have more spans than there are sentinels for them and the text between: the last spans of
    such a row stay text.
    """
    if marks.span_BL.max(initial=0) < sentinels:
        return marks
    return replace(marks, span_BL=np.where(marks.span_BL < sentinels, marks.span_BL, 0).astype(np.int16))


def reordered(text: Text, marks: Marks) -> tuple[Text, Marks]:
    """Both in the order in which the text is read."""
    if marks.order_BL is None:
        return text, marks
    order_BL = marks.order_BL
    columns = {name: getattr(text, name) for name in ("ids_BL", "free_BL", "start_BL")}
    moved: dict[str, Any] = {name: np.take_along_axis(column, order_BL, 1) for name, column in columns.items()}
    span_BL = np.take_along_axis(marks.span_BL, order_BL, 1)
    return replace(text, **moved), Marks(span_BL, marks.insert_BL)


def check_sentinels(raw: int, needed: float, given: int) -> None:
    """Raise UserError where there are too few."""
    if needed > given:
        raise UserError(
            f"windows of {raw} tokens have up to {needed:.0f} spans, but tokenizer.sentinels={given}",
            f"set tokenizer.sentinels={math.ceil(needed)} or more, lower masking.rate, or take inputs without them",
        )
