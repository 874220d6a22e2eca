"""Tasks whose examples are rows of a table: a data set of the Hugging Face hub or local files of the same layout."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack

from paribus.core.errors import UserError
from paribus.data.corpus.splits import hash_share
from paribus.tasks.examples import (
    EntityExample,
    Example,
    Examples,
    GenerationExample,
    QuestionExample,
    TaggedExample,
    limit_rows,
)
from paribus.tasks.prompts import Fields
from paribus.tasks.tables.files import class_names, find_files, identify_file, load_hub, read_files
from paribus.tasks.task import Task
from paribus.tasks.types.classification import Classification
from paribus.tasks.types.generation import FreeText
from paribus.tasks.types.question_answering import ExtractiveQA
from paribus.tasks.types.regression import Regression
from paribus.tasks.types.tagging import Tagging

if TYPE_CHECKING:
    import pyarrow as pa

    from paribus.tasks.types.base import TaskType

UNLABELED = (-1, None)


def is_held_out(texts: Sequence[str], share: float) -> bool:
    """Whether the texts of an example are in the share that is evaluated on."""
    return hash_share("\n".join(texts)) < share


class TableSource(TypedDict, total=False):
    """The location of a table and how much of it to read; `TableTask` explains the settings."""

    hub: str | None
    config: str | None
    revision: str | None
    path: str | None
    splits: Mapping[str, str] | None
    held_out: float
    max_train: int | None
    max_validation: int | None


class TableTask(Task):
    """A task from the columns of a table; subclasses read its rows.

    Args:
        columns: the source's column for each of ours: all of `required`, and any of `optional`.
        hub: name of the data set on the hub; used if `path` is null.
        config: name of the configuration on the hub; also a sub-folder of `path`.
        revision: commit or tag on the hub; null for the newest.
        path: a folder with `<split>.parquet`, `.jsonl`, `.csv`, `.tsv` or `.conll` (or parts, `<split>-*.parquet`),
            or, with `held_out`, one such file.
        splits: the split of the source behind `train`, `validation` and any further evaluation set.
        held_out: for a source without a validation split: the share of `train` that becomes `validation`, by a hash of
            the texts, so that equal texts share a set and a new row moves no other. 0: the source has the split.
        max_train, max_validation: at most this many examples, chosen by hash; null for all.

    Raises UserError for bad settings, for files that cannot be read, and for rows that are not examples.
    """

    required: ClassVar[tuple[str, ...]] = ("text", "label")
    optional: ClassVar[tuple[str, ...]] = ()
    strings: ClassVar[tuple[str, ...]] = ("text", "pair")  # always text in a CSV file
    lists: ClassVar[bool] = False  # whether one of ours may be a list of the source's columns

    def __init__(
        self,
        name: str,
        task_type: TaskType,
        columns: Mapping[str, str],
        *,
        hub: str | None = None,
        config: str | None = None,
        revision: str | None = None,
        path: str | None = None,
        splits: Mapping[str, str] | None = None,
        held_out: float = 0.0,
        max_train: int | None = None,
        max_validation: int | None = None,
    ) -> None:
        super().__init__(name, task_type, max_train, max_validation)
        self.columns = dict(columns)
        self.hub, self.config, self.revision, self.path = hub, config, revision, path
        self.held_out = held_out
        usual = {"train": "train"} if self.held_out else {"train": "train", "validation": "validation"}
        self.splits = dict(splits or usual)
        self._check_settings()
        if self.held_out:
            self.splits["validation"] = self.splits["train"]
        self.fields = Fields(name, self.columns.get("text", "text"), self.columns.get("pair"))

    def _check_settings(self) -> None:
        if not set(self.required) <= set(self.columns) <= {*self.required, *self.optional}:
            optional = f", and optionally {', '.join(self.optional)}" if self.optional else ""
            raise UserError(
                f"{self.key}.columns={self.columns} is incomplete",
                f"name the columns of {', '.join(self.required)}{optional}",
            )
        share = self.held_out
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
            raise UserError(f"{self.key}.held_out={share} is not a share", "give a number between 0 and 1")
        if share and "validation" in self.splits:
            raise UserError(
                f"{self.key}.held_out={share}, but {self.key}.splits names a validation split", "remove one of them"
            )
        if not {"train", *([] if share else ["validation"])} <= set(self.splits):
            raise UserError(
                f"{self.key}.splits={self.splits} is incomplete", "name the splits behind train and validation"
            )
        if not (self.hub or self.path):
            raise UserError(f"{self.key}.path is not set", f"set {self.key}.path=FOLDER or {self.key}.hub=NAME")

    @property
    def further_sets(self) -> list[str]:
        return [split for split in self.splits if split not in ("train", "validation")]

    def source(self) -> Any:
        settings = [self.columns, self._settings(), self.splits, self.limits, *filter(None, [self.held_out])]
        if self.path is None:
            return [settings, self.hub, self.config, self.revision]
        return [settings, [identify_file(file) for split in self.splits.values() for file in self._files(split)]]

    def build(self, cache: Path) -> Examples:
        return self.read(*self.splits)

    def read(self, *splits: str) -> Examples:
        """The examples of these sets, limits applied."""
        examples = {}
        for ours in splits:
            rows = self._read_rows(self._table(self.splits[ours]), self.splits[ours])
            if self.held_out and ours in ("train", "validation"):
                rows = [row for row in rows if is_held_out(row.texts, self.held_out) == (ours == "validation")]
            examples[ours] = limit_rows(rows, self.limits["train" if ours == "train" else "validation"])
        return examples

    def _settings(self) -> list[Any]:
        """Settings besides columns, splits and limits that decide which examples are made from the source."""
        return list(self.task_type.classes)

    @abstractmethod
    def _read_rows(self, table: pa.Table, split: str) -> list[Any]:
        """The labeled examples of a table. Raises UserError for a row that is not an example."""

    def _files(self, split: str) -> list[Path]:
        place = Path(str(self.path)).expanduser()
        if place.is_file() and not self.held_out:
            raise UserError(f"{self.key}.path={place} is a file without a validation split",
                            f"add {self.key}.held_out=0.2, or give a folder with a file per split")  # fmt: skip
        return [place] if place.is_file() else find_files(place, self.config, split, self.key)

    def _table(self, split: str) -> pa.Table:
        if self.path is None:
            table = load_hub(str(self.hub), self.config, self.revision, split, self.key)
        else:
            strings = [name for ours in self.columns.keys() & set(self.strings) for name in self._source_columns(ours)]
            table = read_files(self._files(split), strings, self.key)
        names = [name for ours in self.columns for name in self._source_columns(ours)]
        if any("." in name for name in names):
            table = table.flatten()  # translation.en is a part of a column
        if missing := [name for name in names if name not in table.column_names]:
            raise UserError(
                f"{self.key}.columns: {self.path or self.hub} ({split}) has no column {', '.join(map(repr, missing))}",
                f"choose from {', '.join(table.column_names)}",
            )
        return table

    def _source_columns(self, ours: str) -> tuple[str, ...]:
        """The columns of the source behind one of ours."""
        theirs = self.columns[ours]
        return tuple(theirs) if self.lists and not isinstance(theirs, str) else (theirs,)

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        return {ours: table.column(theirs).to_pylist() for ours, theirs in self.columns.items()}

    def _check_symmetric(self, symmetric: bool) -> None:
        if symmetric and "pair" not in self.columns:
            raise UserError(f"{self.key}.symmetric=true, but the task has no pairs", f"set {self.key}.columns.pair")

    def _check_text(self, text: object, column: str, row: int, split: str) -> None:
        if not isinstance(text, str) or not text.strip():
            what = "no text" if isinstance(text, str) or text is None else f"{type(text).__name__}, not text,"
            raise UserError(
                f"{self.key}: row {row} of {split} has {what} in column {self.columns[column]!r}",
                f"fix the row or choose another column with {self.key}.columns.{column}",
            )

    def _make_examples(
        self, values: Mapping[str, Sequence[Any]], labels: Sequence[float | None], split: str
    ) -> list[Example]:
        """The texts of the rows that have a label, with it."""
        pairs = values.get("pair", [None] * len(labels))
        examples = []
        for row, (text, pair, label) in enumerate(zip(values["text"], pairs, labels, strict=True)):
            if label is not None:
                self._check_text(text, "text", row, split)
                if "pair" in self.columns:
                    self._check_text(pair, "pair", row, split)
                examples.append(Example(text, pair, label))
        return examples

    def _read_classes(self, table: pa.Table, labels: Sequence[Any], split: str) -> list[int | None]:
        """The class number of each row, None for a row without a label."""
        numbers = self._class_numbers(table, "label")
        for row, label in enumerate(labels):
            if label not in UNLABELED and label not in numbers:
                raise UserError(
                    f"{self.key}.classes: row {row} of {split} has the label {label!r}",
                    f"add it to the classes, now {', '.join(self.task_type.classes)}",
                )
        return [None if label in UNLABELED else numbers[label] for label in labels]

    def _class_numbers(self, table: pa.Table, column: str) -> dict[Any, int]:
        """Class number by the label in the table: a name, or a number in the order of the table's own names."""
        classes = self.task_type.classes
        in_table = class_names(table, self.columns[column]) or classes
        if set(in_table) != set(classes):
            raise UserError(f"{self.key}.classes: {list(classes)}", f"the data has {', '.join(in_table)}")
        names = {name: number for number, name in enumerate(classes)}
        return {**names, **{number: names[name] for number, name in enumerate(in_table)}}


class LabelTable(TableTask):
    """Classification of texts, or of pairs of texts (see `TableTask`).

    Args:
        columns: `{text: ..., label: ...}`, and for pairs also `pair`.
        classes: class names in the order of the label numbers; the labels may also be these names.
        symmetric: the order of the two texts does not matter, so `finetune.format=gpt` reads them in both orders.

    Rows without a label (-1 or null) are left out.
    """

    semantics = 2
    unset_values: ClassVar[Mapping[str, Any]] = {"symmetric": False}
    optional: ClassVar[tuple[str, ...]] = ("pair",)

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        symmetric: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        super().__init__(name, Classification(tuple(classes), tuple(metrics), symmetric), columns, **source)
        self._check_symmetric(symmetric)

    def _read_rows(self, table: pa.Table, split: str) -> list[Example]:
        kind = table.schema.field(self.columns["label"]).type
        if kind.num_fields:
            raise UserError(
                f"{self.key}.columns.label: {self.columns['label']!r} holds {kind}", "choose another column"
            )
        values = self._values(table)
        return self._make_examples(values, self._read_classes(table, values["label"], split), split)


class ValueTable(TableTask):
    """Regression (see `TableTask`).

    Args:
        columns: `{text: ..., label: ...}`, and for pairs also `pair`.
        least, most: the range of the labels. Rows without a label (null or NaN, or -1 if that is out of range) are
            left out.
        step: distance between the values that a text-to-text model writes.
        symmetric: see `LabelTable`.
    """

    semantics = 2
    unset_values: ClassVar[Mapping[str, Any]] = {"symmetric": False}
    optional = ("pair",)

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        least: float,
        most: float,
        metrics: Sequence[str] = ("pearson", "spearman"),
        step: float = 0.2,
        symmetric: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        self.least, self.most = float(least), float(most)
        task_type = Regression(tuple(metrics), self.least, self.most, float(step), symmetric)
        super().__init__(name, task_type, columns, **source)
        self._check_symmetric(symmetric)
        if not self.least < self.most:
            raise UserError(f"{self.key}.least={least} is not below most={most}", "give the range of the labels")
        if not 0 < step <= self.most - self.least:
            raise UserError(
                f"{self.key}.step={step} is out of range", "give the distance between the values to write, such as 0.2"
            )

    def _settings(self) -> list[Any]:
        return [self.least, self.most]

    def _read_rows(self, table: pa.Table, split: str) -> list[Example]:
        values = self._values(table)
        labels = [self._read_value(label, row, split) for row, label in enumerate(values["label"])]
        return self._make_examples(values, labels, split)

    def _read_value(self, label: object, row: int, split: str) -> float | None:
        if label is None or label == "":
            return None
        if isinstance(label, str):  # one cell that is no number makes texts of a whole column of a CSV file
            with suppress(ValueError):
                label = float(label)
        if isinstance(label, int | float) and not isinstance(label, bool):
            if self.least <= label <= self.most:
                return float(label)
            if label == -1 or math.isnan(label):
                return None
        raise UserError(
            f"{self.key}: row {row} of {split} has the label {label!r}, not a number from {self.least} to {self.most}",
            f"fix the row, or set {self.key}.least and {self.key}.most",
        )


class TagTable(TableTask):
    """Tagging (see `TableTask`); a `.conll` file has the columns `words` and `tags`.

    Args:
        columns: `{words: ..., tags: ...}`, both lists.
        classes: the tags in the order of their numbers; the data may also hold these names. Span metrics need BIO tags.
        crf: a CRF layer on top (see `CRFHead`).
    """

    required = ("words", "tags")
    strings = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        classes: Sequence[str],
        metrics: Sequence[str] = ("f1",),
        crf: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        super().__init__(name, Tagging(tuple(classes), tuple(metrics), crf), columns, **source)

    def _read_rows(self, table: pa.Table, split: str) -> list[TaggedExample]:
        values, numbers = self._values(table), self._class_numbers(table, "tags")
        examples = []
        for row, (words, tags) in enumerate(zip(values["words"], values["tags"], strict=True)):
            where = f"row {row} of {split}"
            if not (isinstance(words, list) and isinstance(tags, list) and words):
                raise UserError(f"{self.key}: {where} has no list of words and of tags", "choose other columns")
            if len(words) != len(tags):
                raise UserError(f"{self.key}: {where} has {len(words)} words and {len(tags)} tags", "fix the row")
            for word in words:
                self._check_text(word, "words", row, split)
            if unseen := [tag for tag in tags if tag not in numbers]:
                raise UserError(
                    f"{self.key}.classes: {where} has the tag {unseen[0]!r}",
                    f"add it to the tags, now {', '.join(self.task_type.classes)}",
                )
            examples.append(TaggedExample(words, [numbers[tag] for tag in tags]))
        return examples


class QuestionTable(TableTask):
    """Questions whose answers are spans of a context, in the layout of SQuAD (see `TableTask`).

    Args:
        columns: `{question: ..., context: ..., answers: ...}`; `answers` holds `{text: [...], answer_start: [...]}`.
        answerless: whether some questions have no answer (SQuAD 2.0).
        threshold, stride, question, longest: see `ExtractiveQA`.
    """

    semantics = 2
    required: ClassVar[tuple[str, ...]] = ("question", "context", "answers")
    strings = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        metrics: Sequence[str] = ("f1", "em"),
        answerless: bool = False,
        threshold: float = 0.0,
        stride: int = 128,
        question: int = 64,
        longest: int = 30,
        **source: Unpack[TableSource],
    ) -> None:
        self.answerless = answerless
        task_type = ExtractiveQA(tuple(metrics), answerless, threshold, stride, question, longest)
        super().__init__(name, task_type, columns, **source)

    def _settings(self) -> list[Any]:
        return [self.answerless]

    def _read_rows(self, table: pa.Table, split: str) -> list[QuestionExample]:
        values = self._values(table)
        examples = []
        for row, (question, context, answers) in enumerate(
            zip(values["question"], values["context"], values["answers"], strict=True)
        ):
            self._check_text(question, "question", row, split)
            self._check_text(context, "context", row, split)
            if not isinstance(answers, dict) or not {"text", "answer_start"} <= set(answers):
                raise UserError(
                    f"{self.key}: row {row} of {split} has no text and answer_start in {self.columns['answers']!r}",
                    f"choose another column with {self.key}.columns.answers",
                )
            starts = [int(at) for at in answers["answer_start"]]
            examples.append(QuestionExample(question, context, list(answers["text"]), starts))
            self._check_answers(examples[-1], f"{self.key}: row {row} of {split}")
        return examples

    def _check_answers(self, row: QuestionExample | EntityExample, where: str) -> None:
        if not row.answers and not self.answerless:
            raise UserError(f"{where} has no answer", f"set {self.key}.answerless=true, or leave the row out")
        if len(row.answers) != len(row.starts):
            raise UserError(f"{where} has {len(row.answers)} answers and {len(row.starts)} offsets", "fix the row")
        for answer, start in zip(row.answers, row.starts, strict=True):
            if start < 0 or row.context[start : start + len(answer)] != answer or not answer.strip():
                raise UserError(
                    f"{where}: the answer {answer[:40]!r} is not at character {start} of its context",
                    "fix answer_start or leave the row out",
                )


class TextTable(TableTask):
    """A text to write for each text (see `TableTask`).

    Args:
        columns: `{text: ..., target: ...}`, and for two texts also `pair`.
        prefix: precedes the text, without its colon, such as `translate English to German`; null: name and
            column, as in every task.
    """

    semantics = 3
    required = ("text", "target")
    optional = ("pair",)
    strings = ("text", "pair", "target")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        metrics: Sequence[str] = ("rougeL", "exact_match"),
        prefix: str | None = None,
        **source: Unpack[TableSource],
    ) -> None:
        fields = Fields(name, str(columns.get("text")), columns.get("pair"))
        if prefix is not None:
            fields = Fields("", prefix, columns.get("pair"))
        super().__init__(name, FreeText(fields, metrics=tuple(metrics)), columns, **source)
        self.fields = fields

    def _read_rows(self, table: pa.Table, split: str) -> list[GenerationExample]:
        values = self._values(table)
        for column, texts in values.items():
            for row, text in enumerate(texts):
                self._check_text(text, column, row, split)
        pairs = values.get("pair", [None] * table.num_rows)
        return [GenerationExample(*row) for row in zip(values["text"], pairs, values["target"], strict=True)]
