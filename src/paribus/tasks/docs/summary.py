"""Text-to-text: write the first paragraph of a docstring from the rest of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from paribus.data.corpus.prose import prose
from paribus.tasks.docs.base import FunctionTask, Module, Sizes, find_functions
from paribus.tasks.docs.signature import format_signature
from paribus.tasks.examples import GenerationExample
from paribus.tasks.prompts import Fields
from paribus.tasks.types.generation import FreeText


class Summarized(NamedTuple):
    """A function: the first paragraph of its docstring as `description`, the prose after it as `rest`."""

    module: str
    description: str
    signature: str
    rest: str


class DocsSummary(FunctionTask):
    """The summary of a function from its signature and the rest of its docstring (settings: see `DocsTask`; `words`
    counts those of the summary).
    """

    semantics = 2

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (3, 30),
        metrics: Sequence[str] = ("rougeL", "rouge1", "rouge2", "exact_match"),
        **sizes: Unpack[Sizes],
    ) -> None:
        fields = Fields(name, "signature", "text")
        super().__init__(name, FreeText(fields, metrics=tuple(metrics)), packages, words, **sizes)
        self.fields = fields

    @staticmethod
    def read(module: Module) -> list[Summarized]:
        """Functions whose docstring has prose both in its first paragraph and after it."""
        rows = []
        for node, text in find_functions(module[1]):
            first, _, rest = text.partition("\n\n")
            summary, more = prose(first), prose(rest)
            if summary and more:
                rows.append(Summarized(module[0], summary[0], format_signature(node), "\n".join(more)))
        return rows

    def make_examples(self, rows: Sequence[Summarized]) -> list[GenerationExample]:
        return [GenerationExample(row.signature, row.rest, row.description) for row in rows]

    def predict_by_rules(self, examples: Sequence[GenerationExample]) -> Mapping[str, Any]:
        """The first sentence of the rest, and the name of the function as words."""
        return {
            "first_sentence": [(row.pair or "").split(". ")[0] for row in examples],
            "name": [row.text.partition("(")[0].replace("_", " ") for row in examples],
        }
