"""What an annotator is, and which one a masking asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

Span = tuple[int, int]  # characters of a sentence: first, and the one behind the last


class Annotator(Protocol):
    """Finds spans in the sentences of a text."""

    semantics: ClassVar[int]

    def require(self) -> None:
        """Raise Unavailable where this machine cannot annotate."""

    def identity(self) -> Any:
        """Plain data that changes when the spans may: versions of code and models. Raises Unavailable."""

    def spans(self, sentences: Iterable[str]) -> Iterator[Sequence[Span]]:
        """The spans of each sentence, in order. Raises Unavailable."""
