"""Pair classification: does a description belong to a signature?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from paribus.data.corpus.prose import prose
from paribus.data.corpus.splits import hash_share
from paribus.tasks.docs.base import Function, FunctionTask, Module, Sizes, find_functions
from paribus.tasks.examples import Example
from paribus.tasks.prompts import Fields
from paribus.tasks.types.classification import Classification

CLASSES = ("other", "own")


class Described(NamedTuple):
    """A function: the first paragraph of its docstring and its signature without types and defaults."""

    module: str
    description: str
    signature: str


class DocsSignature(FunctionTask):
    """The first paragraph of a docstring, and the signature of its function or of another one (settings: see
    `DocsTask`).

    A description is in one example only. The other signature comes from the same distribution and the same set, and
    has another name.
    """

    semantics = 2

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (4, 40),
        metrics: Sequence[str] = ("accuracy",),
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, Classification(CLASSES, tuple(metrics)), packages, words, **sizes)
        self.fields = Fields(name, "description", "signature")

    @staticmethod
    def read(module: Module) -> list[Described]:
        """The public functions and methods of a module whose docstring starts with prose."""
        rows = []
        for node, text in find_functions(module[1]):
            if paragraphs := prose(text.partition("\n\n")[0]):
                rows.append(Described(module[0], paragraphs[0], format_signature(node)))
        return rows

    def make_examples(self, rows: Sequence[Described]) -> list[Example]:
        return pair_up(rows)


def pair_up(rows: Sequence[Described]) -> list[Example]:
    """Half of the descriptions with their own signature, each of the others with that of the next one.

    The description's hash decides which half it is in, so that neither text alone tells the label.
    """
    ordered = sorted(rows, key=lambda row: hash_share(row.description))
    kept, changed = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
    others = [*changed[1:], *changed[:1]]
    wrong = [
        Example(row.description, other.signature, 0)
        for row, other in zip(changed, others, strict=True)
        if _name(row) != _name(other)
    ]
    return [*(Example(row.description, row.signature, 1) for row in kept), *wrong]


def _name(row: Described) -> str:
    return row.signature.partition("(")[0]


def format_signature(node: Function) -> str:
    """`name(first, second, *rest)`: the parameters without self, types and defaults."""
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [each.arg for each in given.kwonlyargs]
    names += [f"**{given.kwarg.arg}"] if given.kwarg else []
    return f"{node.name}({', '.join(names)})"
