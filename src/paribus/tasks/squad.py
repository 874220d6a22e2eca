"""The scores of SQuAD, by the rules of its official scripts for versions 1.1 and 2.0. Plain Python."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Answer(NamedTuple):
    """The best span, and by how much no answer is better than it."""

    text: str
    null: float = 0.0


def normalized_answer(text: str) -> str:
    """Lower case, without punctuation and articles, with single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact(guess: str, answer: str) -> float:
    """1 where both are the same once normalized."""
    return float(normalized_answer(guess) == normalized_answer(answer))


def overlap(guess: str, answer: str) -> float:
    """F1 of the words that two answers have in common; where one has no words, whether the other has none either."""
    ours, theirs = normalized_answer(guess).split(), normalized_answer(answer).split()
    if not ours or not theirs:
        return float(ours == theirs)
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs))


def best_over(score: Callable[[str, str], float], guess: str, answers: Sequence[str]) -> float:
    """The best score against any of the answers; an answer of punctuation and articles alone is none, and without
    answers the right one is none.
    """
    return max(score(guess, answer) for answer in [a for a in answers if normalized_answer(a)] or [""])


def squad_scores(
    found: Sequence[Answer], answers: Sequence[Sequence[str]], threshold: float | None
) -> dict[str, float]:
    """`em` and `f1`, means over all questions.

    With a threshold (2.0), none is answered where it is better by more than that, and there are also `best_em` and
    `best_f1`: at the threshold that is best for each on these very questions, as the official script reports them.
    """
    values = {}
    for name, score in (("em", exact), ("f1", overlap)):
        given = [best_over(score, guess.text, own) for guess, own in zip(found, answers, strict=True)]
        if threshold is None:
            values[name] = sum(given) / len(given)
            continue
        none = [best_over(score, "", own) for own in answers]
        rows = zip(found, given, none, strict=True)
        values[name] = sum(empty if guess.null > threshold else own for guess, own, empty in rows) / len(given)
        values[f"best_{name}"] = _best([guess.null for guess in found], given, none)
    return values


def _best(null: Sequence[float], given: Sequence[float], none: Sequence[float]) -> float:
    """The highest mean score where the questions of the lowest `null`, as many as is best, are answered."""
    order = sorted(range(len(null)), key=lambda at: null[at])
    total = most = sum(none)
    for place, at in enumerate(order):
        total += given[at] - none[at]
        if place + 1 == len(order) or null[order[place + 1]] != null[at]:  # equal ones are answered together
            most = max(most, total)
    return most / len(null)
