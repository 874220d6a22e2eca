"""The docs_overlap task: labels are what they say, and cover their range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.core.errors import UserError
from paribus.tasks.baselines import measure_baselines
from paribus.tasks.docs.overlap import DocsOverlap, replace_some
from paribus.tasks.examples import Examples
from paribus.tasks.prompts import round_to_step


def task(**changes: Any) -> DocsOverlap:
    settings: dict[str, Any] = {"name": "docs", "packages": ["rich", "hypothesis"], "max_train": 300}
    return DocsOverlap(**{**settings, **changes})


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def examples(cache: Path) -> Examples:
    return task().examples(cache)


def test_the_label_is_the_share_of_equal_words(examples: Examples) -> None:
    for row in examples["train"]:
        both = list(zip(row.text.split(), row.pair.split(), strict=True))
        assert row.label == pytest.approx(5 * np.mean([a.lower() == b.lower() for a, b in both]))
    labels = np.array([row.label for row in examples["train"]])
    share_H = np.histogram(labels, bins=5, range=(0, 5))[0] / len(labels)
    assert len(labels) == 300
    assert share_H.min() > 0.1


def test_a_version_depends_on_the_texts_alone() -> None:
    words, others = ["one", "two", "three", "four", "five", "six"], ["a", "b", "c"]
    assert replace_some(words, others) == replace_some(words, others)
    assert set(str(replace_some(words, others).pair).split()) <= {*words, *others}


def test_sets_share_no_paragraph_and_a_linear_model_sees_the_overlap(examples: Examples, cache: Path) -> None:
    sides = [{row.text for row in examples[split]} for split in ("train", "validation")]
    assert not sides[0] & sides[1]
    found = measure_baselines(task(), cache)["pearson"]
    assert found["majority"] == 0
    assert found["bag_of_words"] > 0.5


@pytest.mark.parametrize(("step", "text"), [(0.2, "2.6"), (0.1, "2.6"), (0.01, "2.57"), (0.005, "2.570"), (1.0, "3.0")])
def test_values_are_written_with_the_decimals_of_their_step(step: float, text: str) -> None:
    assert round_to_step(2.57, step) == text


def test_bad_settings() -> None:
    with pytest.raises(UserError, match=r"words=\[9, 5\]"):
        task(words=[9, 5])
