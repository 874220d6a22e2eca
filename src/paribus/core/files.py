"""Files and folders: atomic writes, which are complete or absent, and names that studies, arms, scales, stages and
tasks can have, since they become names of folders and files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from paribus.core.checksums import seal, seal_folder, sync
from paribus.core.errors import UserError

# what the reader of a compressed file raises if a byte of it is wrong
DAMAGED = (OSError, ValueError, BadZipFile, NotImplementedError, RuntimeError, EOFError, KeyError, zlib.error)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
NAMING = "use at most 100 letters of ASCII, digits and _ . + -, and no dot first"


def user_cache(name: str) -> Path:
    """The folder of this name in the default of `paths.cache`."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PARIBUS_CACHE") or home / "paribus") / name


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make a folder and wait until no other process is in this block with it. Raises UserError if it is not writable.

    A file system that cannot lock a folder lets all in at once.
    """
    with _name_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a file as UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes, durable: bool = True) -> None:
    """Write a file so that a reader sees either the old or the new content, never a part.

    durable: whether that also holds if the machine loses power, which takes a few milliseconds.
    Raises UserError if the disk is full or the folder is not writable.
    """
    with replacing(path, durable) as work:
        work.write_bytes(content)


@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a file that becomes `path` if the block succeeds, as `write_bytes` does, which also says what is raised."""
    with _name_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(path, _create) as (work, _):
            yield work
            if durable:
                sync(work)
            os.replace(work, path)


def check_room(path: Path) -> None:
    """Raise UserError if a file, and the folders that it needs, could not be written here. Makes nothing."""
    nearest = next(folder for folder in path.parents if folder.exists())
    with _name_errors(path), tempfile.TemporaryFile(dir=nearest):
        pass


def write_cached(path: Path, content: bytes, most: int) -> None:
    """Write a file of a cache that its reader checks; if the folder then has more than `most`, delete the older half.

    Raises UserError as `write_bytes` does.
    """
    write_bytes(path, content, durable=False)
    with _name_errors(path), os.scandir(path.parent) as entries:
        files = list(entries)
        if len(files) > most:
            for old in sorted(files, key=_time_of)[: len(files) // 2]:
                Path(old.path).unlink(missing_ok=True)


def _time_of(entry: os.DirEntry[str]) -> float:
    """When a file was written, in seconds; 0 if another process has just deleted it."""
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:
        return 0.0


@contextmanager
def _name_errors(path: Path) -> Iterator[None]:
    """Raises UserError that names the file if the block cannot write."""
    try:
        yield
    except OSError as error:
        full = "free disk space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise UserError(f"{path} cannot be written ({error.strerror})", f"{full}choose another folder") from error


@contextmanager
def _temporary(target: Path, create: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    """A new file or folder beside `target` with its descriptor. It is locked while it is in use, so that what a killed
    process leaves behind is removed by the next one.
    """
    left = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}")
    for name in filter(left.fullmatch, os.listdir(target.parent)):
        with suppress(OSError):  # it is in use, another user's, or another process removes it
            handle = os.open(target.parent / name, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(target.parent / name)
            finally:
                os.close(handle)
    handle = -1
    while handle < 0:
        work = target.parent / f".{target.name}.{secrets.token_hex(4)}"
        handle = create(work)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not work.exists():  # another process saw it before it was locked
            os.close(handle)
            handle = -1
    try:
        yield work, handle
    finally:
        _remove(work)
        os.close(handle)


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _create_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, os.O_RDONLY)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: object) -> None:
    """Write indented JSON with sorted keys, atomically. Raises ValueError for NaN and infinities."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_sealed(path: Path, value: Mapping[str, Any], owner: str = "") -> None:
    """Write JSON with a checksum and with whose it is, which `core.checksums.read_sealed` verifies.

    Raises ValueError for NaN.
    """
    write_json(path, seal({**value, **({"owner": owner} if owner else {})}))


@contextmanager
def whole_folder(target: Path, sealed: bool = True) -> Iterator[Path]:
    """Yield an empty folder beside `target` that becomes `target` only if the block succeeds.

    A killed or failed block leaves no `target`. If another process finished first, its result is kept. If `sealed`, the
    checksums of its files are stored with them (see `core.checksums`).
    """
    with _name_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(target, _create_folder) as (work, _):
            yield work
            if sealed:
                seal_folder(work)
            try:
                os.replace(work, target)
            except OSError:
                if not target.is_dir():
                    raise


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder for temporary files of other processes, and remove folders that killed commands left behind."""
    with _temporary(Path(tempfile.gettempdir()) / "paribus", _create_folder) as (work, _):
        yield work


def read_end(path: Path, size: int = 4096) -> list[str]:
    """The lines in the last bytes of a file; the first may be incomplete. Empty if the file cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - size))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def is_name(text: object) -> bool:
    """Whether it names a folder inside another one: not `..`, no slash, not empty."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def read_name(text: str) -> str:
    """Raises ValueError for a text that cannot be a name."""
    if not is_name(text):
        raise ValueError(NAMING)
    return text


def at_scale(scale: str) -> str:
    """Such as " at cpu scale"; nothing for runs of another framework, which have no scale."""
    return f" at {scale} scale" if scale else ""


def check_names(config: Mapping[str, Any]) -> None:
    """Raises UserError if a resolved config of a run has a name that would leave the folder of the runs."""
    given = [(key, str(config[key])) for key in ("study", "arm", "scale") if config.get(key) is not None]
    for key in ("stages", "tasks"):
        if not isinstance(config.get(key), Mapping):
            raise UserError(f"{key}={config.get(key)} is not a mapping", "write NAME: SETTINGS below it")
        given += [(key, str(name)) for name in config[key]]
    for key, name in given:
        if not is_name(name):
            raise UserError(f"{key}={name!r} cannot name a folder", NAMING)
