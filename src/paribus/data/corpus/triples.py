"""Knowledge as text: triples of a head, a relation and a tail. Each line asks for the part after its colon.

From (head, relation) the tail, from (head, tail) the relation; `masking=asked` hides only the answer.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from paribus.core.checksums import digest
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import (
    CHUNK,
    Docstrings,
    find_documented,
    find_version,
    modules,
    readers,
    split_module,
)
from paribus.data.corpus.document import Corpus, Document, keep_documents
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import check_share, hash_share

ANSWER_MARK: Final = " : "  # before the answer of a line
LONGEST: Final = 60  # characters of a head or a tail
PARTS: Final = ("noun", "verb", "adj", "adv")
POINTERS: Final = {  # of WordNet's data files (wninput(5WN)): how a line says them
    "@": "is a kind of", "@i": "is an instance of", "#m": "is a member of", "#s": "is made into", "#p": "is a part of",
    "!": "is the opposite of", "*": "entails", ">": "causes", "=": "is a value of", "&": "is like",
}  # fmt: skip
SYNSETS: Final = 50  # of WordNet in a document


class Triple(NamedTuple):
    """A fact in words."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Triples(Corpus):
    """What classes inherit from, which module they and functions are in, parameters, and what functions return, read
    from the source of installed distributions without running it; and the relations of WordNet's plain files.

    Documents are modules, held out as the corpus `docstrings` does it, and groups of synsets.

    Args:
        distributions: names of installed distributions.
        wordnet: the folder of data.noun, data.verb, data.adj and data.adv (Debian: /usr/share/wordnet); None for none.
        relations: share of the triples that are asked for their relation, by their hash; of the others, for their tail.

    Raises UserError for a distribution that is not installed, for files that are not WordNet's, and for no source.
    """

    distributions: Sequence[str]
    wordnet: str | None = None
    relations: float = 0.5
    sentences: Splitter | None = None
    validation: float = 0.2
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_share(self.validation)
        if not 0 <= self.relations <= 1:
            raise UserError(f"corpus.relations={self.relations} is not a share", "give a number from 0 to 1")
        if not self.distributions and self.wordnet is None:
            raise UserError("corpus=triples has no source", "set corpus.distributions=[rich] or corpus.wordnet=FOLDER")

    @cached_property
    def installed(self) -> dict[str, metadata.Distribution]:
        """The listed distributions."""
        return Docstrings(self.distributions).installed

    def source(self) -> Any:
        versions = [[name, find_version(name)] for name in self.installed]
        stats = [(path.name, at.st_size, at.st_mtime_ns) for path in self._files for at in [path.stat()]]
        return [sys.version_info[:2], versions, stats, self.relations]

    def documents(self, cache: Path) -> Iterator[Document]:
        yield from keep_documents(
            cache / "triples" / digest([self.semantics, self.source(), self.validation]), self._make
        )

    @property
    def _files(self) -> list[Path]:
        if self.wordnet is None:
            return []
        folder = Path(self.wordnet).expanduser()
        files = [folder / f"data.{part}" for part in PARTS]
        if missing := [path for path in files if not path.is_file()]:
            mend = "give the folder with data.noun, data.verb, data.adj and data.adv"
            raise UserError(f"corpus.wordnet: {missing[0]} does not exist", mend)
        return files

    def _make(self) -> Iterator[Document]:
        for distribution in self.installed.values():
            files = modules(distribution)
            with readers(len(files)) as pool:
                for (name, _), triples in zip(files, pool.map(read_code, files, chunksize=CHUNK), strict=True):
                    if lines := self._write_lines(triples):
                        yield Document(name, lines, split_module(name, self.validation))
        synsets = [synset for path in self._files for synset in read_synsets(path)]
        words = {synset.key: synset.word for synset in synsets}
        for first in range(0, len(synsets), SYNSETS):
            group = synsets[first : first + SYNSETS]
            if lines := self._write_lines(triple for synset in group for triple in synset.triples(words)):
                yield Document(f"wordnet#{first}", lines)

    def _write_lines(self, triples: Iterable[Triple]) -> str:
        return "\n".join(
            ask(triple, hash_share("\t".join(triple)) < self.relations)
            for triple in dict.fromkeys(triples)
            if all(0 < len(part) <= LONGEST and ANSWER_MARK not in part and part.isprintable() for part in triple)
        )


def ask(triple: Triple, relation: bool) -> str:
    """The line that asks for the relation, or for the tail."""
    head, kind, tail = triple
    return f"{head} , {tail}{ANSWER_MARK}{kind}" if relation else f"{head} {kind}{ANSWER_MARK}{tail}"


def read_code(module: tuple[str, str]) -> list[Triple]:
    """The triples of the public classes and functions of a module, (its name, its file), in the order of its source."""
    name, path = module
    triples = []
    for node in find_documented(path):
        if isinstance(node, ast.Module) or node.name.startswith("_"):
            continue
        triples.append(Triple(node.name, "is in module", name))
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if isinstance(base, ast.Name | ast.Attribute):
                    parent = base.attr if isinstance(base, ast.Attribute) else base.id
                    triples.append(Triple(node.name, "inherits from", parent))
            continue
        parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        triples += [Triple(each, "is a parameter of", node.name) for each in parameters if each not in ("self", "cls")]
        if node.returns is not None:
            triples.append(Triple(node.name, "returns", ast.unparse(node.returns)))
    return triples


class Synset(NamedTuple):
    """Words of one meaning. key: part of speech and offset; pointers: (kind of relation, key)."""

    key: tuple[str, str]
    word: str
    pointers: list[tuple[str, tuple[str, str]]]

    def triples(self, words: Mapping[tuple[str, str], str]) -> Iterator[Triple]:
        """The relations that have words, to the first word of each other synset."""
        for kind, key in self.pointers:
            if kind in POINTERS and key in words:
                yield Triple(self.word, POINTERS[kind], words[key])


def read_synsets(path: Path) -> Iterator[Synset]:
    """The synsets of a data file of WordNet, in its order. Raises UserError for a line of another form.

    A line is `offset file type count (word id)* count (kind offset type source)* ... | gloss`; the count of words is in
    base 16.
    """
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), start=1):
        if line.startswith("  ") or not line.strip():  # the license
            continue
        fields = line.partition(" | ")[0].split(" ")
        try:
            at = 4 + 2 * int(fields[3], 16)
            places = [at + 1 + 4 * pointer for pointer in range(int(fields[at]))]
            pointers = [(fields[place], (_part(fields[place + 2]), fields[place + 1])) for place in places]
            word = fields[4].partition("(")[0].replace("_", " ")
            yield Synset((_part(fields[2]), fields[0]), word, pointers)
        except (ValueError, IndexError) as error:
            cause = f"{path}, line {number} is not a WordNet synset"
            raise UserError(cause, "give WordNet's own data files") from error


def _part(kind: str) -> str:
    """A part of speech; satellites are adjectives."""
    return "a" if kind == "s" else kind
