"""Spans in their context, for partial prediction.   XLNet (arXiv 1906.08237), section 2.3; its `data_utils.py`"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.corruption.masking.pattern import NoisePattern, check_at_least_one, check_choice
from paribus.corruption.masking.units import number_spans
from paribus.data.sequences import Flags, Ints, Marks, Text

_NEVER: Final = np.uint64(1 << 32)  # above every draw: of a place that cannot be chosen


@dataclass(frozen=True)
class PermutationSpan(NoisePattern):
    """Spans of n tokens, each in a context of `context` x n tokens that stay; n from 1..max_length, likely as 1 / n.

    A row has a goal of floor(length / context) tokens. From left to right: skip l tokens, l uniform in
    [0, context x n), move right to the next start of a word, take n tokens, skip context x n - l more. A span that
    reaches the end of the text ends the search. Spans thus take at most 1 in `context` + 1; with `fill`, tokens drawn
    one by one reach the goal. In rows with a part that the next row does not read again (`Text.reused_B`), it and the
    rest have half of the goal each.

    As published, [SEP] and [CLS] count as text and as starts of words, but are no noise if they are taken; so a row may
    have a few tokens less. The n of a span counts tokens, though the authors' comments say words: `unit=word` does
    that, and cuts the last span at the goal.
    Raises UserError for settings out of range.
    """

    rate: float = field(default=0.0, init=False)
    context: float = 6.0
    max_length: int = 5
    unit: str = "token"
    fill: bool = True
    rounds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.context, int | float) or not 1 <= self.context < math.inf:
            cause = f"masking.context={self.context} is out of range: 1 in so many tokens is predicted"
            raise UserError(cause, "give a number of at least 1, such as 6")
        check_at_least_one("max_length", self.max_length)
        check_choice("unit", self.unit, ("token", "word"))
        object.__setattr__(self, "rate", 1 / self.context)

    @property
    def by_words(self) -> bool:
        return True

    def check(self, length: int) -> None:
        """Raise UserError if a full row of `length` tokens has no goal."""
        if length < self.context:
            cause = f"masking.context={self.context} of input.length={length} tokens leaves no prediction"
            raise UserError(cause, f"give a context of at most {length}, or longer rows")

    def __call__(self, text: Text, noise: Noise) -> Marks:
        parts = _cut_parts(text)
        goal_B = (text.length_B / self.context).astype(np.int64)
        if text.reused_B is None:
            goal_S = goal_B
        else:
            later_S = goal_B[parts.row_S] // 2
            goal_S = np.where(parts.number_S == 0, goal_B[parts.row_S] - later_S, later_S)
        span_SW = self._take_spans(parts, goal_S, noise)
        if self.fill:
            _fill(span_SW, parts, goal_S, noise)
        span_BL = np.zeros(text.ids_BL.shape, np.int64)
        row_SW = np.broadcast_to(parts.row_S[:, None], span_SW.shape)
        real_SW = parts.column_SW >= 0
        span_BL[row_SW[real_SW], parts.column_SW[real_SW]] = span_SW[real_SW]
        span_BL *= text.free_BL
        begin_BL = span_BL > 0
        begin_BL[:, 1:] &= span_BL[:, 1:] != span_BL[:, :-1]
        return Marks(number_spans(span_BL > 0, begin_BL))

    def _take_spans(self, parts: _Parts, goal_S: Ints, noise: Noise) -> Ints:
        """int64 [S, W]: in the parts, numbers above 0 of the spans; 0 elsewhere. R of the parts take one more span."""
        width, part_S = parts.column_SW.shape[1], np.arange(len(parts.row_S))
        share_N = np.cumsum(1 / np.arange(1, self.max_length + 1))
        bound_N = np.rint(share_N / share_N[-1] * 2**32)[:-1]
        span_SW = np.zeros(parts.column_SW.shape, np.int64)
        left_S, at_S, number = goal_S.copy(), np.zeros_like(goal_S), 0
        part_S = part_S[left_S > 0]
        while len(part_S):
            row_R, draw_R = parts.row_S[part_S], 2 * number + parts.number_S[part_S]
            n_R = 1 + np.searchsorted(bound_N, noise.at("span length", row_R, draw_R), side="right")
            n_R = np.minimum(n_R, left_S[part_S])
            context_R = (n_R * self.context).astype(np.int64)
            before_R = integers(noise.at("context", row_R, draw_R), context_R)
            begin_R = parts.next_SW[part_S, np.minimum(at_S[part_S] + before_R, width)]
            if self.unit == "token":
                end_R = begin_R + n_R
            else:  # the start of the n-th word after this one
                word_R = parts.word_SW[part_S, np.minimum(begin_R, width - 1)] + n_R
                end_R = parts.first_SW[part_S, np.minimum(word_R, width)]
            goes_R = (begin_R < width) & (end_R < parts.size_S[part_S])
            part_S, begin_R, end_R = part_S[goes_R], begin_R[goes_R], end_R[goes_R]
            stop_R = np.minimum(end_R, begin_R + left_S[part_S])
            place_W = np.arange(width)
            span_SW[part_S] += (number + 1) * ((place_W >= begin_R[:, None]) & (place_W < stop_R[:, None]))
            left_S[part_S] -= stop_R - begin_R
            at_S[part_S] = end_R + (context_R - before_R)[goes_R]
            part_S = part_S[(left_S[part_S] > 0) & (at_S[part_S] < parts.size_S[part_S])]
            number += 1
        return span_SW


class _Parts(NamedTuple):
    """The S parts of all rows, each in the order of its text, [CLS] included; W is the width of the longest.

    Attributes:
        row_S, number_S, size_S: row of each part, its number in the row, its tokens.
        column_SW: the column of the row; -1 behind the part.
        next_SW: [S, W + 1], the first place from here on where a word starts; W if there is none.
        word_SW: the number of the word, from 0.
        first_SW: [S, W + 1], by number of a word, where it starts; W behind the last.
    """

    row_S: Ints
    number_S: Ints
    size_S: Ints
    column_SW: Ints
    next_SW: Ints
    word_SW: Ints
    first_SW: Ints


def _cut_parts(text: Text) -> _Parts:
    rows, columns = text.ids_BL.shape
    column_L, real_BL = np.arange(columns), np.arange(columns) < text.length_B[:, None]
    later_BL = text.later_BL & real_BL
    place_BL = text.read_at_BL
    if text.reversed_B is not None:  # words start on their left side in these too
        place_BL = np.where(text.reversed_B[:, None], column_L, place_BL)
    order_BL = np.argsort(place_BL + columns * (later_BL + 2 * ~real_BL), axis=1)
    count = 1 if text.reused_B is None else 2
    row_S, number_S = np.divmod(np.arange(count * rows), count)
    later_B = later_BL.sum(axis=1)
    size_S = np.where(number_S == 0, (text.length_B - later_B)[row_S], later_B[row_S])
    first_S = np.where(number_S == 0, 0, (text.length_B - later_B)[row_S])
    width = int(size_S.max(initial=1))
    place_W = np.arange(width)
    inside_SW = place_W < size_S[:, None]
    column_SW = order_BL[row_S[:, None], np.minimum(first_S[:, None] + place_W, columns - 1)]
    start_SW = text.start_BL[row_S[:, None], column_SW] & inside_SW

    none_S1 = np.full((len(row_S), 1), width)
    next_SW = np.concatenate([np.where(start_SW, place_W, width), none_S1], axis=1)
    next_SW = np.minimum.accumulate(next_SW[:, ::-1], axis=1)[:, ::-1]
    word_SW = np.cumsum(start_SW, axis=1) - 1
    first_SW = np.full((len(row_S), width + 1), width)
    part_P, place_P = np.nonzero(start_SW)
    first_SW[part_P, word_SW[part_P, place_P]] = place_P
    return _Parts(row_S, number_S, size_S, np.where(inside_SW, column_SW, -1), next_SW, word_SW, first_SW)


def _fill(span_SW: Ints, parts: _Parts, goal_S: Ints, noise: Noise) -> None:
    """Reach the goals with single tokens, all choices equally likely; each is a span of its own."""
    real_SW = parts.column_SW >= 0
    missing_S = np.minimum(goal_S, parts.size_S) - np.count_nonzero(span_SW, axis=1)
    row_S1 = np.broadcast_to(parts.row_S[:, None], span_SW.shape)
    draw_SW = noise.at("single", row_S1, np.maximum(parts.column_SW, 0)).astype(np.uint64)
    draw_SW[(span_SW > 0) | ~real_SW] = _NEVER
    order_SW = np.argsort(draw_SW, axis=1, kind="stable")
    chosen_SW: Flags = np.zeros(span_SW.shape, np.bool_)
    np.put_along_axis(chosen_SW, order_SW, np.arange(span_SW.shape[1]) < missing_S[:, None], axis=1)
    first = int(span_SW.max(initial=0)) + 1
    span_SW[chosen_SW] = first + np.nonzero(chosen_SW)[1]
