"""What to type after a table: the command that would decide its open claims, with its cost."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core.config import compose, plain
from paribus.core.console import duration
from paribus.core.trust import mask_text
from paribus.reports.tables.schema import ClaimRow, Table
from paribus.runs.manifest import find_manifest
from paribus.runs.record import Record
from paribus.runs.store import find_records
from paribus.sweeps.launchers.local import machine_slots
from paribus.sweeps.plan import command_with
from paribus.sweeps.request import MAX_SEEDS, MOST_LOOKS, UNTIL_DECIDED, Request
from paribus.sweeps.sweep import SCRATCH, TRIAL, arm_overrides
from paribus.training.outlook import ENOUGH, foresee, lengthen
from paribus.verdict.sequential import FIRST
from paribus.verdict.words import UNDECIDED

TWICE = 2.0  # as long, if nothing says how long is enough


def next_step(table: Table, request: Request) -> str | None:
    """One line for a table with undecided claims; None if every claim is decided, or nothing was run.

    Runs that stayed on the plateau of a trivial model come first: no number of seeds decides what they are asked.
    """
    waiting = [claim for claim in table.claims if claim.verdict == UNDECIDED]
    if not waiting or table.scale == TRIAL:
        return None
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    request = request._replace(overrides=tuple(map(mask_text, manifest.overrides)) if manifest else ())
    records = [one for one in find_records(request.study_name, request.scale, request.roots).records if one.done]
    if stuck := _find_stuck(table, waiting):
        return _train_longer(request, records, stuck)
    seeds = _count_seeds(waiting)
    if seeds is None or not records:
        return None
    if seeds > MOST_LOOKS:
        return f"the open claims need more than {MOST_LOOKS} seeds: train longer, or ask for a larger margin"
    until = None if manifest is None else manifest.until
    most = max(seeds, FIRST) if until is None else int(until["most"])
    arms = {arm for claim in waiting for row in claim.contrasts for arm in (row.arm, row.versus)} | {SCRATCH}
    have = {arm: len({one.seed for one in records if one.arm == arm}) for arm in arms}
    more = sum(max(0, most - have[arm]) * _mean_seconds(records, arm) for arm in arms)
    about = duration(more / len(machine_slots(len(arms))))
    command = " ".join([request.command("run"), *request.overrides, UNTIL_DECIDED.label, f"{MAX_SEEDS.label}{most}"])
    return f"{command}   # adds seeds while a claim is open, at most {most}: at most {about}"


def _find_stuck(table: Table, claims: Sequence[ClaimRow]) -> list[str]:
    """The arms of these claims of which a run neither left its plateau nor memorized its text."""
    asked = {arm for claim in claims for row in claim.contrasts for arm in (row.arm, row.versus)}
    losses = {arm.name: arm.own for arm in table.arms if arm.name in asked and arm.own is not None}
    return [name for name, loss in losses.items() if loss.left + loss.memorized < loss.n]


def _train_longer(request: Request, records: Sequence[Record], stuck: Sequence[str]) -> str:
    sweep = request.sweep
    config = plain(compose([*arm_overrides(sweep, request.scale, sweep.baseline, request.overrides)]))
    used = max((one.budget.get("input_tokens", 0.0) for one in records if one.arm in stuck), default=0.0)
    outlook = foresee(config, used)
    factor = TWICE if outlook is None else max(outlook.factor, ENOUGH)
    override = lengthen(config["trainer"], factor)
    trained = sum(one.budget.get("train_seconds", 0.0) for one in records)
    tuned = sum(one.finetune_seconds or 0.0 for one in records)
    about = duration((trained * factor + tuned) / len(machine_slots(max(1, len(records)))))
    who = f"{', '.join(stuck)} stayed on the plateau of a trivial model"
    if not (command := command_with(request, override)):
        return f"{who}: train {factor:.1f} times as long, about {about}"
    return f"{command}   # {factor:.1f} times as long, since {who}: about {about}"


def _count_seeds(claims: Sequence[ClaimRow]) -> int | None:
    """How many seeds would most likely decide the open ones of these claims; None if seeds decide none of them."""
    waiting = [row for claim in claims if claim.open for row in claim.contrasts if row.verdict == UNDECIDED]
    known = [row.seeds_needed for row in waiting if row.seeds_needed is not None]
    return max(known, default=MOST_LOOKS + 1 if waiting else None)


def _mean_seconds(records: Sequence[Record], arm: str) -> float:
    """Of a run of this arm, from its first step to its last fine-tuning."""
    runs = [run for run in records if run.arm == arm]
    seconds = [run.budget.get("train_seconds", 0.0) + (run.finetune_seconds or 0.0) for run in runs]
    return sum(seconds) / len(seconds) if seconds else 0.0
