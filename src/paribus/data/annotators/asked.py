"""Marks what a line of the corpus `triples` asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.data.annotators.annotator import Span
from paribus.data.corpus.triples import ASKED


@dataclass(frozen=True)
class Asked:
    """The text after the first ` : ` of a sentence."""

    semantics: ClassVar[int] = 1

    def require(self) -> None:
        """Nothing is needed."""

    def identity(self) -> Any:
        return ["asked", self.semantics]

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        for sentence in sentences:
            before, found, _ = sentence.partition(ASKED)
            yield [(len(before) + len(found), len(sentence))] if found else []
