"""A noise pattern, a view to read and a view to write: a row of T5's table of objectives (arXiv 1910.10683)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.attention_mask import AttentionMask
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.masking.prediction import count_readings, mark_rows
from paribus.corruption.shuffling import Shuffling
from paribus.corruption.views.view import View
from paribus.data.sequences import Marks, Text, Views
from paribus.data.tokens.vocabulary import Vocabulary

DEVIATIONS: Final = 4.0  # if the spans of a row vary, sentinels must suffice for this many above the mean
LONGEST: Final = 64  # times the budget that a window may hold
NAMES: Final = {"prefix_d_d": "prefix_lm", "all_p_f": "all_permute", "all_n_f": "lm"}  # T5's own for some rows


@dataclass(frozen=True)
class Corruption:
    """A noise pattern, then the two views, then `shuffling` and `attention_mask` of what is read.

    If `targets` is None, the noise is predicted in place.
    """

    masking: NoisePattern
    inputs: View
    targets: View | None = None
    shuffling: Shuffling | None = None
    attention_mask: AttentionMask | None = None

    @property
    def written(self) -> View:
        """The view to write, for a corruption that has one."""
        assert self.targets is not None
        return self.targets

    @property
    def readings(self) -> int:
        """How often each row is read: the views hold that many consecutive copies of it."""
        return count_readings(self.masking.rate, self.masking.predict)

    @property
    def name(self) -> str:
        """The row in T5's table, such as span_3_15_u_u: pattern, density, view read, view written."""
        name = f"{self.masking.row_name}_{self.inputs.short_name}_{self.written.short_name}"
        return NAMES.get(name, name)

    def __call__(self, text: Text, noise: Noise, vocabulary: Vocabulary) -> Views:
        text, noise, marks = mark_rows(self.masking, text, noise)
        if self._sentinels == "each" and not self.masking.fixed:
            marks = limit_spans(marks, vocabulary.sentinels)
        read = self.inputs(*reorder(text, marks), noise, vocabulary)
        written = None if self.targets is None else self.targets(text, marks, noise, vocabulary)
        views = Views(text, marks, read, written, noise.row_B)
        for step in (self.shuffling, self.attention_mask):
            views = views if step is None else step(views, noise)
        return views

    def lengths(self, raw: int) -> tuple[float, float]:
        """(tokens read, tokens written) of a window of `raw` tokens; means if the noise varies."""
        counts = self.masking.counts(raw)
        return self.inputs.length(raw, *counts), self.written.length(raw, *counts)

    def raw_length(self, budget: int) -> int:
        """The longest window of which at most `budget` tokens are read, as T5's length calculator finds it.

        If the noise of a row varies, the window is one token below the budget, so that every row fits. At a rate of one
        half a row that would be written longer than it is read loses one token, as in T5.
        """
        raw = budget - 1
        if not self.masking.fixed or not self.lengths(raw)[0]:
            return raw
        while self.lengths(raw + 1)[0] <= budget and raw < LONGEST * budget:
            raw += 1
        read, written = self.lengths(raw)
        return raw - (self.masking.rate == 0.5 and written > read)

    def read_lengths(self, raw_N: NDArray[np.int32]) -> NDArray[np.int32]:
        """int32 [N]: tokens read of windows of these lengths; the most if the noise of a row varies."""
        if not self.masking.fixed:
            return raw_N + np.int32(1)
        raw_U, at_N = np.unique(raw_N, return_inverse=True)
        return np.array([self.lengths(int(raw))[0] for raw in raw_U], np.int32)[at_N]

    def check(self, raw: int, vocabulary: Vocabulary) -> None:
        """Raise UserError if the views do not fit, or windows of `raw` tokens have more spans than sentinels."""
        if self.targets is None:
            return
        check_views(self.masking, self.inputs, self.targets)
        if self._sentinels == "none":
            return
        needed = 1.0
        if self._sentinels == "each":
            spans = self.masking.counts(raw).spans
            needed = spans if self.masking.fixed else spans + DEVIATIONS * spans**0.5
            needed += self.masking.single_span  # text on both sides of it
        if needed > (given := vocabulary.sentinels):
            raise UserError(
                f"windows of {raw} tokens have up to {needed:.0f} spans, but tokenizer.sentinels={given}",
                f"set tokenizer.sentinels={math.ceil(needed)} or more, lower masking.rate, or use views without "
                "sentinels",
            )

    @property
    def _sentinels(self) -> str:
        """How many sentinels a row needs: `none`, `one` for all spans, or one for `each`."""
        if self.targets is None:
            return "none"
        uses = {self.inputs.sentinels, self.targets.sentinels}
        return "each" if "each" in uses else "one" if "one" in uses else "none"


def check_views(masking: NoisePattern, inputs: View, targets: View) -> None:
    """Raise UserError if what is read and what is written do not fit each other or the noise pattern."""
    if masking.predict is not None:
        raise UserError(
            f"masking.predict={masking.predict} does not apply to text-to-text objectives",
            "leave it null: their targets contain all noise",
        )
    for name, view, side in (("inputs", inputs, "noise"), ("targets", targets, "text")):
        if view.side not in (None, side):
            raise UserError(f"objective.{name}.hides={view.side} is the wrong side", f"set it to {side}")
    pattern, reorders, whole_row = type(masking).__name__, masking.reorders, masking.whole_row
    if reorders and not targets.whole:
        raise UserError(f"{pattern} reorders the text", "use objective/targets=full")
    if reorders and whole_row and not inputs.in_drawn_order:
        raise UserError(f"{pattern} hides no token", "use objective/inputs=permuted")
    if inputs.in_drawn_order and not reorders:
        raise UserError(f"{pattern} does not reorder the text", "use masking=permute, sentence_permutation or rotation")
    if inputs.in_drawn_order and not whole_row:
        raise UserError(f"objective/inputs=permuted would show the noise of {pattern}", "use objective/inputs=shared")
    if whole_row and not reorders and not inputs.empty:
        raise UserError(f"all tokens are noise under {pattern}", "use objective/inputs=nothing")
    if inputs.empty and not (targets.whole and whole_row):
        raise UserError("objective/inputs=nothing reads no text", "use masking=all and objective/targets=full")
    if inputs.whole:
        raise UserError("objective/inputs=full shows the noise", "use unique, shared, drop, mask or permuted")
    shows_blanks = inputs.drops_spans or (inputs.marks_spans and inputs.sentinels != "each")
    if masking.inserts and not shows_blanks:
        raise UserError(f"{pattern} has spans of length 0", "use objective/inputs=shared or drop")
    if masking.inserts and targets.marks_spans:
        raise UserError(f"the spans of {pattern} may touch or be empty", "use objective/targets=full or drop")
    if targets.in_place and not masking.single_span:
        raise UserError("objective/targets=fragment needs noise of one span", "use masking=fragment")


def limit_spans(marks: Marks, sentinels: int) -> Marks:
    """Drop the last spans of rows with more spans than sentinels: they stay text."""
    if marks.span_BL.max(initial=0) < sentinels:
        return marks
    return replace(marks, span_BL=np.where(marks.span_BL < sentinels, marks.span_BL, 0).astype(np.int16))


def reorder(text: Text, marks: Marks) -> tuple[Text, Marks]:
    """Both in the order in which the text is read."""
    if marks.order_BL is None:
        return text, marks
    return text.reorder(marks.order_BL), Marks(np.take_along_axis(marks.span_BL, marks.order_BL, 1), marks.insert_BL)
