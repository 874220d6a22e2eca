"""`paribus plan SWEEP`: what a sweep will cost, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from paribus.core.console import progress, say
from paribus.sweeps.board import absent_lines, align, duration
from paribus.sweeps.expand import Expanded, Plan, expand, plan_budgets
from paribus.sweeps.launchers.local import machine_slots
from paribus.sweeps.request import Request, parse
from paribus.sweeps.sweep import SCRATCH
from paribus.sweeps.tune_arms import check_tuning
from paribus.verdict.metrics import is_task

Measure = Callable[[Any], Mapping[str, float]]


class Cost(NamedTuple):
    """One arm: its runs, and the budget and seconds of each; `seconds` holds fine-tuning and the start too."""

    arm: str
    runs: int
    steps: int
    tokens: float
    epochs: float
    flops: float
    step_seconds: float
    seconds: float


def plan(argv: list[str]) -> int:
    """The verb: prints the costs of each arm and of the sweep. Returns 0. Raises UserError for bad input."""
    request = parse("plan", argv)
    expanded = expand(request)
    slots = machine_slots(len(expanded.jobs), request.slots)
    found = costs(expanded, threads=len(slots[0].cores))
    print("\n".join([text(request, found, len(slots)), *absent_lines(expanded.absent)]))
    return 0


def costs(expanded: Expanded, threads: int, planned: Plan | None = None, measure: Measure | None = None) -> list[Cost]:
    """The cost of every arm that was asked for, the anchor included.

    Args:
        threads: of one run.
        planned, measure: the budget of a config, and its seconds on this machine; by default the real ones.
    """
    if expanded.request.tuned is not None:
        check_tuning(expanded, expanded.request.tuned)
    budgets = plan_budgets(expanded, planned)
    arms = list(dict.fromkeys(job.arm for job in expanded.jobs))
    say(f"measuring {len(arms)} arms by a few steps each, {threads} threads a run")
    found = []
    for arm in progress(arms, "measuring", unit="arm"):
        found += _cost(expanded, arm, budgets[arm], threads, measure)
    return found


def _cost(
    expanded: Expanded, arm: str, budget: Mapping[str, float], threads: int, measure: Measure | None
) -> list[Cost]:
    """The cost of an arm's runs, after that of its trials where it is tuned."""
    config = expanded.config(next(job for job in expanded.jobs if job.arm == arm))
    if config.profile.threads is None:
        config.profile.threads = threads
    measured = (measure or _seconds)(config)
    cost = Cost(
        arm=arm,
        runs=sum(job.arm == arm for job in expanded.jobs),
        steps=int(budget["steps"]),
        tokens=float(budget["tokens"]),
        epochs=float(budget.get("epochs", 0.0)),
        flops=float(budget["flops"]),
        step_seconds=measured["seconds_per_step"],
        seconds=measured["start_seconds"] + measured["pretrain_seconds"] + measured["finetune_seconds"],
    )
    tune = expanded.request.tuned
    if tune is None or arm == SCRATCH:
        return [cost]
    seconds = cost.seconds - (0.0 if is_task(tune.on) else measured["finetune_seconds"])
    return [cost._replace(arm=f"{arm} (trials)", runs=tune.trials * len(tune.seeds), seconds=seconds), cost]


def _seconds(config: Any) -> Mapping[str, float]:
    from paribus.training.description import Run
    from paribus.training.timing import seconds

    return seconds(Run.of(config))


def text(request: Request, found: Sequence[Cost], slots: int) -> str:
    """The costs as a table with a total; nothing is taken off for runs that are done."""
    header = ["arm", "runs", "steps", "tokens", "epochs", "FLOPs", "s/step", "time a run", "time"]
    rows = [_row(cost) for cost in found]
    runs, seconds = sum(cost.runs for cost in found), sum(cost.runs * cost.seconds for cost in found)
    tokens, flops = sum(cost.runs * cost.tokens for cost in found), sum(cost.runs * cost.flops for cost in found)
    rows.append(["total", str(runs), "", f"{tokens:.3g}", "", f"{flops:.3g}", "", "", duration(seconds)])
    end = f"about {duration(seconds / slots)} with {slots} runs side by side on this machine"
    return "\n".join([f"{request.named} at scale={request.scale}", *align([header, *rows]), end])


def _row(cost: Cost) -> list[str]:
    numbers = [f"{cost.tokens:.3g}", f"{cost.epochs:.1f}", f"{cost.flops:.3g}", f"{cost.step_seconds:.3f}"]
    times = [duration(cost.seconds), duration(cost.runs * cost.seconds)]
    return [cost.arm, str(cost.runs), str(cost.steps), *numbers, *times]
