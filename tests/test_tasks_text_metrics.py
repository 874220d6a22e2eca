"""ROUGE, BLEU and exact match on texts whose values are known by hand."""

from __future__ import annotations

import math

import pytest

from paribus.tasks.text_metrics import TEXT_METRICS, text_scores


def test_equal_texts_are_perfect() -> None:
    texts = ["the cat sat on the mat today", "a dog ran over the hill again"]
    assert text_scores(TEXT_METRICS, texts, texts) == pytest.approx(dict.fromkeys(TEXT_METRICS, 1.0))


def test_values_by_hand() -> None:
    scores = text_scores(TEXT_METRICS, ["the cat sat on a mat"], ["the cat sat on the mat"])
    assert scores["rouge1"] == pytest.approx(5 / 6)
    assert scores["rouge2"] == pytest.approx(3 / 5)
    assert scores["rougeL"] == pytest.approx(5 / 6)
    precisions = (5 / 6, 3 / 5, 2 / 4, 1 / 3)
    assert scores["bleu"] == pytest.approx(math.prod(precisions) ** 0.25, abs=1e-5)
    assert scores["exact_match"] == 0.0


def test_nothing_written_is_worth_nothing() -> None:
    scores = text_scores(TEXT_METRICS, [""], ["some text to be written"])
    assert scores == dict.fromkeys(TEXT_METRICS, 0.0)


def test_exact_match_does_not_see_case_and_spaces() -> None:
    assert text_scores(["exact_match"], ["Sums  it up."], ["sums it up."]) == {"exact_match": 1.0}
