"""JSON files: an object per line, a list of objects, or the articles of SQuAD."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paribus.core.checksums import parse
from paribus.core.text_files import split_lines
from paribus.tasks.tables.answers import gather_answers, is_answer

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
_BLANK = re.compile(r"[ \t\r\n]+")


def read_json_lines(text: str) -> pa.Table:
    """One object per line, or objects that go over several lines; Arrow's own reader crashes on some of these.

    Raises ValueError for a line that is no object, and for a column of several types.
    """
    rows = []
    for number, line in enumerate(split_lines(text), 1):
        if line.strip():
            try:
                rows.append(row := parse(line))
            except ValueError as error:
                if (objects := _read_objects(text)) is not None:
                    return _make_table(objects)
                raise ValueError(f"line {number} is not JSON: {str(error).partition(':')[0]}") from error
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is not a JSON object")
    return _make_table(rows)


def _read_objects(text: str) -> list[Row] | None:
    """Objects one after the other, whose texts may hold line ends as they are; None if that is not what the text is."""
    decoder, rows, at = json.JSONDecoder(strict=False), list[Row](), 0
    while at < len(text):
        try:
            row, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        if not isinstance(row, dict):
            return None
        rows.append(row)
        blank = _BLANK.match(text, end)
        at = end if blank is None else blank.end()
    return rows


def read_json(text: str) -> pa.Table:
    """The articles of SQuAD, whose questions are the rows, a list of objects, or an object per line.

    Raises ValueError for anything else, and for a column of several types.
    """
    try:
        content = parse(text)
    except ValueError:
        return read_json_lines(text)  # which names the line that is not JSON
    if isinstance(content, dict) and isinstance(content.get("data"), list):
        return _make_table(list(_list_questions(content["data"])))
    if not isinstance(content, list):
        return read_json_lines(text)
    for number, row in enumerate(content):
        if not isinstance(row, dict):
            raise ValueError(f"row {number} is not a JSON object")
    return _make_table(content)


def _list_questions(articles: Sequence[Any]) -> Iterator[Row]:
    """{id, title, question, context, answers} of each question of SQuAD 1.1, or of 2.0, in which some questions are
    impossible and have no answers.
    """
    number = 0
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    answers = asked.get("answers")
                    if asked.get("is_impossible") and answers:
                        raise ValueError(f"question {number} has answers, but is_impossible is true")
                    yield {
                        "id": asked.get("id"),
                        "title": article.get("title"),
                        "question": asked["question"],
                        "context": paragraph["context"],
                        "answers": answers,
                    }
                    number += 1
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"question {number} is not in data[].paragraphs[].qas[], with a context") from error


def _make_table(rows: Sequence[Row]) -> pa.Table:
    import pyarrow as pa

    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if any(is_answer(value[0] if isinstance(value, list) and value else value) for value in values):
            values = list(map(gather_answers, values))  # one type, whatever each row has
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            first = str(error).partition("\n")[0][:160]
            raise ValueError(f"the values of {name!r} are of several types: {first}") from error
    return pa.table(columns)
