"""Documents that are costly to come by, kept as one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from paribus.core.files import whole_folder
from paribus.data.corpus.document import Document

_FILE = "documents.jsonl"


def write(folder: Path, documents: Iterable[Document]) -> None:
    """Keep the documents in a new folder, whole or not at all."""
    with whole_folder(folder) as work, (work / _FILE).open("w", encoding="utf-8") as out:
        for document in documents:
            out.write(json.dumps(document) + "\n")


def read(folder: Path) -> Iterator[Document]:
    """The documents that `write` kept."""
    with (folder / _FILE).open(encoding="utf-8") as lines:
        for line in lines:
            yield Document(*json.loads(line))


def kept(folder: Path, make: Callable[[], Iterable[Document]]) -> Iterator[Document]:
    """The documents of `folder`, made and kept there the first time."""
    if not folder.is_dir():
        write(folder, make())
    return read(folder)
