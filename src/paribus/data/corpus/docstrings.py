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

_SKIPPED = frozenset({"tests", "test", "testing", "_vendor", "vendor", "vendored"})
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
        """The listed distributions, found."""
        return find_distributions(self.distributions, "corpus.distributions", "pip install {}, or take it off the list")

    def source(self) -> Any:
        versions = [[name, find_version(name)] for name in self.installed]
        return [sys.version_info[:2], versions]  # a newer syntax cannot be parsed by an older Python

    def documents(self, cache: Path) -> Iterator[Document]:
        folders = {name: self._folder(name, cache) for name in self.installed}
        missing = [name for name, folder in folders.items() if not is_stored(folder)]
        if missing:
            self._extract({name: folders[name] for name in missing})
        held = {_key(line) for each in self._stored(folders) if each.split == "validation" for line in _lines(each)}
        seen = {"train": held, "validation": set[bytes]()}
        for document in self._stored(folders):
            if text := "\n".join(_drop_seen(_lines(document), seen[str(document.split)])):
                yield document._replace(text=text)

    def _stored(self, folders: Mapping[str, Path]) -> Iterator[Document]:
        for document in chain.from_iterable(map(read_documents, folders.values())):
            yield document._replace(split=split_module(document.id, self.validation))

    def _folder(self, name: str, cache: Path) -> Path:
        """The folder of one distribution's prose, whichever corpus or task uses it."""
        key = digest([EXTRACTION, sys.version_info[:2], find_version(name)])
        return cache / "docstrings" / f"{name.lower()}-{key}"

    def _extract(self, folders: dict[str, Path]) -> None:
        files = {name: modules(self.installed[name]) for name in folders}
        total = sum(map(len, files.values()))
        say(f"reading the docstrings of {len(folders)} distributions, {total} modules (once)")
        with readers(total) as pool, bar("docstrings", total, "module") as moved:
            for name, folder in folders.items():
                write_documents(folder, _documents(files[name], pool))
                moved.update(len(files[name]))


def split_module(name: str, validation: float) -> str:
    """`train` or `validation`, by the hash of the module's name, for corpora and tasks alike."""
    return "validation" if hash_share(name) < validation else "train"


def find_distributions(names: Iterable[str], key: str, mend: str) -> dict[str, metadata.Distribution]:
    """The distributions by name. Raises UserError for one that is not installed; `mend` may name it at its {}."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            raise UserError(f"{key}: {name} is not installed", mend.format(name)) from error
    return found


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


def _documents(files: list[tuple[str, str]], pool: ProcessPoolExecutor) -> Iterator[Document]:
    found = pool.map(_docstrings, files, chunksize=CHUNK)
    for (name, _), docstrings in zip(files, found, strict=True):
        if docstrings:
            yield Document(name, "\n".join(paragraph for each in docstrings for paragraph in each))


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
    texts = (ast.get_docstring(node, clean=False) for node in find_documented(module[1]))
    return [found for text in texts if text and (found := prose(text))]


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


def _drop_seen(paragraphs: list[str], seen: set[bytes]) -> Iterator[str]:
    """Paragraphs that are not among those seen before."""
    for paragraph in paragraphs:
        if (key := _key(paragraph)) not in seen:
            seen.add(key)
            yield paragraph


def _lines(document: Document) -> list[str]:
    return document.text.split("\n")


def _key(paragraph: str) -> bytes:
    return blake2b(" ".join(paragraph.lower().split()).encode("utf-8", "replace"), digest_size=10).digest()
