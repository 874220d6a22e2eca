"""What a task gives away without a neural model, and the linear model on a bag of words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ceteris.console import say
from ceteris.files import write_json
from ceteris.tasks.example import Example
from ceteris.tasks.task import Task

SEMANTICS = 1


def baselines(task: Task, cache: Path) -> dict[str, dict[str, float]]:
    """`{metric: {baseline: value}}` on validation, the same for the same texts and labels.

    Trained on the very examples that a model is fine-tuned on. Kept under `cache/baselines/<task fingerprint>.json`.
    """
    path = cache / "baselines" / f"{task.fingerprint(cache)}.json"
    key = {"semantics": SEMANTICS, "metrics": list(task.form.metrics)}
    if path.is_file():
        kept: dict[str, Any] = json.loads(path.read_text())
        if kept["key"] == key:
            return dict(kept["values"])
    say(f"task {task.name}: fitting its baselines")
    values = _measure(task, cache)
    write_json(path, {"key": key, "values": values})
    return values


def _measure(task: Task, cache: Path) -> dict[str, dict[str, float]]:
    examples, form = task.examples(cache), task.form
    train, validation = examples["train"], examples["validation"]
    scores = {name: form.score(found, validation) for name, found in form.baselines(train, validation).items()}
    return {metric: {name: scores[name][metric] for name in scores} for metric in form.metrics}


def bag_of_words(train: Sequence[Example], validation: Sequence[Example]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Class numbers for `validation` by logistic regression on tf-idf of 1- and 2-grams; a pair is two bags."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    seen, unseen = [], []
    for side in ("text", "pair") if train[0].pair is not None else ("text",):
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
        seen.append(words.fit_transform([getattr(row, side) for row in train]))
        unseen.append(words.transform([getattr(row, side) for row in validation]))
    model = LogisticRegression(C=10.0, tol=1e-3, max_iter=200)
    model.fit(hstack(seen, format="csr"), np.array([row.label for row in train]))
    return np.asarray(model.predict(hstack(unseen, format="csr")), dtype=np.int64)
