"""The docs_package task: names hidden, modules and texts on one side only, classes balanced."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.core.errors import UserError
from paribus.tasks.baselines import measure_baselines
from paribus.tasks.docs.package import DocsPackage, Paragraph, drop_shared, name_pattern
from paribus.tasks.examples import Examples, normalize

CONF = Path(__file__).parents[2] / "conf/task/docs_package.yaml"
SMALL = ["rich", "hypothesis", "aiohttp"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def task(**changes: Any) -> DocsPackage:
    settings: dict[str, Any] = {"name": "docs", "packages": SMALL, "max_train": 300, "max_validation": 90}
    return DocsPackage(**{**settings, **changes})


@pytest.fixture(scope="module")
def examples(cache: Path) -> Examples:
    return task().examples(cache)


@pytest.mark.parametrize(
    "text",
    [
        "Use scikit-learn for it.",
        "Scikit learn does it.",
        "see sklearn.linear_model",
        "a TorchScript module",
        "an np array",
        "PYTORCH LIGHTNING here",
    ],
)
def test_names_are_found(text: str) -> None:
    assert name_pattern(["scikit-learn", "sklearn", "torch", "np", "pytorch-lightning"]).search(text)


@pytest.mark.parametrize("text", ["An input of any kind.", "Scikits of the learned", "The top chart"])
def test_other_words_are_not(text: str) -> None:
    assert not name_pattern(["scikit-learn", "torch", "np"]).search(text)


def test_a_text_of_two_packages_is_left_out() -> None:
    rows = [(0, "a", "Same text."), (0, "b", "Same  text."), (0, "b", "Only here."), (1, "c", "same text.")]
    assert drop_shared([Paragraph(*row) for row in rows]) == [Paragraph(0, "b", "Only here.")]
    assert drop_shared([Paragraph(*row) for row in rows[:2]]) == [Paragraph(0, "a", "Same text.")]


def test_texts_are_prose_of_the_asked_length_without_names(examples: Examples) -> None:
    assert len(examples["train"]) > 200
    for row in examples["train"] + examples["validation"]:
        assert 5 <= len(row.text.split()) <= 60
        assert not any(name in row.text.lower() for name in SMALL)
        assert row.pair is None


def test_no_text_is_twice(examples: Examples, cache: Path) -> None:
    texts = [normalize(row.text) for rows in examples.values() for row in rows]
    assert len(texts) == len(set(texts))
    assert task().summary(cache)["leaked"] == {"validation": 0}


def test_no_module_is_on_both_sides(cache: Path) -> None:
    whole = task(max_train=None, max_validation=None)
    side = {row.text: split for split, rows in whole.examples(cache).items() for row in rows}
    sides: dict[str, set[str]] = {}
    for row in whole._candidates(cache):
        sides.setdefault(row.module, set()).add(side[row.text])
    assert len(sides) > 50
    assert all(len(found) == 1 for found in sides.values())
    held = sum(found == {"validation"} for found in sides.values())
    assert 0.1 < held / len(sides) < 0.3


def test_classes_are_balanced(cache: Path) -> None:
    assert set(task(max_train=90, max_validation=30).summary(cache)["labels"]["train"].values()) == {30}


def test_a_tail_makes_the_last_classes_rare_in_training(cache: Path) -> None:
    labels = task(max_train=91, max_validation=30, tail=9.0).summary(cache)["labels"]
    assert labels["train"] == {"rich": 63, "hypothesis": 21, "aiohttp": 7}
    assert set(labels["validation"].values()) == {10}
    with pytest.raises(UserError, match=r"tail=2.*max_train"):
        task(max_train=None, tail=2.0)
    with pytest.raises(UserError, match=r"tail=0\.5"):
        task(tail=0.5)


def test_fingerprint_holds_and_follows_the_settings(cache: Path, tmp_path: Path) -> None:
    assert task().data_hash(cache) != task(words=[5, 30]).data_hash(cache)
    start = time.perf_counter()
    first = task().data_hash(cache)
    assert time.perf_counter() - start < 0.1
    assert task().data_hash(tmp_path) == first


def test_neither_trivial_nor_impossible(cache: Path) -> None:
    found = measure_baselines(task(), cache)["accuracy"]
    assert found["majority"] < 0.4
    assert found["majority"] + 0.2 < found["bag_of_words"] < 0.95


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packages": [*SMALL, "no-such-package"]}, "no-such-package is not installed"),
        ({"packages": ["rich", "tzdata"]}, "tzdata has too little prose"),
        ({"packages": ["rich"]}, "at least two different classes"),
        ({"words": [9, 5]}, r"words=\[9, 5\]"),
        ({"validation": 1.5}, r"validation=1\.5"),
    ],
)
def test_bad_settings(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as error:
        task(**changes).examples(tmp_path)
    assert "\n" not in str(error.value)


def test_configured_packages_are_installed() -> None:
    settings = yaml.safe_load(CONF.read_text())
    assert settings.pop("_target_") == "paribus.tasks.docs.package.DocsPackage"
    configured = DocsPackage(**settings)
    assert len(configured.task_type.classes) == 12
    assert len(configured.source()[-1]) == 12
