"""What a sweep will cost, measured by a few steps of each arm, and what it will probably not decide as it is.

Costs count what arms share (stages, fine-tunings, trials of a search) once. The forecast names the command that would
decide, before anything is trained.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.config import plain
from paribus.core.console import bar, duration, say
from paribus.core.errors import UserError
from paribus.core.files import temporary_folder
from paribus.sweeps.expand import Expanded, Plan, expand, find_arm, plan_budgets
from paribus.sweeps.launchers.base import Ended, Events, Work, failure_reason
from paribus.sweeps.launchers.local import Slot, Slots, machine_slots
from paribus.sweeps.request import Request
from paribus.sweeps.status import absent_lines, align
from paribus.sweeps.sweep import SCRATCH, TRIAL
from paribus.sweeps.tune_arms import check_tuning
from paribus.training.outlook import Outlook, foresee
from paribus.verdict.claims import Sentence
from paribus.verdict.factorial import plan_power
from paribus.verdict.metrics import is_task
from paribus.verdict.power import POWER
from paribus.verdict.statistics import ALPHA

if TYPE_CHECKING:
    from omegaconf import DictConfig

TRIALS = " (trials)"  # after the name of an arm: the runs of its search
Measure = Callable[[Any], Mapping[str, Any]]


def report(request: Request) -> str:
    """Measure the arms, and describe the costs of each, of the sweep, and of each claim that needs fewer arms. Raises
    UserError as `run_sweep` does.
    """
    expanded = expand(request)
    if request.sweep.universes:
        from paribus.sweeps.universe_plan import report_universe  # which measures as this module does

        return report_universe(expanded)
    slots = machine_slots(len(expanded.jobs), request.slots)
    prices = price(expanded, slots)
    lines = [write_costs(request, prices.of(), len(slots), prices.loading), *price_claims(prices, len(slots))]
    lines += absent_lines(expanded.absent)
    lines += describe_power(request)
    if (forecast := forecast_plateau(expanded, prices.budgets)) is not None:
        outlook, costs = forecast.worst, prices.of()
        seconds = [prices.measured[cost.arm.removesuffix(TRIALS)]["pretrain_seconds"] for cost in costs]
        more = sum(cost.runs * each * (outlook.factor - 1.0) for cost, each in zip(costs, seconds, strict=True))
        total = prices.loading + (sum(cost.own_seconds for cost in costs) + more) / len(slots)
        how = f": `{command}`" if (command := command_with(request, outlook.longer)) else ""
        lines += ["", f"{forecast}.", f"Train {outlook.factor:.1f} times as long, about {duration(total)}{how}."]
    return "\n".join(lines)


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
    """What was planned and measured: {arm: its budget} and {arm: its seconds}, the anchor included, and the seconds
    until the first runs start.
    """

    expanded: Expanded
    budgets: Mapping[str, Mapping[str, Any]]
    measured: Mapping[str, Mapping[str, Any]]
    loading: float = 0.0

    def of(self, arms: Collection[str] | None = None) -> list[Cost]:
        """The cost of each of these arms, by default of all. Of arms that share a stage, the first trains it."""
        known: set[str] = set()
        return [
            cost
            for arm, measured in self.measured.items()
            if arms is None or arm in arms
            for cost in _cost(self.expanded, arm, self.budgets[arm], measured, known)
        ]


def describe_power(request: Request) -> list[str]:
    """What the effects of a design of several factors must be to be seen; nothing for other sweeps."""
    sweep, design = request.sweep, request.sweep.factorial
    seeds = len(sweep.seeds_at(request.scale) if request.seeds is None else request.seeds)
    if design is None or (power := plan_power(design, seeds, len(sweep.claims), ALPHA)) is None:
        return []
    one = "too few seeds" if power.one_at_a_time is None else f"{power.one_at_a_time:.2g}"
    shared = f", with {len(sweep.claims)} claims" if len(sweep.claims) > 1 else ""
    return [
        f"{design.describe()}, {power.runs} runs: a main effect of {power.together:.2g} standard deviations is seen "
        f"with a chance of {POWER:.0%}{shared}; one factor at a time with as many runs: {one}. The unit is the "
        "standard deviation over seeds of the difference of two arms.",
        *design.describe_aliases(),
    ]


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
    threads, first = slots[0].threads, {job.arm: job for job in reversed(expanded.jobs)}
    configs = {arm: expanded.config(first[arm]) for arm in dict.fromkeys(job.arm for job in expanded.jobs)}
    for config in configs.values():
        if config.profile.threads is None:
            config.profile.threads = threads
    expanded.prepare(configs)
    beside = f"{len(slots)} side by side, " if len(slots) > 1 else ""
    arms = f"{len(configs)} arms with a few steps each" if len(configs) > 1 else "one arm with a few steps"
    say(f"measuring {arms}, {beside}threads per run: {threads}")
    if measure:
        return Prices(expanded, budgets, {arm: measure(config) for arm, config in configs.items()})
    return Prices(expanded, budgets, *measure_arms(configs, slots[: len(configs)]))


def measure_arms(
    configs: Mapping[str, DictConfig], slots: Sequence[Slot]
) -> tuple[dict[str, Mapping[str, Any]], float]:
    """The time of each arm while others train in the other slots, as in the sweep: they share caches and memory. And
    the seconds until the first process has loaded its libraries. Raises UserError for an arm that cannot be measured.
    """
    begun, loading = time.perf_counter(), list[float]()
    with temporary_folder() as folder, bar("measuring", len(configs), "arm") as progress:
        work = [
            Work(arm, (), folder / f"{at}.log", plain(config), partial(_measure, folder / f"{at}.json"))
            for at, (arm, config) in enumerate(configs.items())
        ]

        def ended(end: Ended) -> None:
            if end.status:
                raise UserError(failure_reason(end))
            progress.update()

        heard = Counter[Path]()
        events = Events(
            started=lambda *_: loading.append(time.perf_counter() - begun),
            ended=ended,
            idle=lambda: _pass_on([one.log for one in work], heard),
        )
        Slots(slots).run(work, events)
        return {one.label: json.loads(one.log.with_suffix(".json").read_bytes()) for one in work}, loading[0]


def _pass_on(logs: Sequence[Path], heard: Counter[Path]) -> None:
    """Say the new lines of logs, such as that a task is prepared. `heard`: the bytes of each that were read before."""
    for log in logs:
        if log.is_file() and log.stat().st_size > heard[log]:
            with log.open("rb") as file:
                file.seek(heard[log])
                lines = [line for line in file if line.endswith(b"\n")]
            heard[log] += sum(map(len, lines))
            for line in lines:
                if not line.startswith((b"$ ", b"paribus: ")):
                    say(line.decode("utf-8", "replace").rstrip())


def _measure(path: Path, config: Mapping[str, Any]) -> None:
    """Write the seconds of one arm, as JSON."""
    from paribus.training.description import Run
    from paribus.training.timing import seconds

    path.write_text(json.dumps(seconds(Run.of(config))), encoding="utf-8")


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
    return [trials._replace(arm=f"{arm}{TRIALS}"), cost]


def _shared(budget: Mapping[str, Any], measured: Mapping[str, Any], known: set[str], runs: int = 1) -> Part:
    """The mean cost of the stages of one of `runs` equal runs that are trained elsewhere. A stage is trained once for
    each seed: by none of these runs if it is `known`, else by the first of them.
    """
    stages: Mapping[str, float] = measured.get("stages", {})
    parts = zip(stages.items(), budget.get("stages", {}).values(), strict=True)
    shared = [
        Part(*(value * (1 if name in known else 1 - 1 / runs) for value in (seconds, spent["tokens"], spent["flops"])))
        for (name, seconds), spent in parts
    ]
    return Part(*map(sum, zip(*shared, strict=True))) if shared else Part()


def write_costs(request: Request, costs: Sequence[Cost], slots: int, loading: float = 0.0) -> str:
    """The costs as a table with a total; finished runs count too, and a stage that arms share once for each seed. FLOPs
    per token are relative to those of the baseline, if its cost is among these.

    Args:
        loading: seconds until the first runs start.
    """
    rows = [["arm", "runs", "steps", "tokens", "epochs", "FLOPs", "per token", "s/step", "time per run", "time"]]
    baseline = next((cost for cost in costs if cost.arm == request.sweep.baseline), None)
    for cost in costs:
        relative = ""
        if baseline is not None and baseline.flops and baseline.tokens and cost.tokens:
            relative = f"{cost.flops / cost.tokens * baseline.tokens / baseline.flops:.2f} x"
        numbers = [
            f"{cost.tokens:.3g}",
            f"{cost.epochs:.1f}",
            f"{cost.flops:.3g}",
            relative,
            f"{cost.step_seconds:.3f}",
        ]
        times = [duration(cost.seconds), duration(cost.own_seconds)]
        rows.append([cost.arm, str(cost.runs), str(cost.steps), *numbers, *times])
    runs, seconds = sum(cost.runs for cost in costs), sum(cost.own_seconds for cost in costs)
    tokens = sum(cost.runs * (cost.tokens - cost.shared.tokens) for cost in costs)
    flops = sum(cost.runs * (cost.flops - cost.shared.flops) for cost in costs)
    rows.append(["total", str(runs), "", f"{tokens:.3g}", "", f"{flops:.3g}", "", "", "", duration(seconds)])
    beside = f"{slots} runs side by side" if slots > 1 else "one run at a time"
    loads = f", {duration(loading)} of it to load libraries" if loading >= 1.0 else ""
    end = f"about {duration(loading + seconds / slots)} on this machine, {beside}{loads}"
    return "\n".join([f"{request.study_name} at scale={request.scale}", *align(rows), end])


def price_claims(prices: Prices, slots: int) -> list[str]:
    """A line for each claim: the arms that it needs and their time; none if all claims need all arms."""
    sweep, every = prices.expanded.request.sweep, prices.measured
    rows, sentences = [["one claim alone", "time"]], [""]
    for written in sweep.claims:
        needed = sweep.find_needed(written)
        if needed <= {SCRATCH, *every} and not every.keys() <= needed:
            seconds = prices.loading + sum(cost.own_seconds for cost in prices.of(needed)) / slots
            rows.append([f"arms={','.join(arm for arm in every if arm in needed)}", duration(seconds)])
            sentences.append(sweep.sentences.get(written, Sentence()).says or written)
    lines = [f"{row}  {sentence}".rstrip() for row, sentence in zip(align(rows), sentences, strict=True)]
    return lines if len(rows) > 1 else []


class PlateauForecast(NamedTuple):
    """The arms whose runs will probably stay on the plateau, and the outlook of the one with the longest way to go."""

    arms: tuple[str, ...]
    worst: Outlook

    def __str__(self) -> str:
        return f"{', '.join(self.arms)} {self.worst}"


def forecast_plateau(expanded: Expanded, budgets: Mapping[str, Mapping[str, Any]]) -> PlateauForecast | None:
    """Of arms with these planned budgets, {arm or cell: budget}; None if nothing speaks against their runs."""
    if expanded.request.scale == TRIAL:
        return None
    outlooks = {}
    for arm, budget in budgets.items():
        config = expanded.configs[arm]
        tokens = float(budget["tokens"]) / max(1, int(config.get("members", 1)))  # that one member reads, in all stages
        if find_arm(arm) != SCRATCH and (outlook := foresee(plain(config), tokens)) is not None:
            outlooks[arm] = outlook
    if not outlooks:
        return None
    return PlateauForecast(tuple(outlooks), max(outlooks.values(), key=lambda outlook: outlook.factor))


def command_with(request: Request, override: str) -> str:
    """The command that runs a sweep with one more override, a longer budget, as a user types it; empty if that does not
    make every arm longer, since one sets a budget of its own.
    """
    if not override or any(key.startswith("trainer") for key in request.sweep.declared_keys):
        return ""
    key = override.partition("=")[0]
    kept = [text for text in request.overrides if text.partition("=")[0].lstrip("+") != key]
    return " ".join([request.command("run"), *kept, override])
