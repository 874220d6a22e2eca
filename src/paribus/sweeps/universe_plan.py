"""What a sweep with a universe will cost: its settings, and the runs and the time of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.core.console import duration, say
from paribus.sweeps.expand import Expanded, find_arm, plan_budgets
from paribus.sweeps.launchers.local import machine_slots
from paribus.sweeps.plan import describe_power, forecast_plateau, measure_arms
from paribus.sweeps.status import absent_lines, align

Times = Mapping[str, Mapping[str, Any]]  # {cell: what was measured}


def report_universe(expanded: Expanded) -> str:
    """The settings as a table with a total. Raises UserError as `run_sweep` does.

    Timed are the baseline in every setting, and the other arms in the first. In another setting an arm takes as much
    longer than the baseline as it does in the first one. A pre-training that arms of a setting share counts once.
    """
    request, baseline = expanded.request, expanded.request.sweep.baseline
    slots = machine_slots(len(expanded.jobs), request.slots)
    budgets = plan_budgets(expanded)
    first = expanded.jobs[0].seed
    timed = [expanded.cell(job) for job in expanded.jobs if job.seed == first]
    numbers = list(dict.fromkeys(job.seed for job in expanded.jobs))
    timed += [cell for number in numbers if (cell := f"{baseline}/seed{number}") not in timed]
    configs = {cell: expanded.configs[cell].copy() for cell in timed}
    for config in configs.values():
        if config.profile.threads is None:
            config.profile.threads = slots[0].threads
    expanded.prepare(configs)
    say(f"measuring {len(configs)} runs with a few steps each, threads per run: {slots[0].threads}")
    times, loading = measure_arms(configs, slots[: len(configs)])
    seconds = sum_settings(expanded, times)
    arms = list(dict.fromkeys(job.arm for job in expanded.jobs))
    factors = list(request.sweep.universe_at(request.scale).factors)  # type: ignore[union-attr]
    rows = [["setting", *factors, "steps", "tokens", "FLOPs", "time of all arms"]]
    for number in numbers:
        budget, setting = budgets[f"{baseline}/seed{number}"], expanded.settings[str(number)]
        spent = [str(budget["steps"]), f"{budget['tokens']:.3g}", f"{budget['flops']:.3g}"]
        rows.append([str(number), *(setting[factor] for factor in factors), *spent, duration(seconds[number])])
    total = sum(seconds.values())
    rows.append(["total", *[""] * (len(factors) + 3), duration(total)])
    runs = f"{len(numbers)} settings x {len(arms)} arms ({', '.join(arms)}) = {len(expanded.jobs)} runs"
    beside = f"{len(slots)} runs side by side" if len(slots) > 1 else "one run at a time"
    return "\n".join(
        [
            f"{request.study_name} at scale={request.scale}: {runs}",
            *align(rows),
            f"about {duration(loading + total / len(slots))} on this machine, {beside}",
            *absent_lines(expanded.absent),
            *foresee_settings(expanded, budgets),
            *describe_power(request),
        ]
    )


def sum_settings(expanded: Expanded, times: Times) -> dict[int, float]:
    """{number of a setting: seconds of all its runs}, from the times of the baseline there and of all in the first."""
    baseline, first = expanded.request.sweep.baseline, expanded.jobs[0].seed
    seconds = {job.seed: 0.0 for job in expanded.jobs}
    trained = set[str]()
    for job in expanded.jobs:
        of_arm, of_baseline = times[f"{job.arm}/seed{first}"], times[f"{baseline}/seed{first}"]
        here = times[f"{baseline}/seed{job.seed}"]
        pretraining = expanded.identity(job).pretrain
        parts = ["start_seconds", "finetune_seconds"] + ["pretrain_seconds"] * (pretraining not in trained)
        trained.add(pretraining)
        for part in parts:  # what the baseline lacks, such as a pre-training, takes what it took in the first setting
            relative = here[part] / of_baseline[part] if of_baseline[part] else 1.0
            seconds[job.seed] += of_arm[part] * relative
    return seconds


def foresee_settings(expanded: Expanded, budgets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line on the settings that will probably not count, by the budgets of the baseline, if there are any."""
    baseline = expanded.request.sweep.baseline
    forecast = forecast_plateau(expanded, {cell: plan for cell, plan in budgets.items() if find_arm(cell) == baseline})
    if forecast is None:
        return []
    settings = ", ".join(cell.partition("/seed")[2] for cell in forecast.arms)
    return [f"In setting {settings} the baseline {forecast.worst}. Such a setting does not count, for any arm."]
