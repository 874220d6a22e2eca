"""Guesses the columns, splits and classes of labeled texts and of tagged words, for the task file that `paribus init`
writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.errors import UserError
from paribus.core.text_files import decode
from paribus.tasks.metrics import is_bio
from paribus.tasks.tables.delimited import read_headers
from paribus.tasks.tables.files import LABELED_LINES, SUFFIXES, class_names, find_files, read_files
from paribus.tasks.tables.labels import Classes, comparable, normalize_label, read_number, spell
from paribus.tasks.tables.table import LabelTable, TagTable, is_held_out

if TYPE_CHECKING:
    import pyarrow as pa

HELD_OUT = ("validation", "valid", "val", "dev", "test")  # names of the split that a task is evaluated on, best first
LABELS = ("label", "labels", "class", "category", "target", "topic", "intent", "coarse_label", "stars", "sentiment")
TEXTS = ("text", "sentence", "question", "content", "review", "body", "document", "title", "query")
PAIRS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2"))
WORDS, TAGS = ("words", "tokens"), ("tags", "ner_tags", "pos_tags", "chunk_tags", "upos", "labels")
MOST = 200  # classes
SHARE = 0.2  # of the examples is held out if there is no validation split
SHOWN, WIDTH = 3, 100  # examples, and characters of each
MINUS = "-1"
VALUES = "paribus.tasks.tables.table.ValueTable"
OPTION = "--task"
MORE = "give more, or a folder with a file of each set, such as train.csv and validation.csv"

Columns = dict[str, str | int]


class GuessedTable(NamedTuple):
    """A table of labeled texts or of tagged words.

    splits: {ours: the file's}; without one for validation, `held_out` is the share of train to evaluate on.
    columns: {ours: theirs}; numbers if the file has no header. classes: in the order of their numbers.
    examples: {split: how many are labeled}. tagged: the examples are words with tags.
    notes: what was decided about the file that could be otherwise.
    """

    path: str
    splits: dict[str, str]
    columns: Columns
    classes: tuple[str, ...]
    examples: dict[str, int]
    held_out: float = 0.0
    tagged: bool = False
    notes: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """The main metric: that of spans if the tags are BIO."""
        return "f1" if self.tagged and is_bio(self.classes) else "accuracy"


def guess_task(path: str, columns: Sequence[str] | None = None) -> GuessedTable:
    """Look at a file, or at a folder with a file per split.

    columns: those of the text and the label, of both texts and the label, or of the words and the tags; None guesses
    them by their names.

    Raises UserError if there is no such file, folder or split, and if columns or classes cannot be told.
    """
    place = Path(path).expanduser()
    if place.is_file() and place.suffix[1:] not in SUFFIXES:
        raise UserError(f"--task {path} has an unknown format", f"give a file that ends in {_known()}")
    splits = {"train": "train"} if place.is_file() else _find_splits(place)
    files = {ours: [place] if place.is_file() else find_files(place, None, theirs, OPTION)
             for ours, theirs in splits.items()}  # fmt: skip
    named, tagged, notes = _name_columns(files["train"], path, columns)
    if (evaluated := splits.get("validation", HELD_OUT[0])) not in HELD_OUT:
        notes = (f"{evaluated} in {path} is read as the examples to evaluate on", *notes)
    tables = {ours: _read(paths, named) for ours, paths in files.items()}
    if not tables["train"].num_rows:
        raise UserError(f"{path} has no examples", "give a file with examples")
    held_out = "validation" not in splits
    if held_out:
        tables = _hold_out(tables["train"], [str(named[ours]) for ours in ("text", "pair", "words") if ours in named])
    if tagged:
        counts = {ours: table.num_rows for ours, table in tables.items()}
        _require_examples(counts, path, held_out)
        classes = _list_tags(tables, str(named["tags"]), path)
    else:
        classes, counts, said = _list_classes(tables, str(named["label"]), path, held_out)
        notes += said
    return GuessedTable(path, splits, named, classes, counts, SHARE if held_out else 0.0, tagged, notes)


def show_examples(table: GuessedTable, name: str) -> list[str]:
    """The first examples of a table as its task reads them, a line for each."""
    settings: dict[str, Any] = {"path": table.path, "splits": table.splits, "held_out": table.held_out}
    if table.tagged:
        tags = TagTable(name, table.columns, table.classes, (table.metric,), **settings)
        pairs = [zip(row.words, row.tags, strict=True) for row in tags.read("train")["train"][:SHOWN]]
        return [" ".join(f"{word}/{table.classes[tag]}" for word, tag in pair)[:WIDTH] for pair in pairs]
    labels = LabelTable(name, table.columns, table.classes, **settings)
    return [
        f"{table.classes[row.label]}: {' | '.join(row.texts)}"[:WIDTH] for row in labels.read("train")["train"][:SHOWN]
    ]


def _known() -> str:
    return ", ".join(f".{suffix}" for suffix in SUFFIXES)


def _find_splits(folder: Path) -> dict[str, str]:
    """{ours: the name of its files}: by the usual names, by names that begin so, such as train_5500, and otherwise the
    only other file beside that of train.
    """
    if not folder.is_dir():
        raise UserError(f"--task: no folder {folder}", "give one file, or a folder with train.jsonl and test.jsonl")
    kinds = {f".{suffix}" for suffix in SUFFIXES if suffix != "json"}  # .json beside a table describes it
    files = [file for file in sorted(folder.iterdir()) if file.suffix in kinds and file.is_file()]
    stems = list(dict.fromkeys(file.stem for file in files))
    train = _find_split(folder, stems, ("train",))
    if train is None:
        there = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
        cause = f"--task: {folder} has no train.jsonl (.csv, .tsv, .parquet), only {there}"
        mend = f"name the file of the examples to fine-tune on train, or give one file; read are {_known()}"
        raise UserError(cause, mend)
    evaluated = _find_split(folder, stems, HELD_OUT)
    others = [stem for stem in stems if stem != train and not stem.startswith(f"{train}-")]
    if evaluated is None and len(others) == 1 and len({file.suffix for file in files}) == 1:
        evaluated = others[0]
    return {"train": train, **({} if evaluated is None else {"validation": evaluated})}


def _find_split(folder: Path, stems: Sequence[str], names: Sequence[str]) -> str | None:
    for name in names:
        try:
            find_files(folder, None, name, OPTION)
        except UserError:
            continue
        return name
    for name in names:
        near = [stem for stem in stems if re.fullmatch(rf"{name}[^a-z].*", stem.lower())]
        if len(near) == 1:
            return near[0]
    return None


def _read(files: Sequence[Path], columns: Mapping[str, str | int]) -> pa.Table:
    """The table as its task reads it."""
    numbered = any(isinstance(theirs, int) for theirs in columns.values())
    names = [str(theirs) for theirs in columns.values()]
    return read_files(files, names, OPTION, names, numbered)


def _hold_out(table: pa.Table, columns: Sequence[str]) -> dict[str, pa.Table]:
    """Both sets of a table, as the task will have them."""
    cells = [table.column(name).to_pylist() for name in columns]
    texts = (
        [" ".join(map(str, each)) if isinstance(each, list) else str(each) for each in row]
        for row in zip(*cells, strict=True)
    )
    held = [is_held_out(row, SHARE) for row in texts]
    return {"train": table.filter([not one for one in held]), "validation": table.filter(held)}


def _name_columns(
    files: Sequence[Path], path: str, given: Sequence[str] | None
) -> tuple[Columns, bool, tuple[str, ...]]:
    """({ours: theirs}, whether they are words and tags, what was decided)."""
    suffix = files[0].suffix[1:]
    if suffix == "conll":
        return _name_tag_columns(path, given)
    wanted = given or (_find_header(files[0], path) if suffix == "csv" else ())
    table = read_files(files, (), OPTION, wanted)
    names = table.column_names
    if not table.num_rows and not names:
        raise UserError(f"{path} has no examples", "give a file with a line for each")
    if len(names) == 1:
        _check_separator(names[0], path)
    if given is not None:
        return *_name_given(table, path, given, suffix in ("csv", "tsv")), ()
    lower = {name.lower(): name for name in names}
    words, tags = (next((name for name in known if name in lower), None) for known in (WORDS, TAGS))
    if words and tags and all(table.schema.field(lower[name]).type.num_fields for name in (words, tags)):
        return {"words": lower[words], "tags": lower[tags]}, True, ()
    pair, text, label = _find_usual(lower)
    if text is not None and label is not None:
        read: tuple[str, ...] = ()
        if suffix in LABELED_LINES:
            if (count := len(table.column("label").unique())) * 2 > table.num_rows:
                cause = f"{path} has {count} different first words in {table.num_rows} lines, so they are no labels"
                raise UserError(cause, "begin each line with its label and a space")
            read = (f"each line of {path} is read as a label, a space and a text",)
        return {"text": lower[text], **({"pair": lower[pair[1]]} if pair else {}), "label": lower[label]}, False, read
    if suffix in ("csv", "tsv") and (numbers := _find_without_header(files, len(names))):
        return numbers, False, (f"{path} is read without a header: its first line is an example",)
    missing = "text" if text is None else "label"
    cause = f"{path} has the columns {', '.join(names)}, and none of them is clearly the {missing}"
    mend = "add columns=TEXT,LABEL"
    if suffix in ("csv", "tsv"):
        mend += ", or by number (columns=2,1) if its first line is an example"
    raise UserError(cause, mend)


def _find_usual(lower: Mapping[str, str]) -> tuple[tuple[str, str] | None, str | None, str | None]:
    """(the usual names of a pair of texts, of its first text or a single one, of a label) among names in small letters.

    None for what is not there.
    """
    pair = next((pair for pair in PAIRS if lower.keys() >= set(pair)), None)
    text = pair[0] if pair else next((name for name in TEXTS if name in lower), None)
    return pair, text, next((name for name in LABELS if name in lower), None)


def _find_header(file: Path, path: str) -> tuple[str, ...]:
    """The usual names of a text and a label in the header of a CSV file, which tell its delimiter, as in the reading of
    a task; none if the header has no such names.

    Raises UserError for a header without them that has one cell if commas separate it, but more otherwise.
    """
    try:
        headers = read_headers(decode(file.read_bytes()))
    except UnicodeDecodeError:
        return ()  # the reading of the file says so
    for header in headers.values():
        lower = {name.lower(): name for name in header}
        _, text, label = _find_usual(lower)
        if text is not None and label is not None:
            return lower[text], lower[label]
    if len(headers[","]) == 1:
        _check_separator(headers[","][0], path)
    return ()


def _check_separator(header: str, path: str) -> None:
    """Raises UserError for a header of one cell that another delimiter separates."""
    if mark := next((mark for mark in ";|\t" if mark in header), None):
        shown = "tabs" if mark == "\t" else f"'{mark}'"
        mend = "add columns=TEXT,LABEL, or save it with commas or with tabs as .tsv"
        raise UserError(f"{path} separates its columns by {shown}", mend)


def _name_tag_columns(path: str, given: Sequence[str] | None) -> tuple[Columns, bool, tuple[str, ...]]:
    if given is None:
        return {"words": "words", "tags": "tags"}, True, ()
    if len(given) != 2 or not all(name.isdecimal() for name in given):
        raise UserError(f"columns={','.join(given)} is not valid for {path}",
                        "give the numbers of two columns, the words and the tags, such as columns=1,4")  # fmt: skip
    return {"words": int(given[0]), "tags": int(given[1])}, True, ()


def _name_given(table: pa.Table, path: str, given: Sequence[str], may_lack_header: bool) -> tuple[Columns, bool]:
    names = table.column_names
    if len(given) not in (2, 3):
        raise UserError(
            f"columns={','.join(given)} is not valid", "give columns=TEXT,LABEL, or columns=TEXT,PAIR,LABEL"
        )
    ours = ("text", "label") if len(given) == 2 else ("text", "pair", "label")
    unknown = [name for name in given if name not in names]
    if len(unknown) == len(given) and may_lack_header and all(name.isdecimal() for name in given):
        if outside := [name for name in given if not 0 < int(name) <= len(names)]:
            raise UserError(f"{path} has no column {outside[0]}", f"choose from 1 to {len(names)}")
        return dict(zip(ours, map(int, given), strict=True)), False
    if unknown:
        raise UserError(f"{path} has no column '{unknown[0]}'", f"choose from {', '.join(names)}")
    if len(given) == 2 and all(table.schema.field(name).type.num_fields for name in given):
        return dict(zip(("words", "tags"), given, strict=True)), True
    return dict(zip(ours, given, strict=True)), False


def _find_without_header(files: Sequence[Path], count: int) -> Columns | None:
    """The columns of a text and a label, by number, if the first line is an example: its label occurs again.

    The text is the longest column. None if no other column is clearly the label.
    """
    names = [str(at + 1) for at in range(count)]
    table = read_files(files, names, OPTION, names, numbered=True)
    cells = {name: table.column(name).to_pylist() for name in names}
    text = max(names, key=lambda name: sum(map(len, cells[name])))
    labels = [
        name
        for name in names
        if name != text
        and cells[name][0] in cells[name][1:]
        and 2 <= len(set(cells[name])) <= min(MOST, table.num_rows / 2)
    ]
    return {"text": int(text), "label": int(labels[0])} if len(labels) == 1 else None


def _list_tags(tables: Mapping[str, pa.Table], column: str, path: str) -> tuple[str, ...]:
    """The tags: those of the `datasets` library in its order, otherwise O first, then by kind."""
    if (names := class_names(tables["train"], column)) is not None:
        return tuple(names)
    lists = [row for table in tables.values() for row in table.column(column).to_pylist()]
    found = {tag for row in lists if isinstance(row, list) for tag in row}
    if not all(isinstance(tag, str) for tag in found):
        raise UserError(f"{path}: the column {column} holds numbers of tags without their names",
                        "write the tags as texts, such as O, B-PER, I-PER")  # fmt: skip
    found = set(map(normalize_label, found))
    if not 2 <= len(found) <= MOST:
        raise UserError(f"{path}: the column {column} has {len(found)} different tags", "give a column of tags")
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag.partition("-")[2], tag)))


def _list_classes(
    tables: Mapping[str, pa.Table], column: str, path: str, held_out: bool
) -> tuple[tuple[str, ...], dict[str, int], tuple[str, ...]]:
    """(the classes as the column spells them, {split: how many rows have one}, what was decided).

    Numbers are in their order, other names in that of the alphabet, and those of the `datasets` library in its own.
    """
    cells = {split: table.column(column).to_pylist() for split, table in tables.items()}
    if (names := class_names(tables["train"], column)) is not None:
        counts = {split: sum(value not in (None, -1) for value in values) for split, values in cells.items()}
        return tuple(names), counts, ()
    if (listed := next((value for value in cells["train"] if isinstance(value, list | dict)), None)) is not None:
        raise UserError(f"{path}: the column {column} holds {type(listed).__name__}, not classes",
                        "give a column of texts or numbers, or columns=WORDS,TAGS for lists")  # fmt: skip
    minus, note = _decide_minus(cells, column, held_out)
    labels = {split: _spell_labels(values, minus) for split, values in cells.items()}
    found = sorted({label for spelled in labels.values() for label in spelled})
    numbers = {label: number for label in found if (number := read_number(label)) is not None}
    if fraction := next((label for label, number in numbers.items() if number % 1), None):
        kind = "float" if any(isinstance(value, float) for value in cells["train"]) else f"numbers such as {fraction}"
        raise UserError(f"{path}: the column {column} holds {kind}, not classes",
                        f"for values, write a task file with _target_: {VALUES}, least and most")  # fmt: skip
    if len(found) < 2 or len(found) > MOST:
        raise UserError(f"{path}: the column {column} has {len(found)} different labels", "give a column of classes")
    _require_examples({split: len(spelled) for split, spelled in labels.items()}, path, held_out)
    if held_out and len(set(labels["train"])) < 2:
        cause = f"{path} has {sum(map(len, labels.values()))} labeled examples, too few to hold some out for evaluation"
        raise UserError(cause, MORE)
    if len({comparable(label) for label in found}) < len(found):
        raise UserError(f"{path}: the column {column} spells a label in two ways, among {', '.join(found[:8])}",
                        "spell it in one way")  # fmt: skip
    if len(numbers) == len(found):
        found.sort(key=lambda label: numbers[label])
    return tuple(found), {split: len(spelled) for split, spelled in labels.items()}, note


def _decide_minus(cells: Mapping[str, Sequence[Any]], column: str, held_out: bool) -> tuple[bool, tuple[str, ...]]:
    """(whether -1 is a class, what to say about it): it is if it is one of several numbers in train.

    It is not if a file for evaluation has every other number of train, but no -1.
    """
    train = set(_spell_labels(cells["train"], True))
    if MINUS not in train or len(train) < 2 or any(read_number(label) is None for label in train):
        return False, ()
    place = f"{MINUS} in the column {column} is read as"
    if not held_out and set(_spell_labels(cells["validation"], True)) == train - {MINUS}:
        return False, (f'{place} "no label", not as a class: add "{MINUS}" to the classes if it is one',)
    return True, (f'{place} a class, not as "no label": remove it from the classes if it is not one',)


def _spell_labels(values: Sequence[Any], minus: bool) -> list[str]:
    """The labels of a column as texts, -1 among them if it is a class; those that a task takes as one are equal."""
    return [normalize_label(spell(cell.value)) for cell in Classes((MINUS,) if minus else ()).find_labeled(values)]


def _require_examples(counts: Mapping[str, int], path: str, held_out: bool) -> None:
    """Raises UserError for a set without examples."""
    for split, count in counts.items():
        if not count and held_out:
            cause = f"{path} has {sum(counts.values())} labeled examples, too few to hold some out for evaluation"
            raise UserError(cause, MORE)
        if not count:
            raise UserError(f"{path} has no labeled examples in {split}", "use a file that has labels")
