"""The files of a corpus: which there are, what kind they are, which split they are named after."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.core.text_files import find_encoding

KINDS = {
    ".txt": "text",
    ".text": "text",
    ".tokens": "text",
    ".raw": "text",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
}
TABLES = (".csv", ".tsv")
SAMPLE = 1 << 12  # bytes of a file of an unknown kind that must be text
SPLITS = {"train": "train", "test": "test"} | dict.fromkeys(("validation", "valid", "val", "dev"), "validation")

# train, train-00000-of-00001-1a2b, train_3; with the prefixes of the files of C4 and WikiText
_NAMED = re.compile(rf"(?:c4-|wiki\.)?({'|'.join(SPLITS)})(?:[-_.]\d[\w.-]*)?")


class TextFile(NamedTuple):
    """name: path below the corpus' root; kind: text, json or parquet; split: if the file or its folder names one."""

    path: Path
    name: str
    kind: str
    split: str | None


def find(path: str, key: str = "corpus.path") -> list[TextFile]:
    """The text files of a file, a folder or a glob, in the order of their names.

    If all files are named after one split, or none is, the name is ignored. If no file is named validation, training
    files have no split: it is drawn by document.
    Raises UserError that names `key` for an empty path, if there is no such file, for a folder without text, and for a
    file of an unknown kind that is a table or no text.
    """
    if not path:
        raise UserError(f"{key} is empty", "give a file, a folder or a glob")
    root = Path(path).expanduser()
    given = f"{key}={path}"
    files = _list_files(root, given)
    for file in files:
        _check_kind(file, given)
    shared = (folder for folder in files[0].parents if all(folder in file.parents for file in files))
    base = root if root.is_dir() else next(shared)
    names = [file.relative_to(base).as_posix() for file in files]
    kinds = [KINDS.get(ending(name), "text") for name in names]
    splits = decide_splits([_find_split(name) for name in names])
    return sorted(map(TextFile, files, names, kinds, splits), key=lambda file: file.name)


def ending(name: str) -> str:
    """A file's ending in lower case, that of its compression left out."""
    return Path(name.lower().removesuffix(".gz")).suffix


def _list_files(root: Path, given: str) -> list[Path]:
    """The file, the files of known kinds in the folder, or those of the glob; never none."""
    if root.is_file():
        return [root]
    if root.is_dir():
        shown = (file for file in root.rglob("*") if not any(p.startswith(".") for p in file.relative_to(root).parts))
        files = [file for file in shown if ending(file.name) in KINDS and file.is_file()]
        if not files:
            raise UserError(f"{given} is a folder without text", f"give files that end in {', '.join(KINDS)}")
        return files
    files = [file for file in map(Path, glob.glob(str(root), recursive=True)) if file.is_file()]
    if not files:
        what = "is neither a file nor a folder" if root.exists() else "does not exist"
        raise UserError(f"{given} {what}", "give a file, a folder or a glob")
    return files


def _check_kind(file: Path, given: str) -> None:
    """A file with an unknown ending is read as plain text, so it must not be a table or a binary file."""
    if ending(file.name) in KINDS or file.suffix == ".gz":
        return
    with file.open("rb") as opened:
        sample = opened.read(SAMPLE)
    _, mark = find_encoding(sample)
    binary = b"\0" in sample and not mark
    if binary or ending(file.name) in TABLES:
        what = "is not text" if binary else f"is a table ({ending(file.name)})"
        mend = f"save the texts as .txt, or as .jsonl with a key text; known are {', '.join(KINDS)}"
        raise UserError(f"{given}: {file.name} {what}", mend)


def _find_split(name: str) -> str | None:
    """The split that a file, or the nearest of its folders, is named after."""
    *folders, file = name.lower().split("/")
    plain = file.removesuffix(".gz")
    stem = plain.removesuffix(ending(file)) if ending(file) in KINDS else plain
    for part in (stem, *reversed(folders)):
        if match := _NAMED.fullmatch(part):
            return SPLITS[match[1]]
    return None


def decide_splits(named: list[str | None]) -> list[str | None]:
    """The splits of files named so; None: drawn by document."""
    if len(set(named)) == 1:
        return [None] * len(named)
    training = "train" if "validation" in named else None
    return [split if split in ("validation", "test") else training for split in named]


def identify_files(files: Sequence[TextFile]) -> list[list[Any]]:
    """Plain data that tells whether files may have changed: names, splits, bytes, times in nanoseconds, inodes."""
    stats = ((file, file.path.stat()) for file in files)
    return [[file.name, file.split, at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino] for file, at in stats]
