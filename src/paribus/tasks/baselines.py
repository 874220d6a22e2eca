"""How far a task gets without a neural model: rules, frequencies, and linear models on bags of words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.console import say
from paribus.core.files import write_json
from paribus.data.text import Array
from paribus.tasks.examples import Example, Question, Tagged, Transfer
from paribus.tasks.metrics import Answer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from paribus.tasks.task import Task

SEMANTICS = 1


def measure_baselines(task: Task, cache: Path) -> dict[str, dict[str, float]]:
    """`{metric: {baseline: value}}` on validation, the same for the same texts and labels.

    The baselines are trained on the examples that a model is fine-tuned on. The values are kept in
    `cache/baselines/<data hash>.json`.
    """
    path = cache / "baselines" / f"{task.data_hash(cache)}.json"
    key = {"semantics": SEMANTICS, "metrics": list(task.task_type.metrics)}
    if path.is_file():
        kept: dict[str, Any] = json.loads(path.read_text())
        if kept["key"] == key:
            return dict(kept["values"])
    say(f"task {task.name}: fitting its baselines")
    values = _measure(task, cache)
    write_json(path, {"key": key, "values": values})
    return values


def _measure(task: Task, cache: Path) -> dict[str, dict[str, float]]:
    examples, task_type = task.examples(cache), task.task_type
    train, validation = examples["train"], examples["validation"]
    found = {**task_type.predict_baselines(train, validation), **task.predict_by_rules(validation)}
    scores = {name: task_type.score(guess, validation) for name, guess in found.items()}
    return {metric: {name: scores[name][metric] for name in scores} for metric in task_type.metrics}


def classify_by_words(train: Sequence[Example], validation: Sequence[Example]) -> Array:
    """Class numbers for `validation` by logistic regression on tf-idf of 1- and 2-grams; a pair is two bags."""
    from scipy.sparse import hstack
    from sklearn.linear_model import LogisticRegression

    seen, unseen = zip(*_bags(train, validation), strict=True)
    model = LogisticRegression(C=10.0, tol=1e-3, max_iter=200)
    model.fit(hstack(seen, format="csr"), np.array([row.label for row in train]))
    return np.asarray(model.predict(hstack(unseen, format="csr")), dtype=np.int64)


def regress_by_words(train: Sequence[Example], validation: Sequence[Example]) -> Array:
    """Values for `validation` by ridge regression on the same bags; for pairs also on the share of words in both."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import Ridge

    seen, unseen = (list(side) for side in zip(*_bags(train, validation), strict=True))
    if train[0].pair is not None:
        for rows, side in ((train, seen), (validation, unseen)):
            side.append(csr_matrix([[_overlap(row)] for row in rows]))
    model = Ridge(alpha=1.0).fit(hstack(seen, format="csr"), np.array([row.label for row in train]))
    return np.asarray(model.predict(hstack(unseen, format="csr")))


def _bags(
    train: Sequence[Example | Transfer], validation: Sequence[Example | Transfer]
) -> Iterator[tuple[csr_matrix, csr_matrix]]:
    """The matrices of both sets for each text of the examples."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    for side in ("text", "pair") if train[0].pair is not None else ("text",):
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
        fitted = words.fit_transform([getattr(row, side) for row in train])
        yield fitted, words.transform([getattr(row, side) for row in validation])


def _overlap(row: Example) -> float:
    """Jaccard's index of the words of a pair."""
    first, second = (set(text.lower().split()) for text in (row.text, row.pair or ""))
    return len(first & second) / max(1, len(first | second))


def tag_by_words(train: Sequence[Tagged], validation: Sequence[Tagged]) -> list[list[int]]:
    """Tags for `validation` by a linear model on each word, its ends, its shape and the words around it."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    hasher = FeatureHasher(2**18, input_type="string")
    seen, unseen = (hasher.transform(f for row in rows for f in _features(row.words)) for rows in (train, validation))
    model = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=5, tol=None, random_state=0)
    model.fit(seen, np.array([tag for row in train for tag in row.tags]))
    tags = iter(model.predict(unseen).tolist())
    return [[next(tags) for _ in row.words] for row in validation]


def _features(words: Sequence[str]) -> Iterator[list[str]]:
    padded = ["<", "<", *(word.lower() for word in words), ">", ">"]
    for at, word in enumerate(words):
        beside = [f"{place}={padded[at + 2 + place]}" for place in (-2, -1, 0, 1, 2)]
        ends = [f"{word[:3].lower()}-", f"-{word[-3:].lower()}"]
        shape = "".join("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word[:12])
        yield [*beside, *ends, f"shape={shape}"]


def answer_by_words(train: Sequence[Question], validation: Sequence[Question]) -> list[Answer]:
    """For each question the window of its context, as long as the median answer of `train`, that has most words of the
    question around it and holds none of them (after Richardson et al. 2013, "sliding window").
    """
    size = int(np.median([len(row.answers[0].split()) for row in train if row.answers]))
    return [Answer(_find_window(row, max(1, size))) for row in validation]


def _find_window(row: Question, size: int) -> str:
    words = [match.span() for match in re.finditer(r"\S+", row.context)]
    asked = set(re.findall(r"\w+", row.question.lower())) - {"the", "a", "an", "of", "in", "to", "is", "was", "what"}
    hit_W = np.array([bool(asked & set(re.findall(r"\w+", row.context[a:b].lower()))) for a, b in words], float)
    near_W = np.convolve(hit_W, np.concatenate([np.arange(1, 11), np.arange(10, 0, -1)]) / 10.0, "full")[10:-9]
    ones = np.ones(min(size, len(words)))
    total_W = np.convolve(near_W - 100.0 * hit_W, ones, "valid")
    at = int(total_W.argmax())
    return row.context[words[at][0] : words[at + len(ones) - 1][1]]


def retrieve_targets(train: Sequence[Transfer], validation: Sequence[Transfer]) -> list[str]:
    """For each text the target of the nearest training text, by the cosine of their bags of words."""
    from scipy.sparse import hstack

    seen, unseen = (hstack(side, format="csr") for side in zip(*_bags(train, validation), strict=True))
    nearest = [int((seen @ unseen[row].T).toarray().argmax()) for row in range(unseen.shape[0])]
    return [train[at].target for at in nearest]
