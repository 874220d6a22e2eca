"""Guesses the columns, splits and classes of labeled texts, for the task file that `paribus init` writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.errors import UserError
from paribus.tasks.tables.files import SUFFIXES, class_names, find_files, read_files
from paribus.tasks.tables.table import UNLABELED, is_held_out

if TYPE_CHECKING:
    import pyarrow as pa

HELD_OUT = ("validation", "valid", "val", "dev", "test")  # names of the split that a task is evaluated on, best first
LABELS = ("label", "labels", "class", "category", "target", "topic", "intent", "coarse_label", "stars", "sentiment")
TEXTS = ("text", "sentence", "question", "content", "review", "body", "document", "title", "query")
PAIRS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2"))
MOST = 200  # classes
SHARE = 0.2  # of the examples is held out if there is no validation split


class GuessedTable(NamedTuple):
    """A table of labeled texts.

    splits: {ours: the file's}; without one for validation, `held_out` is the share of train to evaluate on.
    columns: {text, label, and of pairs also pair: theirs}. classes: in the order of their numbers.
    examples: {split: how many are labeled}.
    """

    path: str
    splits: dict[str, str]
    columns: dict[str, str]
    classes: tuple[str, ...]
    examples: dict[str, int]
    held_out: float = 0.0


def guess_task(path: str, columns: Sequence[str] | None = None) -> GuessedTable:
    """Look at a file, or at a folder with a file per split.

    columns: those of the text and the label, or of both texts and the label; None guesses them by their names.

    Raises UserError if there is no such file, folder or split, and if columns or classes cannot be told.
    """
    place = Path(path).expanduser()
    if place.is_file() and place.suffix[1:] not in SUFFIXES:
        known = ", ".join(f".{suffix}" for suffix in SUFFIXES)
        raise UserError(f"--task {path} has an unknown format", f"give a file that ends in {known}")
    if not place.is_file():
        _require_train(place)
    files = {"train": [place] if place.is_file() else find_files(place, None, "train", "--task")}
    theirs = next((name for name in HELD_OUT if not place.is_file() and _has(place, name)), None)
    if theirs is not None:
        files["validation"] = find_files(place, None, theirs, "--task")
    tables = {ours: read_files(paths, (), "--task") for ours, paths in files.items()}
    named = _name_columns(tables["train"], path, columns)
    if theirs is None:
        tables = _hold_out(tables["train"], [named[ours] for ours in ("text", "pair") if ours in named])
    labels = {ours: _count_labels(table, named["label"], path) for ours, table in tables.items()}
    classes = _name_classes(tables["train"], labels["train"] | labels["validation"], named["label"], path)
    counts = {ours: sum(labels[ours].values()) for ours in tables}
    splits = {"train": "train", **({} if theirs is None else {"validation": theirs})}
    return GuessedTable(path, splits, named, classes, counts, SHARE if theirs is None else 0.0)


def _hold_out(table: pa.Table, columns: Sequence[str]) -> dict[str, pa.Table]:
    """Both sets of a table, as the task will have them."""
    texts = zip(*(map(str, table.column(name).to_pylist()) for name in columns), strict=True)
    held = [is_held_out(row, SHARE) for row in texts]
    return {"train": table.filter([not one for one in held]), "validation": table.filter(held)}


def _require_train(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(f"--task: no folder {folder}", "give one file, or a folder with train.jsonl and test.jsonl")
    if not _has(folder, "train"):
        there = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
        cause = f"--task: {folder} has no train.jsonl (.csv, .tsv, .parquet), only {there}"
        raise UserError(cause, "name the file of the examples to fine-tune on train, or give one file")


def _has(folder: Path, split: str) -> bool:
    try:
        return bool(find_files(folder, None, split, "--task"))
    except UserError:
        return False


def _name_columns(table: pa.Table, path: str, given: Sequence[str] | None) -> dict[str, str]:
    names = table.column_names
    if not table.num_rows:
        raise UserError(f"{path} has no examples", "give a file with a line for each")
    if len(names) == 1 and (mark := next((mark for mark in ";|" if mark in names[0]), None)):
        raise UserError(f"{path} separates its columns by '{mark}'", "save it with commas, or with tabs as .tsv")
    if given is not None:
        if unknown := [name for name in given if name not in names]:
            raise UserError(f"{path} has no column '{unknown[0]}'", f"choose from {', '.join(names)}")
        if len(given) not in (2, 3):
            raise UserError(
                f"columns={','.join(given)} is not valid", "give columns=TEXT,LABEL, or columns=TEXT,PAIR,LABEL"
            )
        return dict(zip(("text", "label") if len(given) == 2 else ("text", "pair", "label"), given, strict=True))
    lower = {name.lower(): name for name in names}
    pair = next((pair for pair in PAIRS if lower.keys() >= set(pair)), None)
    text = pair[0] if pair else next((name for name in TEXTS if name in lower), None)
    label = next((name for name in LABELS if name in lower), None)
    if text is None or label is None:
        missing = "text" if text is None else "label"
        cause = f"{path} has the columns {', '.join(names)}, and none of them is clearly the {missing}"
        raise UserError(cause, "add columns=TEXT,LABEL")
    return {"text": lower[text], **({"pair": lower[pair[1]]} if pair else {}), "label": lower[label]}


def _count_labels(table: pa.Table, column: str, path: str) -> dict[Any, int]:
    """{label: how many rows}, without rows that have none."""
    counts: dict[Any, int] = {}
    for label in table.column(column).to_pylist():
        if isinstance(label, float | list | dict):
            raise UserError(f"{path}: the column {column} holds {type(label).__name__}, not classes",
                            "see conf/task/stsb.yaml for values, and conf/task/wnut_17.yaml for tags")  # fmt: skip
        if label not in UNLABELED:
            counts[label] = counts.get(label, 0) + 1
    return counts


def _name_classes(table: pa.Table, labels: dict[Any, int], column: str, path: str) -> tuple[str, ...]:
    """Names of classes; those of numbers are 0, 1, ... unless the file names them."""
    if len(labels) < 2 or len(labels) > MOST:
        raise UserError(f"{path}: the column {column} has {len(labels)} different labels", "give a column of classes")
    if all(isinstance(label, str) for label in labels):
        return tuple(sorted(labels))
    if sorted(labels) != list(range(len(labels))):
        raise UserError(
            f"{path}: the labels {sorted(labels)[:5]} ... are not 0, 1, 2, ...", "use names or such numbers"
        )
    return tuple(class_names(table, column) or map(str, range(len(labels))))
