"""The protocol of annotators, and any function as one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from paribus.core.errors import Unavailable, UserError
from paribus.core.trust import check_name

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
            found: Callable[[str], Sequence[Span]] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise Unavailable(
                f"masking.annotator.call={self.call} cannot be imported ({error})",
                "install its module, or name another",
            ) from error
        return found
