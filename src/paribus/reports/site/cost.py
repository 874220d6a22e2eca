"""The cost of runs: hours of cores, or of processes on another device, that pre-training and fine-tuning took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paribus.runs.record import Record

NO_COST = "not recorded"


def add_hours(records: Iterable[Record]) -> dict[str, float]:
    """{unit: hours of pre-training} of finished runs; one that several of them start from counts once."""
    stages: dict[tuple[str, float], Record] = {}
    for record in records:
        if record.done and (seconds := record.budget.get("train_seconds")):
            signature = str(record.further.get("pretrain_signature", record.signature))
            stages.setdefault((signature, seconds), record)  # other seconds: it was trained again
    return _add((record, record.budget["train_seconds"]) for record in stages.values())


def describe_tuning(records: Iterable[Record], name: str = "") -> str:
    """Such as `0.4 core-hours (3 of 5 runs)`: what fine-tunings took, and how many runs recorded it if not all did."""
    tuned = [record for record in records if record.done and record.task_runs]
    spent = [(record, record.finetune_seconds) for record in tuned if record.finetune_seconds is not None]
    part = f" ({len(spent)} of {len(tuned)} runs)" if len(spent) < len(tuned) else ""
    return f"{format_hours(_add(spent))}{name}{part}" if spent else ""


def describe_cost(records: Iterable[Record]) -> str:
    """Such as `2.3 core-hours of pre-training, 0.4 core-hours of fine-tuning`; nothing if neither is on record."""
    runs = list(records)
    trained = format_hours(add_hours(runs))
    parts = [f"{trained} of pre-training" if trained else "", describe_tuning(runs, " of fine-tuning")]
    return ", ".join(part for part in parts if part)


def _add(spent: Iterable[tuple[Record, float]]) -> dict[str, float]:
    """{unit: hours} of seconds that runs spent."""
    hours: dict[str, float] = {}
    for record, seconds in spent:
        profile = record.profile
        workers = float(profile.get("ranks", 1))
        if profile.get("accelerator", "cpu") == "cpu":
            unit, workers = "core-hours", workers * float(profile.get("threads", 1))
        else:
            unit = f"process-hours on {profile.get('device')}"  # several processes may share one device
        hours[unit] = hours.get(unit, 0.0) + seconds * workers / 3600.0
    return hours


def format_hours(hours: Mapping[str, float]) -> str:
    """Such as `2.3 core-hours`; nothing if no training is on record."""
    return ", ".join(f"{value:.2g} {unit}" if value < 10 else f"{value:,.0f} {unit}" for unit, value in hours.items())
