"""Runs a finished run again from its own config, and compares the results bit for bit."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.core.config import compose
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.jsonable import to_json
from paribus.runs.archive import RECORDS_FILE, open_archive
from paribus.runs.folder import CURVES, RECORD, RunFolder, StoredRun
from paribus.runs.record import Record
from paribus.verdict.metrics import find_metric

_PROFILE = ("accelerator", "precision", "threads", "workers", "microbatch", "compile")
_TIMED = ("train_seconds",)  # of the budget: what a clock gives


def reproduce(name: str, roots: Sequence[Path], cache: Path | None = None) -> tuple[str, bool]:
    """Run a record again in a temporary folder: (what is the same and what differs, whether everything is the same).

    Args:
        name: the run's folder or signature.
        roots: folders in which a signature is looked up.
        cache: of prepared text, None for that of the run.

    Raises:
        UserError: if the run is not found or not finished, or if its text, tasks or code now mean something else;
            before any training step.
    """
    stored = find_run(name, roots)
    record = _read_finished(stored)
    with tempfile.TemporaryDirectory(prefix="paribus-reproduce-") as place:
        again = RunFolder(run_again(stored, record, Path(place), cache))
        lines = list(compare_runs(record, stored, _read_finished(again), again))
    return "\n".join([f"# {stored} run again", *lines]), not any(line.startswith("✗") for line in lines)


def find_run(name: str, roots: Sequence[Path]) -> StoredRun:
    """A finished run. Raises UserError if there is none of this path or signature."""
    if os.path.isfile(Path(name) / RECORD):  # unlike Path.is_file, for every name
        return RunFolder(Path(name))
    for root in roots if re.fullmatch("[0-9a-f]{1,64}", name) else ():
        for depth in ("*/*", "*/*/*"):
            for folder in sorted(root.glob(f"{depth}/seed*-{name}*")):
                if (folder / RECORD).is_file():
                    return RunFolder(folder)
        for path in sorted([*root.glob(f"*/{RECORDS_FILE}"), *root.glob(f"*/*/{RECORDS_FILE}")]):
            archive = open_archive(path.parent)
            for run in archive.list_runs() if archive else ():
                if run.key.name.partition("-")[2].startswith(name):
                    return run
    looked = ", ".join(map(str, roots))
    raise UserError(f"no finished run '{name}'", f"name its folder or signature; looked in {looked}")


def _read_finished(stored: StoredRun) -> Record:
    record, why = stored.read_record()
    if record is None:
        raise UserError(f"{stored}: {RECORD} is {why}", "only a complete record can be compared")
    if not record.done:
        raise UserError(f"{stored}: the run {record.status}", "only a finished run can be compared")
    return record


def run_again(stored: StoredRun, record: Record, place: Path, cache: Path | None) -> Path:
    """Run the stored config with the record's own profile; returns the new run's folder.

    Raises UserError if the config is now another run.
    """
    from omegaconf import OmegaConf

    from paribus.training.description import Run
    from paribus.training.run import run

    content = read_stored_config(stored)
    content["run_dir"] = str(place / "run")
    content["paths"] = {**content.get("paths", {}), "runs": str(place), **({"cache": str(cache)} if cache else {})}
    content["logger"] = OmegaConf.to_container(compose(["scale=null", "logger=none"]).logger)
    content["profile"] |= {key: record.profile[key] for key in _PROFILE if key in record.profile}
    config = OmegaConf.create(content)
    identity = Run.of(config).identity
    if identity.signature != record.signature:
        changed = [key for key, value in identity.data.items() if record.data.get(key) != value]
        changed += [f"task {key}" for key, value in identity.tasks.items() if record.data["tasks"].get(key) != value]
        raise UserError(
            f"{stored}: the same config is now the run {identity.signature}, not {record.signature}",
            f"changed since the record: {', '.join(changed) or 'the meaning of a component (semantics)'}",
        )
    say(f"running {record.label} again in {place}")
    return run(config)


def read_stored_config(run: StoredRun) -> dict[str, Any]:
    """A run's config as plain data, completed with settings that were added later. Raises UserError if it cannot be
    read.
    """
    from omegaconf import OmegaConf

    stored = run.read_config()
    if stored is None:
        raise UserError(f"{run} holds no readable config.yaml", "without it the run cannot be repeated")
    default: Any = OmegaConf.to_container(compose(["scale=null"]), resolve=True)
    del default["evaluation"]  # a text-to-text arm's has other settings than the default's
    return complete(stored, default)


def complete(stored: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """A stored config with settings that were added later, at their defaults; components fill in their own."""
    if "_target_" in stored:
        return dict(stored)
    completed = {key: value for key, value in default.items() if key not in stored}
    for key, value in stored.items():
        both = isinstance(value, Mapping) and isinstance(default.get(key), Mapping)
        completed[key] = complete(value, default[key]) if both else value
    return completed


def compare_runs(old: Record, before: StoredRun, new: Record, after: RunFolder) -> Iterator[str]:
    """A line for each part of the records, the curves and the weights: ✓ the same bits, or ✗ what differs."""
    measured = (
        {name: value for name, value in run.metrics.items() if not find_metric(name).timed} for run in (old, new)
    )
    yield from _compare_part("metrics", *measured)
    for part in ("baselines", "task_runs", "realised"):
        yield from _compare_part(part, getattr(old, part), getattr(new, part))
    budgets = ({key: value for key, value in run.budget.items() if key not in _TIMED} for run in (old, new))
    yield from _compare_part("budget", *budgets)
    yield from _compare_curves(before.read(CURVES), after.read(CURVES) or b"")
    folder = before.folder if isinstance(before, RunFolder) else None
    weights = sorted(folder.rglob("*.safetensors")) if folder else []
    for path in weights:
        name = path.relative_to(folder or path).as_posix()
        yield f"✓ {name}: the same bits" if after.read(name) == path.read_bytes() else f"✗ {name}: other weights"
    if not weights:
        yield "- weights: the run keeps none, so they are not compared"
    versions = {key: (value, new.versions.get(key)) for key, value in old.versions.items()}
    odd = [f"{key} {before} then, {now} now" for key, (before, now) in versions.items() if before != now]
    yield f"- versions: {', '.join(odd) or 'the same'}"


def _compare_part(name: str, old: object, new: object) -> Iterator[str]:
    before, now = _list_leaves(to_json(old)), _list_leaves(to_json(new))
    odd = [f"✗ {name}{key}: {value} then, {now.get(key)} now" for key, value in before.items() if now.get(key) != value]
    yield from odd or [f"✓ {name}: the same bits"]
    if later := sorted(now.keys() - before.keys()):
        yield f"- {name}: measured now but not in the record: {', '.join(later)}"


def _list_leaves(value: object, path: str = "") -> dict[str, Any]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if pairs is None:
        return {path: value}
    return {name: leaf for key, inner in pairs for name, leaf in _list_leaves(inner, f"{path}[{key}]").items()}


def _compare_curves(old: bytes | None, new: bytes) -> Iterator[str]:
    if old is None:
        yield "- curves: the run keeps none, so they are not compared"
        return
    before, now = old.splitlines(), new.splitlines()
    odd = [at for at, (a, b) in enumerate(zip(before, now, strict=False), 1) if a != b]
    if not odd and len(before) == len(now):
        yield f"✓ curves: the same bits in {len(now)} lines"
    elif odd:
        yield f"✗ curves: {len(odd)} of {len(before)} lines differ, the first is line {odd[0]}"
    else:
        yield f"✗ curves: {len(before)} lines then, {len(now)} now"
