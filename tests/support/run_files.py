"""What a run has left in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
