"""The cost of runs: hours of cores, or of another device, that pre-training took. Fine-tuning is not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paribus.runs.record import Record

CORES = "core-hours"


def add_hours(records: Iterable[Record]) -> dict[str, float]:
    """{unit: hours} of finished runs; a pre-training that several of them start from counts once."""
    stages: dict[str, Record] = {}
    for record in records:
        if record.done and record.budget.get("train_seconds"):
            stages.setdefault(str(record.further.get("pretrain_signature", record.signature)), record)
    found: dict[str, float] = {}
    for record in stages.values():
        unit, devices = _find_unit(record.profile)
        found[unit] = found.get(unit, 0.0) + record.budget["train_seconds"] * devices / 3600.0
    return found


def _find_unit(profile: Mapping[str, Any]) -> tuple[str, float]:
    """(what is counted, how many of them worked)."""
    ranks = float(profile.get("ranks", 1))
    if profile.get("accelerator", "cpu") == "cpu":
        return CORES, ranks * float(profile.get("threads", 1))
    return f"hours of {profile.get('device')}", ranks


def format_hours(hours: Mapping[str, float]) -> str:
    """Such as `2.3 core-hours`; nothing if no training is on record."""
    return ", ".join(f"{value:.2g} {unit}" if value < 10 else f"{value:,.0f} {unit}" for unit, value in hours.items())
