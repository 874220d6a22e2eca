"""The store of runs: sealed records in folders, read back whole or not at all.

Below a root stands `<study>/<arm>/seed<k>-<signature>/` with `result.json`, or `failed.json` where the run failed and
is to be tried again, and `<study>/<scale>.json`, the manifest: which signatures the last command made the sweep of.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.files import whole_folder, write_json, write_text
from paribus.core.hashing import digest

RECORD = "result.json"
FAILED = "failed.json"
CONFIG = "config.yaml"
CURVES = "metrics.jsonl"  # learning curves of pre-training
TUNING = "tuning.jsonl"  # learning curves of fine-tunings, of runs with finetune.points
KEPT = (CONFIG, CURVES, TUNING, RECORD)  # of a run, in the committed results
SCHEMA = 1

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "schema": int, "signature": str, "study": str, "arm": str, "seed": int, "scale": (str, type(None)), "status": str,
}  # fmt: skip
_DONE: dict[str, type | tuple[type, ...]] = {"metrics": dict, "task_runs": list, "budget": dict, "data": dict}
_TRIALS = ".tune"  # after the name of a study: its trials
STATUSES = ("done", "failed", "diverged")

Record = dict[str, Any]


def seal(record: Record) -> Record:
    """The record with a checksum of its content, so that an edit by hand is seen."""
    content = json.loads(json.dumps({key: value for key, value in record.items() if key != "checksum"}))
    return {**content, "checksum": digest(content, 32)}


def verify(record: Record) -> bool:
    """Whether a record still is what was sealed."""
    try:
        return bool(seal(record)["checksum"] == record.get("checksum"))
    except ValueError:  # NaN: never sealed so
        return False


class Found(NamedTuple):
    """records: the whole ones; left_out: why each of the others is not among them."""

    records: list[Record]
    left_out: list[str]


def records(study: str, scale: str, roots: Sequence[Path]) -> Found:
    """The records of a study at a scale, by arm and seed. The same run in several roots counts once, finished first.

    The first root with a manifest of the study and scale says which signatures belong together, so that runs of an older
    command never mix with those of the last one; without a manifest all are returned.
    """
    manifest = first_manifest(roots, study, scale)
    found: dict[tuple[str, int, str], Record] = {}
    left_out = []
    for path in _paths(study, roots):
        record, why = read(path)
        if record is None:
            left_out.append(f"{path}: {why}")
        elif record["study"] != study:
            left_out.append(f"{path}: a record of the study {record['study']}")
        elif record["scale"] == scale and (manifest is None or manifest.holds(record)):
            _prefer(found, record)
    return Found([found[key] for key in sorted(found)], left_out)


def _paths(study: str, roots: Sequence[Path]) -> Iterator[Path]:
    for root in roots:
        for name in (RECORD, FAILED):
            yield from sorted((root / study).glob(f"*/seed*/{name}"))


def _prefer(found: dict[tuple[str, int, str], Record], record: Record) -> None:
    key = (record["arm"], record["seed"], record["signature"])
    if key not in found or (found[key]["status"] == "failed" and record["status"] != "failed"):
        found[key] = record


def read(path: Path) -> tuple[Record | None, str]:
    """(a whole record, "") or (None, why it is none)."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None, "half-written or no record"
    if not isinstance(record, dict) or "schema" not in record:
        return None, "no record of a run"
    if record["schema"] != SCHEMA:
        return None, f"schema {record['schema']}, not {SCHEMA}"
    if odd := _odd(record, _FIELDS) or (_odd(record, _DONE) if record["status"] == "done" else ""):
        return None, f"'{odd}' is missing or of the wrong kind"
    if record["status"] not in STATUSES:
        return None, f"status {record['status']} is unknown"
    return (record, "") if verify(record) else (None, "edited after the run (checksum)")


def _odd(record: Record, fields: Mapping[str, Any]) -> str:
    return next((name for name, kind in fields.items() if not isinstance(record.get(name, ...), kind)), "")


def finished(folder: Path, signature: str) -> Record | None:
    """The record of a run that needs no further work (done or diverged), or None."""
    record, _ = read(folder / RECORD)
    return record if record and record["signature"] == signature and record["status"] != "failed" else None


def write_failure(folder: Path, frame: Record, error: str) -> None:
    """Record a run that failed, beside the place of its result, so that the next command tries it again.

    Args:
        frame: signature, study, arm, seed, scale, sweep_hash.
    """
    empty: Record = {"metrics": {}, "baselines": {}, "task_runs": [], "budget": {}}
    write_json(folder / FAILED, seal({"schema": SCHEMA, **frame, "status": "failed", "error": error, **empty}))


def keep(folder: Path, root: Path, study: str) -> Path:
    """Copy a finished run's record, config and curves (no weights) below `root`; returns the copy's folder."""
    target = root / study / folder.parent.name / folder.name
    if not target.is_dir():
        with whole_folder(target) as work:
            for name in KEPT:
                if (folder / name).is_file():
                    text = (folder / name).read_text(encoding="utf-8")
                    write_text(work / name, portable(text) if name == CONFIG else text)
            work.chmod(0o755)
    return target


def portable(text: str) -> str:
    """A resolved config without the places of one machine: of an absolute path the last part stays."""
    import yaml

    return str(yaml.safe_dump(portable_config(yaml.safe_load(text)), sort_keys=False, allow_unicode=True))


def portable_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same of plain data."""
    own: dict[str, Any] = _relative({key: value for key, value in config.items() if key not in ("paths", "run_dir")})
    return own


def portable_overrides(overrides: Sequence[str]) -> list[str]:
    """Overrides without the places of one machine."""
    pairs = (text.partition("=") for text in overrides)
    return [f"{key}{equals}{_relative(value)}" for key, equals, value in pairs if not key.startswith("paths.")]


def _relative(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _relative(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_relative(inner) for inner in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


class Manifest(NamedTuple):
    """Which runs make the sweep: `runs` {arm/seed<k>: signature}, `steps` {arm: planned optimizer steps}.

    `absent`: {arm: why no machine has run it}. `until`: where seeds are added until the claims are decided, {first,
    most: seeds at the first and the last look, seeds: those of the look that was last}. `tuning`: the search that chose
    values for the arms (`study.search.Tuning`), empty where none was made.
    """

    sweep_hash: str
    overrides: list[str]
    runs: dict[str, str]
    steps: dict[str, int]
    absent: Mapping[str, str] = {}
    until: dict[str, Any] | None = None
    tuning: Mapping[str, Any] = {}

    def holds(self, record: Record) -> bool:
        return bool(self.runs.get(f"{record['arm']}/seed{record['seed']}") == record["signature"])


def read_manifest(root: Path, study: str, scale: str) -> Manifest | None:
    """The manifest of a study at a scale, or None."""
    try:
        return Manifest(**json.loads((root / study / f"{scale}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def first_manifest(roots: Sequence[Path], study: str, scale: str) -> Manifest | None:
    """The manifest of the first root that has one."""
    return next((found for root in roots if (found := read_manifest(root, study, scale))), None)


def write_manifest(root: Path, study: str, scale: str, manifest: Manifest) -> Manifest:
    """Write a manifest; the runs of an older one of the same sweep and overrides stay in it."""
    old = read_manifest(root, study, scale)
    if old is not None and old[:2] == manifest[:2]:
        runs, steps = {**old.runs, **manifest.runs}, {**old.steps, **manifest.steps}
        manifest = manifest._replace(runs=runs, steps=steps, until=manifest.until or old.until)
    ran = {label.rpartition("/seed")[0] for label in manifest.runs}  # an arm that another machine could run
    manifest = manifest._replace(absent={arm: why for arm, why in manifest.absent.items() if arm not in ran})
    if manifest != old:
        later = ("absent", "until", "tuning")
        given = {key: value for key, value in manifest._asdict().items() if value or key not in later}
        write_json(root / study / f"{scale}.json", given)
    return manifest


def state(folder: Path) -> tuple[str, Record | None]:
    """(the state of a run's folder, its record where it is over).

    The state is done, diverged, failed, running, stopped (it goes on when asked) or missing.
    """
    record, _ = read(folder / RECORD)
    if record is not None:
        return str(record["status"]), record
    if _held(folder / ".lock"):
        return "running", None
    if (folder / FAILED).is_file():
        return "failed", None
    return "stopped" if (folder / "signature").is_file() else "missing", None


def _held(lock: Path) -> bool:
    """Whether a process holds the lock of a run."""
    try:
        with lock.open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def last_step(folder: Path) -> int:
    """The last optimizer step in metrics.jsonl, 0 where there is none; of an ensemble the sum over its members."""
    return sum(map(_last_step, (folder, *folder.glob("members/*"))))


def _last_step(folder: Path) -> int:
    try:
        with (folder / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 4096))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue
    return 0


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl, those that can be read; none where there is no file."""
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    try:  # all at once; one by one where one of them is broken
        found = json.loads(f"[{','.join(texts)}]")
    except ValueError:
        found = [_line(text) for text in texts]
    return [line for line in found if isinstance(line, dict)]


def folder_of(record: Mapping[str, Any], roots: Sequence[Path]) -> Path | None:
    """Where a record's run was kept, or None."""
    name = f"seed{record['seed']}-{record['signature']}"
    places = (root / record["study"] / record["arm"] / name for root in roots)
    return next((place for place in places if place.is_dir()), None)


def _line(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def trial_study(study: str) -> str:
    """The study that the trials of a study belong to; no table reads it."""
    return f"{study}{_TRIALS}"


def is_trial_study(study: str) -> bool:
    """Whether the runs of a study are trials."""
    return study.endswith(_TRIALS)
