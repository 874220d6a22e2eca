"""The records of a study: which runs make its sweep, what they measured, and what state they are in.

Below a root, `<study>/<arm>/seed<k>-<signature>/` holds `result.json`, or `failed.json` if the run failed and will be
tried again; `<study>/<scale>.json` is the manifest: which runs make the sweep. An archive holds both of a finished
table (see `runs.stored`).
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.checksums import hash_bytes, parse, verify
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import alone, is_name, read_end, whole_folder, write_bytes, write_sealed
from paribus.core.jsonable import to_json
from paribus.core.moved import update_targets
from paribus.core.trust import mask, mask_text
from paribus.runs.archive import (
    CONFIG,
    CURVES,
    FAILED,
    RECORD,
    RunFolder,
    StoredRun,
    open_archive,
    open_stores,
    write_archive,
)
from paribus.runs.record import Record, parse_record, read_record

RESULTS = Path("analysis/results")  # the committed results, below the root of a checkout
LOCK = ".lock"
POINTER = "folder"
GOLD = "gold.npz"  # probabilities of right answers, see `runs.gold`
_GONE = ".archived-"  # before the name of a run's folder that is being removed
_TRIALS = ".tune"  # after the name of a study: its trials


class Found(NamedTuple):
    """`records`: the whole ones; `left_out`: why each of the others was left out."""

    records: list[Record]
    left_out: list[str]


def find_records(study: str, scale: str, roots: Sequence[Path]) -> Found:
    """The records of a study at a scale, by arm and seed; a run that is in several roots counts once.

    The manifest of the first root that has one says which signatures belong together, so that runs of an older command
    never mix with those of the last one. Without a manifest every record counts.
    """
    manifest = find_manifest(roots, study, scale)
    found: dict[tuple[str, int, str], Record] = {}
    left_out = []
    for run in (run for root in roots for one in open_stores(root, study) for run in one.list_runs()):
        record, why = read_stored(run)
        if record is None:
            left_out.append(f"{run.place}: {why}")
        elif record.study != study:
            left_out.append(f"{run.place}: a record of the study {record.study}")
        elif record.scale == scale and (manifest is None or manifest.holds(record.label, record.signature)):
            _prefer(found, record)
    return Found([found[key] for key in sorted(found)], left_out)


def read_stored(run: StoredRun) -> tuple[Record | None, str]:
    """The record of a run, or that of its failure, as `read_record` returns them."""
    try:
        content = run.read(RECORD) or run.read(FAILED)
    except OSError as error:
        return None, f"not readable ({error.strerror})"
    return parse_record(content) if content is not None else (None, "half-written or no record")


def _prefer(found: dict[tuple[str, int, str], Record], record: Record) -> None:
    """Keep the record unless one of the same run is kept already; a run that did not fail replaces a failure."""
    key = record.arm, record.seed, record.signature
    if key not in found or (found[key].status == "failed" and record.status != "failed"):
        found[key] = record


def find_finished(folder: Path, signature: str) -> Record | None:
    """The record of a run that needs no further work (done or diverged), or None."""
    record, _ = read_record(folder / RECORD)
    return record if record and record.signature == signature and record.status != "failed" else None


def find_kept(root: Path, study: str, folder: Path) -> Record | None:
    """The record of a run with this folder that needs no further work and is kept below `root`, or None."""
    stored = _find_run(root, study, folder.parent.name, folder.name)
    record = read_stored(stored)[0] if stored is not None else None
    return record if record and folder.name.endswith(record.signature) and record.status != "failed" else None


def _find_run(root: Path, study: str, arm: str, name: str) -> StoredRun | None:
    return next((found for one in open_stores(root, study) if (found := one.find(arm, name))), None)


def write_failure(folder: Path, run: Record, error: str) -> None:
    """Write `failed.json`, so that the next command tries the run again; `run` says which run it was."""
    write_sealed(folder / FAILED, to_json(replace(run, status="failed", error=error)))


def keep(folder: Path, root: Path, study: str) -> StoredRun:
    """Copy what a table needs of a finished run below `root`, unless it is there already; returns the kept run."""
    arm, name = folder.parent.name, folder.name
    if (known := _find_run(root, study, arm, name)) is not None:
        return known
    with whole_folder(root / study / arm / name, sealed=False) as work:
        run = RunFolder(folder)
        for file in (CONFIG, RECORD, *run.list_curves()):
            if (content := run.read(file)) is not None:
                write_bytes(work / file, _make_portable(content) if file == CONFIG else content)
        work.chmod(0o755)
    return RunFolder(root / study / arm / name)


def archive(root: Path, study: str, scale: str) -> int:
    """Move the finished runs of a study below `root`, and its manifest, into its archive.

    Returns how many runs it then holds.

    Raises UserError if a record is damaged.
    """
    folder = root / study
    with alone(folder):
        runs = [run for one in open_stores(root, study) for run in one.list_runs()]
        for run in runs:
            record, why = read_stored(run)
            if record is None:
                raise UserError(f"{run.place}: {why}", "copy it again, or remove it")
        manifest = _find_manifest_content(root, study, scale)
        finished = [run for run in runs if run.read(RECORD) is not None]
        folders = [run.folder for run in finished if isinstance(run, RunFolder)]
        for one in folders:
            _require_kept_files_alone(one)
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


def _require_kept_files_alone(folder: Path) -> None:
    """Raises UserError for a folder that holds weights or other files that an archive would not keep."""
    kept = {RECORD, CONFIG, GOLD, *RunFolder(folder).list_curves()}
    names = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
    if other := next((name for name in names if name not in kept), None):
        raise UserError(f"{folder} also holds {other}, which an archive does not keep", "give results= its own folder")


def _make_portable(content: bytes) -> bytes:
    import yaml

    config = portable_config(yaml.safe_load(content))
    return bytes(yaml.safe_dump(config, sort_keys=False, allow_unicode=True, encoding="utf-8"))


def portable_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved config without the paths of one machine, of which the last part stays, and with its secrets masked."""
    own: dict[str, Any] = _cut_paths({key: value for key, value in config.items() if key not in ("paths", "run_dir")})
    masked: dict[str, Any] = mask(own)
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


class Manifest(NamedTuple):
    """Which runs make the sweep: `runs` {arm/seed<k>: signature}, `steps` {arm: planned optimizer steps}.

    `absent`: {arm: why no machine has run it}. `until`: if seeds are added until the claims are decided, {first, most:
    how many seeds at the first and the last look, seeds: those of the latest look, settled: arms that it gave none}.
    `tuning`: the JSON of `sweeps.tuning.Tuning`, empty if no arm was tuned.
    """

    sweep_hash: str
    overrides: list[str]
    runs: dict[str, str]
    steps: dict[str, int]
    absent: Mapping[str, str] = {}
    until: dict[str, Any] | None = None
    tuning: Mapping[str, Any] = {}

    def holds(self, label: str, signature: str) -> bool:
        """Whether a run, such as `dynamic/seed0`, belongs to the sweep under this signature."""
        return self.runs.get(label) == signature

    def arms(self) -> set[str]:
        return {label.rpartition("/seed")[0] for label in self.runs}


def read_manifest(root: Path, study: str, scale: str) -> Manifest | None:
    """The manifest of a study at a scale, or None if there is none that can be read."""
    if (content := _find_manifest_content(root, study, scale)) is None:
        return None
    if (found := _parse_manifest(content)) is None:
        say(f"{root / study / scale}.json is damaged and ignored; `paribus run` rewrites it")
    return found


def _find_manifest_content(root: Path, study: str, scale: str) -> bytes | None:
    contents = (one.read_manifest(scale) for one in open_stores(root, study))
    return next((content for content in contents if content is not None), None)


def _parse_manifest(text: bytes) -> Manifest | None:
    try:
        content = parse(text.decode("utf-8"))
        if "checksum" in content and not verify(content):  # older ones have none
            return None
        found = Manifest(**{key: value for key, value in content.items() if key != "checksum"})
    except (ValueError, TypeError, AttributeError):
        return None
    kinds = (str, list, dict, dict, Mapping)
    right = all(isinstance(part, kind) for part, kind in zip(found, kinds, strict=False))
    return found if right and all(map(_is_run, found.runs)) else None


def _is_run(label: object) -> bool:
    arm, _, seed = str(label).rpartition("/seed")
    return is_name(arm) and seed.isdecimal()


def find_manifest(roots: Sequence[Path], study: str, scale: str) -> Manifest | None:
    """The manifest of the first root that has one."""
    return next((found for root in roots if (found := read_manifest(root, study, scale))), None)


def write_manifest(root: Path, study: str, scale: str, manifest: Manifest) -> Manifest:
    """Write a manifest and return it; the runs of an older one of the same sweep and overrides stay in it."""
    with alone(root / study):
        old = read_manifest(root, study, scale)
        if old is not None and old[:2] == manifest[:2]:
            manifest = _join(old, manifest)
        ran = manifest.arms()  # another machine may have run an absent arm
        manifest = manifest._replace(absent={arm: why for arm, why in manifest.absent.items() if arm not in ran})
        if manifest != old:
            optional = ("absent", "until", "tuning")
            given = {key: value for key, value in manifest._asdict().items() if value or key not in optional}
            write_sealed(root / study / f"{scale}.json", given)
    return manifest


def _join(old: Manifest, new: Manifest) -> Manifest:
    """Both as one; the new one counts if they differ."""
    tuning = new.tuning
    if tuning and old.tuning.get("spec") == tuning["spec"]:
        tuning = {**tuning, "arms": {**old.tuning["arms"], **tuning["arms"]}}
    runs, steps = {**old.runs, **new.runs}, {**old.steps, **new.steps}
    return new._replace(runs=runs, steps=steps, until=new.until or old.until, tuning=tuning)


def read_config(run: StoredRun) -> dict[str, Any] | None:
    """The resolved config of a run, with the present names of its components, or None if it cannot be read."""
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        config = yaml.load((run.read(CONFIG) or b"").decode("utf-8"), Loader=loader)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return update_targets(config) if isinstance(config, dict) else None


def read_scale(folder: Path) -> str | None:
    """The scale of a run by its config; None if the folder does not say."""
    try:  # the whole file would take long
        found = re.search(r"^scale: (\S+)$", (folder / CONFIG).read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return found[1] if found else None


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
    return "stopped" if (folder / "signature").is_file() else "missing", None


def shelf(runs: Path, pretrain: str) -> Path:
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


def read_last_step(folder: Path) -> int:
    """The last optimizer step in metrics.jsonl, 0 if there is none; of an ensemble the sum over its members."""
    return sum(map(_read_last_step, (folder, *folder.glob("members/*"))))


def _read_last_step(folder: Path) -> int:
    found = (line for text in reversed(read_end(folder / CURVES)) if isinstance(line := _parse(text), dict))
    return next((line["step"] for line in found if isinstance(line.get("step"), int)), 0)


def read_curve_lines(run: StoredRun, record: Record, name: str = CURVES) -> list[dict[str, Any]]:
    """The lines of a run's learning curves; none, with a message, if they are not those that it wrote."""
    content, expected = run.read(name), record.curves.get(name)
    if content is None:
        return []
    if expected is not None and hash_bytes(content) != expected:
        say(f"{run}: {name} is damaged or from another run; its curves are left out")
        return []
    return parse_lines(content)


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
        found = json.loads(f"[{','.join(texts)}]")
    except (ValueError, RecursionError):
        found = [_parse(text) for text in texts]
    return [line for line in found if isinstance(line, dict)]


def _parse(text: str) -> object:
    try:
        found: object = parse(text)
    except ValueError:
        return None
    return found


def find_stored(record: Record, roots: Sequence[Path]) -> StoredRun | None:
    """What was kept of a record's run below the roots, or None."""
    name = f"seed{record.seed}-{record.signature}"
    return next((found for root in roots if (found := _find_run(root, record.study, record.arm, name))), None)


def trial_study(study: str) -> str:
    """The study that the trials of a study belong to; no table reads it."""
    return f"{study}{_TRIALS}"


def is_trial_study(study: str) -> bool:
    """Whether the runs of a study are trials."""
    return study.endswith(_TRIALS)
