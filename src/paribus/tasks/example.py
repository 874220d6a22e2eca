"""Labeled examples: what is one, what counts as the same, how they are chosen and kept."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from paribus.core.hashing import digest

if TYPE_CHECKING:
    import pyarrow as pa

Examples = dict[str, list[Any]]  # by set
Row = TypeVar("Row", bound=Any)


class Example(NamedTuple):
    """One labeled text or pair of texts; `label` is a class number, or a value for regression."""

    text: str
    pair: str | None
    label: int | float

    @property
    def identity(self) -> str:
        """What makes it another example."""
        return f"{self.text}\0{self.pair}\0{self.label}"

    @property
    def said(self) -> tuple[str | None, ...]:
        """What a model reads, normalized."""
        return normalized(self.text), None if self.pair is None else normalized(self.pair)


def normalized(text: str) -> str:
    """The text in one case with single spaces: what counts as the same text."""
    return " ".join(text.lower().split())


def leakage(examples: Examples) -> dict[str, int]:
    """For each evaluation set: examples of which a model has read the same, normalized, in train."""
    seen = {row.said for row in examples["train"]}
    return {split: sum(row.said in seen for row in rows) for split, rows in examples.items() if split != "train"}


def limited(rows: list[Row], limit: int | None) -> list[Row]:
    """At most `limit` rows, those of the lowest hash, in their order: a new row displaces at most one other."""
    if limit is None or len(rows) <= limit:
        return rows
    chosen = sorted(range(len(rows)), key=lambda i: (_row_hash(rows[i]), i))[:limit]
    return [rows[i] for i in sorted(chosen)]


def hashed_share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone: who is held out does not depend on who else is there."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64


def _row_hash(row: Any) -> bytes:
    return blake2b(row.identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def fingerprint(examples: Examples, classes: Sequence[str]) -> str:
    """A hash of the class names and of every example in order, 16 hex digits."""
    hashed = blake2b(digest(list(classes)).encode(), digest_size=8)
    for split in sorted(examples):
        hashed.update(f"\0{split}\0{len(examples[split])}\0".encode())
        for row in examples[split]:
            hashed.update(_row_hash(row))
    return hashed.hexdigest()


def write_examples(path: Path, rows: Sequence[Any]) -> None:
    """A parquet file with a column for each field of the examples."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"text": pa.string(), "pair": pa.string()}  # a column of nothing but null has no type of its own
    columns = {name: pa.array([getattr(row, name) for row in rows], types.get(name)) for name in rows[0]._fields}
    pq.write_table(pa.table(columns), path, compression="zstd")


def read_examples(path: Path, kind: Any = Example) -> list[Any]:
    """The rows that `write_examples` wrote, as examples of a kind."""
    import pyarrow.parquet as pq

    table: pa.Table = pq.ParquetFile(path).read()  # read_table imports pandas
    return [kind(*row) for row in zip(*(table.column(name).to_pylist() for name in kind._fields), strict=True)]


class Tagged(NamedTuple):
    """A sentence as words, each with the number of its tag."""

    words: list[str]
    tags: list[int]

    @property
    def identity(self) -> str:
        """What makes it another example."""
        return "\0".join([*self.words, *map(str, self.tags)])

    @property
    def said(self) -> tuple[str, ...]:
        """What a model reads, normalized."""
        return (normalized(" ".join(self.words)),)


class Question(NamedTuple):
    """A question about a context; every answer starts at a character of the context. None: it has no answer there."""

    question: str
    context: str
    answers: list[str]
    starts: list[int]

    @property
    def identity(self) -> str:
        """What makes it another example."""
        return "\0".join([self.question, self.context, *self.answers, *map(str, self.starts)])

    @property
    def said(self) -> tuple[str, ...]:
        """What a model reads, normalized."""
        return normalized(self.question), normalized(self.context)


class Transfer(NamedTuple):
    """A text and what is to be written for it; `pair` stands beside the text where there are two."""

    text: str
    pair: str | None
    target: str

    @property
    def identity(self) -> str:
        """What makes it another example."""
        return f"{self.text}\0{self.pair}\0{self.target}"

    @property
    def said(self) -> tuple[str | None, ...]:
        """What a model reads, normalized."""
        return normalized(self.text), None if self.pair is None else normalized(self.pair)
