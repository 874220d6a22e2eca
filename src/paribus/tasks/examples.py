"""Labeled examples of every kind: their types, duplicates, sampling and storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from paribus.core.checksums import digest

if TYPE_CHECKING:
    import pyarrow as pa


class AnyExample(Protocol):
    """An example of any kind: a named tuple of plain data."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a model reads."""

    def __iter__(self) -> Iterator[Any]: ...


Examples = dict[str, list[Any]]  # by set
Row = TypeVar("Row", bound=AnyExample)


class Example(NamedTuple):
    """A text or a pair of texts; `label` is a class number, or a value for regression."""

    text: str
    pair: str | None
    label: int | float

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.pair is None else (self.text, self.pair)


class GroupedExample(NamedTuple):
    """An `Example` that belongs to others, those of the same `group`."""

    text: str
    pair: str | None
    label: int | float
    group: str

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.pair is None else (self.text, self.pair)


class TaggedExample(NamedTuple):
    """A sentence as words, each with the number of its tag."""

    words: list[str]
    tags: list[int]

    @property
    def texts(self) -> tuple[str, ...]:
        return (" ".join(self.words),)


class QuestionExample(NamedTuple):
    """A question about a context. Every answer starts at a character of the context; no answers: it has none there."""

    question: str
    context: str
    answers: list[str]
    starts: list[int]

    @property
    def texts(self) -> tuple[str, ...]:
        return self.question, self.context


class ChoiceExample(NamedTuple):
    """A text, perhaps with a question about it, and options, of which the one at place `label` is right."""

    text: str
    question: str | None
    options: list[str]
    label: int

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text, *(() if self.question is None else (self.question,)), *self.options)


class EntityExample(NamedTuple):
    """A `QuestionExample` whose gap one of the context's `entities` fills."""

    question: str
    context: str
    answers: list[str]
    starts: list[int]
    entities: list[str]

    @property
    def texts(self) -> tuple[str, ...]:
        return self.question, self.context


class GenerationExample(NamedTuple):
    """A text, perhaps with a second one, and the text that a model must write for it."""

    text: str
    pair: str | None
    target: str

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.pair is None else (self.text, self.pair)


def normalize(text: str) -> str:
    """The text in lower case with single spaces; texts that are equal then count as the same text."""
    return " ".join(text.lower().split())


def count_leaks(examples: Examples) -> dict[str, int]:
    """For each evaluation set, the number of examples whose normalized texts are also in train."""
    seen = {_normalized(row) for row in examples["train"]}
    return {
        split: sum(_normalized(row) in seen for row in rows) for split, rows in examples.items() if split != "train"
    }


def _normalized(row: AnyExample) -> tuple[str, ...]:
    return tuple(map(normalize, row.texts))


def limit_rows(rows: list[Row], limit: int | None, person: bytes = b"") -> list[Row]:
    """At most `limit` rows, those with the lowest hash, in their order: a new row displaces at most one other. Another
    `person` gives another choice, which does not depend on one that was made before.
    """
    if limit is None or len(rows) <= limit:
        return rows
    chosen = sorted(range(len(rows)), key=lambda i: (_hash_row(rows[i], person), i))[:limit]
    return [rows[i] for i in sorted(chosen)]


def _hash_row(row: AnyExample, person: bytes = b"") -> bytes:
    values = (value for part in row for value in (part if isinstance(part, list) else [part]))
    return blake2b("\0".join(map(str, values)).encode("utf-8", "surrogatepass"), digest_size=8, person=person).digest()


def hash_examples(examples: Examples, classes: Sequence[str]) -> str:
    """The hash of the class names and of every example in order, 16 hex digits."""
    hashed = blake2b(digest(list(classes)).encode(), digest_size=8)
    for split in sorted(examples):
        hashed.update(f"\0{split}\0{len(examples[split])}\0".encode())
        for row in examples[split]:
            hashed.update(_hash_row(row))
    return hashed.hexdigest()


def write_examples(path: Path, rows: Sequence[Any]) -> None:
    """A Parquet file with a column for each field of the examples."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = dict.fromkeys(("text", "pair", "question"), pa.string())  # a column of nulls alone does not tell its type
    columns = {name: pa.array([getattr(row, name) for row in rows], types.get(name)) for name in rows[0]._fields}
    pq.write_table(pa.table(columns), path, compression="zstd")


def read_examples(path: Path, example_class: type[Any]) -> list[Any]:
    """The rows that `write_examples` wrote."""
    import pyarrow.parquet as pq

    table: pa.Table = pq.ParquetFile(path).read()  # read_table imports pandas
    fields = example_class._fields
    return [example_class(*row) for row in zip(*(table.column(name).to_pylist() for name in fields), strict=True)]
