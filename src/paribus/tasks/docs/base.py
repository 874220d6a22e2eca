"""The base of the tasks `docs_*`, which are labeled by installed packages themselves, so that no network is needed."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict

from paribus.core.console import bar, progress
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import (
    CHUNK,
    Docstrings,
    find_distributions,
    find_documented,
    find_version,
    modules,
    readers,
    split_module,
)
from paribus.tasks.examples import Examples, limit_rows, normalize
from paribus.tasks.task import Task
from paribus.tasks.types.base import TaskType

Module = tuple[str, str]  # its name and its file
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Sizes(TypedDict, total=False):
    """How many examples there are; see `DocsTask`."""

    validation: float
    max_train: int | None
    max_validation: int | None


class DocsTask(Task):
    """A task on the docstrings of installed packages. A module is wholly in train or wholly in validation.

    Args:
        packages: names of distributions.
        words: fewest and most words of a text.
        validation: share of the modules that is held out.
        max_train, max_validation: at most this many examples; null for all.
    """

    def __init__(
        self,
        name: str,
        task_type: TaskType,
        packages: Sequence[str],
        words: Sequence[int],
        *,
        validation: float = 0.2,
        max_train: int | None = None,
        max_validation: int | None = None,
    ) -> None:
        super().__init__(name, task_type, max_train, max_validation)
        self.packages, self.words, self.validation = tuple(packages), tuple(words), validation
        if len(self.words) != 2 or not 1 <= self.words[0] <= self.words[1]:
            raise UserError(
                f"{self.key}.words={list(self.words)} is not valid", "give the fewest and the most words, as [4, 40]"
            )
        if not 0 < self.validation < 1:
            raise UserError(
                f"{self.key}.validation={self.validation} is out of range",
                "give a share between 0 and 1, both excluded",
            )

    @cached_property
    def distributions(self) -> dict[str, metadata.Distribution]:
        """The packages by name. Raises UserError for one that is not installed."""
        return find_distributions(self.packages, f"{self.key}.packages", "install or remove it")

    def source(self) -> Any:
        """The settings and the versions of the packages."""
        versions = [[name, find_version(name)] for name in self.distributions]
        return [self.words, self.validation, self.limits, Docstrings.semantics, versions]

    def fits(self, text: str) -> bool:
        """Whether a text has the required number of words."""
        return self.words[0] <= len(text.split()) <= self.words[1]

    def split_of(self, module: str) -> str:
        """`train` or `validation`; the corpus `docstrings` holds out the same modules."""
        return split_module(module, self.validation)

    def read_paragraphs(self, cache: Path) -> dict[str, list[str]]:
        """The paragraphs of each set that fit."""
        paragraphs: dict[str, list[str]] = {"train": [], "validation": []}
        corpus = Docstrings(self.packages, validation=self.validation)
        for document in progress(corpus.documents(cache), self.name, unit="module"):
            paragraphs[str(document.split)] += [line for line in document.text.split("\n") if self.fits(line)]
        return paragraphs


class FunctionTask(DocsTask):
    """A task on functions and their docstrings; a description is used once."""

    @staticmethod
    @abstractmethod
    def read(module: Module) -> list[Any]:
        """Rows of a module with at least its `module` and a `description`. It runs in other processes."""

    @abstractmethod
    def make_examples(self, rows: Sequence[Any]) -> list[Any]:
        """The examples that the rows of one package in one set give."""

    def build(self, cache: Path) -> Examples:
        examples: Examples = {"train": [], "validation": []}
        files = {name: modules(package) for name, package in self.distributions.items()}
        total, seen = sum(map(len, files.values())), set[str]()
        with readers(total) as pool, bar(self.name, total, "module") as shown:
            for chosen in files.values():
                rows = (row for part in pool.map(self.read, chosen, chunksize=CHUNK) for row in part)
                new = list(self._select(rows, seen))
                for split in examples:
                    examples[split] += self.make_examples([row for row in new if self.split_of(row.module) == split])
                shown.update(len(chosen))
        return {split: limit_rows(rows, self.limits[split]) for split, rows in examples.items()}

    def _select(self, rows: Iterable[Any], seen: set[str]) -> Iterator[Any]:
        """Rows whose description has the required length and is new."""
        for row in rows:
            key = normalize(row.description)
            if key not in seen and self.fits(row.description):
                seen.add(key)
                yield row


def find_functions(path: str) -> Iterator[tuple[Function, str]]:
    """The public functions and methods of a Python file that have a docstring, each with it."""
    for node in find_documented(path):
        if isinstance(node, Function) and not node.name.startswith("_") and (text := ast.get_docstring(node)):
            yield node, text
