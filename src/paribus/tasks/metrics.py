"""The metrics of tasks: classes and values, spans of tags, answers to questions, written texts.

Those of classes, values and written texts need torch, which they import when they are called.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from paribus.core.errors import UserError
from paribus.tasks.examples import normalize

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.data.text import Array

METRICS = ("accuracy", "matthews", "f1", "pearson", "spearman")
ROUGE = ("rouge1", "rouge2", "rougeL")
TEXT_METRICS = (*ROUGE, "bleu", "exact_match", "f1")
Span = tuple[str, int, int]  # kind, first word, the word behind the last
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score_labels(
    metrics: Sequence[str], predictions: Array | Tensor, targets: Array | Tensor, classes: int
) -> dict[str, float]:
    """Metrics by name over all predictions of an evaluation set, by torchmetrics.

    Args:
        predictions: [N] class numbers (or values, for regression), or [N, classes] scores.
        targets: [N].
        classes: number of classes; 0 or 1 for regression.

    Returns:
        Values between -1 and 1. A correlation with a constant is 0. F1 is that of class 1 if there are two classes (as
        in GLUE), otherwise the unweighted mean over classes.

    Raises:
        UserError: for an unknown metric.
    """
    import torch

    found = torch.as_tensor(predictions).detach().cpu()
    if found.ndim == 2:
        found = found.argmax(-1) if classes > 1 else found.squeeze(-1)
    functions = _functions(classes)
    unknown = [name for name in metrics if name not in functions]
    if unknown:
        raise UserError(f"metric {unknown[0]!r} is not known", f"choose from {', '.join(functions)}")
    target = torch.as_tensor(targets).cpu()
    return {name: _finite(functions[name](found, target)) for name in metrics}


def _functions(classes: int) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    from torchmetrics.functional import classification as by_class
    from torchmetrics.functional import pearson_corrcoef, spearman_corrcoef

    def f1(p: Tensor, t: Tensor) -> Tensor:
        return by_class.binary_f1_score(p, t) if classes == 2 else by_class.multiclass_f1_score(p, t, classes)

    return {
        "accuracy": lambda p, t: by_class.multiclass_accuracy(p, t, classes, average="micro"),
        "matthews": lambda p, t: by_class.multiclass_matthews_corrcoef(p, t, classes),
        "f1": f1,
        "pearson": lambda p, t: pearson_corrcoef(p.double(), t.double()),
        "spearman": lambda p, t: spearman_corrcoef(p.double(), t.double()),
    }


def _finite(value: Tensor) -> float:
    number = float(value)
    return number if math.isfinite(number) else 0.0


def score_texts(metrics: Sequence[str], written: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """Metrics by name, between 0 and 1, by torchmetrics.

    ROUGE is the mean F1 over texts, without stemming (T5's stems). BLEU is that of the whole set with sacreBLEU's
    tokens "13a", without smoothing. `exact_match` ignores case and repeated spaces; `f1` is SQuAD's.
    """
    return {name: _score_text(name, written, targets) for name in metrics}


def _score_text(name: str, written: Sequence[str], targets: Sequence[str]) -> float:
    from torchmetrics.functional import text

    if name in ROUGE:
        return float(text.rouge_score(list(written), list(targets), rouge_keys=name)[f"{name}_fmeasure"])
    if name == "bleu":
        return float(text.sacre_bleu_score(list(written), [[target] for target in targets], tokenize="13a"))
    pairs = list(zip(written, targets, strict=True))
    if name == "f1":
        return fmean(overlap(ours, theirs) for ours, theirs in pairs)
    return fmean(float(normalize(ours) == normalize(theirs)) for ours, theirs in pairs)


def is_bio(tags: Iterable[str]) -> bool:
    """Whether all tags are O, B-kind or I-kind."""
    return all(tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2) for tag in tags)


def find_spans(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence's BIO tags, by the rules of CoNLL's `conlleval` and of `seqeval`.

    A span begins at B, and at an I that follows neither B nor I of its kind; it continues through every I of its kind.
    """
    found: list[Span] = []
    kind, start = "", 0  # of the open span
    for at, tag in enumerate([*tags, "O"]):
        continues = bool(kind) and tag == f"I-{kind}"
        if kind and not continues:
            found.append((kind, start, at))
        if not continues:
            kind, start = tag[2:], at
    return found


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
    """F1 of the words that two answers share; if one has no words, 1 if the other has none either."""
    ours, theirs = normalize_answer(guess).split(), normalize_answer(answer).split()
    if not ours or not theirs:
        return float(ours == theirs)
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs))


def score_best(score: Callable[[str, str], float], guess: str, answers: Sequence[str]) -> float:
    """The best score against any of the answers. Answers of punctuation and articles alone do not count; if no answer
    is left, the empty text is the right one.
    """
    return max(score(guess, answer) for answer in [a for a in answers if normalize_answer(a)] or [""])


def score_answers(
    found: Sequence[Answer], answers: Sequence[Sequence[str]], threshold: float | None
) -> dict[str, float]:
    """`em` and `f1`, means over all questions, by the rules of SQuAD's official scripts for versions 1.1 and 2.0.

    With a threshold (2.0), a question counts as unanswered if `null` is above it. Then there are also `best_em` and
    `best_f1`: each at its best threshold on these very questions, as the official script reports them.
    """
    values = {}
    for name, score in (("em", match), ("f1", overlap)):
        given = [score_best(score, guess.text, own) for guess, own in zip(found, answers, strict=True)]
        if threshold is None:
            values[name] = sum(given) / len(given)
            continue
        none = [score_best(score, "", own) for own in answers]
        rows = zip(found, given, none, strict=True)
        values[name] = sum(empty if guess.null > threshold else own for guess, own, empty in rows) / len(given)
        values[f"best_{name}"] = _best_score([guess.null for guess in found], given, none)
    return values


def _best_score(null: Sequence[float], given: Sequence[float], none: Sequence[float]) -> float:
    """The highest mean score over thresholds; below the threshold `given` counts, above it `none`."""
    order = sorted(range(len(null)), key=lambda at: null[at])
    total = most = sum(none)
    for place, at in enumerate(order):
        total += given[at] - none[at]
        if place + 1 == len(order) or null[order[place + 1]] != null[at]:  # no threshold separates equal values
            most = max(most, total)
    return most / len(null)
