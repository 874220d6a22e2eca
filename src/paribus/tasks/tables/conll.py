"""CoNLL files: a word per line with its tags, a blank line after each sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paribus.core.errors import UserError
from paribus.core.text_files import split_lines
from paribus.tasks.tables.labels import Classes

if TYPE_CHECKING:
    import pyarrow as pa

WORDS, TAGS = "words", "tags"
DOCUMENT = "-DOCSTART-"
_SPAN_TAG = re.compile(r"O|[BIESLUM][-_].+")
_ID = re.compile(r"\d+([-.]\d+)?", re.ASCII)
_EXTRA_ID = re.compile(r"\d+[-.]\d+", re.ASCII)  # of a word of several tokens, and of an empty node, in CoNLL-U


class Line(NamedTuple):
    """The fields of a line, with its number in the file, from 1; `tabbed`: they are separated by tabs."""

    number: int
    fields: list[str]
    tabbed: bool


class Shape(NamedTuple):
    """What lines of the same number of fields have in common: the first one is a number, the columns of span tags."""

    counted: bool
    tagged: frozenset[int]


def read_conll(text: str, wanted: Sequence[str], where: str, classes: Sequence[str] = ()) -> pa.Table:
    """A row per sentence and a list column for each column of the file, named by its number: `1`, `2`, ...

    Fields are separated by tabs, or by spaces in a line without a tab; other white space is part of a word. If the
    first column counts the words of each sentence, the tokens of several words (1-2) and empty nodes (1.1) of CoNLL-U
    are left out.

    If any of the wanted names is not a number, there are also the columns `words`, the first that is no index, and
    `tags`: the only one whose cells are all among the classes of the task, if these are given, otherwise the only one
    with span tags, or the only other one.

    Raises UserError, whose message begins with `where`, if several columns may be the tags, and ValueError for lines of
    different lengths.
    """
    import pyarrow as pa

    sentences = split_sentences(text)
    indexed = is_indexed(sentences)
    if indexed:
        sentences = [[line for line in lines if not _EXTRA_ID.fullmatch(line.fields[0])] for lines in sentences]
    count = _check_lengths(sentences)
    columns = {
        str(at + 1): [[line.fields[at] for line in lines] for lines in sentences if lines] for at in range(count)
    }
    named = {}
    if count and not all(name.isdecimal() for name in wanted):
        words, tags = _find_words_and_tags(columns, indexed, where, classes)
        named = {WORDS: columns[words], TAGS: columns[tags]}
    return pa.table({**columns, **named})


def looks_like_conll(text: str) -> bool:
    """Whether a text has document marks, or a span tag such as O or B-PER at the end of most of its lines."""
    lines = [line for number, row in enumerate(split_lines(text), 1) if any((line := _split_line(number, row)).fields)]
    if any(line.fields[0] == DOCUMENT for line in lines):
        return True
    tagged = [line for line in lines if len(line.fields) > 1 and _SPAN_TAG.fullmatch(line.fields[-1])]
    return 2 * len(tagged) > len(lines)


def split_sentences(text: str) -> list[list[Line]]:
    """The lines of each sentence, without document marks and comments."""
    lines = [_split_line(number, line) for number, line in enumerate(split_lines(text), 1)]
    shapes = _find_shapes(lines)
    sentences: list[list[Line]] = [[]]
    for line in lines:
        if not any(line.fields) or line.fields[0] == DOCUMENT:
            sentences.append([])
        elif sentences[-1] or not line.fields[0].startswith("#") or _can_be_word(line, shapes):
            sentences[-1].append(line)
    return [sentence for sentence in sentences if sentence]


def _split_line(number: int, line: str) -> Line:
    tabbed = "\t" in line
    fields = [field.strip(" ") for field in line.split("\t")] if tabbed else re.split(" +", line.strip(" "))
    return Line(number, fields, tabbed)


def _find_shapes(lines: Sequence[Line]) -> dict[tuple[int, bool], Shape]:
    """The shape of lines with so many fields that are separated by tabs or not, from those that do not begin with #."""
    shapes: dict[tuple[int, bool], Shape] = {}
    for line in lines:
        if any(line.fields) and line.fields[0] != DOCUMENT and not line.fields[0].startswith("#"):
            key = len(line.fields), line.tabbed
            known = shapes.get(key, Shape(len(line.fields) > 2, frozenset(range(1, len(line.fields)))))
            tagged = frozenset(at for at in known.tagged if _SPAN_TAG.fullmatch(line.fields[at]))
            shapes[key] = Shape(known.counted and bool(_ID.fullmatch(line.fields[0])), tagged)
    return shapes


def _can_be_word(line: Line, shapes: Mapping[tuple[int, bool], Shape]) -> bool:
    """Whether a line before a sentence that begins with # may be a word and no comment: there are lines like it that do
    not begin so, without an index, and it has span tags wherever all of them do.
    """
    shape = shapes.get((len(line.fields), line.tabbed))
    if shape is None or shape.counted:
        return False
    return len(line.fields) > 1 and all(_SPAN_TAG.fullmatch(line.fields[at]) for at in shape.tagged)


def is_indexed(sentences: Sequence[Sequence[Line]]) -> bool:
    """Whether the first of three or more fields counts the words of each sentence, from 1 or from 0."""
    if not sentences or any(len(line.fields) < 3 for lines in sentences for line in lines):
        return False
    for lines in sentences:
        ids = [line.fields[0] for line in lines if not _EXTRA_ID.fullmatch(line.fields[0])]
        if ids not in ([str(at) for at in range(start, start + len(ids))] for start in (1, 0)):
            return False
    return True


def _check_lengths(sentences: Sequence[Sequence[Line]]) -> int:
    """The number of fields, which is that of most lines. Raises ValueError for a line with another number."""
    lengths = Counter(len(line.fields) for lines in sentences for line in lines)
    if not lengths:
        return 0
    usual = lengths.most_common(1)[0][0]
    for line in (line for lines in sentences for line in lines):
        if len(line.fields) != usual:
            raise ValueError(f"line {line.number} has {_count(len(line.fields))}, but most lines have {usual}")
    if usual == 1:
        raise ValueError("there is one column, but words need tags")
    return usual


def _count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"


def _find_words_and_tags(
    columns: dict[str, list[list[str]]], indexed: bool, file: str, classes: Sequence[str]
) -> tuple[str, str]:
    """The names of the columns that hold the words and their tags. Raises UserError if that cannot be told."""
    words, *others = list(columns)[1 if indexed else 0 :]
    values = {name: {tag for tags in columns[name] for tag in tags} for name in columns}
    if len(others) > 1 and all(value.isdecimal() for value in values[words]):
        cause = f"{file} has only numbers in column {words}, which would be the words"
        raise UserError(cause, _ask(others[0], others[-1], file))
    spans = [name for name in others if all(map(_SPAN_TAG.fullmatch, values[name]))]
    candidates = _find_classes(values, others, classes) or spans or others
    if len(candidates) > 1:
        shown = "; ".join(f"{name}: {', '.join(sorted(values[name])[:3])}" for name in candidates)
        cause = f"{file} has several columns that may be the tags ({shown})"
        raise UserError(cause, _ask(words, candidates[-1], file))
    return words, candidates[0]


def _find_classes(values: Mapping[str, set[str]], columns: Sequence[str], classes: Sequence[str]) -> list[str]:
    """The columns whose cells are all names of classes, and any other that has more of the classes: its other tags may
    be missing in the task, beside a column that is O in every line.
    """
    names = Classes(classes)
    known = {name: {names.spelled(value) for value in values[name]} for name in columns}
    fitting = [name for name in columns if None not in known[name]]
    most = max((len(known[name]) for name in fitting), default=0)
    return [name for name in columns if name in fitting or (fitting and len(known[name] - {None}) > most)]


def _ask(words: str, tags: str, file: str) -> str:
    """What to type: an argument of a command, or a setting of the task file."""
    option = f"columns={words},{tags}" if file.startswith("--") else f"columns: {{words: {words}, tags: {tags}}}"
    return f"name the columns of the words and the tags by number, such as {option}"
