"""Examples and labels in T5's words, by examples of the paper's appendix D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paribus.tasks.examples import Example
from paribus.tasks.prompts import Fields, parse_number, round_to_step
from paribus.tasks.types.classification import Classification
from paribus.tasks.types.regression import Regression


class Letters:
    """A tokenizer of characters."""

    def encode(self, texts: list[str]) -> list[tuple[Any, None]]:
        return [(np.array([ord(c) for c in text], np.int64), None) for text in texts]

    def texts(self, rows: Any) -> list[str]:
        return ["".join(map(chr, row)) for row in rows]


def test_texts_are_announced_by_the_alphabet_of_their_names() -> None:
    assert Fields("sst2", "sentence").announce("it is charming") == [("sst2 sentence:", "it is charming")]
    pair = Fields("mnli", "premise", "hypothesis").announce("He left.", "He stayed.")
    assert pair == [("mnli hypothesis:", "He stayed."), ("premise:", "He left.")]


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.57, "2.6"), (3.8, "3.8"), (0.0, "0.0"), (0.04, "0.0"), (2.5, "2.4"), (0.7, "0.8"), (5, "5.0")],
)
def test_values_are_rounded_to_steps(value: float, text: str) -> None:
    assert round_to_step(value, 0.2) == text


def test_one_to_five_in_steps_of_a_fifth_are_21_classes() -> None:
    words = Regression(least=1, most=5).verbalize(Fields("stsb", "a", "b"), False).words
    assert (len(words), words[0], words[-1]) == (21, "1.0", "5.0")


def test_what_says_no_number_says_none() -> None:
    assert [parse_number(text) for text in ("3.8", "", "nan", "inf", "three")] == [3.8, None, None, None, None]


def test_an_unknown_label_is_wrong_and_counted() -> None:
    task_type = Classification(("no", "yes"), ("accuracy", "f1")).verbalize(Fields("toy", "text"), False)
    examples = [Example("a", None, label) for label in (0, 1, 1, 0)]
    found = task_type.parse(["no", "Yes", "perhaps", ""], Letters())
    assert found.tolist() == [0, 1, -1, -1]
    scores = task_type.score(found, examples)
    assert scores["accuracy"] == 0.5
    assert scores["f1"] == pytest.approx(0.5)  # one found, one missed, one given wrongly
    assert scores["unknown_rate"] == 0.5


def test_an_unknown_value_is_below_the_least() -> None:
    task_type = Regression().verbalize(Fields("stsb", "a", "b"), False)
    examples = [Example("a", "b", value) for value in (0.0, 2.0, 5.0)]
    found = task_type.parse(["0.0", "2.0", "much"], Letters())
    scores = task_type.score(found, examples)
    expected = np.corrcoef([0.0, 2.0, -1.0], [0.0, 2.0, 5.0])[0, 1]
    assert scores["pearson"] == pytest.approx(expected)
    assert scores["unknown_rate"] == pytest.approx(1 / 3)
