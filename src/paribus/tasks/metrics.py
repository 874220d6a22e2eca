"""The metrics of tasks, in double precision: classes and values, spans of tags, answers to questions, written texts."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.examples import normalize

if TYPE_CHECKING:
    from paribus.data.sequences import Array

OF_CLASSES = ("accuracy", "matthews", "f1")
METRICS = (*OF_CLASSES, "pearson", "spearman")
ROUGE = ("rouge1", "rouge2", "rougeL")
TEXT_METRICS = (*ROUGE, "bleu", "exact_match", "f1")
Span = tuple[str, int, int]  # kind, first word, the word behind the last
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score_labels(metrics: Sequence[str], predictions: Array, targets: Array, classes: int) -> dict[str, float]:
    """Metrics by name over all predictions of an evaluation set.

    Args:
        predictions: [N] class numbers (or values, for regression), or [N, classes] scores.
        targets: [N].
        classes: number of classes; 0 or 1 for regression.

    Returns:
        Values between -1 and 1. A correlation with a constant is 0; Matthews' is Gorodkin's R_K for more than two
        classes. F1 is that of class 1 if there are two classes (as in GLUE), otherwise the unweighted mean over classes
        that occur.

    Raises:
        UserError: for an unknown metric.
    """
    if unknown := [name for name in metrics if name not in METRICS]:
        raise UserError(f"metric {unknown[0]!r} is not known", f"choose from {', '.join(METRICS)}")
    value_N, target_N = np.asarray(predictions), np.asarray(targets)
    if value_N.ndim == 2:
        value_N = value_N.argmax(-1) if classes > 1 else value_N[:, 0]
    return {name: _score_label(name, value_N, target_N, classes) for name in metrics}


def _score_label(name: str, value_N: Array, target_N: Array, classes: int) -> float:
    if name == "accuracy":
        return float((value_N == target_N).mean())
    if name == "f1":
        from sklearn.metrics import f1_score

        labels = [1] if classes == 2 else None  # None: those that occur
        return float(f1_score(target_N, value_N, labels=labels, average="macro", zero_division=0))
    sides = value_N.astype(np.float64), target_N.astype(np.float64)
    if not all(np.isfinite(side).all() and np.ptp(side) for side in sides):
        return 0.0
    if name == "matthews":
        from sklearn.metrics import matthews_corrcoef

        return float(matthews_corrcoef(target_N, value_N))
    from scipy.stats import pearsonr, spearmanr

    return float((pearsonr if name == "pearson" else spearmanr)(*sides).statistic)


def score_texts(metrics: Sequence[str], written: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """Metrics by name, between 0 and 1.

    ROUGE is the mean F1 over texts, without stemming (as in T5 and `rouge_score`, but with the words of all scripts).
    T5's rougeLsum, which cuts texts at " . ", is rougeL for texts without such a place, and is not computed. BLEU is
    that of the whole set with sacreBLEU's tokens "intl" and exponential smoothing (as in T5, `evaluation/metrics.py`).
    `exact_match` ignores case and repeated spaces; `f1` is that of SQuAD 1.1.
    """
    return {
        name: _score_bleu(written, targets)
        if name == "bleu"
        else fmean(_score_pair(name, *pair) for pair in zip(written, targets, strict=True))
        for name in metrics
    }


def _score_pair(name: str, written: str, target: str) -> float:
    if name == "exact_match":
        return float(normalize(written) == normalize(target))
    if name == "f1":
        return overlap(written, target)
    ours, theirs = (split_words(text) for text in (written, target))
    if name == "rougeL":
        return _harmonic(count_common(ours, theirs), len(ours), len(theirs))
    return _overlap(ours, theirs) if name == "rouge1" else _overlap(list(pairwise(ours)), list(pairwise(theirs)))


def split_words(text: str) -> list[str]:
    """Runs of letters, digits and the marks on them, in small letters; each Chinese character is a word of its own.

    On ASCII these are the words of `rouge_score`.
    """
    signs = [
        sign if unicodedata.category(sign)[0] in "LMN" else " " for sign in unicodedata.normalize("NFC", text.lower())
    ]
    return "".join(f" {sign} " if _HAN.fullmatch(sign) else sign for sign in signs).split()


def count_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence (Allison and Dix 1986, one bit per word of `first`)."""
    places: dict[str, int] = {}
    for at, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << at
    row = 0
    for word in second:
        reached = row | places.get(word, 0)
        row = reached & ~(reached - (row << 1 | 1))
    return row.bit_count()


def _overlap(ours: Sequence[object], theirs: Sequence[object]) -> float:
    """F1 of what two lists share, repetitions included; 0 if they share nothing."""
    return _harmonic(sum((Counter(ours) & Counter(theirs)).values()), len(ours), len(theirs))


def _harmonic(same: int, ours: int, theirs: int) -> float:
    return 2 * same / (ours + theirs) if same else 0.0


def _score_bleu(written: Sequence[str], targets: Sequence[str]) -> float:
    """From torchmetrics' counts of n-grams. An order without a match counts 1 / 2, the next one 1 / 4, and so on."""
    from torchmetrics.text import SacreBLEUScore

    counts = SacreBLEUScore(tokenize="intl")
    counts.update(list(written), [[target] for target in targets])
    right, total = counts.numerator.tolist(), counts.denominator.tolist()
    if not any(right) or not all(total):
        return 0.0
    missing = [sum(not count for count in right[: n + 1]) for n in range(len(right))]
    shares = [(r or 0.5**k) / t for r, t, k in zip(right, total, missing, strict=True)]
    shorter = min(0.0, 1 - counts.target_len.item() / counts.preds_len.item())
    return math.exp(shorter + fmean(map(math.log, shares)))


def is_bio(tags: Iterable[str]) -> bool:
    """Whether all tags are O, B-kind or I-kind."""
    return all(tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2) for tag in tags)


def find_spans(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence's BIO tags, by the rules of CoNLL's `conlleval` and of `seqeval`.

    A span begins at B, and at an I that follows neither B nor I of its kind; it continues through every I of its kind.
    """
    spans: list[Span] = []
    kind, start = "", 0  # of the open span
    for at, tag in enumerate([*tags, "O"]):
        continues = bool(kind) and tag == f"I-{kind}"
        if kind and not continues:
            spans.append((kind, start, at))
        if not continues:
            kind, start = tag[2:], at
    return spans


def score_spans(predicted: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> dict[str, float]:
    """`precision`, `recall` and `f1` over the spans of all sentences; 0 if there is nothing to divide by."""
    right = guessed = there = 0
    for guess, truth in zip(predicted, given, strict=True):
        ours, theirs = set(find_spans(guess)), set(find_spans(truth))
        right, guessed, there = right + len(ours & theirs), guessed + len(ours), there + len(theirs)
    precision, recall = right / max(1, guessed), right / max(1, there)
    return {"precision": precision, "recall": recall, "f1": 2 * right / max(1, guessed + there)}


class Answer(NamedTuple):
    """The best answer, and the score of "no answer" minus its score."""

    text: str
    null: float = 0.0


def normalize_answer(text: str) -> str:
    """Lower case, without punctuation and articles, with single spaces (SQuAD's official script)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def match(guess: str, answer: str) -> float:
    """1 if both are the same once normalized, otherwise 0."""
    return float(normalize_answer(guess) == normalize_answer(answer))


def overlap(guess: str, answer: str) -> float:
    """F1 of the words that two answers share, 0 if they share none (SQuAD 1.1)."""
    return _overlap(normalize_answer(guess).split(), normalize_answer(answer).split())


def overlap_or_empty(guess: str, answer: str) -> float:
    """F1 of the words that two answers share; if one has no words, 1 if the other has none either (SQuAD 2.0)."""
    ours, theirs = normalize_answer(guess).split(), normalize_answer(answer).split()
    return _overlap(ours, theirs) if ours and theirs else float(ours == theirs)


def score_answers(
    predictions: Sequence[Answer], answers: Sequence[Sequence[str]], threshold: float | None
) -> dict[str, float]:
    """`em` and `f1`, means over all questions, as SQuAD's official scripts compute them: that of version 1.1 without a
    threshold, otherwise that of 2.0.

    In 2.0 a question counts as unanswered if `null` is above the threshold, and answers of punctuation and articles
    alone do not count. There are also `best_em` and `best_f1`, each at its best threshold on these very questions.
    """
    if threshold is None:
        return {
            name: fmean(_score_best(score, predictions, answers)) for name, score in (("em", match), ("f1", overlap))
        }
    values = {}
    counted = [[answer for answer in right if normalize_answer(answer)] or [""] for right in answers]
    for name, score in (("em", match), ("f1", overlap_or_empty)):
        scores = _score_best(score, predictions, counted)
        rows = zip(predictions, scores, answers, strict=True)
        values[name] = fmean(float(not right) if guess.null > threshold else value for guess, value, right in rows)
        values[f"best_{name}"] = _score_at_best_threshold(predictions, scores, answers)
    return values


def _score_best(
    score: Callable[[str, str], float], predictions: Sequence[Answer], answers: Sequence[Sequence[str]]
) -> list[float]:
    """The best score of each prediction against any of its answers."""
    rows = zip(predictions, answers, strict=True)
    return [max(score(guess.text, answer) for answer in right) for guess, right in rows]


def _score_at_best_threshold(
    predictions: Sequence[Answer], scores: Sequence[float], answers: Sequence[Sequence[str]]
) -> float:
    """The highest mean score over thresholds (`find_best_thresh`). Any text that is given to a question without answer
    costs it 1, also one that normalizes to nothing.
    """
    total = best = float(sum(not right for right in answers))
    for at in sorted(range(len(predictions)), key=lambda at: predictions[at].null):
        total += scores[at] if answers[at] else -float(bool(predictions[at].text))
        best = max(best, total)
    return best / len(predictions)
