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
from paribus.runs.record import Record, read_record
from paribus.runs.store import CURVES, RECORD, read_config

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
    folder = find_run(name, roots)
    record = _read_finished(folder)
    with tempfile.TemporaryDirectory(prefix="paribus-reproduce-") as place:
        again = _run_again(folder, record, Path(place), cache)
        lines = list(compare_runs(record, folder, _read_finished(again), again))
    return "\n".join([f"# {folder} run again", *lines]), not any(line.startswith("✗") for line in lines)


def find_run(name: str, roots: Sequence[Path]) -> Path:
    """The folder of a run. Raises UserError if there is none of this path or signature."""
    if os.path.isfile(Path(name) / RECORD):  # unlike Path.is_file, for every name
        return Path(name)
    for root in roots if re.fullmatch("[0-9a-f]{1,64}", name) else ():
        for depth in ("*/*", "*/*/*"):
            for folder in sorted(root.glob(f"{depth}/seed*-{name}*")):
                if (folder / RECORD).is_file():
                    return folder
    looked = ", ".join(map(str, roots))
    raise UserError(f"no finished run '{name}'", f"name its folder or signature; looked in {looked}")


def _read_finished(folder: Path) -> Record:
    record, why = read_record(folder / RECORD)
    if record is None:
        raise UserError(f"{folder / RECORD}: {why}", "only a complete record can be compared")
    if not record.done:
        raise UserError(f"{folder}: the run {record.status}", "only a finished run can be compared")
    return record


def _run_again(folder: Path, record: Record, place: Path, cache: Path | None) -> Path:
    """Run the stored config with the record's own profile; returns the new run's folder."""
    from paribus.training.description import Run
    from paribus.training.run import run

    config = _make_config(folder, record, place, cache)
    identity = Run.of(config).identity
    if identity.signature != record.signature:
        changed = [key for key, value in identity.data.items() if record.data.get(key) != value]
        changed += [f"task {key}" for key, value in identity.tasks.items() if record.data["tasks"].get(key) != value]
        raise UserError(
            f"{folder}: the same config is now the run {identity.signature}, not {record.signature}",
            f"changed since the record: {', '.join(changed) or 'the meaning of a component (semantics)'}",
        )
    say(f"running {record.label} again in {place}")
    return run(config)


def _make_config(folder: Path, record: Record, place: Path, cache: Path | None) -> Any:
    from omegaconf import OmegaConf

    config = read_stored_config(folder)
    config["run_dir"] = str(place / "run")
    config["paths"] = {**config["paths"], "runs": str(place), **({"cache": str(cache)} if cache else {})}
    config["logger"] = OmegaConf.to_container(compose(["scale=null", "logger=none"]).logger)
    config["profile"] |= {key: record.profile[key] for key in _PROFILE if key in record.profile}
    return OmegaConf.create(config)


def read_stored_config(folder: Path) -> dict[str, Any]:
    """A run's config as plain data, completed with settings that were added later. Raises UserError if it cannot be
    read.
    """
    from omegaconf import OmegaConf

    stored = read_config(folder)
    if stored is None:
        raise UserError(f"{folder} holds no readable config.yaml", "without it the run cannot be repeated")
    default: Any = OmegaConf.to_container(compose(["scale=null"]), resolve=True)
    del default["evaluation"]  # a text-to-text arm's has other settings than the default's
    return complete(stored, default)


def complete(stored: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """A stored config with settings that were added later, at their defaults; components fill in their own."""
    if "_target_" in stored:
        return dict(stored)
    own = {
        key: complete(value, default[key])
        if isinstance(value, Mapping) and isinstance(default.get(key), Mapping)
        else value
        for key, value in stored.items()
    }
    return {**{key: value for key, value in default.items() if key not in stored}, **own}


def compare_runs(old: Record, old_folder: Path, new: Record, new_folder: Path) -> Iterator[str]:
    """A line for each part of the records, the curves and the weights: ✓ the same bits, or ✗ what differs."""
    for part in ("metrics", "baselines", "task_runs", "realised"):
        yield from _compare_part(part, getattr(old, part), getattr(new, part))
    budgets = ({key: value for key, value in run.budget.items() if key not in _TIMED} for run in (old, new))
    yield from _compare_part("budget", *budgets)
    yield from _compare_curves(old_folder / CURVES, new_folder / CURVES)
    weights = sorted(path.relative_to(old_folder) for path in old_folder.rglob("*.safetensors"))
    for path in weights:
        same = (new_folder / path).is_file() and (new_folder / path).read_bytes() == (old_folder / path).read_bytes()
        yield f"✓ {path}: the same bits" if same else f"✗ {path}: other weights"
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


def _compare_curves(old: Path, new: Path) -> Iterator[str]:
    if not old.is_file():
        yield "- curves: the run keeps none, so they are not compared"
        return
    before, now = (path.read_text(encoding="utf-8").splitlines() for path in (old, new))
    odd = [at for at, (a, b) in enumerate(zip(before, now, strict=False), 1) if a != b]
    if not odd and len(before) == len(now):
        yield f"✓ curves: the same bits in {len(now)} lines"
    elif odd:
        yield f"✗ curves: {len(odd)} of {len(before)} lines differ, the first is line {odd[0]}"
    else:
        yield f"✗ curves: {len(before)} lines then, {len(now)} now"
