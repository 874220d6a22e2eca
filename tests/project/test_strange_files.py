"""What the generator of strange files claims is in the files, read by nothing but the standard library and pyarrow."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import sys
from collections.abc import Iterator

import pytest
from strange_case import StrangeFile
from strange_files import strange_files


@functools.cache
def drawn_cases() -> list[StrangeFile]:
    return list(strange_files(5, 300))


def of_kind(kind: str, *, clear: bool = False) -> Iterator[StrangeFile]:
    return (case for case in drawn_cases() if case.kind == kind and not (clear and case.ambiguous))


def decoded(content: bytes) -> str:
    """The text of a file, by its byte order mark."""
    return content.decode("utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")


def table(text: str) -> list[list[str]]:
    """The rows of a table, by the delimiter that gives every row the width of the header."""
    csv.field_size_limit(sys.maxsize)
    text = text.removeprefix("sep=;").lstrip("\r\n")
    for delimiter in ",;\t|":
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
        if len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])}:
            return rows
    raise AssertionError(text[:500])


def rows_of(name: str, content: bytes) -> list[dict[str, object]]:
    """The rows of a file as its format has them."""
    if name.endswith(".parquet"):
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(content)).to_pylist()
    if "json" in name:
        return [json.loads(line) for line in decoded(content).replace("\r", "\n").split("\n") if line]
    head, *body = table(decoded(content))
    return [dict(zip(head, row, strict=True)) for row in body]


def test_the_same_seed_gives_the_same_files() -> None:
    assert [case.files for case in strange_files(5, 30)] == [case.files for case in drawn_cases()[:30]]


def test_every_kind_has_clear_and_ambiguous_files() -> None:
    drawn = {(case.kind, case.ambiguous) for case in drawn_cases()}
    assert drawn >= {(kind, flag) for kind in ("results", "labels", "tags", "questions") for flag in (False, True)}
    assert ("corpus", False) in drawn


def test_plain_numbers_of_runs_are_in_the_table() -> None:
    """A cell that Python reads as a number is the number that was meant."""
    checked = 0
    for case in of_kind("results", clear=True):
        (name, content), *_ = case.files.items()
        if name.endswith("jsonl"):
            continue
        numbers = set()
        for row in table(decoded(content)):
            for cell in row:
                try:
                    numbers.add(float(cell))
                except ValueError:
                    continue
        meant = {value for values in case.written.values() for value in values.values() if abs(value) < 100}
        if "acc" in case.arguments and not {"commas", "percents"} & set(case.why.replace(",", "").split()):
            assert meant <= numbers, case.why
            checked += 1
    assert checked > 20


def test_texts_and_labels_are_in_the_table() -> None:
    for case in of_kind("labels"):
        assert case.config is not None
        text = case.config["columns"]["text"]
        for (name, content), rows in zip(case.files.items(), case.written.values(), strict=True):
            if "literal quotes" in case.why and name.endswith("tsv"):
                found = decoded(content).replace("\r", "").split("\n")
                assert all(row[0] in line for row, line in zip(rows, found[1:], strict=False)), case.why
            else:
                assert [row[text] for row in rows_of(name, content)] == [row[0] for row in rows], case.why
        assert {label for rows in case.written.values() for _, label in rows} <= {*case.classes, None}


def test_words_and_tags_are_in_the_file() -> None:
    for case in of_kind("tags"):
        for (name, content), sentences in zip(case.files.items(), case.written.values(), strict=True):
            if name.endswith("jsonl"):
                assert case.config is not None
                words = case.config["columns"]["words"]
                assert [row[words] for row in rows_of(name, content)] == [words for words, _ in sentences]
            else:
                lines = decoded(content).replace("\r", "").split("\n")
                for words, tags in sentences:
                    for word, tag in zip(words, tags, strict=True):
                        assert any(word in line and line.endswith(tag) for line in lines), case.why


def test_answers_start_where_the_files_say() -> None:
    for case in of_kind("questions"):
        for rows in case.written.values():
            for _, context, answers in rows:
                assert all(context[start:].startswith(text) for start, text in answers), case.why


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json", "jsonl.gz", "parquet"])
def test_rows_of_texts_are_documents(suffix: str) -> None:
    for case in of_kind("corpus"):
        (name, content), *_ = case.files.items()
        if name == f"books.{suffix}":
            column = case.arguments[0].split("=")[1] if case.arguments else "text"
            found = rows_of(name.removesuffix(".gz"), gzip.decompress(content) if suffix.endswith("gz") else content)
            assert [str(row[column]).replace("\r\n", "\n") for row in found] == case.written, case.why
