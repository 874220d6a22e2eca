"""Annotators find spans in sentences: capitals, answers, entities and noun phrases, or what your own function finds."""

from __future__ import annotations

import importlib
import importlib.util
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from paribus.core.errors import Unavailable, UserError
from paribus.core.trust import check_name
from paribus.data.corpus.triples import ANSWER_MARK

WORD = re.compile(r"\w+")
NUMERICAL = ("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME")  # spaCy's entities of numbers
BATCH = 256  # sentences that a spaCy model reads at once

Span = tuple[int, int]  # characters of a sentence: first, and the one after the last


class Annotator(Protocol):
    """Finds spans in the sentences of a text."""

    semantics: ClassVar[int]

    def require(self) -> None:
        """Raise Unavailable if this machine cannot annotate."""

    def identity(self) -> Any:
        """Plain data that changes when the spans may: versions of code and models. Raises Unavailable."""

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        """The spans of each sentence, in order. Raises Unavailable."""


@dataclass(frozen=True)
class Function:
    """`call`, written `module:function`, takes a sentence and returns the (start, end) of its spans in characters.

    version: change it with the function's meaning, since it is part of a run's id.
    Raises UserError for a call of another form.
    """

    call: str
    version: str = "1"
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        module, colon, name = str(self.call).partition(":")
        if not (module and colon and name):
            raise UserError(f"masking.annotator.call={self.call}", "write module:function")

    def require(self) -> None:
        self._function()

    def identity(self) -> Any:
        self.require()
        return ["function", self.call, str(self.version), self.semantics]

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        find = self._function()
        for sentence in sentences:
            yield find(sentence)

    def _function(self) -> Callable[[str], Sequence[Span]]:
        module, _, name = self.call.partition(":")
        check_name(module, "masking.annotator.call")
        try:
            function: Callable[[str], Sequence[Span]] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise Unavailable(
                f"masking.annotator.call={self.call} cannot be imported ({error})",
                "install its module, or name another",
            ) from error
        return function


@dataclass(frozen=True)
class Capitals:
    """Words with a capital letter, which a lowercasing tokenizer hides (ERNIE 2, arXiv 1907.12412, section 4.2)."""

    semantics: ClassVar[int] = 1

    def require(self) -> None:
        """Nothing is needed."""

    def identity(self) -> Any:
        return ["capitals", self.semantics]

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        for sentence in sentences:
            yield [word.span() for word in WORD.finditer(sentence) if any(map(str.isupper, word[0]))]


@dataclass(frozen=True)
class Asked:
    """What a line of the corpus `triples` asks for: the text after its first ` : `."""

    semantics: ClassVar[int] = 1

    def require(self) -> None:
        """Nothing is needed."""

    def identity(self) -> Any:
        return ["asked", self.semantics]

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        for sentence in sentences:
            question, mark, _ = sentence.partition(ANSWER_MARK)
            yield [(len(question) + len(mark), len(sentence))] if mark else []


@dataclass(frozen=True)
class Spacy(ABC):
    """A spaCy pipeline, installed as a package or kept in a folder; nothing is downloaded.

    Its metadata identify the spans, so raise the version of your own pipeline when it changes.
    """

    name: str = "en_core_web_sm"
    semantics: ClassVar[int] = 1
    ignored_settings: ClassVar[frozenset[str]] = frozenset({"name"})

    def require(self) -> None:
        if importlib.util.find_spec("spacy") is None:
            raise Unavailable("spaCy is not installed", "pip install 'paribus[spans]'")
        import spacy

        if not (spacy.util.is_package(self.name) or Path(self.name).expanduser().is_dir()):
            raise Unavailable(f"the spaCy model {self.name} is not installed", f"python -m spacy download {self.name}")

    def identity(self) -> Any:
        meta = self._pipeline().meta
        import spacy

        versions = [spacy.__version__, meta.get("lang"), meta.get("name"), meta.get("version")]
        return [type(self).__name__, *versions, *self._settings(), self.semantics]

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        for document in self._pipeline().pipe(sentences, batch_size=BATCH):
            yield [(span.start_char, span.end_char) for span in self._find_spans(document)]

    def _pipeline(self) -> Any:
        self.require()
        return _load(self.name)

    def _settings(self) -> list[Any]:
        return []

    @abstractmethod
    def _find_spans(self, document: object) -> Iterable[Any]:
        """spaCy's own spans of a parsed sentence."""


@cache
def _load(name: str) -> Any:
    import spacy

    folder = Path(name).expanduser()
    return spacy.load(folder if folder.is_dir() else name)


@dataclass(frozen=True)
class SpacyEntities(Spacy):
    """Named entities, except those with a label in `without`: SpanBERT (arXiv 1907.10529), section 6.1, leaves out
    numbers.
    """

    without: Sequence[str] = field(default=NUMERICAL)

    def _settings(self) -> list[Any]:
        return [sorted(self.without)]

    def _find_spans(self, document: Any) -> Iterable[Any]:
        return (entity for entity in document.ents if entity.label_ not in self.without)


@dataclass(frozen=True)
class SpacyNounChunks(Spacy):
    """Base noun phrases, none inside another. Raises UserError for a model that parses no sentences."""

    def _find_spans(self, document: Any) -> Iterable[Any]:
        if len(document) and not document.has_annotation("DEP"):
            raise UserError(f"the spaCy model {self.name} has no parser", "choose another masking.annotator.name")
        chunks: Iterable[Any] = document.noun_chunks
        return chunks
