"""Hashes: of plain data, which name things, and of files, which are verified when they are opened, so that a damaged
one is never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from paribus.core.console import say
from paribus.core.errors import UserError

Content = TypeVar("Content")

SUMS = ".checksums.json"  # in a folder: {file: [size, hash]}
_verified: dict[tuple[str, int, int, int], str] = {}  # (path, size, time, inode): the hash that this process has found


def canonical(value: object) -> str:
    """Plain data (dict, list, str, int, float, bool, None) as canonical JSON: equal data give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: object, length: int = 12) -> str:
    """The first `length` hex digits of the SHA-256 of `canonical(value)`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:length]


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data with a checksum, so that a manual edit is noticed. Raises ValueError for NaN."""
    plain = json.loads(json.dumps({key: value for key, value in content.items() if key != "checksum"}))
    return {**plain, "checksum": digest(plain, 32)}


def verify(content: Mapping[str, Any]) -> bool:
    """Whether plain data still matches its checksum."""
    try:
        return bool(seal(content)["checksum"] == content.get("checksum"))
    except (ValueError, RecursionError):
        return False


def parse(text: str) -> Any:
    """JSON. Raises ValueError, also for lists that are nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def read_sealed(path: Path, owner: str = "") -> dict[str, Any] | None:
    """What was sealed, without its checksum; None if there is no file, and with a message if it is damaged.

    owner: whose content is wanted; that of another counts as damaged.
    """

    def unseal(content: object) -> dict[str, Any] | None:
        if not isinstance(content, dict) or not verify(content) or content.get("owner", "") != owner:
            return None
        return {key: value for key, value in content.items() if key not in ("checksum", "owner")}

    return read_checked(path, unseal, f"{path} is damaged or from an older version; it is rebuilt")


def read_checked(path: Path, check: Callable[[object], Content | None], damaged: str) -> Content | None:
    """What `check` makes of JSON; None if there is no file and, with the message, for one that it does not accept."""
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        content = None
    if (checked := check(content)) is None:
        say(damaged)
    return checked


def seal_folder(folder: Path) -> None:
    """Write the checksums of a folder's files, and flush the files to the disk."""
    sums = {path.relative_to(folder).as_posix(): [path.stat().st_size, hash_file(path)] for path in _files(folder)}
    for path in _files(folder):
        sync(path)
    (folder / SUMS).write_text(json.dumps(seal({"files": sums})), encoding="utf-8")
    sync(folder / SUMS)


def find_damage(folder: Path) -> str:
    """The name of a damaged file in a sealed folder, or "" if all files are intact."""
    try:
        content = parse((folder / SUMS).read_text(encoding="utf-8"))
        if not verify(content):
            return SUMS
        for name, (size, hashed) in content["files"].items():
            path = folder / name
            if path.stat().st_size != size or hash_file(path) != hashed:
                return str(name)
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return SUMS
    return ""


def is_stored(folder: Path) -> bool:
    """Whether a folder exists and is intact; a damaged one is removed with a message, so that it is built again.

    Raises UserError if it cannot be removed.
    """
    if not folder.is_dir():
        return False
    if not (damaged := find_damage(folder)):
        return True
    say(f"{folder / damaged} is damaged or from an older version; {folder.name} is rebuilt")
    try:
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        if find_damage(folder):  # still: another process may have built it again
            folder.rename(aside / folder.name)
        shutil.rmtree(aside, ignore_errors=True)
    except FileNotFoundError:  # another process was faster
        pass
    except OSError as error:
        raise UserError(f"{folder} is damaged and cannot be removed ({error.strerror})", "remove it") from error
    return folder.is_dir()  # another process may have built it by now


def check_folder(folder: Path) -> None:
    """Raises UserError for a damaged file of a folder that was sealed; folders of others have no checksums."""
    if (folder / SUMS).is_file() and (damaged := find_damage(folder)):
        raise UserError(f"{folder / damaged} is damaged (checksum)", "copy it again, or run the same command again")


def sync(path: Path) -> None:
    """Flush a file's content to the disk, so that a power loss after a rename leaves no empty file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)


def matches(path: Path, hashed: str | None) -> bool:
    """Whether a file has a hash; also true if no hash was stored."""
    return hashed is None or (path.is_file() and hash_file(path) == hashed)


def hash_bytes(content: bytes) -> str:
    """The hash that `hash_file` gives a file of this content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def hash_file(path: Path) -> str:
    """The hash of a file's content, which a process reads once as long as the file does not change."""
    state = path.stat()
    key = (str(path), state.st_size, state.st_mtime_ns, state.st_ino)
    if key not in _verified:
        with path.open("rb") as file:
            _verified[key] = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return _verified[key]
