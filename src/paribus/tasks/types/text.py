"""Any text for a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paribus.core.errors import UserError
from paribus.tasks.prompts import Fields
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.verbal import TransferType
from paribus.tasks.types.written import WrittenText

if TYPE_CHECKING:
    from paribus.models.spec import ModelSpec


@dataclass(frozen=True)
class FreeText(TransferType):
    """A summary, a translation: the model writes it."""

    def verbalize(self, fields: Fields, single: bool) -> FreeText:
        return replace(self, single=single)

    def fit(self, model: ModelSpec, key: str) -> TaskType:
        if model.attention not in ("full", "left") or not model.open_layers:
            cause = f"{key} needs a model that writes text, which this encoder cannot"
            raise UserError(cause, "set model=t5_tiny, or model=bert_tiny with model.attention=full or left")
        return WrittenText(self.fields, False, self.metrics, left=model.attention == "left")
