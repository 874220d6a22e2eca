"""Choosing the entity of a passage that fills the gap of a query: found in the passage, or written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.tasks.examples import Gap
from paribus.tasks.prompts import Fields, Parts
from paribus.tasks.types.question_answering import ExtractiveQA, WrittenAnswers

_HIGHLIGHT = "\n@highlight\n"
_AFTER_MARK = re.compile(rf"([.?!\"']){_HIGHLIGHT}")
FIELDS = Fields("record", "query", "passage")


@dataclass(frozen=True)
class EntityQA(ExtractiveQA):
    """A span of the passage, scored against all entities that fill the gap (ReCoRD, arXiv 1810.12885)."""

    example_class: ClassVar[type] = Gap

    def verbalize(self, fields: Fields, single: bool) -> WrittenEntities:
        return WrittenEntities(single, self.metrics)


@dataclass(frozen=True)
class WrittenEntities(WrittenAnswers):
    """The model reads `record query: QUERY entities: A, B passage: PASSAGE` (T5, `data/preprocessors.py`, record), and
    writes the first entity that fills the gap. Highlights follow the passage as sentences.
    """

    fields: Fields = FIELDS
    example_class: ClassVar[type] = Gap

    def source(self, example: Any) -> Parts:
        asked, given = f"{self.fields.name} {self.fields.text}:", f"{self.fields.pair}:"
        passage = _AFTER_MARK.sub(r"\1 ", example.context).replace(_HIGHLIGHT, ". ")
        return [(asked, example.question), ("entities:", ", ".join(example.entities)), (given, passage)]

    def target(self, example: Any) -> str:
        return str(example.answers[0])
