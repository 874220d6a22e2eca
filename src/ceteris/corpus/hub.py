"""Corpora of the Hugging Face hub, or a local folder of the same layout in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ceteris.corpus.document import Document, paragraphs
from ceteris.corpus.sentences import Splitter
from ceteris.errors import UserError

Row = dict[str, Any]
HUB_SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Hub:
    """Sets of the hub through `datasets`; `sets` lists (name, configuration) read one after the other.

    unit: `row` (a row is a document) | `wikitext` (rows are lines; a document starts at a ` = Title = ` row).
    path: a local folder of the same layout (for several sets one sub-folder each), read instead of the hub.
    limit: at most so many documents of each split, for streams.

    Raises UserError where a set, a column or the network is missing.
    """

    sets: Sequence[Sequence[str]]
    sentences: Splitter
    path: str | None = None
    unit: str = "row"
    text_column: str = "text"
    streaming: bool = False
    limit: int | None = None
    validation: float = 0.005
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.unit not in ("row", "wikitext"):
            raise UserError(f"corpus.unit={self.unit} is unknown", "use row or wikitext")

    def source(self) -> Any:
        settings = [list(map(list, self.sets)), self.unit, self.text_column, self.limit]
        if self.path is None:
            return settings
        files = sorted(file for file in self._root.rglob("*") if file.is_file())
        return [*settings, [[f.relative_to(self._root).as_posix(), f.stat().st_size, f.stat().st_mtime_ns] for f in files]]

    @property
    def _root(self) -> Path:
        return Path(str(self.path)).expanduser()

    def documents(self, cache: Path) -> Iterator[Document]:
        for name, configuration in self.sets:
            splits = self._load(name, configuration)
            named = "validation" in splits
            for split in (split for split in HUB_SPLITS if split in splits):
                found = self._documents(splits[split], f"{name}/{split}")
                for number, text in enumerate(found):
                    if self.limit is not None and number >= self.limit:
                        break
                    yield Document(f"{name}/{split}#{number}", text, split if named else None)

    def _load(self, name: str, configuration: str) -> Any:
        from datasets import load_dataset

        try:
            if self.path is None:
                return load_dataset(name, configuration, streaming=self.streaming)
            own = self._root / name.rsplit("/", 1)[-1]
            return load_dataset(str(own if own.is_dir() else self._root), streaming=self.streaming)
        except Exception as error:  # the hub's client raises many kinds
            what = f"{name} ({configuration})" if self.path is None else f"corpus.path={self.path}"
            reason = " ".join(str(error).split())[:120]
            raise UserError(f"{what} cannot be loaded ({reason})", "check the network, or set corpus.path to a local folder") from error

    def _documents(self, rows: Iterable[Row], where: str) -> Iterator[str]:
        texts = self._texts(rows, where)
        return articles(texts) if self.unit == "wikitext" else filter(None, map(paragraphs, texts))

    def _texts(self, rows: Iterable[Row], where: str) -> Iterator[str]:
        for row in rows:
            if self.text_column not in row:
                raise UserError(f"{where} has no column '{self.text_column}'", f"set corpus.text_column to one of {', '.join(row)}")
            yield row[self.text_column] or ""


def articles(lines: Iterable[str]) -> Iterator[str]:
    """WikiText's rows as articles: one starts at a ` = Title = ` row with a blank row before and after it."""
    held: list[str] = []
    before, waiting = "", None
    for line in lines:
        text = line.strip()
        if waiting is not None:
            if not text and held:
                yield "\n".join(held)
                held = []
            held.append(waiting)
        waiting = text if _is_title(text) and not before else None
        if text and waiting is None:
            held.append(text)
        before = text
    if waiting is not None:
        held.append(waiting)
    if held:
        yield "\n".join(held)


def _is_title(text: str) -> bool:
    return len(text) > 4 and text.startswith("= ") and text.endswith(" =") and not text.startswith("= =")
