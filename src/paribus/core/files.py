"""Atomic writes of files and folders: they are complete or absent."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.core.sealed import seal, seal_folder


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror})", "free disk space or choose another folder"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a file as UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees either the old or the new content, never a part.

    Raises UserError if the disk is full or the folder is not writable.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON with sorted keys, atomically. Raises ValueError for NaN and infinities."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON with a checksum, which `core.sealed.read_sealed` verifies. Raises ValueError for NaN."""
    write_json(path, seal(value))


@contextmanager
def whole_folder(target: Path, sealed: bool = True) -> Iterator[Path]:
    """Yield an empty folder beside `target` that becomes `target` only if the block succeeds.

    A killed or failed block leaves no `target`. If another process finished first, its result is kept. If `sealed`, the
    checksums of its files are stored with them (see `core.sealed`).
    """
    with _named(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            yield work
            if sealed:
                seal_folder(work)
            try:
                os.replace(work, target)
            except OSError:
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(work, ignore_errors=True)


def read_end(path: Path, size: int = 4096) -> list[str]:
    """The lines in the last bytes of a file, the first of which may be cut; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - size))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
