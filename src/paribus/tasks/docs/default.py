"""Extractive question answering: where does a docstring give the default of a parameter?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from paribus.tasks.docs.base import Function, FunctionTask, Module, Sizes, find_functions
from paribus.tasks.examples import QuestionExample
from paribus.tasks.metrics import Answer
from paribus.tasks.types.question_answering import ExtractiveQA

QUESTION = "What is the default of {}?"
_ASKED = re.compile(r"What is the default of (\w+)\?")
_SAID = re.compile(r"defaults?(?:\s+(?:value|is|to|of))*\s*[:=]?\s*[`'\"(]*([^\s`'\",;)]+)", re.IGNORECASE)


class Documented(NamedTuple):
    """A docstring and the defaults in it: (parameter, text, first character)."""

    module: str
    description: str
    defaults: list[tuple[str, str, int]]


class DocsDefault(FunctionTask):
    """A parameter's default in the docstring of its function (settings: see `DocsTask`).

    The answer is the value in the code, if the description of the parameter has it once, or once behind the word
    "default". If docstring and code disagree, there is no question.
    """

    semantics = 2

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (10, 200),
        metrics: Sequence[str] = ("f1", "em"),
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, ExtractiveQA(tuple(metrics)), packages, words, **sizes)

    @staticmethod
    def read(module: Module) -> list[Documented]:
        """The functions of a module whose docstring gives a default."""
        rows = []
        for node, text in find_functions(module[1]):
            if defaults := [
                (name, *at) for name, value in find_literals(node) if (at := find_default(text, name, value))
            ]:
                rows.append(Documented(module[0], text, defaults))
        return rows

    def make_examples(self, rows: Sequence[Documented]) -> list[QuestionExample]:
        return [
            QuestionExample(QUESTION.format(name), row.description, [text], [start])
            for row in rows
            for name, text, start in row.defaults
        ]

    def predict_by_rules(self, examples: Sequence[QuestionExample]) -> Mapping[str, Any]:
        """What follows "default" in the description of the parameter."""
        return {"regular_expression": [Answer(_answer_by_expression(row)) for row in examples]}


def find_literals(node: Function) -> Iterator[tuple[str, str]]:
    """(parameter, default) for defaults that are a number, a text, a truth value or None, as one would write them."""
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


def find_default(text: str, name: str, value: str) -> tuple[str, int] | None:
    """(value, first character) of the one place in a parameter's description that has the value."""
    block = find_description(text, name)
    if block is None:
        return None
    pattern = re.compile(rf"(?<![\w.+-]){re.escape(value)}(?!\w|\.\w)")
    places = [match.start() for match in pattern.finditer(text, *block)]
    word = re.compile("default", re.IGNORECASE).search(text, *block)
    if len(places) > 1 and word:
        places = [place for place in places if place > word.start()][:1]
    return (value, places[0]) if len(places) == 1 else None


def find_description(text: str, name: str) -> tuple[int, int] | None:
    """Start and end of a parameter's description in a docstring, without its name, in Google's, NumPy's or Sphinx's
    style.
    """
    start = re.compile(
        rf"^([ \t]*)(?:[-*] *)?(?::param (?:[\w.\[\], ]+ )?)?[`*]*{re.escape(name)}[`*]*\s*[:(,]", re.MULTILINE
    ).search(text)
    if start is None:
        return None
    depth = len(start.group(1).expandtabs())
    end = text.find("\n", start.end())
    while end >= 0:
        line = re.compile(r"[^\n]*").match(text, end + 1)
        written = line.group().expandtabs() if line else ""
        if written.strip() and len(written) - len(written.lstrip()) <= depth:
            break
        end = text.find("\n", end + 1)
    return start.end(), len(text) if end < 0 else end


def _answer_by_expression(row: QuestionExample) -> str:
    asked = _ASKED.fullmatch(row.question)
    block = find_description(row.context, asked.group(1)) if asked else None
    said = _SAID.search(row.context, *block) if block else None
    return said.group(1).rstrip(".") if said else ""
