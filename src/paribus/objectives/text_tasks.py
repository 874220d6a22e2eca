"""The masked LM and further tasks on the same text, one of them in each step (ERNIE 2, arXiv 1907.12412, section 4.2).

The tasks get their labels from the text itself: capital letters, tokens that recur, how the segments of a pair or the
parts of a row follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from paribus.core.errors import UserError
from paribus.corruption.collators.collator import RowLabels, TokenLabels
from paribus.data.annotators import Capitals
from paribus.data.formats.pairs import SegmentPair
from paribus.data.formats.reordered import Reordered, count_classes
from paribus.data.sequences import Array
from paribus.data.tokens.store import MemoryStore
from paribus.objectives.mlm import MaskedLM

if TYPE_CHECKING:
    from paribus.corruption.collators.collator import Collator
    from paribus.data.annotators import Annotator
    from paribus.data.formats.input_format import InputFormat, Store
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.objectives.objective import Objective


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
        recurring: Any = RecurringTokens(store)
        return MemoryStore(store.ids, store.word_start, store.sentence_start, store.document_start, recurring)


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


@dataclass(frozen=True)
class SeveralTasks(MaskedLM):
    """A head for each task; a step reads the rows of one task and has its loss alone.

    `tasks`: {task: its steps in a cycle}, 0 for none; the order of steps within a cycle is random. The tasks beside
    `mlm` read the text without noise. A stage takes over the heads of the tasks
    that the one before has too.

    Raises UserError for an unknown task, an invalid number of steps, and if no task has a step.
    """

    tasks: Mapping[str, int] = field(default_factory=lambda: {MLM: 1})
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        known = [MLM, *TASKS]
        if unknown := [name for name in self.tasks if name not in known]:
            raise UserError(f"objective.tasks.{unknown[0]} is not a task on text", f"name one of {', '.join(known)}")
        for name, steps in self.tasks.items():
            if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
                raise UserError(
                    f"objective.tasks.{name}={steps} is out of range", "give its steps in a cycle, or 0 for none"
                )
        if not self.text_tasks:
            raise UserError("objective.tasks has no task with a step", f"set objective.tasks.{MLM}=1")

    @property
    def text_tasks(self) -> dict[str, int]:
        """The tasks that are trained, with their steps in a cycle, `mlm` first."""
        return {name: count for name in (MLM, *TASKS) if (count := self.tasks.get(name, 0))}

    @property
    def annotator(self) -> Annotator | None:
        return next((TASKS[name].annotator for name in self.text_tasks if name != MLM and TASKS[name].annotator), None)

    @property
    def alone(self) -> SeveralTasks:
        return replace(self, tasks={MLM: 1})

    def further_heads(self, network: Network) -> dict[str, Head]:
        return {name: TASKS[name].head(network) for name in self.text_tasks if name != MLM}

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        objective = super().compose(network, vocabulary)
        objective.tasks = {name: name for name in objective.heads}
        return objective


class RecurringTokens:
    """1 at tokens that another sentence of their document has too, and 0 elsewhere; found only in documents that are
    read.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.edge_D = np.asarray(store.sentence_start)[np.asarray(store.document_start)]

    def __getitem__(self, at_P: Array) -> Array:
        """uint8 [P] of these tokens of the store."""
        flag_P = np.zeros(len(at_P), np.uint8)
        document_P = np.searchsorted(self.edge_D, at_P, side="right") - 1
        for document in np.unique(document_P):
            first, last = self.edge_D[document : document + 2].tolist()
            sentence_T = np.searchsorted(self.store.sentence_start, np.arange(first, last), side="right")
            sentence_T -= sentence_T[0]
            sentences = sentence_T[-1] + 1
            _, word_T = np.unique(np.asarray(self.store.ids[first:last]), return_inverse=True)
            pairs = np.unique(word_T * sentences + sentence_T)  # (word, sentence that it occurs in), as one number
            recurs_T = np.bincount(pairs // sentences)[word_T] > 1
            inside_P = document_P == document
            flag_P[inside_P] = recurs_T[at_P[inside_P] - first]
        return flag_P
