"""Real English on any machine: the prose of the docstrings of installed distributions."""

from __future__ import annotations

import ast
import gc
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.checksums import digest, is_stored
from paribus.core.console import bar, say
from paribus.core.errors import UserError
from paribus.core.processes import die_with_parent
from paribus.data.corpus.document import Corpus, Document, read_documents, write_documents
from paribus.data.corpus.prose import prose
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import check_share, hash_share

SKIPPED_FOLDERS = frozenset({"tests", "test", "testing", "_vendor", "vendor", "vendored"})
CHUNK = 32  # modules that a process reads at once
EXTRACTION = 2  # raised when the same docstring gives other prose


@dataclass(frozen=True)
class Docstrings(Corpus):
    """Documents are modules, in the order of the distributions and of their files; a paragraph counts once.

    The modules depend only on the listed distributions and their versions. The share `validation` of them is held out,
    by the hash of the module's name: the tasks `docs_*` evaluate on these modules, and no paragraph of them is in the
    training text, also not from another module. Raises UserError for a distribution that is not installed.
    """

    distributions: Sequence[str]
    sentences: Splitter | None = None
    validation: float = 0.2
    semantics: ClassVar[int] = 3

    def __post_init__(self) -> None:
        check_share(self.validation)

    @cached_property
    def installed(self) -> dict[str, metadata.Distribution]:
        """The listed distributions."""
        return find_distributions(self.distributions, "corpus.distributions", "pip install {}, or take it off the list")

    def source(self) -> Any:
        versions = [[name, find_version(name)] for name in self.installed]
        return [sys.version_info[:2], versions]  # a newer syntax cannot be parsed by an older Python

    def documents(self, cache: Path) -> Iterator[Document]:
        python = sys.version_info[:2]
        folders = {  # of each distribution's prose, whichever corpus or task uses it
            name: cache / "docstrings" / f"{name.lower()}-{digest([EXTRACTION, python, find_version(name)])}"
            for name in self.installed
        }
        if missing := {name: folder for name, folder in folders.items() if not is_stored(folder)}:
            self._extract(missing)
        held_out = {
            _hash_paragraph(paragraph)
            for document in self._read(folders)
            if document.split == "validation"
            for paragraph in document.text.split("\n")
        }
        seen = {"train": held_out, "validation": set[bytes]()}
        for document in self._read(folders):
            seen_before, kept = seen[str(document.split)], []
            for paragraph in document.text.split("\n"):
                if (key := _hash_paragraph(paragraph)) not in seen_before:
                    seen_before.add(key)
                    kept.append(paragraph)
            if text := "\n".join(kept):
                yield document._replace(text=text)

    def _extract(self, folders: Mapping[str, Path]) -> None:
        files = {name: modules(self.installed[name]) for name in folders}
        total = sum(map(len, files.values()))
        say(f"reading the docstrings of {len(folders)} distributions, {total} modules (once)")
        with readers(total) as pool, bar("docstrings", total, "module") as progress:
            for name, folder in folders.items():
                read = zip(files[name], pool.map(_read_prose, files[name], chunksize=CHUNK), strict=True)
                write_documents(folder, (Document(module, "\n".join(text)) for (module, _), text in read if text))
                progress.update(len(files[name]))

    def _read(self, folders: Mapping[str, Path]) -> Iterator[Document]:
        for document in chain.from_iterable(map(read_documents, folders.values())):
            yield document._replace(split=split_module(document.id, self.validation))


def split_module(name: str, validation: float) -> str:
    """`train` or `validation`, by the hash of the module's name, for corpora and tasks alike."""
    return "validation" if hash_share(name) < validation else "train"


def find_distributions(names: Iterable[str], key: str, mend: str) -> dict[str, metadata.Distribution]:
    """The distributions by name. Raises UserError for one that is not installed; `mend` may name it at its {}."""
    distributions = {}
    for name in names:
        try:
            distributions[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            raise UserError(f"{key}: {name} is not installed", mend.format(name)) from error
    return distributions


@cache  # a file is parsed for it
def find_version(name: str) -> str:
    """The version of an installed distribution."""
    return metadata.version(name)


def readers(modules: int) -> ProcessPoolExecutor:
    """A pool of processes that parse this many modules."""
    workers = len(os.sched_getaffinity(0)) if modules > CHUNK else 1
    return ProcessPoolExecutor(workers, initializer=_begin_reader, initargs=(os.getpid(),))


def _begin_reader(parent: int) -> None:
    die_with_parent(parent)  # a killed parent leaves no one to tell them that there is no more to read
    gc.disable()


def modules(distribution: metadata.Distribution) -> list[tuple[str, str]]:
    """(module, path) of the Python files of a distribution, without tests and vendored copies, sorted."""
    found = []
    for file in distribution.files or ():
        if file.suffix == ".py" and not SKIPPED_FOLDERS & set(file.parts[:-1]) and ".." not in file.parts:
            name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
            found.append((name, str(distribution.locate_file(file))))
    return sorted(found)


def _read_prose(module: tuple[str, str]) -> list[str]:
    """The paragraphs of prose in the docstrings of a module, (its name, its file), in the order of the source."""
    docstrings = (ast.get_docstring(node, clean=False) for node in find_documented(module[1]))
    return [paragraph for docstring in docstrings if docstring for paragraph in prose(docstring)]


def find_documented(path: str) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """What of a Python file may have a docstring, in its order; statements are walked, expressions are not.

    Nothing if the file cannot be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            waiting: list[ast.AST] = [ast.parse(Path(path).read_bytes())]
    except (SyntaxError, ValueError, OSError, RecursionError):
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for name in ("cases", "finalbody", "orelse", "handlers", "body"):  # the last one first, and so its statements
            block = getattr(node, name, None)
            if isinstance(block, list):
                waiting.extend(reversed(block))


def _hash_paragraph(paragraph: str) -> bytes:
    """Equal for paragraphs that differ only in case or white space."""
    return blake2b(" ".join(paragraph.lower().split()).encode("utf-8", "replace"), digest_size=10).digest()
