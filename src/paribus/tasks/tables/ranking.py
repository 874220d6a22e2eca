"""A ranking from a table with a row for each text and candidate, and similarity that is learned from one table and
scored on another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from paribus.core.checksums import digest
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.tasks.examples import ChoiceExample, Example, Examples
from paribus.tasks.tables.labels import spell
from paribus.tasks.tables.table import LabelTable, TableSource, ValueTable
from paribus.tasks.task import Task
from paribus.tasks.types.multiple_choice import Ranking
from paribus.tasks.types.regression import Similarity

if TYPE_CHECKING:
    import pyarrow as pa


class RankingTable(LabelTable):
    """The rows of a text are its candidates; an example is one right candidate beside all wrong ones (see `TableTask`;
    limits count examples).

    Texts without a right or without a wrong candidate are left out with a message. The order of candidates follows
    from their hashes.

    Args:
        columns: `{text: ..., pair: ..., label: ...}`; `pair` holds the candidates.
        classes: see `LabelTable`; `right` is the class of right candidates.
    """

    semantics = 2
    required = ("text", "pair", "label")
    optional = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        classes: Sequence[str],
        right: str,
        metrics: Sequence[str] = ("accuracy",),
        **source: Unpack[TableSource],
    ) -> None:
        super().__init__(name, columns, classes, **source)
        names = self.task_type.classes
        self.task_type = Ranking(names, tuple(metrics))
        self.task_type.check(self.key)
        if spell(right) not in names:
            raise UserError(f"{self.key}.right={right} is not a class", f"name one of {', '.join(names)}")
        self.right = spell(right)

    def _settings(self) -> list[Any]:
        return [*super()._settings(), self.right]

    def _read_rows(self, table: pa.Table, split: str) -> list[Any]:
        rows, right = super()._read_rows(table, split), self.task_type.classes.index(self.right)
        examples = group_candidates(rows, right)
        texts = {row.text for row in rows}
        if dropped := len(texts - {example.text for example in examples}):
            say(f"task {self.name}: {dropped} of {len(texts)} texts of {split} have no right or no wrong candidate")
        return examples


def group_candidates(rows: Sequence[Example], right: int) -> list[ChoiceExample]:
    """An example for each right candidate, in the order of the rows."""
    groups: dict[str, dict[str, bool]] = {}
    for row in rows:
        groups.setdefault(row.text, {})[str(row.pair)] = row.label == right
    examples = []
    for text, candidates in groups.items():
        wrong = [candidate for candidate, is_right in candidates.items() if not is_right]
        for candidate, is_right in candidates.items():
            if is_right and wrong:
                options = sorted([candidate, *wrong], key=digest)
                examples.append(ChoiceExample(text, None, options, options.index(candidate)))
    return examples


class SimilarityTables(Task):
    """Training pairs with classes from one table, evaluation pairs with values from another (Sentence-BERT, arXiv
    1908.10084, section 6).

    Args:
        learned: its training set is that of the task.
        scored: its evaluation sets are those of the task.

    Raises UserError for tables of single texts.
    """

    def __init__(
        self, name: str, learned: LabelTable, scored: ValueTable, metrics: Sequence[str] = ("spearman", "pearson")
    ) -> None:
        task_type = Similarity(learned.task_type.classes, tuple(metrics), scored.least, scored.most)
        super().__init__(name, task_type, learned.limits["train"], scored.limits["validation"])
        self.learned, self.scored = learned, scored
        for key, table in (("learned", learned), ("scored", scored)):
            if "pair" not in table.columns:
                raise UserError(f"{self.key}.{key}.columns names no pair", "name the column of the second text")

    def source(self) -> Any:
        return [self.learned.source(), self.scored.source()]

    def build(self, cache: Path) -> Examples:
        evaluations = [split for split in self.scored.splits if split != "train"]
        return {**self.learned.read("train"), **self.scored.read(*evaluations)}
