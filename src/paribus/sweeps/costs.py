"""The cost of a sweep, measured by a few steps of each arm."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.console import duration, progress, say
from paribus.core.processes import die_with_parent
from paribus.sweeps.board import absent_lines, align
from paribus.sweeps.expand import Expanded, Plan, expand, plan_budgets
from paribus.sweeps.launchers.local import Slot, machine_slots
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH
from paribus.sweeps.tune_arms import check_tuning
from paribus.verdict.claims import Sentence
from paribus.verdict.claims import parse as parse_claim
from paribus.verdict.metrics import is_score, is_task

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from omegaconf import DictConfig

Measure = Callable[[Any], Mapping[str, Any]]


class Part(NamedTuple):
    """What a part of a run takes."""

    seconds: float = 0.0
    tokens: float = 0.0
    flops: float = 0.0


class Cost(NamedTuple):
    """One arm: how many runs, and the budget and seconds of each, from start to the last task. `shared` is the part of
    each run that an arm before it trains already.
    """

    arm: str
    runs: int
    steps: int
    tokens: float
    epochs: float
    flops: float
    step_seconds: float
    seconds: float
    shared: Part = Part()

    @property
    def own_seconds(self) -> float:
        """Of all runs of the arm."""
        return self.runs * (self.seconds - self.shared.seconds)


class Prices(NamedTuple):
    """What was planned and measured: {arm: its budget} and {arm: its seconds}, the anchor included."""

    expanded: Expanded
    budgets: Mapping[str, Mapping[str, Any]]
    measured: Mapping[str, Mapping[str, Any]]

    def of(self, arms: Collection[str] | None = None) -> list[Cost]:
        """The cost of each of these arms, by default of all. Of arms that share a stage, the first trains it."""
        known: set[str] = set()
        return [
            cost
            for arm, measured in self.measured.items()
            if arms is None or arm in arms
            for cost in _cost(self.expanded, arm, self.budgets[arm], measured, known)
        ]


def report(request: Request) -> str:
    """Measure the arms, and describe the costs of each, of the sweep, and of each claim that needs fewer arms. Raises
    UserError as `run_sweep` does.
    """
    from paribus.training.timing import loading_seconds

    expanded = expand(request)
    slots = machine_slots(len(expanded.jobs), request.slots)
    prices, loading = price(expanded, slots), loading_seconds()
    whole = text(request, prices.of(), len(slots), loading)
    return "\n".join([whole, *price_claims(prices, len(slots), loading), *absent_lines(expanded.absent)])


def price(
    expanded: Expanded, slots: Sequence[Slot], planned: Plan | None = None, measure: Measure | None = None
) -> Prices:
    """Plan and measure every requested arm, the anchor included.

    Args:
        slots: the slots in which runs train at once.
        planned, measure: the budget of a config, and its seconds on this machine; the real ones by default.
    """
    if expanded.request.tuned is not None:
        check_tuning(expanded, expanded.request.tuned)
    budgets = plan_budgets(expanded, planned)
    threads, first = len(slots[0].cores), {job.arm: job for job in reversed(expanded.jobs)}
    configs = {arm: expanded.config(first[arm]) for arm in dict.fromkeys(job.arm for job in expanded.jobs)}
    for config in configs.values():
        if config.profile.threads is None:
            config.profile.threads = threads
    beside = f"{len(slots)} side by side, " if len(slots) > 1 else ""
    say(f"measuring {len(configs)} arms with a few steps each, {beside}threads per run: {threads}")
    taken = map(measure, configs.values()) if measure else _measure_arms(list(configs.values()), slots)
    shown = progress(taken, "measuring", len(configs), "arm")
    return Prices(expanded, budgets, dict(zip(configs, shown, strict=True)))


def price_claims(prices: Prices, slots: int, loading: float = 0.0) -> list[str]:
    """A line for each claim: the arms that it needs and their time; none if all claims need all arms.

    The control of a loss is the baseline's.
    """
    sweep, every = prices.expanded.request.sweep, prices.measured
    rows, sentences = [["one claim alone", "time"]], [""]
    for written in sweep.claims:
        claim = parse_claim(written, tuple(sweep.arms), sweep.columns)
        needed = {SCRATCH, *(arm for pair in claim.pairs for arm in (pair.arm, pair.versus))}
        if not all(map(is_score, claim.columns or [""])):
            needed.add(sweep.baseline)
        if needed <= {SCRATCH, *every} and not every.keys() <= needed:
            seconds = loading + sum(cost.own_seconds for cost in prices.of(needed)) / slots
            rows.append([f"arms={','.join(arm for arm in every if arm in needed)}", duration(seconds)])
            sentences.append(sweep.sentences.get(written, Sentence()).says or written)
    lines = [f"{row}  {sentence}".rstrip() for row, sentence in zip(align(rows), sentences, strict=True)]
    return lines if len(rows) > 1 else []


def _measure_arms(configs: Sequence[DictConfig], slots: Sequence[Slot]) -> Iterator[Mapping[str, Any]]:
    """The time of each arm while others train in the other slots, as in the sweep: they share caches and memory."""
    if min(len(slots), len(configs)) == 1:
        yield from map(_seconds, configs)
        return
    context = multiprocessing.get_context("spawn")
    free = context.Queue()
    for slot in slots:
        free.put(slot)
    with ProcessPoolExecutor(len(slots), context, _enter, (free, os.getpid())) as pool:
        yield from pool.map(_seconds, configs)


def _enter(free: Queue[Slot], parent: int) -> None:
    """Put a measuring process into a slot; it ends with the command."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    slot = free.get()
    os.environ.update(slot.environment())
    with suppress(OSError, AttributeError):  # the system has no CPU affinity
        os.sched_setaffinity(0, slot.cores)


def _cost(
    expanded: Expanded, arm: str, budget: Mapping[str, Any], measured: Mapping[str, Any], known: set[str]
) -> list[Cost]:
    """The cost of an arm's runs; for a tuned arm, that of its trials first. Its stages and its run become `known`."""
    cost = Cost(
        arm=arm,
        runs=sum(job.arm == arm for job in expanded.jobs),
        steps=int(budget["steps"]),
        tokens=float(budget["tokens"]),
        epochs=float(budget.get("epochs", 0.0)),
        flops=float(budget["flops"]),
        step_seconds=measured["seconds_per_step"],
        seconds=measured["start_seconds"] + measured["pretrain_seconds"] + measured["finetune_seconds"],
        shared=_shared(budget, measured, known),
    )
    if (whole := expanded.run(arm).identity.signature) in known:  # its fine-tunings are those of another arm
        cost = cost._replace(shared=cost.shared._replace(seconds=cost.shared.seconds + measured["finetune_seconds"]))
    tune, before = expanded.request.tuned, set(known)
    known.update([whole, *measured.get("stages", {})])
    if tune is None or arm == SCRATCH:
        return [cost]
    seconds = cost.seconds - (0.0 if is_task(tune.on) else measured["finetune_seconds"])
    alike = all(key.startswith("finetune.") for key in tune.space)  # the trials differ after pre-training alone
    shared = _shared(budget, measured, before, tune.trials) if alike else Part()
    trials = cost._replace(runs=tune.trials * len(tune.seeds), seconds=seconds, shared=shared)
    return [trials._replace(arm=f"{arm} (trials)"), cost]


def _shared(budget: Mapping[str, Any], measured: Mapping[str, Any], known: set[str], runs: int = 1) -> Part:
    """The mean cost of the stages of one of `runs` equal runs that are trained elsewhere. A stage is trained once for
    each seed: by none of these runs if it is `known`, else by the first of them.
    """
    stages: Mapping[str, float] = measured.get("stages", {})
    parts = zip(stages.items(), budget.get("stages", {}).values(), strict=True)
    found = [
        Part(*(value * (1 if name in known else 1 - 1 / runs) for value in (seconds, own["tokens"], own["flops"])))
        for (name, seconds), own in parts
    ]
    return Part(*map(sum, zip(*found, strict=True))) if found else Part()


def _seconds(config: DictConfig) -> Mapping[str, Any]:
    from paribus.training.description import Run
    from paribus.training.timing import seconds

    return seconds(Run.of(config))


def text(request: Request, found: Sequence[Cost], slots: int, loading: float = 0.0) -> str:
    """The costs as a table with a total; finished runs count too, and a stage that arms share once for each seed.

    Args:
        loading: seconds until the first runs start.
    """
    header = ["arm", "runs", "steps", "tokens", "epochs", "FLOPs", "s/step", "time per run", "time"]
    rows = [_row(cost) for cost in found]
    runs, seconds = sum(cost.runs for cost in found), sum(cost.own_seconds for cost in found)
    tokens = sum(cost.runs * (cost.tokens - cost.shared.tokens) for cost in found)
    flops = sum(cost.runs * (cost.flops - cost.shared.flops) for cost in found)
    rows.append(["total", str(runs), "", f"{tokens:.3g}", "", f"{flops:.3g}", "", "", duration(seconds)])
    end = f"about {duration(loading + seconds / slots)} on this machine, {slots} runs side by side"
    return "\n".join([f"{request.named} at scale={request.scale}", *align([header, *rows]), end])


def _row(cost: Cost) -> list[str]:
    numbers = [f"{cost.tokens:.3g}", f"{cost.epochs:.1f}", f"{cost.flops:.3g}", f"{cost.step_seconds:.3f}"]
    times = [duration(cost.seconds), duration(cost.own_seconds)]
    return [cost.arm, str(cost.runs), str(cost.steps), *numbers, *times]
