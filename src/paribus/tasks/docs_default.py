"""Where does this docstring say what the default of a parameter is? Labeled by parsing the installed packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paribus.tasks.example import Question
from paribus.tasks.functions import FunctionTask, Module, functions
from paribus.tasks.squad import Answer
from paribus.tasks.types.spans import Spans

QUESTION = "What is the default of {}?"
_ASKED = re.compile(r"What is the default of (\w+)\?")
_SAID = re.compile(r"defaults?(?:\s+(?:value|is|to|of))*\s*[:=]?\s*[`'\"(]*([^\s`'\",;)]+)", re.IGNORECASE)


class Documented(NamedTuple):
    """A docstring and the defaults that it tells: (parameter, text, first character)."""

    module: str
    description: str
    defaults: list[tuple[str, str, int]]


class DocsDefault(FunctionTask):
    """Extractive question answering: a parameter's default in the docstring of its function.

    The answer is the value that the code has, where the description of the parameter has it once, or once behind the
    word "default"; what the docstring tells otherwise than the code is not asked. For the settings see `FunctionTask`.
    """

    semantics = 1

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (10, 200),
        validation: float = 0.2,
        metrics: Sequence[str] = ("f1", "em"),
        max_train: int | None = 4000,
        max_validation: int | None = 1000,
    ) -> None:
        super().__init__(name, Spans(tuple(metrics)), packages, words, validation, max_train, max_validation)

    @property
    def reader(self) -> Any:
        """See `FunctionTask.reader`."""
        return _documented

    def made(self, rows: Sequence[Documented]) -> list[Question]:
        """See `FunctionTask.made`: a question for each default."""
        return [
            Question(QUESTION.format(name), row.description, [text], [start])
            for row in rows
            for name, text, start in row.defaults
        ]

    def rules(self, examples: Sequence[Question]) -> Mapping[str, Any]:
        """See `Task.rules`: what follows "default" in the description of the parameter."""
        return {"regular_expression": [Answer(_by_expression(row)) for row in examples]}


def _documented(module: Module) -> list[Documented]:
    found = []
    for node, text in functions(module[1]):
        if defaults := [(name, *place) for name, value in literals(node) if (place := told(text, name, value))]:
            found.append(Documented(module[0], text, defaults))
    return found


def literals(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """(parameter, default) where the default is a number, a text, a truth value or None, as one would write it."""
    given = node.args
    places = [*given.posonlyargs, *given.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(places[len(places) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        if default is None:
            continue
        try:
            value = ast.literal_eval(default)
        except ValueError:
            continue
        if isinstance(value, str) and re.fullmatch(r"\S+", value):
            yield argument.arg, value
        elif value is None or isinstance(value, bool | int | float):
            yield argument.arg, ast.unparse(default)


def told(text: str, name: str, value: str) -> tuple[str, int] | None:
    """(value, first character) of the one place in a parameter's description that has the value."""
    block = described(text, name)
    if block is None:
        return None
    pattern = re.compile(rf"(?<![\w.+-]){re.escape(value)}(?!\w|\.\w)")
    places = [match.start() for match in pattern.finditer(text, *block)]
    word = re.compile("default", re.IGNORECASE).search(text, *block)
    if len(places) > 1 and word:
        places = [place for place in places if place > word.start()][:1]
    return (value, places[0]) if len(places) == 1 else None


def described(text: str, name: str) -> tuple[int, int] | None:
    """From where to where a docstring describes a parameter, its name left out; Google's, NumPy's or Sphinx's way."""
    start = re.compile(
        rf"^([ \t]*)(?:[-*] *)?(?::param (?:[\w.\[\], ]+ )?)?[`*]*{re.escape(name)}[`*]*\s*[:(,]", re.MULTILINE
    ).search(text)
    if start is None:
        return None
    depth = len(start.group(1).expandtabs())
    end = text.find("\n", start.end())
    while end >= 0:
        line = re.compile(r"[^\n]*").match(text, end + 1)
        found = line.group() if line else ""
        if found.strip() and len(found.expandtabs()) - len(found.expandtabs().lstrip()) <= depth:
            break
        end = text.find("\n", end + 1)
    return start.end(), len(text) if end < 0 else end


def _by_expression(row: Question) -> str:
    asked = _ASKED.fullmatch(row.question)
    block = described(row.context, asked.group(1)) if asked else None
    found = _SAID.search(row.context, *block) if block else None
    return found.group(1).rstrip(".") if found else ""
