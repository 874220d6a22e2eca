"""Named entities and noun phrases as spaCy finds them.   SpanBERT (arXiv 1907.10529), section 6.1"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.errors import Unavailable, UserError
from paribus.data.annotators.annotator import Span

# entities that are numbers, which the paper leaves out
NUMERICAL = ("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME")
BATCH = 256  # sentences that a model reads at once


@cache
def _load(name: str) -> Any:
    import spacy

    folder = Path(name).expanduser()
    return spacy.load(folder if folder.is_dir() else name)


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

        made = [spacy.__version__, meta.get("lang"), meta.get("name"), meta.get("version")]
        return [type(self).__name__, *made, *self._settings(), self.semantics]

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


@dataclass(frozen=True)
class SpacyEntities(Spacy):
    """Named entities, except those with a label in `without`."""

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
