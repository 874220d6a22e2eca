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

_MARKS = re.compile(r"[。！？｡؟」』”’）》〉】〕]+")  # what may follow a full stop and begins no sentence


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
        return [s for part in at_other_stops(paragraph) for s in _join_marks(_cut_by_blingfire(part))]


def _cut_by_blingfire(text: str) -> list[str]:
    from blingfire import text_to_sentences, text_to_sentences_and_offsets

    sentences: str = text_to_sentences(text)
    if sentences.split() == text.split():
        return [line for line in sentences.split("\n") if line]
    # BlingFire leaves out characters such as U+200B: the sentences are cut from the text itself
    readable = "".join(c if c.isprintable() and c not in "\u200b\ufeff" else " " for c in text)
    located = text_to_sentences_and_offsets(readable) if readable.strip() else None
    starts = [start for start, _ in located[1][1:]] if located else []
    return [part for start, end in pairwise([0, *starts, len(text)]) if (part := text[start:end].strip())]


def _join_marks(sentences: list[str]) -> Iterator[str]:
    """Full stops and closing marks alone belong to the sentence before."""
    held = ""
    for sentence in sentences:
        if held and _MARKS.fullmatch(sentence):
            held += sentence
            continue
        if held:
            yield held
        held = sentence
    if held:
        yield held


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
        sentences = self._segmenter.segment(paragraph) if paragraph.strip() else []
        if "".join("".join(sentences).split()) != "".join(paragraph.split()):  # characters were lost
            sentences = [paragraph]
        return [part for sentence in sentences for part in at_other_stops(sentence.strip()) if part]


@dataclass(frozen=True)
class Lines:
    """Every line is one sentence already."""

    name: ClassVar[str] = "lines"
    semantics: ClassVar[int] = 2

    def __call__(self, paragraph: str) -> list[str]:
        return [part for line in paragraph.split("\n") if (part := line.strip())]
