"""Write the first line of a docstring from the rest of it. From the installed packages, without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paribus.data.corpus.prose import prose
from paribus.tasks.docs_signature import signature
from paribus.tasks.example import Transfer
from paribus.tasks.functions import FunctionTask, Module, functions
from paribus.tasks.types.free_text import FreeText
from paribus.tasks.verbalize import Fields


class Summarized(NamedTuple):
    """A function: its signature, the prose behind the first paragraph of its docstring, and this as `description`."""

    module: str
    description: str
    signature: str
    rest: str


class DocsSummary(FunctionTask):
    """The summary of a function from its signature and the rest of its docstring. For the settings see `FunctionTask`:
    a description is the summary.
    """

    semantics = 1

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (3, 30),
        validation: float = 0.2,
        metrics: Sequence[str] = ("rougeL", "rouge1", "rouge2", "exact_match"),
        max_train: int | None = 8000,
        max_validation: int | None = 1000,
    ) -> None:
        fields = Fields(name, "signature", "text")
        task_type = FreeText(fields, metrics=tuple(metrics))
        super().__init__(name, task_type, packages, words, validation, max_train, max_validation)
        self.fields = fields

    @property
    def reader(self) -> Any:
        """See `FunctionTask.reader`."""
        return _summarized

    def made(self, rows: Sequence[Summarized]) -> list[Transfer]:
        """See `FunctionTask.made`."""
        return [Transfer(row.signature, row.rest, row.description) for row in rows]

    def rules(self, examples: Sequence[Transfer]) -> Mapping[str, Any]:
        """See `Task.rules`: the first sentence of the rest, and the name of the function as words."""
        return {
            "first_sentence": [(row.pair or "").split(". ")[0] for row in examples],
            "name": [row.text.partition("(")[0].replace("_", " ") for row in examples],
        }


def _summarized(module: Module) -> list[Summarized]:
    """Functions whose docstring has prose both in its first paragraph and behind it."""
    found = []
    for node, text in functions(module[1]):
        first, _, rest = text.partition("\n\n")
        summary, more = prose(first), prose(rest)
        if summary and more:
            found.append(Summarized(module[0], summary[0], signature(node), "\n".join(more)))
    return found
