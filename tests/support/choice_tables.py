"""Files of multiple-choice questions, and a tokenizer of numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from paribus.tasks.tables.choices import ChoiceTable

PLACES = ("A", "B", "C")


class Numbers:
    """A tokenizer of texts that are numbers apart by spaces."""

    def encode(self, texts: list[str]) -> list[tuple[np.ndarray[Any, Any], None]]:
        return [(np.array([int(word) for word in text.split()], np.int32), None) for text in texts]


def write(folder: Path, **splits: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def table(folder: Path, **changes: Any) -> ChoiceTable:
    columns = {"text": "article", "question": "question", "options": "options", "label": "answer"}
    settings: dict[str, Any] = {"name": "toy", "columns": columns, "classes": PLACES, "path": str(folder)}
    return ChoiceTable(**{**settings, **changes})
