"""Where the runs of a study are kept: each in a folder of its own, or all in the archive of its table.

An archive holds the runs of one study at one scale, for version control:

    records.jsonl.gz    one line per run: its `result.json`, checksum included
    configs.yaml        the manifest, the config of the first run, what differs from it by arm and by run, and hashes of
                        all three files
    curves.jsonl.gz     the learning curves of each run, byte for byte
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from paribus.core.checksums import hash_bytes, seal, verify
from paribus.core.errors import UserError
from paribus.core.files import write_bytes
from paribus.runs.folder import CONFIG, FAILED, RECORD, RunFolder, StoredRun, load_yaml

RECORDS_FILE, CONFIGS_FILE, CURVES_FILE = ARCHIVE = ("records.jsonl.gz", "configs.yaml", "curves.jsonl.gz")
_NEW, _WRITTEN = ".new-", ".new-files-are-written"


class StudyStore(Protocol):
    """The runs of a study below a root."""

    def list_runs(self) -> Iterator[StoredRun]:
        """All runs that ended, by arm and seed."""

    def find(self, arm: str, name: str) -> StoredRun | None:
        """The run of an arm called `seed<k>-<signature>`."""

    def read_manifest(self, scale: str) -> bytes | None:
        """Which runs make the sweep, as JSON; None if nothing says so."""


@dataclass(frozen=True)
class FolderStore:
    """The folder of a study, in which every run has a folder `<arm>/seed<k>-<signature>`."""

    folder: Path

    def list_runs(self) -> Iterator[RunFolder]:
        folders = {path.parent for name in (RECORD, FAILED) for path in self.folder.glob(f"*/seed*/{name}")}
        yield from map(RunFolder, sorted(folders))

    def find(self, arm: str, name: str) -> RunFolder | None:
        place = self.folder / arm / name
        return RunFolder(place) if any((place / file).is_file() for file in (RECORD, FAILED)) else None

    def read_manifest(self, scale: str) -> bytes | None:
        return RunFolder(self.folder).read(f"{scale}.json")


class RunKey(NamedTuple):
    """Which run of a study; `name`: seed<k>-<signature>."""

    arm: str
    name: str

    @property
    def order(self) -> tuple[str, int, str]:
        """By arm and seed."""
        seed = self.name.removeprefix("seed").partition("-")[0]
        return self.arm, int(seed) if seed.isdecimal() else -1, self.name


@dataclass(frozen=True)
class ArchivedRun(StoredRun):
    """A run in an archive."""

    archive: Archive
    key: RunKey

    def __str__(self) -> str:
        return f"{self.archive.folder / RECORDS_FILE}: {'/'.join(self.key)}"

    @property
    def place(self) -> str:
        return str(self)

    def read(self, name: str) -> bytes | None:
        if name == RECORD:
            return self.archive.records[self.key]
        if name == CONFIG:
            config = self.archive.read_config(self.key)
            return None if config is None else _dump_yaml(config)
        return self.archive.curves.get((*self.key, name))

    def list_curves(self) -> list[str]:
        return [file for arm, run, file in self.archive.curves if (arm, run) == self.key]


@dataclass(frozen=True)
class Archive:
    """The archive in the folder of a study. Its content raises UserError if it cannot be read."""

    folder: Path

    @cached_property
    def records(self) -> dict[RunKey, bytes]:
        """{run: the content of its record}, by arm and seed."""
        path = self.folder / RECORDS_FILE
        records = {_key_of(path, _parse(path, line)): line for line in _read_lines(path)}
        return dict(sorted(records.items(), key=lambda item: item[0].order))

    @cached_property
    def curves(self) -> dict[tuple[str, str, str], bytes]:
        """{(arm, seed<k>-<signature>, file): content}"""
        path = self.folder / CURVES_FILE
        entries = (_parse(path, line) for line in _read_lines(path))
        return {(one["arm"], one["run"], one["file"]): one["text"].encode("utf-8") for one in entries}

    @cached_property
    def configs(self) -> dict[str, Any]:
        """The content of `configs.yaml`."""
        path = self.folder / CONFIGS_FILE
        try:
            content = load_yaml(path.read_bytes())
        except (OSError, ValueError) as error:
            raise _damaged(path) from error
        if not isinstance(content, dict):
            raise _damaged(path)
        return content

    def read_config(self, key: RunKey) -> dict[str, Any] | None:
        """The resolved config of a run, or None if none was kept."""
        whole: dict[str, Any] | None = self.configs.get("whole", {}).get("/".join(key))
        change = self.configs.get("runs", {}).get("/".join(key))
        if whole is not None or change is None:
            return whole
        return _merge({**self.configs["config"], **self.configs["arms"][key.arm]}, change)

    def list_runs(self) -> Iterator[ArchivedRun]:
        yield from (ArchivedRun(self, key) for key in self.records)

    def find(self, arm: str, name: str) -> ArchivedRun | None:
        key = RunKey(arm, name)
        return ArchivedRun(self, key) if key in self.records else None

    def read_manifest(self, scale: str) -> bytes | None:
        manifest = self.configs.get("manifests", {}).get(scale)
        return None if manifest is None else _dump(manifest)


def open_stores(root: Path, study: str) -> list[StudyStore]:
    """Where the runs of a study may be below a root: its folders first, then its archive."""
    stores: list[StudyStore] = [FolderStore(root / study)]
    archive = open_archive(root / study)
    return stores if archive is None else [*stores, archive]


def open_archive(folder: Path) -> Archive | None:
    """The archive in the folder of a study, or None; its files are read once as long as they do not change.

    Raises UserError if one of its files is missing, damaged or edited.
    """
    if (folder / _WRITTEN).is_file():
        _put_in_place(folder)
    states: list[tuple[int, int, int] | None] = []
    for name in ARCHIVE:
        try:
            state = (folder / name).stat()
            states.append((state.st_size, state.st_mtime_ns, state.st_ino))
        except OSError:
            states.append(None)
    return _open_unchanged(folder, tuple(states)) if any(states) else None


@lru_cache(maxsize=8)
def _open_unchanged(folder: Path, states: object) -> Archive:
    archive = Archive(folder)
    if not verify(archive.configs):
        raise _damaged(folder / CONFIGS_FILE)
    for name, expected in archive.configs["files"].items():
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise _damaged(folder / name) from error
        if hash_bytes(content) != expected:
            raise _damaged(folder / name)
    return archive


def write_archive(folder: Path, runs: Sequence[StoredRun], manifests: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the three files; the same runs give the same bytes.

    Args:
        runs: with a whole record; of a run that is given twice the first counts.
        manifests: {scale: manifest}.
    """
    records: dict[RunKey, bytes] = {}
    curves: dict[tuple[str, str, str], str] = {}
    configs: dict[RunKey, dict[str, Any]] = {}
    for run in runs:
        content = run.read(RECORD)
        assert content is not None, f"{run} has no record"
        record = json.loads(content)
        key = _key_of(Path(str(run)), record)
        if key in records:
            continue
        records[key] = _dump(record)
        for name in run.list_curves():
            curves[(*key, name)] = (run.read(name) or b"").decode("utf-8")
        if (config := run.read(CONFIG)) is not None:
            configs[key] = load_yaml(config)
    order = sorted(records, key=lambda key: key.order)
    lines = [
        _dump({"arm": arm, "run": run, "file": file, "text": text}) for (arm, run, file), text in sorted(curves.items())
    ]
    shared = _share_configs({key: configs[key] for key in order if key in configs})
    files = {CURVES_FILE: _compress(lines), RECORDS_FILE: _compress([records[key] for key in order])}
    sums = {name: hash_bytes(content) for name, content in files.items()}
    configs_file = _dump_yaml(seal({"files": sums, "manifests": dict(manifests), **shared}))
    for name, content in {**files, CONFIGS_FILE: configs_file}.items():
        write_bytes(folder / f"{_NEW}{name}", content)
    write_bytes(folder / _WRITTEN, b"")
    _put_in_place(folder)


def _put_in_place(folder: Path) -> None:
    """Replace the three files by the new ones, which are all written; the next process does what a killed one left."""
    for name in ARCHIVE:
        with suppress(FileNotFoundError):  # it is there already
            (folder / f"{_NEW}{name}").replace(folder / name)
    (folder / _WRITTEN).unlink(missing_ok=True)


def _share_configs(configs: Mapping[RunKey, dict[str, Any]]) -> dict[str, Any]:
    """The config of the first run, the sections in which the first run of each arm differs, and what each run changes.

    `whole`: the configs that this does not give, since a run has a key that the first one of its arm lacks.
    """
    base = next(iter(configs.values()), {})
    arms: dict[str, dict[str, Any]] = {}
    runs: dict[str, dict[str, Any]] = {}
    whole: dict[str, dict[str, Any]] = {}
    for key, config in configs.items():
        sections = {name: value for name, value in config.items() if name not in base or not _same(base[name], value)}
        of_arm = {**base, **arms.setdefault(key.arm, sections)}
        change = _compare(of_arm, config)
        if _same(_merge(of_arm, change), config):
            runs["/".join(key)] = change
        else:
            whole["/".join(key)] = config
    return {"config": base, "arms": arms, "runs": runs, **({"whole": whole} if whole else {})}


def _same(first: object, second: object) -> bool:
    """Whether two values are written alike: also the order of keys, and 1 is not 1.0 or true."""
    return json.dumps(first) == json.dumps(second)


def _compare(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What to merge into `base` to get `other`, if both have the same keys."""
    return {
        key: _compare(base[key], value) if isinstance(base.get(key), dict) and isinstance(value, dict) else value
        for key, value in other.items()
        if key not in base or not _same(base[key], value)
    }


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in change.items():
        known = merged.get(key)
        merged[key] = _merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def _key_of(path: Path, record: Mapping[str, Any]) -> RunKey:
    try:
        return RunKey(record["arm"], f"seed{record['seed']}-{record['signature']}")
    except (KeyError, TypeError) as error:
        raise _damaged(path) from error


def _read_lines(path: Path) -> list[bytes]:
    try:
        return gzip.decompress(path.read_bytes()).splitlines()
    except (OSError, EOFError, zlib.error) as error:  # a bad header is an OSError
        raise _damaged(path) from error


def _parse(path: Path, line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(value, dict):
        raise _damaged(path)
    return value


def _damaged(path: Path) -> UserError:
    return UserError(f"{path} is damaged, edited or missing", f"restore it: git checkout -- {path.parent}")


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8")


def _dump_yaml(value: Mapping[str, Any]) -> bytes:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:
            return True

    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return text.encode("utf-8")


def _compress(lines: Sequence[bytes]) -> bytes:
    return gzip.compress(b"".join(line + b"\n" for line in lines), mtime=0)
