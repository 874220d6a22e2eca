"""The runs of studies: which of them make a table, and how finished ones are kept.

Below a root, `<study>/<arm>/seed<k>-<signature>/` holds `result.json`, or `failed.json` if the run failed and will be
tried again; `<study>/<scale>.json` is the manifest (`manifest.py`). An archive holds both of a finished table
(`archive.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.checksums import parse
from paribus.core.errors import UserError
from paribus.core.files import alone, whole_folder, write_bytes
from paribus.core.trust import mask, mask_text
from paribus.runs.archive import open_archive, open_stores, write_archive
from paribus.runs.folder import CONFIG, GOLD, RECORD, RunFolder, StoredRun
from paribus.runs.manifest import find_manifest, read_manifest_file
from paribus.runs.record import Record

RESULTS = Path("analysis/results")  # the committed results, below the root of a checkout
_GONE = ".archived-"  # before the name of a run's folder that is being removed
_TRIALS = ".tune"  # after the name of a study: its trials


class StudyRecords(NamedTuple):
    """`records`: the whole ones; `left_out`: why each of the others was left out."""

    records: list[Record]
    left_out: list[str]


def find_records(study: str, scale: str, roots: Sequence[Path]) -> StudyRecords:
    """The records of a study at a scale, by arm and seed; a run that is in several roots counts once, and one that did
    not fail counts before a failure of the same run.

    The manifest of the first root that has one says which signatures belong together, so that runs of an older command
    never mix with those of the last one. Without a manifest every record counts.
    """
    manifest = find_manifest(roots, study, scale)
    records: dict[tuple[str, int, str], Record] = {}
    left_out = []
    for run in (run for root in roots for store in open_stores(root, study) for run in store.list_runs()):
        record, why = run.read_record()
        if record is None:
            left_out.append(f"{run.place}: {why}")
        elif record.study != study:
            left_out.append(f"{run.place}: a record of the study {record.study}")
        elif record.scale == scale and (manifest is None or manifest.holds(record.label, record.signature)):
            key = record.arm, record.seed, record.signature
            if key not in records or (records[key].status == "failed" and record.status != "failed"):
                records[key] = record
    return StudyRecords([records[key] for key in sorted(records)], left_out)


def find_kept(root: Path, study: str, folder: Path) -> Record | None:
    """The record of a run with this folder that needs no further work and is kept below `root`, or None."""
    run = _find_run(root, study, folder.parent.name, folder.name)
    record = run.read_record()[0] if run is not None else None
    return record if record and folder.name.endswith(record.signature) and record.status != "failed" else None


def find_stored(record: Record, roots: Sequence[Path]) -> StoredRun | None:
    """What was kept of a record's run below the roots, or None."""
    name = f"seed{record.seed}-{record.signature}"
    return next((run for root in roots if (run := _find_run(root, record.study, record.arm, name))), None)


def _find_run(root: Path, study: str, arm: str, name: str) -> StoredRun | None:
    return next((run for store in open_stores(root, study) if (run := store.find(arm, name))), None)


def keep(folder: Path, root: Path, study: str) -> StoredRun:
    """Copy what a table needs of a finished run below `root`, unless it is there already; returns the kept run."""
    import yaml

    arm, name = folder.parent.name, folder.name
    if (known := _find_run(root, study, arm, name)) is not None:
        return known
    with whole_folder(root / study / arm / name, sealed=False) as work:
        run = RunFolder(folder)
        for file in (CONFIG, RECORD, *run.list_curves()):
            if (content := run.read(file)) is None:
                continue
            if file == CONFIG:
                config = portable_config(yaml.safe_load(content))
                content = bytes(yaml.safe_dump(config, sort_keys=False, allow_unicode=True, encoding="utf-8"))
            write_bytes(work / file, content)
        work.chmod(0o755)
    return RunFolder(root / study / arm / name)


def archive(root: Path, study: str, scale: str) -> int:
    """Move the finished runs of a study below `root`, and its manifest, into its archive.

    Returns how many runs it then holds.

    Raises UserError if a record is damaged, or if a run's folder holds weights or other files that an archive would not
    keep.
    """
    folder = root / study
    with alone(folder):
        runs = [run for store in open_stores(root, study) for run in store.list_runs()]
        for run in runs:
            record, why = run.read_record()
            if record is None:
                raise UserError(f"{run.place}: {why}", "copy it again, or remove it")
        manifest = read_manifest_file(root, study, scale)
        finished = [run for run in runs if run.read(RECORD) is not None]
        folders = [run.folder for run in finished if isinstance(run, RunFolder)]
        for one in folders:
            kept = {RECORD, CONFIG, GOLD, *RunFolder(one).list_curves()}
            names = (path.relative_to(one).as_posix() for path in sorted(one.rglob("*")) if path.is_file())
            if other := next((name for name in names if name not in kept), None):
                cause = f"{one} also holds {other}, which an archive does not keep"
                raise UserError(cause, "give results= its own folder")
        write_archive(folder, finished, {scale: parse(manifest.decode("utf-8"))} if manifest else {})
        (folder / f"{scale}.json").unlink(missing_ok=True)
        for one in folders:  # first out of the way as a whole: a part of a run would hide the archived one
            one.rename(one.with_name(f"{_GONE}{one.name}"))
        for rest in folder.glob(f"*/{_GONE}*"):
            shutil.rmtree(rest)
        for arm in (place for place in folder.iterdir() if place.is_dir()):
            with suppress(OSError):  # it still holds a run that failed
                arm.rmdir()
        packed = open_archive(folder)
        return 0 if packed is None else len(packed.records)


def portable_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved config without the paths of one machine, of which the last part stays, and with its secrets masked."""
    kept = {key: value for key, value in config.items() if key not in ("paths", "run_dir")}
    masked: dict[str, Any] = mask(_cut_paths(kept))
    return masked


def portable_overrides(overrides: Sequence[str]) -> list[str]:
    """Overrides without the paths of one machine, and with their secrets masked."""
    pairs = (text.partition("=") for text in overrides)
    return [
        mask_text(f"{key}{equals}{_cut_paths(value)}") for key, equals, value in pairs if not key.startswith("paths.")
    ]


def _cut_paths(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _cut_paths(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut_paths(inner) for inner in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def trial_study(study: str) -> str:
    """The study that the trials of a study belong to; no table reads it."""
    return f"{study}{_TRIALS}"


def is_trial_study(study: str) -> bool:
    """Whether the runs of a study are trials."""
    return study.endswith(_TRIALS)
