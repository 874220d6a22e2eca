"""Where sentences end. No character but white space is lost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ceteris.errors import UserError

# full stops that end a sentence without a space after them, with closing quotes and brackets
_STOP = re.compile(r"(?<=[。！？｡؟।።])(?![」』”’）》〉】\"')\]。！？｡…])|(?<=[。！？｡][」』”’）》〉】])")


class Splitter(Protocol):
    """A paragraph as its sentences, in order."""

    name: str
    semantics: int

    def __call__(self, paragraph: str) -> list[str]: ...


def at_other_stops(sentence: str) -> list[str]:
    """Cut after full stops of scripts that put no space behind them (Chinese, Japanese, Arabic, Devanagari, Ethiopic)."""
    if sentence.isascii():
        return [sentence]
    return [part for piece in _STOP.split(sentence) if (part := piece.strip())]


@dataclass(frozen=True)
class Blingfire:
    """BlingFire's rules, about 4 MB a second."""

    name: ClassVar[str] = "blingfire"
    semantics: ClassVar[int] = 1

    def __call__(self, paragraph: str) -> list[str]:
        from blingfire import text_to_sentences

        found = text_to_sentences(paragraph.replace("\x00", " ")) if paragraph.strip() else ""
        return [part for line in found.split("\n") if line for part in at_other_stops(line)]


@dataclass(frozen=True)
class Pysbd:
    """pySBD's rules for a language, exact and slow. Raises UserError where the package is missing."""

    language: str = "en"
    name: ClassVar[str] = "pysbd"
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        try:
            import pysbd
        except ImportError as error:
            raise UserError(
                "corpus/sentences=pysbd needs the package pysbd", "pip install 'ceteris[sentences]'"
            ) from error
        object.__setattr__(self, "_segment", pysbd.Segmenter(language=self.language, clean=False).segment)

    def __call__(self, paragraph: str) -> list[str]:
        return [part for line in self._segment(paragraph) if (part := line.strip())]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Lines:
    """Every line is one sentence already."""

    name: ClassVar[str] = "lines"
    semantics: ClassVar[int] = 1

    def __call__(self, paragraph: str) -> list[str]:
        return [paragraph] if paragraph.strip() else []
