"""Metrics of labels against scikit-learn and scipy; metrics of texts on values that are known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as reference

from paribus.core.errors import UserError
from paribus.tasks.metrics import METRICS, TEXT_METRICS, score_labels, score_texts

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("classes", [2, 5])
def test_classification(classes: int) -> None:
    target = RANDOM.integers(classes, size=300)
    found = np.where(RANDOM.random(300) < 0.6, target, RANDOM.integers(classes, size=300))
    values = score_labels(("accuracy", "matthews", "f1"), found, target, classes)
    assert values["accuracy"] == pytest.approx(reference.accuracy_score(target, found), abs=1e-6)
    assert values["matthews"] == pytest.approx(reference.matthews_corrcoef(target, found), abs=1e-6)
    average = "binary" if classes == 2 else "macro"
    assert values["f1"] == pytest.approx(reference.f1_score(target, found, average=average), abs=1e-6)


def test_correlations_with_ties() -> None:
    target = np.round(RANDOM.normal(size=200), 1)
    found = target + RANDOM.normal(size=200)
    values = score_labels(("pearson", "spearman"), np.round(found, 1), target, 0)
    assert values["pearson"] == pytest.approx(stats.pearsonr(np.round(found, 1), target).statistic, abs=1e-6)
    assert values["spearman"] == pytest.approx(stats.spearmanr(np.round(found, 1), target).statistic, abs=1e-6)


def test_scores_are_as_good_as_classes() -> None:
    scores = RANDOM.normal(size=(50, 3))
    target = RANDOM.integers(3, size=50)
    assert score_labels(("accuracy",), scores, target, 3) == score_labels(("accuracy",), scores.argmax(-1), target, 3)


@pytest.mark.filterwarnings("ignore:The variance of predictions")
def test_constant_predictions_have_no_correlation() -> None:
    target = np.arange(20) % 2
    assert score_labels(("matthews",), np.zeros(20, int), target, 2) == {"matthews": 0.0}
    assert score_labels(("pearson", "spearman"), np.zeros(20), target, 1) == {"pearson": 0.0, "spearman": 0.0}


def test_every_metric_is_there_and_no_other() -> None:
    assert set(score_labels(METRICS, np.array([0, 1, 1]), np.array([0, 1, 0]), 2)) == set(METRICS)
    with pytest.raises(UserError, match="'bleu' is not known: choose from accuracy"):
        score_labels(("bleu",), np.array([0]), np.array([0]), 2)


def test_equal_texts_are_perfect() -> None:
    texts = ["the cat sat on the mat today", "a dog ran over the hill again"]
    assert score_texts(TEXT_METRICS, texts, texts) == pytest.approx(dict.fromkeys(TEXT_METRICS, 1.0))


def test_values_by_hand() -> None:
    scores = score_texts(TEXT_METRICS, ["the cat sat on a mat"], ["the cat sat on the mat"])
    assert scores["rouge1"] == pytest.approx(5 / 6)
    assert scores["rouge2"] == pytest.approx(3 / 5)
    assert scores["rougeL"] == pytest.approx(5 / 6)
    precisions = (5 / 6, 3 / 5, 2 / 4, 1 / 3)
    assert scores["bleu"] == pytest.approx(math.prod(precisions) ** 0.25, abs=1e-5)
    assert scores["exact_match"] == 0.0


def test_nothing_written_is_worth_nothing() -> None:
    scores = score_texts(TEXT_METRICS, [""], ["some text to be written"])
    assert scores == dict.fromkeys(TEXT_METRICS, 0.0)


def test_exact_match_does_not_see_case_and_spaces() -> None:
    assert score_texts(["exact_match"], ["Sums  it up."], ["sums it up."]) == {"exact_match": 1.0}
