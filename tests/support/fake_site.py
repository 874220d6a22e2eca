"""A folder as a user has it after a sweep: a sweep file, runs with configs and curves, and a table made of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from fake_records import design, study

from paribus.commands.table import table
from paribus.core.checksums import seal
from paribus.core.config import compose, plain
from paribus.sweeps.sweep import SCRATCH
from paribus.sweeps.sweep_file import load

SCHEDULES = {"static_x10": "copies", "dynamic": "dynamic", "static": "static", SCRATCH: "copies"}


def sweep_file(folder: Path, study_name: str = "roberta_table1") -> Path:
    asked = design()
    content = {
        "study": study_name,
        "varies": list(asked.varies),
        "matched": "tokens",
        "arms": {arm: list(overrides) for arm, overrides in asked.arms.items()},
        "baseline": asked.baseline,
        "columns": list(asked.columns),
        "claims": list(asked.claims),
        "published": dict(asked.published),
    }
    path = folder / "sweeps" / f"{study_name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("# RoBERTa, table 1\n" + yaml.safe_dump(content, sort_keys=False))
    return path


def place_of(folder: Path, record: dict[str, Any]) -> Path:
    return folder / "runs" / record["study"] / record["arm"] / f"seed{record['seed']}-{record['signature']}"


def keep(folder: Path, record: dict[str, Any]) -> Path:
    """Write a record with its config and curve as a run leaves them."""
    place = place_of(folder, record)
    place.mkdir(parents=True)
    lines = [
        {"step": 10 * n, "train/mlm_loss": 9.0 / n**0.3, "train/tokens": 4000 * n, "train/lr": 0.1}
        for n in range(1, 60)
    ]
    lines.append({"step": 590, "validation/mlm_loss": 5.0})
    (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (place / "config.yaml").write_text(yaml.safe_dump(config(record["arm"], record["seed"]), sort_keys=False))
    (place / "result.json").write_text(json.dumps(seal(record)))
    return place


_CONFIGS: dict[str, dict[str, Any]] = {}


def config(arm: str, seed: int) -> dict[str, Any]:
    if arm not in _CONFIGS:
        words = ["scale=test", "corpus=text", "corpus.path=nowhere", f"masking/schedule={SCHEDULES[arm]}", f"arm={arm}"]
        _CONFIGS[arm] = plain(compose(words))
    return {**_CONFIGS[arm], "seed": seed}


def made(folder: Path, scales: Sequence[str] = ("smoke", "cpu")) -> Path:
    """A folder with a table at each scale; the working directory must be this folder."""
    shutil.copytree(_made_once(tuple(scales)).name, folder, dirs_exist_ok=True)
    return folder


@cache
def _made_once(scales: tuple[str, ...]) -> TemporaryDirectory[str]:
    """What `made` copies, since drawing a table takes most of a second. It exists as long as the process."""
    place = TemporaryDirectory()
    with chdir(place.name):
        _make(Path(place.name), scales)
    return place


def _make(folder: Path, scales: Sequence[str]) -> None:
    sweep = sweep_file(folder)
    fixed = load(str(sweep))
    for number, scale in enumerate(scales):
        for record in study():
            budget = {**record["budget"], "flops": 1e12 * 10**number, "train_seconds": 900.0}
            tuned = [{"task": "sst2", "seed": 0, "metrics": {"accuracy": 0.5}}]
            spent = {"task_runs": tuned, "finetune_seconds": 300.0 if record["seed"] else None}  # the first has none
            own = {"scale": scale, "signature": f"{number}{record['signature']}", "budget": budget, **spent}
            keep(folder, {**record, **own, "sweep_hash": fixed.hash(scale)})
        table([str(sweep), f"scale={scale}"])
