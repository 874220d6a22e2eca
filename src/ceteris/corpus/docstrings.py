"""Real English on any machine: the prose of the docstrings of installed distributions."""

from __future__ import annotations

import ast
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from ceteris.console import bar, say
from ceteris.corpus.document import Document
from ceteris.corpus.prose import prose
from ceteris.corpus.sentences import Splitter
from ceteris.errors import UserError
from ceteris.files import whole_folder
from ceteris.hashing import digest

_SKIPPED = frozenset({"tests", "test", "testing", "_vendor", "vendor", "vendored"})


@dataclass(frozen=True)
class Docstrings:
    """Documents are modules, in the order of the distributions and of their files; a docstring counts once.

    Which modules there are depends on the listed distributions and their versions alone. Raises UserError for a
    distribution that is not installed.
    """

    distributions: Sequence[str]
    sentences: Splitter | None = None
    validation: float = 0.05
    semantics: ClassVar[int] = 1

    @cached_property
    def installed(self) -> dict[str, metadata.Distribution]:
        """The listed distributions, found."""
        found = {}
        for name in self.distributions:
            try:
                found[name] = metadata.distribution(name)
            except metadata.PackageNotFoundError as error:
                raise UserError(
                    f"corpus.distributions: {name} is not installed", f"pip install {name}, or take it off the list"
                ) from error
        return found

    def source(self) -> Any:
        return [[name, found.version] for name, found in self.installed.items()]

    def documents(self, cache: Path) -> Iterator[Document]:
        folder = cache / "docstrings" / digest([self.semantics, self.source()])
        if not folder.is_dir():
            self._extract(folder)
        with (folder / "documents.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                yield Document(*json.loads(line))

    def _extract(self, folder: Path) -> None:
        files = [file for found in self.installed.values() for file in modules(found)]
        say(f"reading the docstrings of {len(self.installed)} distributions, {len(files)} modules (once)")
        seen: set[bytes] = set()
        workers = len(os.sched_getaffinity(0))
        with whole_folder(folder) as work, (work / "documents.jsonl").open("w", encoding="utf-8") as out:
            with ProcessPoolExecutor(workers) as pool, bar("docstrings", len(files), "module") as moved:
                for (name, _), docstrings in zip(files, pool.map(_docstrings, files, chunksize=32), strict=True):
                    if text := "\n".join(_unseen(docstrings, seen)):
                        out.write(json.dumps([name, text]) + "\n")
                    moved.update()


def modules(found: metadata.Distribution) -> list[tuple[str, str]]:
    """(module, path) of the Python files of a distribution, without tests and vendored copies, sorted."""
    chosen = []
    for file in found.files or ():
        if file.suffix == ".py" and not _SKIPPED & set(file.parts[:-1]) and ".." not in file.parts:
            name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
            chosen.append((name, str(found.locate_file(file))))
    return sorted(chosen)


def _docstrings(module: tuple[str, str]) -> list[list[str]]:
    """The prose of each docstring of a module, in the order of the source."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(Path(module[1]).read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = sorted((n for n in ast.walk(tree) if isinstance(n, kinds)), key=lambda n: getattr(n, "lineno", 0))
    return [found for node in nodes if (text := ast.get_docstring(node, clean=False)) and (found := prose(text))]


def _unseen(docstrings: list[list[str]], seen: set[bytes]) -> Iterator[str]:
    """Paragraphs that no earlier docstring had."""
    for paragraphs in docstrings:
        for paragraph in paragraphs:
            key = blake2b(" ".join(paragraph.lower().split()).encode("utf-8", "replace"), digest_size=10).digest()
            if key not in seen:
                seen.add(key)
                yield paragraph
