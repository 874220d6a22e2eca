"""CoNLL files: fields, comments, indices, and which column holds the tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from paribus.core.errors import UserError
from paribus.tasks.tables.files import read_files
from paribus.tasks.tables.table import TagTable

Sentences = list[tuple[list[str], list[str]]]
NAMED = ("words", "tags")


def read(folder: Path, text: str, wanted: Sequence[str] = NAMED) -> Sentences:
    (folder / "a.conll").write_bytes(text.encode())
    rows = read_files([folder / "a.conll"], (), "tasks.toy", wanted, wanted != NAMED).to_pylist()
    return [(row[wanted[0]], row[wanted[1]]) for row in rows]


@pytest.mark.parametrize("code", [0x0B, 0x0C, 0x1C, 0x85, 0xA0, 0x1680, 0x2009, 0x2028, 0x2029, 0x3000, 0x200B, 0xFEFF])
@pytest.mark.parametrize("mark", [" ", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_only_blanks_and_tabs_separate_fields(tmp_path: Path, code: int, mark: str, end: str) -> None:
    odd = chr(code)
    words, tags = ["Anna", odd, f"10{odd}km", "ran"], ["B-PER", "I-PER", "O", "O"]
    lines = [f"{word}{mark}{tag}" for word, tag in zip(words, tags, strict=True)]
    assert read(tmp_path, end.join([*lines, "", "Oslo" + mark + "B-LOC", ""])) == [(words, tags), (["Oslo"], ["B-LOC"])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\tAnna\tNN\tB-a\n1-2\tx\t_\t_\n2\tran\tVB\tO\n2.1\ty\t_\t_\n\n1\tBen\tNN\tO\n", [["Anna", "ran"], ["Ben"]]),
        ("0 Anna NN B-a\n1 ran VB O\n\n0 Ben NN O\n", [["Anna", "ran"], ["Ben"]]),
        ("# text = Anna ran\nAnna O\nran O\n\n# id\n# O\n#tag B-b\n", [["Anna", "ran"], ["#", "#tag"]]),
        ("# id = 1\n1 Anna NN B-a\n2 ran VB O\n\n# id = 2\n1 Ben NN O\n", [["Anna", "ran"], ["Ben"]]),
        ("# a\tb\nAnna\tO\n\n#new\tB-c\nran\tO\n", [["Anna"], ["#new", "ran"]]),
        ("-DOCSTART- -X- O O\n\nAnna NN O\n-DOCSTART- -X- O\nran VB B-a\n", [["Anna"], ["ran"]]),
        ("Anna B-a NN\nran O VB\n", [["Anna", "ran"]]),
        ("\ufeff1 B-a\n2 O\n", [["1", "2"]]),
    ],
)
def test_words_are_found(tmp_path: Path, text: str, expected: list[list[str]]) -> None:
    found = read(tmp_path, text)
    assert [words for words, _ in found] == expected
    assert all(tag == "O" or tag[:2] == "B-" for _, tags in found for tag in tags)


def test_a_hash_may_begin_a_sentence_whose_tags_are_of_any_kind(tmp_path: Path) -> None:
    text = "#fun HT\nis VB\n\n# a b c\n#joy HT\n\nit PR\n"
    assert read(tmp_path, text) == [(["#fun", "is"], ["HT", "VB"]), (["#joy"], ["HT"]), (["it"], ["PR"])]
    counted = "# id = 1\n1 Anna a NN\n2 ran b VB\n"
    assert read(tmp_path, counted, ("2", "4")) == [(["Anna", "ran"], ["NN", "VB"])]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Anna B-a O\nLee I-a B-b\n", r"may be the tags \(2: B-a, I-a; 3: B-b, O\): .* columns: \{words: 1, tags: 3\}"),
        ("Anna NN x\nLee NN y\n", r"several columns that may be the tags \(2: NN; 3: x, y\)"),
        ("7 Anna O\n9 Lee B-a\n", r"only numbers in column 1.* columns: \{words: 2, tags: 3\}"),
        ("Anna O\nNew York B-a\nran O\n", "line 2 has 3 columns, but most lines have 2"),
        ("Anna O\n\u00a0\nran O\n", "line 2 has 1 column, but most lines have 2"),
        ("Anna\nran\n", "there is one column"),
    ],
)
def test_files_that_can_be_read_in_several_ways_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read(tmp_path, text)


def test_columns_are_named_by_number(tmp_path: Path) -> None:
    text = "Anna\tB-a\tO\nLee\tI-a\tB-b\n"
    assert read(tmp_path, text, ("1", "3")) == [(["Anna", "Lee"], ["O", "B-b"])]
    for split in ("train", "validation"):
        (tmp_path / f"{split}.conll").write_text(text)
    table = TagTable("toy", {"words": 1, "tags": 2}, ["O", "B-a", "I-a"], path=str(tmp_path))
    assert table.read("train")["train"][0].tags == [1, 2]
    with pytest.raises(UserError, match="has both names and numbers"):
        TagTable("toy", {"words": 1, "tags": "tags"}, ["O", "B-a"], path=str(tmp_path))
    with pytest.raises(UserError, match=r"has no column '4': choose from 1, 2, 3"):
        TagTable("toy", {"words": 1, "tags": 4}, ["O", "B-a"], path=str(tmp_path)).read("train")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna NN B-NP B-a\nran VB O O\n", ["B-a", "O"]),
        ("Anna B-a NN\nran O VB\n", ["B-a", "O"]),
        ("Anna O B-a\nLee B-a O\n", r"may be the tags \(2: B-a, O; 3: B-a, O\)"),
        ("Anna O B-a\nLee O B-c\nran O O\n", r"may be the tags \(2: O; 3: B-a, B-c, O\)"),
    ],
)
def test_the_classes_tell_which_column_has_the_tags(tmp_path: Path, text: str, expected: list[str] | str) -> None:
    (tmp_path / "train.conll").write_text(text)
    classes = ["O", "B-a"]
    task = TagTable("toy", {"words": "words", "tags": "tags"}, classes, path=str(tmp_path))
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            task.read("train")
    else:
        assert [classes[tag] for tag in task.read("train")["train"][0].tags] == expected
