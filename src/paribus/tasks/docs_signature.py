"""Does this description belong to this signature? Labeled by the installed packages themselves, without a network."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple

from paribus.data.corpus.prose import prose
from paribus.tasks.example import Example, hashed_share
from paribus.tasks.functions import FunctionTask, Module, functions
from paribus.tasks.types.classification import Classification
from paribus.tasks.verbalize import Fields

CLASSES = ("other", "own")


class Described(NamedTuple):
    """A function: the first paragraph of its docstring and its signature without types and defaults."""

    module: str
    description: str
    signature: str


class DocsSignature(FunctionTask):
    """Pair classification: the first paragraph of a docstring beside the signature of its own or of another function.

    A description is in one example alone; the other signature comes from the same distribution and the same set, and
    has another name. For the settings see `FunctionTask`.
    """

    semantics = 1

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (4, 40),
        validation: float = 0.2,
        metrics: Sequence[str] = ("accuracy",),
        max_train: int | None = 8000,
        max_validation: int | None = 2000,
    ) -> None:
        task_type = Classification(CLASSES, tuple(metrics))
        super().__init__(name, task_type, packages, words, validation, max_train, max_validation)
        self.fields = Fields(name, "description", "signature")

    @property
    def reader(self) -> Any:
        """See `FunctionTask.reader`."""
        return _described

    def made(self, rows: Sequence[Described]) -> list[Example]:
        """See `FunctionTask.made`."""
        return paired(rows)


def paired(rows: Sequence[Described]) -> list[Example]:
    """Each description with a signature: half with their own, the others with one that the next of them gives away.

    Which half is decided by the description's hash, so that neither text alone tells the label.
    """
    ordered = sorted(rows, key=lambda row: hashed_share(row.description))
    own, other = ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
    given = [*other[1:], *other[:1]]
    strangers = [
        Example(row.description, giver.signature, 0)
        for row, giver in zip(other, given, strict=True)
        if _name(row) != _name(giver)
    ]
    return [*(Example(row.description, row.signature, 1) for row in own), *strangers]


def _name(row: Described) -> str:
    return row.signature.partition("(")[0]


def _described(module: Module) -> list[Described]:
    """The public functions and methods of a module whose docstring starts with prose."""
    found = []
    for node, text in functions(module[1]):
        if paragraphs := prose(text.partition("\n\n")[0]):
            found.append(Described(module[0], paragraphs[0], signature(node)))
    return found


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """`name(first, second, *rest)`: the parameters without self, types and defaults."""
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [each.arg for each in given.kwonlyargs]
    names += [f"**{given.kwarg.arg}"] if given.kwarg else []
    return f"{node.name}({', '.join(names)})"
