"""Corruption and prediction at different rates.   Wettig et al. (arXiv 2202.08005), section 5 and table 3

With `predict` below `rate` only some spans of the noise are predicted. With `predict` n times the `rate`, noise is
drawn at the rate of prediction, its spans are split into n parts, and the row is read n times, each time with a
different part as its noise: all predicted tokens are corrupted, at n times the compute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.core.trust import KNOWN, is_trusted
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.masking.units import number_spans
from paribus.data.sequences import Flags, Ints, Marks, Text, exclusive_cumsum, number_within


def count_readings(rate: float, predict: float | None) -> int:
    """How often a row is read."""
    return max(1, 1 if predict is None else round(predict / rate))


def predicted_rate(rate: float, predict: float | None) -> float:
    """The share of the tokens read that is predicted: all of them if there is no noise."""
    if rate == 0:
        return 1.0
    return rate if predict is None else min(rate, predict)


def mark_rows(masking: NoisePattern, text: Text, noise: Noise) -> tuple[Text, Noise, Marks]:
    """The rows, each repeated once per reading, with their noise and their marks.

    Raises UserError if the masking is not ours and returns something else than marks of the rows.
    """
    rate, predict = masking.rate, masking.predict
    if predict is None or predict == rate:
        return text, noise, _draw_marks(masking, text, noise)
    if predict < rate:
        marks = _draw_marks(masking, text, noise)
        return text, noise, replace(marks, predicted_BL=_choose_predicted(marks, noise, predict / rate))
    times = count_readings(rate, predict)
    marks = _draw_marks(replace(masking, rate=predict, predict=None), text, noise)
    return text.repeat(times), Noise(np.repeat(noise.row_B, times)), _split_between_readings(marks, noise, times)


def _draw_marks(masking: NoisePattern, text: Text, noise: Noise) -> Marks:
    """The marks; those of a masking that is not ours are checked."""
    marks = masking(text, noise)
    if is_trusted(type(masking).__module__, KNOWN):
        return marks
    who, shape = f"the masking {type(masking).__name__}", text.ids_BL.shape
    if not isinstance(marks, Marks):
        raise UserError(f"{who} returned {type(marks).__name__}", "return Marks(span_BL)")
    span_BL: object = marks.span_BL
    if not isinstance(span_BL, np.ndarray) or span_BL.shape != shape or span_BL.dtype != np.int16:
        given = f"{span_BL.dtype} {list(span_BL.shape)}" if isinstance(span_BL, np.ndarray) else type(span_BL).__name__
        mend = f"give int16 {list(shape)}, for example by mark_runs"
        raise UserError(f"{who} returned a span_BL of {given}", mend)
    if span_BL[~text.free_BL].any():
        raise UserError(f"{who} marked special tokens or padding as noise", "choose only places of text.free_BL")
    return marks


def _choose_predicted(marks: Marks, noise: Noise, share: float) -> Flags:
    """bool [B, L]: spans in random order until round(share * noise) tokens of the row, at least 1; the last is cut."""
    spans = _shuffle_spans(marks, noise)
    before_P = np.repeat(spans.before_S, spans.size_S) + number_within(spans.size_S)
    wanted_S = np.maximum(1, np.rint(share * spans.total_S))
    predicted_BL = np.zeros(marks.span_BL.shape, np.bool_)
    predicted_BL.reshape(-1)[marks.noise_P] = before_P < np.repeat(wanted_S, spans.size_S)
    return predicted_BL


def _split_between_readings(marks: Marks, noise: Noise, times: int) -> Marks:
    """Marks of B x times rows: the spans of a row in random order, split into equal parts; no span is cut."""
    spans = _shuffle_spans(marks, noise)
    reading_S = (2 * spans.before_S + spans.size_S) * times // (2 * spans.total_S)  # by the span's middle
    rows, width = marks.span_BL.shape
    row_P, column_P = np.divmod(marks.noise_P, width)
    place_P = (row_P * times + np.repeat(reading_S, spans.size_S)) * width + column_P
    chosen_CL, begin_CL = np.zeros((2, rows * times, width), np.bool_)
    chosen_CL.reshape(-1)[place_P] = True
    begin_CL.reshape(-1)[place_P[_find_leads(marks)]] = True
    return Marks(number_spans(chosen_CL, begin_CL))


class _Spans(NamedTuple):
    """All spans of all rows from left to right: tokens, tokens of the row's spans before it in random order, of all."""

    size_S: Ints
    before_S: Ints
    total_S: Ints


def _shuffle_spans(marks: Marks, noise: Noise) -> _Spans:
    lead_P = _find_leads(marks)
    row_S, column_S = np.divmod(marks.noise_P[lead_P], marks.span_BL.shape[1])
    size_S = np.diff(np.flatnonzero(lead_P), append=len(lead_P))
    total_B = np.bincount(row_S, size_S, len(marks.span_BL)).astype(np.int64)
    order_S = np.lexsort((noise.at("prediction", row_S, column_S), row_S))
    before_S = np.empty(len(size_S), np.int64)
    before_S[order_S] = exclusive_cumsum(size_S[order_S])
    before_S -= exclusive_cumsum(total_B)[row_S]
    return _Spans(size_S, before_S, total_B[row_S])


def _find_leads(marks: Marks) -> Flags:
    """bool [P]: the tokens of the noise that are the first of their span."""
    span_P, row_P = marks.span_BL.reshape(-1)[marks.noise_P], marks.noise_P // marks.span_BL.shape[1]
    lead_P = np.ones(len(span_P), np.bool_)
    lead_P[1:] = (span_P[1:] != span_P[:-1]) | (row_P[1:] != row_P[:-1])
    return lead_P
