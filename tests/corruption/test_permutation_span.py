"""XLNet's spans in their context, against the loop of its `data_utils.py` with the same draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_store import CLS, SEP
from fake_text import made_up, noise, text_of

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.corruption.masking.permutation_span import PermutationSpan
from paribus.data.sequences import Text


def sample_mask(start: list[bool], goal: int, noise_of_row: Noise, part: int, context: int, words: bool) -> list[int]:
    """`_sample_mask` without the single tokens: the chosen places of a part, given where words start."""
    chosen: list[int] = []
    bounds = np.rint(np.cumsum([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]) / (137 / 60) * 2**32)[:-1]
    at, number, size = 0, 0, len(start)
    while at < size and len(chosen) < goal:
        draw = [2 * number + part]
        n = 1 + int(np.searchsorted(bounds, noise_of_row.at("span length", [0], draw)[0], side="right"))
        n = min(n, goal - len(chosen))
        before = int(integers(noise_of_row.at("context", [0], draw), n * context)[0])
        begin = at + before
        while begin < size and not start[begin]:
            begin += 1
        if begin >= size:
            break
        end, count = begin + 1, 1
        while end < size:
            if start[end if words else begin]:  # the published code asks the first token again
                count += 1
                if count > n:
                    break
            end += 1
        if end >= size:
            break
        chosen += range(begin, min(end, begin + goal - len(chosen)))
        at, number = end + n * context - before, number + 1
    return chosen


def in_halves(text: Text, backwards: list[bool] | None = None) -> Text:
    """The text as rows of a stream, half of whose tokens the next row does not read again."""
    directions = None if backwards is None else np.array(backwards)
    return replace(text, reused_B=text.length_B // 2, reversed_B=directions)


def columns_of(text: Text, row: int) -> list[list[int]]:
    """The columns of the parts of a row in the order of its text, with [CLS] where it is read."""
    length = int(text.length_B[row])
    forward = [*range(1, length), 0]
    if text.reused_B is None:
        return [forward]
    half = int(text.reused_B[row])
    if text.reversed_B is not None and text.reversed_B[row]:
        return [list(range(length - half, length)), list(range(length - half))]
    return [forward[:half], forward[half:]]


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("backwards", [None, [False, True, True, False]])
def test_spans_are_those_of_the_published_loop(words: bool, backwards: list[bool] | None) -> None:
    made, drawn = made_up(4, 150), noise(4, 3)
    masking = PermutationSpan(fill=False, unit="word" if words else "token")
    for text in (made, in_halves(made, backwards)):
        span_BL = masking(text, drawn).span_BL
        for row in range(4):
            goal = int(text.length_B[row]) // 6
            parts = columns_of(text, row)
            goals = [goal] if len(parts) == 1 else [goal - goal // 2, goal // 2]
            wanted = []
            for part, (columns, of_part) in enumerate(zip(parts, goals, strict=True)):
                start = [bool(text.start_BL[row, column]) for column in columns]
                found = sample_mask(start, of_part, Noise(drawn.row_B[row : row + 1]), part, 6, words)
                wanted += [columns[place] for place in found]
            assert np.flatnonzero(span_BL[row]).tolist() == sorted(c for c in wanted if text.free_BL[row, c])


def test_spans_alone_take_an_eighth_and_single_tokens_reach_the_goal() -> None:
    """512 tokens in two halves: 85 are asked for, of which spans give about 70 (13.7% of all)."""
    sizes = np.random.default_rng(0).choice([1, 1, 1, 1, 2, 2, 3, 4], (200, 510))
    cut = [size_W[: int(np.searchsorted(np.cumsum(size_W), 510)) + 1].tolist() for size_W in sizes]
    rows = [[[*size_W[:-1], 510 - sum(size_W[:-1])]] for size_W in cut]
    text, drawn = in_halves(text_of(rows)), noise(200)
    assert set(text.length_B) == {512}
    spans = PermutationSpan(fill=False)(text, drawn)
    assert abs(np.count_nonzero(spans.span_BL) / text.length_B.sum() - 0.137) < 0.002
    assert abs(np.count_nonzero(spans.span_BL) / spans.spans - 2.19) < 0.05
    filled_B = np.count_nonzero(PermutationSpan()(text, drawn).span_BL, axis=1)
    assert filled_B.max() == 85
    assert filled_B.min() > 80, "[CLS] and [SEP] may take a few of the goal"
    assert np.count_nonzero(PermutationSpan(context=7)(text, drawn).span_BL, axis=1).max() == 73


def test_all_is_predicted_in_a_context_of_one_and_specials_never() -> None:
    text = in_halves(text_of([[[1] * 62]] * 3))
    span_BL = PermutationSpan(context=1)(text, noise(3)).span_BL
    assert np.array_equal(span_BL > 0, text.free_BL)
    assert not span_BL[np.isin(text.ids_BL, (CLS, SEP))].any()


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"context": 0.5}, "masking.context=0.5 is out of range"),
        ({"context": "six"}, "masking.context=six is out of range"),
        ({"max_length": 0}, "masking.max_length=0"),
        ({"unit": "letter"}, "masking.unit=letter"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(UserError, match=cause):
        PermutationSpan(**settings)
    with pytest.raises(UserError, match=r"input\.length=5 tokens leaves no prediction"):
        PermutationSpan().check(5)
