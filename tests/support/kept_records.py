"""Sealed records as plain JSON, and their place below the folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paribus.core.checksums import seal
from paribus.core.files import write_json
from paribus.runs.folder import RECORD
from paribus.runs.record import SCHEMA


def record(arm: str = "dynamic", seed: int = 0, signature: str = "aa", **changes: Any) -> dict[str, Any]:
    plain = {
        "schema": SCHEMA, "signature": signature, "study": "s", "arm": arm, "seed": seed, "scale": "smoke",
        "sweep_hash": "h", "status": "done", "metrics": {"mlm_loss": 5.0}, "task_runs": [], "budget": {}, "data": {},
    }  # fmt: skip
    return seal({**plain, **changes})


def put(root: Path, made: dict[str, Any], name: str = RECORD) -> Path:
    folder = root / made["study"] / made["arm"] / f"seed{made['seed']}-{made['signature']}"
    write_json(folder / name, made)
    return folder
