"""Labels of a table: the class that a cell spells, whatever its type, or the place that its number gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.core.errors import UserError
from paribus.tasks.tables.labels import Classes
from paribus.tasks.tables.table import LabelTable, TagTable


def write(folder: Path, kind: str, **splits: Sequence[Any]) -> None:
    for split, labels in splits.items():
        texts = [f"{split} {n}" for n in range(len(labels))]
        if kind == "csv":
            rows = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
            (folder / f"{split}.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
        elif kind == "jsonl":
            lines = [json.dumps({"text": text, "label": label}) for text, label in zip(texts, labels, strict=True)]
            (folder / f"{split}.jsonl").write_text("\n".join(lines))
        else:
            column = pa.array(labels) if kind == "parquet" else pa.array(labels).dictionary_encode()
            pq.write_table(pa.table({"text": texts, "label": column}), folder / f"{split}.parquet")


def read(folder: Path, classes: Sequence[Any]) -> dict[str, list[int]]:
    task = LabelTable("toy", {"text": "text", "label": "label"}, classes, path=str(folder))
    return {split: [row.label for row in rows] for split, rows in task.read("train", "validation").items()}


@pytest.mark.parametrize(
    ("kind", "classes", "labels", "expected"),
    [
        ("csv", ["true", "false"], ["true", "False", "TRUE"], [0, 1, 0]),
        ("jsonl", ["true", "false"], [True, False, None], [0, 1]),
        ("parquet", ["False", "True"], [True, False, None], [1, 0]),
        ("csv", ["-1", "0", "1"], [-1, 0, 1, ""], [0, 1, 2]),
        ("jsonl", [-1, 0, 1], [-1, 0, 1], [0, 1, 2]),
        ("csv", ["3", "1", "2"], ["1", "2.0", "3"], [1, 2, 0]),
        ("parquet", ["1", "2", "3"], [1.0, None, 3.0, float("nan")], [0, 2]),
        ("dictionary", ["b", "a"], ["a", None, "b"], [1, 0]),
        ("csv", ["bad", "good"], ["0", "1.0", "", "-1", "NA"], [0, 1]),
        ("csv", ["bad", "good"], ["good", "", "bad"], [1, 0]),
        ("csv", ["NA", "EU"], ["NA", "EU"], [0, 1]),
        ("csv", ["10", "20"], ["1", "0"], [1, 0]),
        ("csv", ["bad", "good"], [" good ", "bad\t", " ", " -1 "], [1, 0]),
        ("csv", ["bad", "good"], [" 1", "0 "], [1, 0]),
        ("jsonl", ["\u00e9t\u00e9", "o\u0308"], ["e\u0301te\u0301", "\u00f6"], [0, 1]),
        ("csv", ["a", " a"], ["a", " a"], [0, 1]),
    ],
)
def test_a_cell_is_the_class_that_it_spells_and_a_number_otherwise_a_place(
    tmp_path: Path, kind: str, classes: list[Any], labels: list[Any], expected: list[int]
) -> None:
    write(tmp_path, kind, train=labels, validation=labels)
    assert read(tmp_path, classes) == {"train": expected, "validation": expected}


@pytest.mark.parametrize(
    ("kind", "classes", "train", "validation", "said"),
    [
        ("csv", ["1", "2", "3"], [1, 2, 0], [1], "'1' in row 0 of train is the name of a class, but '0' in row 2 can"),
        ("csv", ["1", "2", "3"], [1, 2, 3], [0, 0], "in train is the name .* '0' in validation can only be"),
        ("csv", ["bad", "good"], ["good", "1"], ["good"], "'good' in row 0 of train .* '1' in row 1 can only"),
        ("csv", ["1", "2"], [1, 2, "x"], [1], "row 2 of train has the label 'x': add it to the classes, now 1, 2$"),
        ("jsonl", ["no", "yes"], [True, False], [True], "row 0 of train has the label True: add it"),
        ("csv", [False, True], ["no", "yes"], ["no"], "the label 'no': add it .*quote yes, no, on and off"),
        ("csv", ["a", " a"], ["a "], ["a"], "the label 'a ': add it to the classes"),
        ("csv", ["\u00e9", "e\u0301"], [" \u00e9"], ["e\u0301"], "the label ' \u00e9': add it to the classes"),
        ("csv", ["a", None], ["a"], ["a"], "classes: None is not a name: quote it"),
        ("jsonl", ["a", "b"], ["a", 1], ["a"], "the values of 'label' are of several types"),
    ],
)  # fmt: skip
def test_two_readings_are_refused(
    tmp_path: Path, kind: str, classes: list[Any], train: list[Any], validation: list[Any], said: str
) -> None:
    write(tmp_path, kind, train=train, validation=validation)
    with pytest.raises(UserError, match=said):
        read(tmp_path, classes)


def test_tags_are_read_as_labels_are(tmp_path: Path) -> None:
    def tags(classes: list[str], rows: list[list[Any]]) -> list[list[int]]:
        for split in ("train", "validation"):
            words = [["w"] * len(row) for row in rows]
            pq.write_table(pa.table({"words": words, "tags": rows}), tmp_path / f"{split}.parquet")
        columns = {"words": "words", "tags": "tags"}
        table = TagTable("toy", columns, classes, ("accuracy",), path=str(tmp_path))
        return [row.tags for row in table.read("train", "validation")["train"]]

    assert tags(["O", "B-a"], [["B-a", "O"], ["O"]]) == [[1, 0], [0]]
    assert tags(["2", "1", "3"], [[1, 2], [3]]) == [[1, 0], [2]]
    with pytest.raises(UserError, match="the tag 1 in row 0 of train is the name of a class, but 0 in row 1"):
        tags(["2", "1", "3"], [[1, 2], [0]])


def test_names_that_are_one_number_are_told_apart_by_their_spelling() -> None:
    classes = Classes(("1", "1.0", "01"))
    assert [classes.spelled(value) for value in ("1", "1.0", "01", 1, "001")] == [0, 1, 2, 0, None]
