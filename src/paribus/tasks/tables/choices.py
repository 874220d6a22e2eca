"""Tasks with options to choose from, and texts to score, as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from paribus.core.errors import UserError
from paribus.tasks.examples import ChoiceExample
from paribus.tasks.prompts import Fields
from paribus.tasks.tables.labels import spell_classes
from paribus.tasks.tables.table import TableSource, TableTask
from paribus.tasks.types.multiple_choice import MultipleChoice
from paribus.tasks.types.scored import LIKELY, Scored

if TYPE_CHECKING:
    import pyarrow as pa


class ChoiceTable(TableTask):
    """Multiple choice (see `TableTask`).

    Args:
        columns: `{text: ..., options: ..., label: ...}`, and optionally `question`; `options` is a column of lists, or
            a list of columns with an option each.
        classes: names of the places of the options; a label is one of them, or its place (see `Classes`).
        metrics: accuracy, or with `scored` those of `Scored`, by default all of its accuracies.
        scored: nothing is trained; a language model finds one option the likeliest.

    Rows without a label (see `LabelTable`) are left out. Raises UserError for a row with another number of options.
    """

    semantics = 2
    required: ClassVar[tuple[str, ...]] = ("text", "options", "label")
    optional: ClassVar[tuple[str, ...]] = ("question",)
    strings = ("text", "question", "options", "label")
    lists = True
    classed: ClassVar[str | None] = "label"

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        classes: Sequence[str],
        metrics: Sequence[str] | None = None,
        scored: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        kind, names = Scored if scored else MultipleChoice, spell_classes(classes, f"tasks.{name}")
        task_type = kind(names) if metrics is None else kind(names, tuple(metrics))
        super().__init__(name, task_type, columns, **source)
        self.fields = Fields(name, str(self._announce("text")), self._announce("question"))

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        values = {ours: table.column(self._source_columns(ours)[0]).to_pylist() for ours in self.columns}
        if not isinstance(self.columns["options"], str):  # a column for each option
            columns = [table.column(name).to_pylist() for name in self.columns["options"]]
            values["options"] = [list(options) for options in zip(*columns, strict=True)]
        return values

    def _read_rows(self, table: pa.Table, split: str) -> list[ChoiceExample]:
        values = {"question": [None] * table.num_rows, **self._values(table)}
        labels = self._read_classes(table, values["label"], split)
        rows = zip(values["text"], values["question"], values["options"], labels, strict=True)
        examples = []
        for number, (text, question, options, label) in enumerate(rows):
            if label is not None:
                self._check_texts(text, question, options, f"row {number} of {split}")
                examples.append(ChoiceExample(text, question, options, label))
        return examples

    def _check_texts(self, text: object, question: object, options: object, where: str) -> None:
        asked = [text, question] if "question" in self.columns else [text]
        if not isinstance(options, list) or not all(
            isinstance(each, str) and each.strip() for each in [*asked, *options]
        ):
            raise UserError(f"{self.key}: {where} lacks a text or an option", "fix the row or choose other columns")
        if len(options) != len(self.task_type.classes):
            cause = f"{self.key}: {where} has {len(options)} options, but classes name {len(self.task_type.classes)}"
            raise UserError(cause, "leave the row out, or name another number of classes")


class ClozeTable(ChoiceTable):
    """A gap in a sentence after a text, and options to fill it; nothing is trained (see `TableTask` and `Scored`).

    The options are compared by how likely a language model finds each option and the rest of the
    sentence, as GPT-2 does with the Children's Book Test (Radford et al. 2019, section 3.2).

    Args:
        columns: `{text: ..., question: ..., options: ..., label: ...}`; `text` may be a list of sentences, `question`
            is the sentence with the gap, `options` a column of lists or a list of columns, `label` the right option.
        classes: names of the places of the options.
        blank: the mark of the gap.

    Raises UserError for a row with another number of options, without a gap, or whose label is not an option.
    """

    semantics = 1
    required = ("text", "question", "options", "label")
    optional = ()
    classed = None  # the label is the text of an option

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        classes: Sequence[str],
        metrics: Sequence[str] | None = None,
        blank: str = "XXXXX",
        **source: Unpack[TableSource],
    ) -> None:
        super().__init__(name, columns, classes, metrics, scored=True, **source)
        self.blank = blank

    def _settings(self) -> list[Any]:
        return [*super()._settings(), self.blank]

    def _read_rows(self, table: pa.Table, split: str) -> list[ChoiceExample]:
        values = self._values(table)
        rows = zip(values["text"], values["question"], values["options"], values["label"], strict=True)
        examples = []
        for number, (text, question, options, answer) in enumerate(rows):
            where = f"row {number} of {split}"
            if isinstance(text, list) and all(isinstance(each, str) for each in text):
                text = " ".join(filter(None, text))
            self._check_texts(text, question, options, where)
            before, gap, behind = question.partition(self.blank)
            if not gap:
                raise UserError(f"{self.key}: {where} has no {self.blank} in its question", f"set {self.key}.blank")
            if answer not in options:
                cause = f"{self.key}: the label {answer!r} of {where} is not one of its options"
                raise UserError(cause, "fix the row or leave it out")
            filled = [option + behind for option in options]
            examples.append(ChoiceExample(text, before.strip(), filled, options.index(answer)))
        return examples


class LikelyTable(TableTask):
    """How likely a left-to-right language model finds texts, without training on them (see `TableTask` and `Scored`).

    Args:
        columns: `{text: ...}`.
        joined: all rows are one text, one line per row; blank rows are left out either way.
        stride: tokens between the windows of a text that is longer than `finetune.length`; null: half a window.
        last_word: only the last word of each text counts, as in LAMBADA (arXiv 1606.06031); a text has to fit.

    Raises UserError for `last_word` with `joined`, and for a text of a single word.
    """

    required = ("text",)
    strings = ("text",)

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        metrics: Sequence[str] = LIKELY,
        joined: bool = False,
        stride: int | None = None,
        last_word: bool = False,
        **source: Unpack[TableSource],
    ) -> None:
        super().__init__(name, Scored((), tuple(metrics), stride), columns, **source)
        if last_word and (joined or stride is not None):
            cause = f"{self.key}.last_word=true scores one word of each row"
            raise UserError(cause, f"set {self.key}.joined=false {self.key}.stride=null")
        self.joined, self.last_word = joined, last_word

    def _settings(self) -> list[Any]:
        return [self.joined, *(["last_word"] if self.last_word else [])]

    def _read_rows(self, table: pa.Table, split: str) -> list[ChoiceExample]:
        values = self._values(table)["text"]
        for row, text in enumerate(values):
            if not isinstance(text, str | None):
                self._check_text(text, "text", row, split)
        texts = [text.strip() for text in values if text and text.strip()]
        if not self.last_word:
            return [ChoiceExample("", None, [text], 0) for text in (["\n".join(texts)] if self.joined else texts)]
        parts = [text.rsplit(maxsplit=1) for text in texts]
        if short := next((text for text, words in zip(texts, parts, strict=True) if len(words) < 2), None):
            raise UserError(f"{self.key}: {split} has a text of one word: {short[:40]!r}", "leave the row out")
        return [ChoiceExample(text, None, [word], 0) for text, word in parts]
