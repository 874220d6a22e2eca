"""Tasks that get their labels from the text itself, in addition to the masked LM (ERNIE 2, arXiv 1907.12412, section
4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from paribus.corruption.collators.labels import RowLabels, TokenLabels
from paribus.data.annotators.capitals import Capitals
from paribus.data.formats.pairs import SegmentPair
from paribus.data.formats.reordered import Reordered, count_classes
from paribus.data.tokens.recurring import Recurring

if TYPE_CHECKING:
    from paribus.corruption.collators.collator import Collator
    from paribus.data.annotators.annotator import Annotator
    from paribus.data.formats.segments import InputFormat, Store
    from paribus.models.heads.head import Head
    from paribus.models.network import Network


@dataclass(frozen=True)
class TextTask:
    """What a task reads, its labels and its head; by default, token labels from the annotated text."""

    annotator: Annotator | None = None
    kinds: int = 2

    @property
    def collator(self) -> Collator:
        return TokenLabels()

    def format(self, given: InputFormat) -> InputFormat:
        """The rows of the task, if those of the masked LM are `given`."""
        return given

    def store(self, store: Store) -> Store:
        """The text with what the labels are read from."""
        return store

    def head(self, network: Network) -> Head:
        """A new head: a linear layer on every token."""
        from paribus.models.heads.tokens import TaggingHead

        return TaggingHead(network.width, self.kinds, dropout=0.0)


@dataclass(frozen=True)
class TokenDocument(TextTask):
    """Does the token occur in another sentence of its document too?"""

    def store(self, store: Store) -> Store:
        return Recurring(store)


@dataclass(frozen=True)
class RowTask(TextTask):
    """A label of the whole row; here how the segments of a pair follow each other, as `input.pairs` calls it."""

    pairs: str = "next"

    @property
    def collator(self) -> Collator:
        return RowLabels()

    def format(self, given: InputFormat) -> InputFormat:
        return SegmentPair(given.length, self.pairs)

    def head(self, network: Network) -> Head:
        """A new head: the tanh pooler and a linear layer on what summarizes the row."""
        from paribus.models.heads.rows import ClassificationHead

        return ClassificationHead(network.width, self.kinds, dropout=0.0)


@dataclass(frozen=True)
class Reordering(RowTask):
    """In which order are the parts of the row?"""

    parts: int = 3

    def format(self, given: InputFormat) -> InputFormat:
        return Reordered(given.length, self.parts)


MLM: Final = "mlm"
TASKS: Final[dict[str, TextTask]] = {
    "capitalization": TextTask(Capitals()),
    "token_document": TokenDocument(),
    "next": RowTask(pairs="next"),
    "order": RowTask(pairs="order"),
    "three": RowTask(kinds=3, pairs="three"),
    "distance": RowTask(kinds=3, pairs="distance"),
    "reordering": Reordering(kinds=count_classes(3)),
}
