"""Tagging: which words of a docstring name parameters and types of its function?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from paribus.tasks.docs.base import Function, FunctionTask, Module, Sizes, find_functions
from paribus.tasks.examples import TaggedExample
from paribus.tasks.types.tagging import Tagging

CLASSES = ("O", "B-parameter", "B-type")
PARAMETER, TYPE = 1, 2
SHORTEST = 2  # letters of a name: "a" is a word
_WORD = re.compile(r"\w+|[^\w\s]")
_BUILT_IN = frozenset({"int", "float", "str", "bool", "dict", "list", "tuple", "set", "bytes", "callable", "Tensor"})


class Marked(NamedTuple):
    """A paragraph of a docstring: its words, and for each the number of its tag."""

    module: str
    description: str
    words: list[str]
    tags: list[int]


class DocsParameters(FunctionTask):
    """Words that are the name of a parameter, and words of an annotation in the signature (settings: see `DocsTask`).

    The texts are paragraphs with at least one such word and no code, of functions with annotations. A word that is
    both is a parameter.
    """

    semantics = 1

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (5, 60),
        metrics: Sequence[str] = ("f1", "precision", "recall"),
        crf: bool = False,
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, Tagging(CLASSES, tuple(metrics), crf), packages, words, **sizes)

    @staticmethod
    def read(module: Module) -> list[Marked]:
        """The tagged paragraphs of the docstrings of a module."""
        rows = []
        for node, text in find_functions(module[1]):
            parameters, types = find_names(node)
            if types:
                rows += [Marked(module[0], *row) for row in tag_paragraphs(text, parameters, types)]
        return rows

    def make_examples(self, rows: Sequence[Marked]) -> list[TaggedExample]:
        return [TaggedExample(row.words, row.tags) for row in rows]

    def predict_by_rules(self, examples: Sequence[TaggedExample]) -> Mapping[str, Any]:
        """Names by their spelling."""
        return {"regular_expression": [_tag_by_expression(row.words) for row in examples]}


def find_names(node: Function) -> tuple[set[str], set[str]]:
    """The names of the parameters, without self, and those in the annotations."""
    given = node.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    arguments += [each for each in (given.vararg, given.kwarg) if each]
    parameters = {each.arg for each in arguments if len(each.arg) >= SHORTEST} - {"self", "cls"}
    annotations = [each.annotation for each in arguments] + [node.returns]
    return parameters, {name for each in annotations if each for name in _find_words(each)} - {"None"}


def _find_words(annotation: ast.expr) -> Iterator[str]:
    for part in ast.walk(annotation):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from re.findall(r"[A-Za-z_]\w+", part.value)


def tag_paragraphs(text: str, parameters: set[str], types: set[str]) -> Iterator[tuple[str, list[str], list[int]]]:
    """(text, words, tags) of the paragraphs that have one of the names and no code."""
    for paragraph in re.split(r"\n\s*\n", text):
        words = _WORD.findall(paragraph)
        tags = [PARAMETER if word in parameters else TYPE if word in types else 0 for word in words]
        if any(tags) and ">>>" not in paragraph:
            yield paragraph, words, tags


def _tag_by_expression(words: Sequence[str]) -> list[int]:
    """Built-in types and CamelCase are types; words with underscores, in backticks or before a colon are parameters."""
    padded = ["", *words, ""]
    tags = []
    for before, word, after in zip(padded, words, padded[2:], strict=False):
        if word in _BUILT_IN or re.fullmatch(r"[A-Z][a-z0-9]+(?:[A-Z]\w*)+", word):
            tags.append(TYPE)
        elif re.fullmatch(r"[a-z]\w*", word) and ("_" in word or before == after == "`" or after == ":"):
            tags.append(PARAMETER)
        else:
            tags.append(0)
    return tags
