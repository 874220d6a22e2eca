"""docs_default and docs_parameters: what is labeled, and what regular expressions find."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from paribus.tasks.baselines import measure_baselines, tag_by_words
from paribus.tasks.docs.default import DocsDefault, find_default, find_description, find_literals
from paribus.tasks.docs.parameters import DocsParameters, find_names, tag_paragraphs
from paribus.tasks.examples import QuestionExample, TaggedExample
from paribus.tasks.metrics import Answer

NUMPY = """Fit it.

Parameters
----------
size : int, default=3
    How many, from 3 to 9.
mode : {'a', 'bb'}
    Which way. The default is 'bb'.
rate : float
    Step, 0.5 of the whole.
flag : bool
    Never said.

Returns
-------
flag : True
"""
GOOGLE = """Do it.

Args:
    size (int): How many. Defaults to 3.
        It may be 4, too.
    other: Something. Defaults to None.
"""
SPHINX = """Do it.

:param int size: how many, 3 by default
:param other: something
"""


def function(text: str) -> Any:
    return ast.parse(text).body[0]


def test_defaults_are_read_from_the_code() -> None:
    node = function("def f(self, a, size=3, mode='bb', two='b b', *, rate=-0.5, on=None, it=[1], call=g()): pass")
    assert list(find_literals(node)) == [("size", "3"), ("mode", "bb"), ("rate", "-0.5"), ("on", "None")]


@pytest.mark.parametrize(
    ("text", "name", "value", "before"),
    [
        (NUMPY, "size", "3", "default="),  # of two places the one behind "default"
        (NUMPY, "mode", "bb", "The default is '"),
        (NUMPY, "rate", "0.5", "Step, "),
        (GOOGLE, "size", "3", "Defaults to "),
        (GOOGLE, "other", "None", "Defaults to "),
        (SPHINX, "size", "3", "how many, "),
    ],
)
def test_the_place_of_a_default_is_in_the_description_of_its_parameter(
    text: str, name: str, value: str, before: str
) -> None:
    found = find_default(text, name, value)
    assert found is not None
    assert text[: found[1]].endswith(before)
    assert text[found[1] :].startswith(value)


def test_what_is_not_told_is_not_asked() -> None:
    assert find_default(NUMPY, "flag", "True") is None  # the word stands in another section
    assert find_default(NUMPY, "size", "7") is None
    assert find_default(GOOGLE, "other", "3") is None
    assert find_description(GOOGLE, "absent") is None


def test_the_regular_expression_for_defaults() -> None:
    rows = [
        QuestionExample("What is the default of size?", NUMPY, ["3"], [0]),
        QuestionExample("What is the default of mode?", NUMPY, ["bb"], [0]),
        QuestionExample("What is the default of rate?", NUMPY, ["0.5"], [0]),
        QuestionExample("What is the default of other?", GOOGLE, ["None"], [0]),
    ]
    found = DocsDefault("d", ["rich"]).predict_by_rules(rows)["regular_expression"]
    assert found == [Answer("3"), Answer("bb"), Answer(""), Answer("None")]


def test_names_of_parameters_and_types() -> None:
    node = function("def f(self, size: int, x, of: 'list[Tensor]' = None, *rest: np.ndarray) -> dict[str, bool]: pass")
    assert find_names(node) == (
        {"size", "of", "rest"},
        {"int", "list", "Tensor", "np", "ndarray", "dict", "str", "bool"},
    )


def test_paragraphs_with_a_name_and_without_code_are_tagged() -> None:
    text = "Nothing here.\n\nThe `size` is an int.\n\n>>> f(size)\n"
    assert [row[1:] for row in tag_paragraphs(text, {"size"}, {"int"})] == [
        (["The", "`", "size", "`", "is", "an", "int", "."], [0, 0, 1, 0, 0, 0, 2, 0])
    ]


@pytest.mark.parametrize("kind", [DocsDefault, DocsParameters])
def test_real_packages_give_examples_and_baselines(kind: Any, tmp_path: Path) -> None:
    task = kind("docs", ["rich", "aiohttp", "hypothesis", "torchmetrics"], max_train=300, max_validation=80)
    summary = task.summary(tmp_path)
    assert summary["leaked"] == {"validation": 0}
    assert summary["examples"]["train"] > 20
    found = measure_baselines(task, tmp_path)["f1"]
    assert found["regular_expression"] > 0.1
    assert all(0 <= value <= 1 for value in found.values())
    assert set(found) >= {"bag_of_words", "regular_expression"}


def test_the_penalty_of_the_linear_model_of_tags_is_chosen_on_the_training_sentences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [TaggedExample(["set", word, "to", str(at)], [0, 1, 0, 2]) for at, word in enumerate("abcdefghijkl")]
    unseen = [TaggedExample(["set", "z", "to", "77"], [0, 0, 0, 0])]  # its own tags say otherwise
    for penalties in ((1e3, 1e-5), (1e-5, 1e3)):
        monkeypatch.setattr("paribus.tasks.baselines.PENALTIES", penalties)
        assert tag_by_words(rows, unseen) == [[0, 1, 0, 2]]
    monkeypatch.setattr("paribus.tasks.baselines.PENALTIES", (1e3,))
    assert tag_by_words(rows, unseen) != [[0, 1, 0, 2]]
