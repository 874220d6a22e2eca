"""Words with a capital letter, which the tokens of a lowercasing tokenizer no longer show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.data.annotators.annotator import Span

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Capitals:
    """The words of a sentence that have a capital letter (ERNIE 2, arXiv 1907.12412, section 4.2)."""

    semantics: ClassVar[int] = 1

    def require(self) -> None:
        """Nothing is needed."""

    def identity(self) -> Any:
        return ["capitals", self.semantics]

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        for sentence in sentences:
            yield [word.span() for word in WORD.finditer(sentence) if any(map(str.isupper, word[0]))]
