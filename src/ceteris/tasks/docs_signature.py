"""Does this description belong to this signature? Labelled by the installed packages themselves, without a network."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ceteris.console import bar
from ceteris.corpus.docstrings import CHUNK, Docstrings, documented, modules, readers
from ceteris.corpus.prose import prose
from ceteris.errors import UserError
from ceteris.forms.classification import Classification
from ceteris.tasks.example import Example, Examples, hashed_share, limited, normalised
from ceteris.tasks.task import CachedTask

CLASSES = ("other", "own")


class Described(NamedTuple):
    """A function: the first paragraph of its docstring and its signature without types and defaults."""

    module: str
    description: str
    signature: str


class DocsSignature(CachedTask):
    """Pair classification: the first paragraph of a docstring beside the signature of its own or of another function.

    A description is in one example alone; the other signature comes from the same distribution and the same set, and
    has another name. A module is wholly in train or wholly in validation.

    Args:
        packages: distributions whose functions are read.
        words: fewest and most words of a description.
        validation: share of the modules that is held out.
        max_train, max_validation: sizes; null for all.
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
        super().__init__(name, Classification(CLASSES, tuple(metrics)), max_train, max_validation)
        self.packages, self.words, self.validation = tuple(packages), tuple(words), validation
        if len(self.words) != 2 or not 1 <= self.words[0] <= self.words[1]:
            raise UserError(f"tasks.{name}.words={list(self.words)}", "give the fewest and the most words, as [4, 40]")
        if not 0 < validation < 1:
            raise UserError(f"tasks.{name}.validation={validation}", "give a share between 0 and 1")

    def source(self) -> Any:
        """See `CachedTask.source`: the settings and the versions of the packages."""
        settings = [self.words, self.validation, self.max_train, self.max_validation]
        return [settings, Docstrings.semantics, [[name, self._installed(name).version] for name in self.packages]]

    def build(self, cache: Path) -> Examples:
        """See `CachedTask.build`."""
        found: dict[str, list[Example]] = {"train": [], "validation": []}
        files = {package: modules(self._installed(package)) for package in self.packages}
        total, seen = sum(map(len, files.values())), set[str]()
        with readers(total) as pool, bar(self.name, total, "module") as moved:
            for chosen in files.values():
                rows = [row for part in pool.map(_described, chosen, chunksize=CHUNK) for row in part]
                for split, kept in self._split(self._new(rows, seen)).items():
                    found[split] += paired(kept)
                moved.update(len(chosen))
        limits = {"train": self.max_train, "validation": self.max_validation}
        return {split: limited(rows, limits[split]) for split, rows in found.items()}

    def _new(self, rows: Sequence[Described], seen: set[str]) -> Iterator[Described]:
        """Rows of the asked length whose description has not been there before."""
        for row in rows:
            key = normalised(row.description)
            if key not in seen and self.words[0] <= len(row.description.split()) <= self.words[1]:
                seen.add(key)
                yield row

    def _split(self, rows: Iterator[Described]) -> dict[str, list[Described]]:
        split: dict[str, list[Described]] = {"train": [], "validation": []}
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


def _described(module: tuple[str, str]) -> list[Described]:
    """The public functions and methods of a module whose docstring starts with prose."""
    found = []
    for node in documented(module[1]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            text = (ast.get_docstring(node) or "").partition("\n\n")[0]
            if paragraphs := prose(text):
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
