"""The files of a corpus: which there are, what kind they are, which split they are named after."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import NamedTuple

from paribus.core.errors import UserError

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
    chosen = [root] if root.is_file() else _inside(root, given) if root.is_dir() else _matching(root, given)
    common = (folder for folder in chosen[0].parents if all(folder in file.parents for file in chosen))
    base = root if root.is_dir() else next(common)
    for file in chosen:
        _check_kind(file, given)
    names = [file.relative_to(base).as_posix() for file in chosen]
    splits = decide_splits([_named(name) for name in names])
    found = (TextFile(*each) for each in zip(chosen, names, map(kind, names), splits, strict=True))
    return sorted(found, key=lambda file: file.name)


def stem(name: str) -> str:
    """A file's name in lower case, without the endings for its kind and its compression."""
    plain = name.lower().removesuffix(".gz")
    ending = Path(plain).suffix
    return plain.removesuffix(ending) if ending in KINDS else plain


def kind(name: str) -> str:
    """The kind of a file by its ending; plain text if the ending is unknown."""
    return KINDS.get(Path(name.lower().removesuffix(".gz")).suffix, "text")


def _check_kind(file: Path, given: str) -> None:
    """A file with an unknown ending is read as plain text, so it must not be a table or a binary file."""
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if ending in KINDS or file.suffix == ".gz":
        return
    with file.open("rb") as opened:
        binary = b"\0" in opened.read(SAMPLE)
    if binary or ending in TABLES:
        what = "is not text" if binary else f"is a table ({ending})"
        mend = f"save the texts as .txt, or as .jsonl with a key text; known are {', '.join(KINDS)}"
        raise UserError(f"{given}: {file.name} {what}", mend)


def _inside(root: Path, given: str) -> list[Path]:
    shown = (file for file in root.rglob("*") if not any(p.startswith(".") for p in file.relative_to(root).parts))
    found = [file for file in shown if stem(file.name) != file.name.lower().removesuffix(".gz") and file.is_file()]
    if not found:
        raise UserError(f"{given} is a folder without text", f"give files that end in {', '.join(KINDS)}")
    return found


def _matching(root: Path, given: str) -> list[Path]:
    found = [Path(name) for name in glob.glob(str(root), recursive=True) if Path(name).is_file()]
    if not found:
        what = "is neither a file nor a folder" if root.exists() else "does not exist"
        raise UserError(f"{given} {what}", "give a file, a folder or a glob")
    return found


def _named(name: str) -> str | None:
    *folders, file = name.split("/")
    for part in (stem(file), *(folder.lower() for folder in reversed(folders))):
        if match := _NAMED.fullmatch(part):
            return SPLITS[match[1]]
    return None


def decide_splits(named: list[str | None]) -> list[str | None]:
    """The splits of files named so; None: drawn by document."""
    if len(set(named)) == 1:
        return [None] * len(named)
    training = "train" if "validation" in named else None
    return [split if split in ("validation", "test") else training for split in named]
