"""Tasks from the functions of installed packages and their docstrings, without a network."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from paribus.core.console import bar
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import CHUNK, Docstrings, find_documented, modules, readers
from paribus.tasks.example import Examples, hashed_share, limited, normalized
from paribus.tasks.task import CachedTask
from paribus.tasks.types.base import TaskType

Module = tuple[str, str]  # its name and its file


class FunctionTask(CachedTask):
    """Examples from what a reader finds in a module: rows with a `module` and a `description`.

    A description is read once. A module is wholly in train or wholly in validation.

    Args:
        packages: distributions whose functions are read.
        words: fewest and most words of a description.
        validation: share of the modules that is held out.
        max_train, max_validation: sizes; null for all.
    """

    def __init__(
        self,
        name: str,
        task_type: TaskType,
        packages: Sequence[str],
        words: Sequence[int],
        validation: float,
        max_train: int | None,
        max_validation: int | None,
    ) -> None:
        super().__init__(name, task_type, max_train, max_validation)
        self.packages, self.words, self.validation = tuple(packages), tuple(words), validation
        if len(self.words) != 2 or not 1 <= self.words[0] <= self.words[1]:
            raise UserError(f"tasks.{name}.words={list(self.words)}", "give the fewest and the most words, as [4, 40]")
        if not 0 < validation < 1:
            raise UserError(f"tasks.{name}.validation={validation}", "give a share between 0 and 1")

    @property
    @abstractmethod
    def reader(self) -> Callable[[Module], list[Any]]:
        """Rows of a module; a function that other processes can import."""

    @abstractmethod
    def made(self, rows: Sequence[Any]) -> list[Any]:
        """The examples of the rows of one package and one set."""

    def source(self) -> Any:
        """See `CachedTask.source`: the settings and the versions of the packages."""
        settings = [self.words, self.validation, self.max_train, self.max_validation]
        return [settings, Docstrings.semantics, [[name, self._installed(name).version] for name in self.packages]]

    def build(self, cache: Path) -> Examples:
        """See `CachedTask.build`."""
        found: Examples = {"train": [], "validation": []}
        files = {package: modules(self._installed(package)) for package in self.packages}
        total, seen = sum(map(len, files.values())), set[str]()
        with readers(total) as pool, bar(self.name, total, "module") as moved:
            for chosen in files.values():
                rows = [row for part in pool.map(self.reader, chosen, chunksize=CHUNK) for row in part]
                for split, kept in self._split(self._new(rows, seen)).items():
                    found[split] += self.made(kept)
                moved.update(len(chosen))
        limits = {"train": self.max_train, "validation": self.max_validation}
        return {split: limited(rows, limits[split]) for split, rows in found.items()}

    def _new(self, rows: Sequence[Any], seen: set[str]) -> Iterator[Any]:
        """Rows of the asked length whose description has not been there before."""
        for row in rows:
            key = normalized(row.description)
            if key not in seen and self.words[0] <= len(row.description.split()) <= self.words[1]:
                seen.add(key)
                yield row

    def _split(self, rows: Iterator[Any]) -> dict[str, list[Any]]:
        split: dict[str, list[Any]] = {"train": [], "validation": []}
        for row in rows:
            split["validation" if hashed_share(row.module) < self.validation else "train"].append(row)
        return split

    def _installed(self, package: str) -> metadata.Distribution:
        try:
            return metadata.distribution(package)
        except metadata.PackageNotFoundError as error:
            raise UserError(
                f"tasks.{self.name}.packages: {package} is not installed", "install or remove it"
            ) from error


def functions(path: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """The public functions and methods of a Python file that have a docstring, and this."""
    for node in find_documented(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            text = ast.get_docstring(node)
            if text:
                yield node, text
