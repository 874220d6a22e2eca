"""Answers in a sentence: the command that would decide a table's open claims, and what `paribus adapt` found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paribus.core.config import compose, plain
from paribus.core.console import duration
from paribus.core.trust import mask_text
from paribus.reports.tables.build import make_table
from paribus.reports.tables.schema import Table
from paribus.runs.manifest import find_manifest
from paribus.runs.record import Record
from paribus.runs.store import find_records
from paribus.sweeps.adapt import ADAPTED, AS_IT_IS
from paribus.sweeps.launchers.local import machine_slots
from paribus.sweeps.plan import command_with
from paribus.sweeps.request import MAX_SEEDS, MOST_LOOKS, UNTIL_DECIDED, Request
from paribus.sweeps.sweep import SCRATCH, TRIAL, Sweep, arm_overrides
from paribus.training.outlook import ENOUGH, foresee, lengthen
from paribus.verdict.metrics import in_points
from paribus.verdict.rules import UNDECIDED
from paribus.verdict.sequential import FIRST

TWICE = 2.0  # as long, if nothing says how long is enough
HOUR = 3600.0  # seconds


def next_step(table: Table, request: Request) -> str | None:
    """One line for a table with undecided claims; None if every claim is decided, or nothing was run.

    Runs that stayed on the plateau of a trivial model come first: no number of seeds decides what they are asked.
    """
    waiting = [claim for claim in table.claims if claim.verdict == UNDECIDED]
    if not waiting or table.scale == TRIAL:
        return None
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    if manifest is not None and manifest.lock:  # which decides how many seeds there are
        return None
    request = request._replace(overrides=tuple(map(mask_text, manifest.overrides)) if manifest else ())
    records = [one for one in find_records(request.study_name, request.scale, request.roots).records if one.done]
    asked = {arm for claim in waiting for row in claim.contrasts for arm in row.arms}
    # stuck: arms of which a run neither left its plateau nor memorized its text
    losses = {arm.name: arm.own for arm in table.arms if arm.name in asked and arm.own is not None}
    stuck = [name for name, loss in losses.items() if loss.left + loss.memorized < loss.n]
    if stuck and table.universe is None:  # whose settings count or not by the baseline
        return _train_longer(request, records, stuck)
    rows = [row for claim in waiting if claim.open for row in claim.contrasts if row.verdict == UNDECIDED]
    known = [row.seeds_needed for row in rows if row.seeds_needed is not None]
    seeds = max(known, default=MOST_LOOKS + 1)  # as many as would most likely decide the open claims
    if not rows or not records:
        return None
    if seeds > MOST_LOOKS:
        return f"the open claims need more than {MOST_LOOKS} seeds: train longer, or ask for a larger margin"
    until = None if manifest is None else manifest.until
    universe = request.sweep.universe_at(request.scale)
    least = FIRST if universe is None else universe.count + 1
    most = max(seeds, least) if until is None else int(until["most"])
    arms = asked | {SCRATCH}
    have = {arm: len({one.seed for one in records if one.arm == arm}) for arm in arms}
    more = sum(max(0, most - have[arm]) * _mean_seconds(records, arm) for arm in arms)
    about = duration(more / len(machine_slots(len(arms))))
    command = " ".join([request.command("run"), *request.overrides, UNTIL_DECIDED.label, f"{MAX_SEEDS.label}{most}"])
    unit = "seeds" if table.universe is None else "settings"
    return f"{command}   # adds {unit} while a claim is open, at most {most}: at most {about}"


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


def _mean_seconds(records: Sequence[Record], arm: str) -> float:
    """Of a run of this arm, from its first step to its last fine-tuning."""
    runs = [run for run in records if run.arm == arm]
    seconds = [run.budget.get("train_seconds", 0.0) + (run.finetune_seconds or 0.0) for run in runs]
    return sum(seconds) / len(seconds) if seconds else 0.0


def answer(sweep: Sweep, scale: str, roots: Sequence[Path]) -> str:
    """What further pre-training gains on the task, costs on general text and takes, each with a 95% interval.

    Raises UserError if no run is finished.
    """
    table, score = make_table(sweep, scale, None, roots), sweep.columns[0]
    gain = _difference(table, score)
    if gain is None:
        return "Further pre-training cannot be judged: no seed has finished both with it and without it."
    names = {AS_IT_IS: "as it is", ADAPTED: "further pre-trained"}
    levels = [
        f"{_number(arm.metrics[score].mean, score, '')} {names[arm.name]}" for arm in table.arms if score in arm.metrics
    ]
    scratch = next((row.metrics[score] for row in table.anchors if row.name == "from scratch"), None)
    levels += [f"{_number(scratch.mean, score, '')} from scratch"] if scratch else []
    lost = _difference(table, "stage_forgetting")
    unknown = "has an unknown cost on general text, since the checkpoint has no trained head on tokens"
    cost = f"changes the held-out loss on general text by {lost}" if lost else unknown
    runs = [run for run in find_records(sweep.study, scale, roots).records if run.done and run.arm == ADAPTED]
    seconds = [run.further["stages"][-1]["budget"]["train_seconds"] for run in runs]  # of the last stage
    hours = sum(seconds) / len(seconds) / HOUR if seconds else 0.0
    seeds = max(arm.n for arm in table.arms)
    return (
        f"Further pre-training changes {score} by {gain} ({', '.join(levels)}), {cost}, and takes {hours:.2g} hours: "
        f"means and 95% intervals over {seeds} seeds."
    )


def _difference(table: Table, column: str) -> str | None:
    """The mean of the adapted arm less the checkpoint as it is, with its interval if there are several seeds."""
    paired = next(arm for arm in table.arms if arm.name == ADAPTED).versus_baseline.get(column)
    if paired is None:
        return None
    unit = " points" if in_points(column) else " nats" if column == "stage_forgetting" else ""
    if paired.ci_low is None or paired.ci_high is None:
        return f"{_number(paired.difference, column)}{unit}"
    interval = f"[{_number(paired.ci_low, column)}, {_number(paired.ci_high, column)}]"
    return f"{_number(paired.difference, column)}{unit} {interval}"


def _number(value: float, column: str, sign: str = "+") -> str:
    return f"{value * 100:{sign}.1f}" if in_points(column) else f"{value:{sign}.3f}"
