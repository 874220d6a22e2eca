"""Documents that are costly to come by, kept as one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ceteris.corpus.document import Document
from ceteris.files import whole_folder


def kept(folder: Path, make: Callable[[], Iterable[Document]]) -> Iterator[Document]:
    """The documents of `folder`, made and written there the first time; a killed writer leaves nothing."""
    if not folder.is_dir():
        with whole_folder(folder) as work, (work / "documents.jsonl").open("w", encoding="utf-8") as out:
            for document in make():
                out.write(json.dumps(document) + "\n")
    with (folder / "documents.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield Document(*json.loads(line))
