"""How consecutive rows make a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from paribus.data.corpus.rows import Row

Unit = Callable[[Iterable[Row]], Iterable[Row]]


@dataclass(frozen=True)
class Rows:
    """Every row is a document."""

    def __call__(self, rows: Iterable[Row]) -> Iterable[Row]:
        return rows


@dataclass(frozen=True)
class Joined:
    """Consecutive rows joined to documents of at least `characters` characters, for rows that are sentences."""

    characters: int

    def __call__(self, rows: Iterable[Row]) -> Iterator[Row]:
        held: list[Row] = []
        size = 0
        for row in rows:
            held.append(row)
            size += len(row.text)
            if size >= self.characters:
                yield _join(held)
                held, size = [], 0
        if held:
            yield _join(held)


@dataclass(frozen=True)
class Articles:
    """WikiText's rows are lines; an article starts at a ` = Title = ` row with a blank row before and after it."""

    def __call__(self, rows: Iterable[Row]) -> Iterator[Row]:
        article: list[Row] = []
        heading: Row | None = None  # may be a title, if the row after it is blank
        after_blank = True
        for row in rows:
            blank = not row.text.strip()
            if heading is not None:
                if blank and article:
                    yield _join(article)
                    article = []
                article.append(heading)
            heading = row if after_blank and _is_title(row.text) else None
            if heading is None and not blank:
                article.append(row)
            after_blank = blank
        if heading is not None:
            article.append(heading)
        if article:
            yield _join(article)


def _is_title(line: str) -> bool:
    words = line.split()
    return len(words) > 2 and words[0] == words[-1] == "=" and words[1] != "=" and words[-2] != "="


def _join(rows: list[Row]) -> Row:
    return Row(rows[0].name, "\n".join(row.text for row in rows))
