"""A run's folder: the names of its files, how each of them is read, and what state the run is in.

A run that ended is read through `StoredRun`, whether it lies in a folder of its own or in an archive (`archive.py`).
"""

from __future__ import annotations

import fcntl
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paribus.core.checksums import hash_bytes, parse
from paribus.core.console import say
from paribus.core.files import read_end, write_sealed
from paribus.core.jsonable import to_json
from paribus.core.moved import update_targets
from paribus.runs.record import Record, parse_record, read_record

RECORD = "result.json"
FAILED = "failed.json"
CONFIG = "config.yaml"
CURVES = "metrics.jsonl"  # learning curves of pre-training
TUNING = "tuning.jsonl"  # learning curves of fine-tunings, of runs with finetune.points
STAGES = "stages"  # the folders of the stages before the last one
GOLD = "gold.npz"  # probabilities of right answers, see `runs.gold`
SIGNATURE = "signature"  # written when the run starts
LOCK = ".lock"
POINTER = "folder"  # on a shelf: the folder of the run that trains there


class StoredRun(ABC):
    """A run that ended. `str()` says where it is, and `place` where its record is."""

    @property
    @abstractmethod
    def place(self) -> str: ...

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """The content of one of its files, such as `config.yaml`; None if it has no such file."""

    @abstractmethod
    def list_curves(self) -> list[str]:
        """The names of its files of learning curves."""

    def read_record(self) -> tuple[Record | None, str]:
        """(the record of the run or of its failure, "") or (None, why there is none)."""
        try:
            content = self.read(RECORD) or self.read(FAILED)
        except OSError as error:
            return None, f"not readable ({error.strerror})"
        return parse_record(content) if content is not None else (None, "half-written or no record")

    def read_config(self) -> dict[str, Any] | None:
        """The resolved config, with the present names of its components, or None if it cannot be read."""
        try:
            config = load_yaml(self.read(CONFIG) or b"")
        except (OSError, ValueError):
            return None
        return update_targets(config) if isinstance(config, dict) else None

    def read_curve_lines(self, record: Record, name: str = CURVES) -> list[dict[str, Any]]:
        """The lines of its learning curves; none, with a message, if they are not those that the record's run wrote."""
        content, expected = self.read(name), record.curves.get(name)
        if content is None:
            return []
        if expected is not None and hash_bytes(content) != expected:
            say(f"{self}: {name} is damaged or from another run; its curves are left out")
            return []
        return parse_lines(content)


@dataclass(frozen=True)
class RunFolder(StoredRun):
    """A run in its folder."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def place(self) -> str:
        return str(self.folder / (RECORD if (self.folder / RECORD).is_file() else FAILED))

    def read(self, name: str) -> bytes | None:
        """Raises OSError for a file that exists and cannot be read."""
        try:
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list_curves(self) -> list[str]:
        paths = [self.folder / CURVES, self.folder / TUNING, *sorted(self.folder.glob(f"{STAGES}/*/{CURVES}"))]
        return [path.relative_to(self.folder).as_posix() for path in paths if path.is_file()]


def load_yaml(content: bytes) -> Any:
    """What YAML in UTF-8 holds. Raises ValueError if it cannot be read."""
    import yaml

    try:
        return yaml.load(content.decode("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error


def find_finished(folder: Path, signature: str) -> Record | None:
    """The record of a run that needs no further work (done or diverged), or None."""
    record, _ = read_record(folder / RECORD)
    return record if record and record.signature == signature and record.status != "failed" else None


def write_failure(folder: Path, run: Record, error: str) -> None:
    """Write `failed.json`, so that the next command tries the run again; `run` says which run it was."""
    write_sealed(folder / FAILED, to_json(replace(run, status="failed", error=error)))


def read_state(folder: Path) -> tuple[str, Record | None]:
    """(the state of a run's folder, its record if the run is over).

    The state is done, diverged, failed, running, stopped (the next command resumes it) or missing.
    """
    record, _ = read_record(folder / RECORD)
    if record is not None:
        return record.status, record
    if is_locked(folder):
        return "running", None
    if (folder / FAILED).is_file():
        return "failed", None
    return "stopped" if (folder / SIGNATURE).is_file() else "missing", None


def shelf_of(runs: Path, pretrain: str) -> Path:
    """The folder that runs with the same pre-training lock while one of them trains it; its POINTER names that run's
    folder.
    """
    return runs / ".pretrained" / pretrain


def is_locked(folder: Path) -> bool:
    """Whether a process holds a folder of a run or a shelf."""
    try:
        with (folder / LOCK).open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def read_scale(folder: Path) -> str | None:
    """The scale of a run by its config; None if the folder does not say."""
    try:  # the whole file would take long
        scale = re.search(r"^scale: (\S+)$", (folder / CONFIG).read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return scale[1] if scale else None


def read_last_step(folder: Path) -> int:
    """The last optimizer step in metrics.jsonl, 0 if there is none; of an ensemble the sum over its members."""
    total = 0
    for member in (folder, *folder.glob("members/*")):
        lines = (_parse_line(text) for text in reversed(read_end(member / CURVES)))
        steps = (line["step"] for line in lines if line is not None and isinstance(line.get("step"), int))
        total += next(steps, 0)
    return total


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines that can be read; none if there is no file."""
    try:
        return parse_lines(path.read_bytes())
    except OSError:
        return []


def parse_lines(content: bytes) -> list[dict[str, Any]]:
    """The JSON lines that can be read."""
    texts = content.decode("utf-8", errors="replace").splitlines()
    try:  # all at once; one by one if one of them is broken
        lines = json.loads(f"[{','.join(texts)}]")
    except (ValueError, RecursionError):
        lines = [_parse_line(text) for text in texts]
    return [line for line in lines if isinstance(line, dict)]


def _parse_line(text: str) -> dict[str, Any] | None:
    try:
        line = parse(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
