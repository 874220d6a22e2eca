"""Composed choices of config groups on disk, for all processes of pytest and for the next time."""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path

from paribus.core.files import write_cached

MOST_FILES = 8000  # of some 7 kilobytes each


class KeptBases(dict[str, bytes]):
    """What `paribus.core.config` keeps in memory: the name of a base covers its choices and all files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __contains__(self, key: object) -> bool:
        if not super().__contains__(key):
            with suppress(OSError, zlib.error):
                super().__setitem__(str(key), zlib.decompress((self.folder / str(key)).read_bytes()))
        return super().__contains__(key)

    def __setitem__(self, key: str, base: bytes) -> None:
        super().__setitem__(key, base)
        write_cached(self.folder / key, zlib.compress(base, 1), MOST_FILES)
