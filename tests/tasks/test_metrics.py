"""Metrics of labels against scikit-learn and scipy; metrics of texts on values that are known by hand."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as reference

from paribus.core.errors import UserError
from paribus.tasks.metrics import METRICS, TEXT_METRICS, score_labels, score_texts, split_words

RANDOM = np.random.default_rng(7)
BLEU = [
    (["the cat sat on a mat"], ["the cat sat on the mat"], 0.537284965911771),
    (["a red dog"], ["the red dog barks at them"], 0.0),
    (["a red dog sat"], ["the red dog barks at them"], 0.1937692912686648),
    (["eins, zwei (drei) $5.30 well-known"], ["eins, zwei (drei) $5.40 well-known words"], 0.6407117598241614),
    (["so it is not there", "one two three"], ["it was there", "one two four three"], 0.20085710473616294),
]


@pytest.mark.parametrize("classes", [2, 5])
def test_classification(classes: int) -> None:
    target = RANDOM.integers(classes, size=300)
    found = np.where(RANDOM.random(300) < 0.6, target, RANDOM.integers(classes, size=300))
    values = score_labels(("accuracy", "matthews", "f1"), found, target, classes)
    assert values["accuracy"] == pytest.approx(reference.accuracy_score(target, found), abs=1e-15)
    assert values["matthews"] == pytest.approx(reference.matthews_corrcoef(target, found), abs=1e-15)
    average = "binary" if classes == 2 else "macro"
    assert values["f1"] == pytest.approx(reference.f1_score(target, found, average=average), abs=1e-15)


def test_f1_is_the_mean_over_classes_that_occur() -> None:
    found, target = np.array([0, 0, 3, 3]), np.array([0, 3, 3, 3])
    ours = score_labels(("f1",), found, target, 5)["f1"]
    assert ours == pytest.approx(reference.f1_score(target, found, average="macro"), abs=1e-15)


def test_values_are_doubles() -> None:
    found = (np.arange(1000) >= 938).astype(int)
    assert score_labels(("accuracy",), found, np.zeros(1000, int), 2) == {"accuracy": 0.938}
    words = [("a b c", "a b d")] * 3 + [("a", "a")] * 4
    values = score_texts(("rouge1", "rougeL"), *zip(*words, strict=True))
    assert values == {"rouge1": (3 * 2 / 3 + 4) / 7, "rougeL": (3 * 2 / 3 + 4) / 7}


@pytest.mark.parametrize(("right", "examples"), [(721, 1043), (10, 50), (35, 50), (49, 50)])
@pytest.mark.parametrize("answer", [0, 1])
def test_the_correlation_of_a_constant_answer_is_zero(answer: int, right: int, examples: int) -> None:
    """Of CoLA's 1,043 validation examples 721 are acceptable."""
    target = (np.arange(examples) < right).astype(int)
    for classes in (2, 3):
        assert score_labels(("matthews",), np.full(examples, answer), target, classes) == {"matthews": 0.0}
        assert score_labels(("matthews",), target, np.full(examples, answer), classes) == {"matthews": 0.0}


def test_correlations_with_ties() -> None:
    target = np.round(RANDOM.normal(size=200), 1)
    found = target + RANDOM.normal(size=200)
    values = score_labels(("pearson", "spearman"), np.round(found, 1), target, 0)
    assert values["pearson"] == pytest.approx(stats.pearsonr(np.round(found, 1), target).statistic, abs=1e-15)
    assert values["spearman"] == pytest.approx(stats.spearmanr(np.round(found, 1), target).statistic, abs=1e-15)


def test_scores_are_as_good_as_classes() -> None:
    scores = RANDOM.normal(size=(50, 3))
    target = RANDOM.integers(3, size=50)
    assert score_labels(("accuracy",), scores, target, 3) == score_labels(("accuracy",), scores.argmax(-1), target, 3)


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


@pytest.mark.parametrize(
    ("written", "target", "rouge1"),
    [
        ("Кошка сидит на ковре", "кошка спит на ковре", 3 / 4),
        ("猫坐在垫子上", "猫睡在垫子上", 5 / 6),
        ("हिन्दी में लिखा", "हिन्दी में पढ़ा", 2 / 3),
        ("cafe\u0301 noir", "caf\u00e9 blanc", 1 / 2),
        ("قطة على السجادة", "قطة على السجادة", 1.0),
    ],
)
def test_rouge_knows_the_words_of_all_scripts(written: str, target: str, rouge1: float) -> None:
    assert score_texts(("rouge1",), [written], [target])["rouge1"] == pytest.approx(rouge1)
    assert score_texts(("rouge1", "rougeL"), [target], [target]) == {"rouge1": 1.0, "rougeL": 1.0}


def test_the_words_of_ascii_are_those_of_rouge_score() -> None:
    text = "".join(map(chr, range(128))) + " It's 3.5_x-ray, A/B\tc"
    assert split_words(text) == re.findall("[a-z0-9]+", text.lower())


def test_rouge_is_torchmetrics_own_without_stems() -> None:
    from torchmetrics.functional.text import rouge_score

    vocabulary = ["runs", "running", "Cats", "cat's", "x-ray", "3", "the", "of"]
    for _ in range(50):
        ours, theirs = (" ".join(RANDOM.choice(vocabulary, RANDOM.integers(1, 12))) for _ in range(2))
        expected = rouge_score(ours, theirs, rouge_keys=("rouge1", "rouge2", "rougeL"))
        for name, value in score_texts(("rouge1", "rouge2", "rougeL"), [ours], [theirs]).items():
            assert value == pytest.approx(float(expected[f"{name}_fmeasure"]), abs=1e-6), (ours, theirs)


def test_bleu_is_that_of_t5() -> None:
    """Values of sacreBLEU 2.6 with T5's settings: tokens "intl", exponential smoothing, no effective order."""
    for written, targets, expected in BLEU:
        assert score_texts(("bleu",), written, targets)["bleu"] == pytest.approx(expected, abs=1e-12)


def test_exact_match_does_not_see_case_and_spaces() -> None:
    assert score_texts(["exact_match"], ["Sums  it up."], ["sums it up."]) == {"exact_match": 1.0}
