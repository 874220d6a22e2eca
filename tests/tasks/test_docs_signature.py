"""The docs_signature task: descriptions beside their own or another function's signature."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from paribus.core.errors import UserError
from paribus.tasks.baselines import classify_by_words, measure_baselines
from paribus.tasks.docs.signature import Described, DocsSignature, format_signature, pair_up
from paribus.tasks.examples import Example, Examples


def task(**changes: Any) -> DocsSignature:
    settings: dict[str, Any] = {"name": "sig", "packages": ["rich", "hypothesis"], "max_train": 400}
    return DocsSignature(**{**settings, **changes})


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def examples(cache: Path) -> Examples:
    return task().examples(cache)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(self, a: int, b=2, *rest, c, **more): pass", "f(a, b, *rest, c, **more)"),
        ("async def g(x, /, y): pass", "g(x, y)"),
        ("def h(): pass", "h()"),
    ],
)
def test_signatures_have_neither_types_nor_defaults(source: str, expected: str) -> None:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert format_signature(node) == expected


def test_half_of_the_descriptions_have_their_own_signature() -> None:
    rows = [Described("m", f"Do the thing number {i}.", f"thing{i}(x)") for i in range(40)]
    own = {row.description: row.signature for row in rows}
    examples = pair_up(rows)
    assert [row.label for row in examples] == [1] * 20 + [0] * 20
    assert all((own[row.text] == row.pair) == bool(row.label) for row in examples)
    assert len({row.text for row in examples}) == len({row.pair for row in examples}) == 40


def test_a_namesake_is_no_stranger() -> None:
    rows = [Described("m", f"Forward pass number {i}.", "forward(x)") for i in range(10)]
    assert {row.label for row in pair_up(rows)} == {1}


def test_examples_of_real_packages(examples: Examples, cache: Path) -> None:
    assert len(examples["train"]) == 400
    assert len(examples["validation"]) > 50
    for rows in examples.values():
        assert 0.4 < sum(row.label for row in rows) / len(rows) < 0.65
        assert all(row.pair and 4 <= len(row.text.split()) <= 40 for row in rows)
    assert task().summary(cache)["leaked"] == {"validation": 0}


@pytest.mark.parametrize("side", [0, 1])
def test_neither_text_alone_tells_the_label(examples: Examples, side: int) -> None:
    train, validation = ([Example(row.texts[side], None, row.label) for row in rows] for rows in examples.values())
    found = classify_by_words(train, validation)
    assert (found == [row.label for row in validation]).mean() < 0.62


def test_what_the_texts_share_tells_it(cache: Path) -> None:
    assert measure_baselines(task(), cache)["accuracy"]["bag_of_words"] > 0.8


def test_bad_settings_are_one_line(cache: Path) -> None:
    for changes, cause in (({"words": [9, 3]}, "words"), ({"validation": 1.0}, "validation")):
        with pytest.raises(UserError, match=cause):
            task(**changes)
    with pytest.raises(UserError, match="no-such-thing is not installed"):
        task(packages=["no-such-thing"]).examples(cache)
