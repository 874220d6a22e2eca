"""Where sentences end. No character but white space is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol

from paribus.core.errors import UserError

# full stops that need no space after them (Chinese, Japanese, Arabic, Devanagari, Ethiopic), with closing marks
_STOP = re.compile(r"[。！？｡؟।॥።]+[」』”’）》〉】〕\"')\]]*")

_END = re.compile(r"[。！？｡؟」』”’）》〉】〕]+")  # what may follow a full stop and begins no sentence


class Splitter(Protocol):
    """A paragraph as its sentences, in order: every character that is not white space; none is empty."""

    @property
    def name(self) -> str: ...

    @property
    def semantics(self) -> int:
        """Raised when the same paragraph gives other sentences."""

    def __call__(self, paragraph: str) -> list[str]: ...


def at_other_stops(text: str) -> list[str]:
    """Cut after full stops of scripts that put no space after them."""
    if text.isascii():
        return [text] if text else []
    ends = [0, *(match.end() for match in _STOP.finditer(text)), len(text)]
    return [part for start, end in pairwise(ends) if (part := text[start:end].strip())]


@dataclass(frozen=True)
class Blingfire:
    """BlingFire's rules for all languages, at several MB per second."""

    name: ClassVar[str] = "blingfire"
    semantics: ClassVar[int] = 2

    def __call__(self, paragraph: str) -> list[str]:
        return [sentence for part in at_other_stops(paragraph) for sentence in _closed(_blingfire(part))]


def _blingfire(text: str) -> list[str]:
    from blingfire import text_to_sentences

    found: str = text_to_sentences(text)
    if found.split() != text.split():
        return list(_by_offsets(text))
    return [line for line in found.split("\n") if line]


def _closed(sentences: list[str]) -> Iterator[str]:
    """Full stops and closing marks alone belong to the sentence before."""
    held = ""
    for sentence in sentences:
        if held and _END.fullmatch(sentence):
            held += sentence
            continue
        if held:
            yield held
        held = sentence
    if held:
        yield held


def _by_offsets(paragraph: str) -> Iterator[str]:
    """BlingFire's sentences cut from the text itself, for text with characters that it leaves out, such as U+200B."""
    from blingfire import text_to_sentences_and_offsets

    readable = "".join(c if c.isprintable() and c not in "\u200b\ufeff" else " " for c in paragraph)
    found = text_to_sentences_and_offsets(readable) if readable.strip() else ("", [])
    starts = [start for start, _ in found[1][1:]] if found else []
    for start, end in pairwise([0, *starts, len(paragraph)]):
        if part := paragraph[start:end].strip():
            yield part


@dataclass(frozen=True)
class Pysbd:
    """pySBD's rules for one language, careful and slow. Raises UserError if the package is missing."""

    language: str = "en"
    name: ClassVar[str] = "pysbd"
    semantics: ClassVar[int] = 2

    def __post_init__(self) -> None:
        try:
            import pysbd
        except ImportError as error:
            mend = "pip install 'paribus[sentences]', or use corpus/sentences=blingfire"
            raise UserError("corpus/sentences=pysbd needs the package pysbd", mend) from error
        if self.language not in pysbd.languages.LANGUAGE_CODES:
            known = ", ".join(sorted(pysbd.languages.LANGUAGE_CODES))
            raise UserError(f"corpus.sentences.language={self.language} is unknown", f"use one of {known}")

    @cached_property
    def _segmenter(self) -> Any:
        import pysbd

        return pysbd.Segmenter(language=self.language, clean=False)

    def __call__(self, paragraph: str) -> list[str]:
        found = self._segmenter.segment(paragraph) if paragraph.strip() else []
        if "".join("".join(found).split()) != "".join(paragraph.split()):
            found = [paragraph]
        return [part for line in found for part in at_other_stops(line.strip()) if part]


@dataclass(frozen=True)
class Lines:
    """Every line is one sentence already."""

    name: ClassVar[str] = "lines"
    semantics: ClassVar[int] = 2

    def __call__(self, paragraph: str) -> list[str]:
        return [part for line in paragraph.split("\n") if (part := line.strip())]
