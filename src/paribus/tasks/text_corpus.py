"""The text of tasks as a corpus, for further pre-training (within-task; Sun et al., arXiv 1905.05583, 5.4).

The released corpus of that paper's AG News holds the test texts too, which makes a result transductive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.errors import UserError
from paribus.data.corpus.document import Corpus, Document, paragraphs
from paribus.data.corpus.sentences import Splitter
from paribus.tasks.task import Task

TRAIN, VALIDATION = "train", "validation"


@dataclass(frozen=True)
class TaskText(Corpus):
    """Every text of the training examples once, without labels; those of the evaluation are the held-out split.

    Args:
        tasks: by name.
        include_test_text: whether the texts that the tasks are evaluated on are trained on too.

    Raises UserError if there is no task.
    """

    tasks: Mapping[str, Task]
    sentences: Splitter | None = None
    include_test_text: bool = False
    semantics: ClassVar[int] = 2
    validation: ClassVar[float] = 0.0  # the source names its splits

    def __post_init__(self) -> None:
        if not self.tasks:
            raise UserError("corpus=task_text reads the run's tasks, but task=none", "set task=docs_package or another")

    def source(self) -> Any:
        tasks = [[name, task.semantics, task.source()] for name, task in self.tasks.items()]
        return [tasks, self.include_test_text]

    def documents(self, cache: Path) -> Iterator[Document]:
        for name, task in self.tasks.items():
            texts = {
                split: [text for row in rows for part in row.texts if (text := paragraphs(part))]
                for split, rows in task.examples(cache).items()
            }
            held_out = [text for split, part in texts.items() if split != TRAIN for text in part]
            trained = [*texts[TRAIN], *(held_out if self.include_test_text else ())]
            for split, part in ((TRAIN, trained), (VALIDATION, held_out)):
                for number, text in enumerate(dict.fromkeys(part)):
                    yield Document(f"{name}#{split}{number}", text, split)
