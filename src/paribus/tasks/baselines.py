"""Baselines without a neural model: rules, frequencies, and linear models on words and letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.checksums import read_sealed
from paribus.core.console import say
from paribus.core.files import write_sealed
from paribus.data.sequences import Array
from paribus.tasks.examples import ChoiceExample, Example, GenerationExample, QuestionExample, TaggedExample, limit_rows
from paribus.tasks.metrics import Answer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from paribus.tasks.task import Task

SEMANTICS = 4
WORDS: Mapping[str, Any] = {"ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}
LETTERS: Mapping[str, Any] = {"analyzer": "char_wb", "ngram_range": (2, 4)}
TRIGRAMS: Mapping[str, Any] = {"analyzer": "char_wb", "ngram_range": (3, 3)}
COLUMNS = 2**18
STRENGTHS = (0.01, 0.1, 1.0)  # of the data against the penalty
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3)  # of a linear model of tags
FOLDS = 3
CHOOSING, MOST = 4_000, 20_000  # examples that features and penalty are chosen on, and that the model is fitted to
LONGEST = 5_000_000  # characters of texts whose letters are counted


def measure_baselines(task: Task, cache: Path) -> dict[str, dict[str, float]]:
    """`{metric: {baseline: value}}` on validation, the same for the same texts and labels.

    The baselines are trained on the examples that a model is fine-tuned on. The values are kept in
    `cache/baselines/<data hash>.json`.
    """
    path = cache / "baselines" / f"{task.data_hash(cache)}.json"
    key = {"semantics": SEMANTICS, "metrics": list(task.task_type.metrics)}
    if (kept := read_sealed(path, path.stem)) is not None and kept["key"] == key:
        return dict(kept["values"])
    say(f"task {task.name}: fitting its baselines")
    values = _measure(task, cache)
    write_sealed(path, {"key": key, "values": values}, path.stem)
    return values


def _measure(task: Task, cache: Path) -> dict[str, dict[str, float]]:
    examples, task_type = task.examples(cache), task.task_type
    train, validation = examples["train"], examples["validation"]
    predictions = {**task_type.predict_baselines(train, validation), **task.predict_by_rules(validation)}
    scores = {name: task_type.score(predicted, validation) for name, predicted in predictions.items()}
    return {metric: {name: scores[name][metric] for name in scores} for metric in task_type.metrics}


def classify_by_words(train: Sequence[Example], validation: Sequence[Example]) -> Array:
    """Class numbers for `validation` by a linear model on n-grams of words and letters, and for pairs on what their
    texts share. Features and penalty are chosen by cross-validation on `train`.
    """
    from sklearn.svm import LinearSVC

    class_N = _predict_best(train, validation, lambda strength: LinearSVC(C=strength, random_state=0))
    return class_N.astype(np.int64)


def regress_by_words(train: Sequence[Example], validation: Sequence[Example]) -> Array:
    """Values for `validation` by ridge regression on the same features, chosen in the same way."""
    from sklearn.linear_model import Ridge

    return _predict_best(train, validation, lambda strength: Ridge(alpha=1 / strength, solver="sparse_cg"))


def choose_by_words(train: Sequence[ChoiceExample], validation: Sequence[ChoiceExample]) -> Array:
    """The place of the option that ridge regression on a text and an option ranks first, by the features of pairs."""
    pairs = [
        [
            Example(
                row.text if row.question is None else f"{row.text} {row.question}", option, float(place == row.label)
            )
            for row in rows
            for place, option in enumerate(row.options)
        ]
        for rows in (train, validation)
    ]
    end_N = np.cumsum([len(row.options) for row in validation])
    return np.array([score_K.argmax() for score_K in np.split(regress_by_words(*pairs), end_N[:-1])], np.int64)


def compare_words(train: Sequence[Example], validation: Sequence[Example]) -> Array:
    """How alike the texts of each pair are: the cosine of their words plus that of their letters, by `train`."""
    weighed = [_weigh(train, validation, kind)[1] for kind in (WORDS, TRIGRAMS)]
    return np.asarray(sum(_measure_shared(*sides)[:, 0] for sides in weighed))


def _predict_best(train: Sequence[Example], validation: Sequence[Example], make: Callable[[float], Any]) -> Array:
    """Predictions of the best of all features and strengths of the penalty, fitted to at most `MOST` examples."""
    train = limit_rows(list(train), MOST)
    label_N = np.array([row.label for row in train])
    chosen_M = np.random.default_rng(0).permutation(len(train))[:CHOOSING]
    tried = [(make(strength), *sets) for sets in _list_features(train, validation) for strength in STRENGTHS]
    scores = [_cross_validate(model, seen[chosen_M], label_N[chosen_M]) for model, seen, _ in tried]
    model, seen, unseen = tried[int(np.argmax(scores))]
    return np.asarray(model.fit(seen, label_N).predict(unseen))


def _cross_validate(model: Any, seen: csr_matrix, label_M: Array) -> float:
    """The mean score on each third of the examples, fitted to the others if they have more than one label."""
    from sklearn.model_selection import KFold

    scores = [
        float(model.fit(seen[others], label_M[others]).score(seen[third], label_M[third]))
        for others, third in KFold(min(FOLDS, len(label_M))).split(label_M)
        if len(np.unique(label_M[others])) > 1 and len(third) > 1
    ]
    return float(np.mean(scores)) if scores else 0.0


def _list_features(train: Sequence[Example], validation: Sequence[Example]) -> Iterator[list[csr_matrix]]:
    """The matrices of both sets, for each choice of features, the smaller one first."""
    from scipy.sparse import csr_matrix
    from sklearn.preprocessing import StandardScaler

    words = _weigh(train, validation, WORDS)
    if train[0].pair is not None:
        kinds = zip(words, _weigh(train, validation, TRIGRAMS), strict=True)
        columns = [np.hstack([_measure_shared(*sides) for sides in each]) for each in kinds]
        scaler = StandardScaler().fit(columns[0])
        shared = [[csr_matrix(scaler.transform(each))] for each in columns]
        yield _join(shared)
        yield _join(shared, words)
        return
    yield _join(words)
    if sum(len(row.text) for row in train) <= LONGEST:
        yield _join(words, _weigh(train, validation, LETTERS))


def _weigh(train: Sequence[Any], validation: Sequence[Any], kind: Mapping[str, Any]) -> list[list[csr_matrix]]:
    """For both sets the tf-idf of each side of the examples. Sides have the same columns; `train` gives the weights.

    Columns are hashes, so that an n-gram that `train` lacks can still be shared by two texts.
    """
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    counter = HashingVectorizer(n_features=COLUMNS, alternate_sign=False, norm=None, dtype=np.float32, **kind)
    texts = [list(chain(*zip(*(row.texts for row in rows), strict=True))) for rows in (train, validation)]
    counts = [counter.transform(each) for each in texts]
    weights = TfidfTransformer(sublinear_tf=True).fit(counts[0])
    sets = zip(map(weights.transform, counts), (len(train), len(validation)), strict=True)
    return [[matrix[at : at + size] for at in range(0, matrix.shape[0], size)] for matrix, size in sets]


def _measure_shared(first: csr_matrix, second: csr_matrix) -> Array:
    """[N, 5]: the cosine of two sides, the share of either's weight that is in the other, and how many n-grams each has
    (their logarithm).
    """
    sides = (first, second), (second, first)
    shares = [side.multiply(other > 0).sum(1) / np.maximum(side.sum(1), 1e-9) for side, other in sides]
    sizes = [np.log1p(side.getnnz(1))[:, None] for side in (first, second)]
    return np.asarray(np.hstack([first.multiply(second).sum(1), *shares, *sizes]))


def _join(*parts: Sequence[Sequence[csr_matrix]]) -> list[csr_matrix]:
    """For both sets all columns side by side."""
    from scipy.sparse import hstack

    return [hstack([*chain(*each)], format="csr") for each in zip(*parts, strict=True)]


def tag_by_words(train: Sequence[TaggedExample], validation: Sequence[TaggedExample]) -> list[list[int]]:
    """Tags for `validation` by a linear model on each word, its ends, its shape and the words around it. The penalty is
    chosen by cross-validation on `train`.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    hasher = FeatureHasher(2**18, input_type="string")
    seen, unseen = (
        hasher.transform(features for row in rows for features in _describe_words(row.words))
        for rows in (train, validation)
    )
    tag_W = np.array([tag for row in train for tag in row.tags])
    some = slice(sum(len(row.words) for row in train[:CHOOSING]))
    tried = [SGDClassifier(loss="log_loss", alpha=one, max_iter=5, tol=None, random_state=0) for one in PENALTIES]
    model = max(tried, key=lambda one: _cross_validate(one, seen[some], tag_W[some]))
    tags = iter(model.fit(seen, tag_W).predict(unseen).tolist())
    return [[next(tags) for _ in row.words] for row in validation]


def _describe_words(words: Sequence[str]) -> Iterator[list[str]]:
    """The features of each word of a sentence."""
    padded = ["<", "<", *(word.lower() for word in words), ">", ">"]
    for at, word in enumerate(words):
        beside = [f"{place}={padded[at + 2 + place]}" for place in (-2, -1, 0, 1, 2)]
        ends = [f"{word[:3].lower()}-", f"-{word[-3:].lower()}"]
        shape = "".join("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word[:12])
        yield [*beside, *ends, f"shape={shape}"]


def answer_by_words(train: Sequence[QuestionExample], validation: Sequence[QuestionExample]) -> list[Answer]:
    """For each question the window of its context, as long as the median answer of `train`, that has most words of the
    question around it and holds none of them (after Richardson et al. 2013, "sliding window").
    """
    size = int(np.median([len(row.answers[0].split()) for row in train if row.answers]))
    return [Answer(_find_best_window(row, max(1, size))) for row in validation]


def _find_best_window(row: QuestionExample, size: int) -> str:
    words = [match.span() for match in re.finditer(r"\S+", row.context)]
    asked = set(re.findall(r"\w+", row.question.lower())) - {"the", "a", "an", "of", "in", "to", "is", "was", "what"}
    hit_W = np.array([bool(asked & set(re.findall(r"\w+", row.context[a:b].lower()))) for a, b in words], float)
    near_W = np.convolve(hit_W, np.concatenate([np.arange(1, 11), np.arange(10, 0, -1)]) / 10.0, "full")[10:-9]
    ones = np.ones(min(size, len(words)))
    total_W = np.convolve(near_W - 100.0 * hit_W, ones, "valid")
    at = int(total_W.argmax())
    return row.context[words[at][0] : words[at + len(ones) - 1][1]]


def retrieve_targets(train: Sequence[GenerationExample], validation: Sequence[GenerationExample]) -> list[str]:
    """For each text the target of the nearest training text, by the cosine of their bags of words."""
    seen, unseen = _join(_weigh(train, validation, WORDS))
    nearest = [int((seen @ unseen[row].T).toarray().argmax()) for row in range(unseen.shape[0])]
    return [train[at].target for at in nearest]
