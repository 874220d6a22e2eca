"""Tasks whose examples are rows of a table: a data set of the Hugging Face hub or local files of the same layout."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
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
from paribus.tasks.tables.answers import START, TEXT, gather_answers, is_answer, read_answers
from paribus.tasks.tables.files import class_names, find_files, identify_file, load_hub, read_files
from paribus.tasks.tables.labels import Cell, Classes, spell_classes
from paribus.tasks.task import Task
from paribus.tasks.types.classification import Classification
from paribus.tasks.types.generation import FreeText
from paribus.tasks.types.question_answering import ExtractiveQA
from paribus.tasks.types.regression import Regression
from paribus.tasks.types.tagging import Tagging

if TYPE_CHECKING:
    import pyarrow as pa

    from paribus.tasks.types.base import TaskType

BLANKS = " \t\r\n"


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
        columns: the source's column for each of ours: all of `required`, and any of `optional`. Numbers, from 1, are
            columns of `.conll` files, and of `.csv` and `.tsv` files that have no header.
        hub: name of the data set on the hub; used if `path` is null.
        config: name of the configuration on the hub; also a sub-folder of `path`.
        revision: commit or tag on the hub; null for the newest.
        path: a folder with `<split>.parquet`, `.jsonl`, `.csv`, `.tsv`, `.conll`, `.json`, or `.label` or `.txt` with a
            label and a text in each line (or parts, `<split>-*.parquet`), or, with `held_out`, one such file.
        splits: the split of the source behind `train`, `validation` and any further evaluation set.
        held_out: for a source without a validation split: the share of `train` that becomes `validation`, by a hash of
            the texts, so that equal texts share a set and a new row moves no other. 0: the source has the split.
        max_train, max_validation: at most this many examples, chosen by hash; null for all.

    Raises UserError for bad settings, for files that cannot be read, and for rows that are not examples.
    """

    required: ClassVar[tuple[str, ...]] = ("text", "label")
    optional: ClassVar[tuple[str, ...]] = ()
    strings: ClassVar[tuple[str, ...]] = ("text", "pair")  # always text in a CSV file
    classed: ClassVar[str | None] = None  # ours that holds classes
    lists: ClassVar[bool] = False  # whether one of ours may be a list of the source's columns

    def __init__(
        self,
        name: str,
        task_type: TaskType,
        columns: Mapping[str, Any],
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
        self.numbered = self._are_numbers(columns)
        self.columns: dict[str, Any] = {
            ours: list(map(str, theirs)) if isinstance(theirs, list | tuple) else str(theirs)
            for ours, theirs in columns.items()
        }
        self.hub, self.config, self.revision, self.path = hub, config, revision, path
        self.held_out = held_out
        usual = {"train": "train"} if self.held_out else {"train": "train", "validation": "validation"}
        self.splits = dict(splits or usual)
        self._check_settings()
        if self.held_out:
            self.splits["validation"] = self.splits["train"]
        self.fields = Fields(name, self._announce("text") or "text", self._announce("pair"))

    def _are_numbers(self, columns: Mapping[str, Any]) -> bool:
        """Whether columns are given by number. Raises UserError if only some are."""
        names = [
            name for theirs in columns.values() for name in (theirs if isinstance(theirs, list | tuple) else [theirs])
        ]
        numbers = [name for name in names if type(name) is int]
        if numbers and len(numbers) < len(names):
            cause = f"{self.key}.columns={dict(columns)} has both names and numbers"
            raise UserError(cause, "give the numbers of all columns if the file has no header, otherwise their names")
        return bool(numbers)

    def _announce(self, ours: str) -> str | None:
        """What precedes the texts of a column for a text-to-text model: its name, or ours if it has none."""
        return ours if self.numbered and ours in self.columns else self.columns.get(ours)

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
        settings += ["numbered"] if self.numbered else []
        if self.path is None:
            return [settings, self.hub, self.config, self.revision]
        return [settings, [identify_file(file) for split in self.splits.values() for file in self._files(split)]]

    def build(self, cache: Path) -> Examples:
        return self.read(*self.splits)

    def read(self, *splits: str) -> Examples:
        """The examples of these sets, limits applied."""
        tables = {theirs: self._table(theirs) for theirs in dict.fromkeys(self.splits[ours] for ours in splits)}
        if self.classed is not None:
            self._check_readings(tables, self.classed)
        examples = {}
        for ours in splits:
            rows = self._read_rows(tables[self.splits[ours]], self.splits[ours])
            if self.held_out and ours in ("train", "validation"):
                labeled = len(rows)
                rows = [row for row in rows if is_held_out(row.texts, self.held_out) == (ours == "validation")]
                if labeled and not rows:
                    raise UserError(
                        f"{self.key}.held_out={self.held_out:g} leaves no example in {ours}: "
                        f"{self.path or self.hub} has {labeled} labeled examples, and the hash of their texts decides",
                        f"give more examples, another {self.key}.held_out, or a folder with a file per split",
                    )
            examples[ours] = limit_rows(rows, self.limits["train" if ours == "train" else "validation"])
        return examples

    def _check_readings(self, tables: Mapping[str, pa.Table], column: str) -> None:
        """Raise UserError if the classes of one split are names and those of another places; see `Classes`."""
        values = {}
        for split, table in tables.items():
            if class_names(table, self.columns[column]) is None:
                cells = table.column(self.columns[column])
                lists = cells.to_pylist() if cells.type.num_fields else [cells.unique().to_pylist()]
                values[split] = [value for each in lists if isinstance(each, list) for value in each]
        what = "label" if column == "label" else "tag"
        Classes(self.task_type.classes).check_splits(values, what, self.key)

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
        names = [name for ours in self.columns for name in self._source_columns(ours)]
        if self.path is None:
            if self.numbered:
                raise UserError(f"{self.key}.columns: the columns of {self.hub} have names", "name them")
            table = load_hub(str(self.hub), self.config, self.revision, split, self.key)
        else:
            strings = [name for ours in self.columns.keys() & set(self.strings) for name in self._source_columns(ours)]
            classes = self.task_type.classes
            table = read_files(self._files(split), strings, self.key, names, self.numbered, classes)
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
        classes = Classes(self.task_type.classes)
        cells = classes.find_labeled(self._name_numbers(table, "label", labels, split))
        numbers: list[int | None] = [None] * len(labels)
        for cell, number in zip(cells, classes.read(cells, "label", split, self.key), strict=True):
            numbers[cell.row] = number
        return numbers

    def _name_numbers(self, table: pa.Table, column: str, values: Sequence[Any], split: str) -> list[Any]:
        """The values of a column; numbers of the `datasets` library, which follow the table's own names, as names."""
        classes = self.task_type.classes
        in_table = class_names(table, self.columns[column])
        if in_table is None:
            return list(values)
        if set(in_table) != set(classes):
            raise UserError(f"{self.key}.classes: {list(classes)}", f"the data has {', '.join(in_table)}")
        names: dict[Any, str | None] = {-1: None, None: None, **dict(zip(in_table, in_table, strict=True))}
        names |= dict(enumerate(in_table))
        for value in values:
            if value not in names:
                raise UserError(f"{self.key}: {split} has the class number {value!r}",
                                f"give a table that names all of its classes, now {', '.join(in_table)}")  # fmt: skip
        return [names[value] for value in values]


class LabelTable(TableTask):
    """Classification of texts, or of pairs of texts (see `TableTask`).

    Args:
        columns: `{text: ..., label: ...}`, and for pairs also `pair`.
        classes: class names; a label is one of them, or its place among them (see `Classes`).
        symmetric: the order of the two texts does not matter, so `finetune.format=gpt` reads them in both orders.

    Rows without a label are left out: an empty cell, or -1 if no class has that name.
    """

    semantics = 3
    unset_values: ClassVar[Mapping[str, Any]] = {"symmetric": False}
    optional: ClassVar[tuple[str, ...]] = ("pair",)
    strings = ("text", "pair", "label")
    classed = "label"

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str | int],
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        symmetric: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        task_type = Classification(spell_classes(classes, f"tasks.{name}"), tuple(metrics), symmetric)
        super().__init__(name, task_type, columns, **source)
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
        columns: Mapping[str, str | int],
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
    """Tagging (see `TableTask`); a `.conll` file has the columns `words` and `tags` (see `read_conll`).

    Args:
        columns: `{words: ..., tags: ...}`, both lists.
        classes: the tags in the order of their numbers; the data may also hold these names. Span metrics need BIO tags.
        crf: a CRF layer on top (see `CRFHead`).
    """

    semantics = 2
    required = ("words", "tags")
    strings = ()
    classed = "tags"

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str | int],
        classes: Sequence[str],
        metrics: Sequence[str] = ("f1",),
        crf: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        task_type = Tagging(spell_classes(classes, f"tasks.{name}"), tuple(metrics), crf)
        super().__init__(name, task_type, columns, **source)

    def _read_rows(self, table: pa.Table, split: str) -> list[TaggedExample]:
        values, classes = self._values(table), Classes(self.task_type.classes)
        cells = []
        for row, (words, tags) in enumerate(zip(values["words"], values["tags"], strict=True)):
            where = f"row {row} of {split}"
            if not (isinstance(words, list) and isinstance(tags, list) and words):
                raise UserError(f"{self.key}: {where} has no list of words and of tags", "choose other columns")
            if len(words) != len(tags):
                raise UserError(f"{self.key}: {where} has {len(words)} words and {len(tags)} tags", "fix the row")
            for word in words:
                if not isinstance(word, str) or not word.strip(BLANKS):  # other white space is a word of its own
                    self._check_text("" if isinstance(word, str) else word, "words", row, split)
            cells += [Cell(row, tag) for tag in self._name_numbers(table, "tags", tags, split)]
        numbers = iter(classes.read(cells, "tag", split, self.key))
        return [TaggedExample(words, list(islice(numbers, len(words)))) for words in values["words"]]


class QuestionTable(TableTask):
    """Questions whose answers are spans of a context, in the layout of SQuAD (see `TableTask`).

    Args:
        columns: `{question: ..., context: ..., answers: ...}`; `answers` holds `{text: [...], answer_start: [...]}`,
            or a list of `{text: ..., answer_start: ...}`.
        answerless: whether some questions have no answer (SQuAD 2.0).
        threshold, stride, question, longest: see `ExtractiveQA`.
    """

    semantics = 2
    required: ClassVar[tuple[str, ...]] = ("question", "context", "answers")
    strings = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str | int],
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
            where, found = f"{self.key}: row {row} of {split}", gather_answers(answers)
            if not is_answer(found):
                raise UserError(
                    f"{where} has no text and answer_start in {self.columns['answers']!r}",
                    f"choose another column with {self.key}.columns.answers",
                )
            texts, starts = read_answers(found[TEXT], found[START], where)
            examples.append(QuestionExample(question, context, texts, starts))
            self._check_answers(examples[-1], where)
        return examples

    def _check_answers(self, row: QuestionExample | EntityExample, where: str) -> None:
        if not row.answers and not self.answerless:
            raise UserError(f"{where} has no answer", f"set {self.key}.answerless=true, or leave the row out")
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
        columns: Mapping[str, str | int],
        metrics: Sequence[str] = ("rougeL", "exact_match"),
        prefix: str | None = None,
        **source: Unpack[TableSource],
    ) -> None:
        names = {ours: theirs if isinstance(theirs, str) else ours for ours, theirs in columns.items()}
        fields = Fields(name, str(names.get("text")), names.get("pair"))
        if prefix is not None:
            fields = Fields("", prefix, names.get("pair"))
        super().__init__(name, FreeText(fields, metrics=tuple(metrics)), columns, **source)
        self.fields = fields

    def _read_rows(self, table: pa.Table, split: str) -> list[GenerationExample]:
        values = self._values(table)
        for column, texts in values.items():
            for row, text in enumerate(texts):
                self._check_text(text, column, row, split)
        pairs = values.get("pair", [None] * table.num_rows)
        return [GenerationExample(*row) for row in zip(values["text"], pairs, values["target"], strict=True)]
