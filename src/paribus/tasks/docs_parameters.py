"""Which words of a docstring name parameters and types of its function? Labeled by parsing the installed packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paribus.tasks.example import Tagged
from paribus.tasks.functions import FunctionTask, Module, functions
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
    """Tagging: words that are the name of a parameter, and words that stand in an annotation of the signature.

    Read are paragraphs in which there is at least one of them and no code, of functions with annotations. A word that
    is both is a parameter. For the settings see `FunctionTask`.
    """

    semantics = 1

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (5, 60),
        validation: float = 0.2,
        metrics: Sequence[str] = ("f1", "precision", "recall"),
        crf: bool = False,
        max_train: int | None = 4000,
        max_validation: int | None = 1000,
    ) -> None:
        task_type = Tagging(CLASSES, tuple(metrics), crf)
        super().__init__(name, task_type, packages, words, validation, max_train, max_validation)

    @property
    def reader(self) -> Any:
        """See `FunctionTask.reader`."""
        return _marked

    def made(self, rows: Sequence[Marked]) -> list[Tagged]:
        """See `FunctionTask.made`."""
        return [Tagged(row.words, row.tags) for row in rows]

    def rules(self, examples: Sequence[Tagged]) -> Mapping[str, Any]:
        """See `Task.rules`: names by how they are written."""
        return {"regular_expression": [_by_expression(row.words) for row in examples]}


def _marked(module: Module) -> list[Marked]:
    found = []
    for node, text in functions(module[1]):
        parameters, types = names(node)
        if types:
            found += [Marked(module[0], *row) for row in paragraphs(text, parameters, types)]
    return found


def names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[set[str], set[str]]:
    """The names of the parameters, without self, and those in the annotations."""
    given = node.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    arguments += [each for each in (given.vararg, given.kwarg) if each]
    parameters = {each.arg for each in arguments if len(each.arg) >= SHORTEST} - {"self", "cls"}
    annotations = [each.annotation for each in arguments] + [node.returns]
    return parameters, {name for each in annotations if each for name in _words_of(each)} - {"None"}


def _words_of(annotation: ast.expr) -> Iterator[str]:
    for part in ast.walk(annotation):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from re.findall(r"[A-Za-z_]\w+", part.value)


def paragraphs(text: str, parameters: set[str], types: set[str]) -> Iterator[tuple[str, list[str], list[int]]]:
    """(text, words, tags) of the paragraphs that have one of the names, code left out."""
    for paragraph in re.split(r"\n\s*\n", text):
        words = _WORD.findall(paragraph)
        tags = [PARAMETER if word in parameters else TYPE if word in types else 0 for word in words]
        if any(tags) and ">>>" not in paragraph:
            yield paragraph, words, tags


def _by_expression(words: Sequence[str]) -> list[int]:
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
