"""Fine-tuning every parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paribus.finetuning.method import Method


@dataclass(frozen=True)
class Full(Method):
    """Every parameter moves, at one rate (BERT, section 3.2)."""

    semantics: ClassVar[int] = 1
