"""What runs used: whether the budgets of a table's arms are equal, and how much each arm used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paribus.core.errors import UserError
from paribus.core.stages import FIRST
from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import Budget
from paribus.runs.record import Record
from paribus.sweeps.sweep import TRIAL, UNMATCHED
from paribus.verdict.controls import TOLERANCE, find_unmatched
from paribus.verdict.statistics import mean_sd, rounded

BUDGETS = {
    "tokens": "input_tokens", "predictions": "predicted_tokens", "sequences": "sequences", "steps": "steps",
    "flops": "flops", UNMATCHED: "input_tokens",
}  # fmt: skip
SPENT = ("raw_tokens", "input_tokens", "predicted_tokens", "padding_tokens", "sequences", "steps", "flops")


def require_equal_budgets(design: Design, evidence: Evidence) -> None:
    """Raises UserError if the arms' real budgets differ by more than 1%, and for a budget that is not known."""
    if design.matched.rpartition(".")[2] not in BUDGETS:
        raise UserError(f"matched: {design.matched} is not a budget", f"known: {', '.join(BUDGETS)}")
    runs = [run for arm in design.arms for run in evidence.done(arm).values()]
    if design.scale != TRIAL and (why := find_off_budget(design, runs)):
        cause = f"budgets differ by more than 1% in {design.matched}: {why}"
        raise UserError(cause, "run the arms with equal budgets: no fair table can be made of these")


def find_off_budget(design: Design, runs: Iterable[Record]) -> str | None:
    """Which runs of the arms used budgets that differ by more than 1%, or None.

    The arms of a seed must agree in what is matched. The seeds of an arm must agree in some unit: with equal tokens,
    another order of the text fills other numbers of sequences.
    """
    if design.matched == UNMATCHED:
        return None
    seeds: dict[int, list[Record]] = {}
    arms: dict[str, list[Record]] = {}
    for run in runs:
        seeds.setdefault(run.seed, []).append(run)
        arms.setdefault(run.arm, []).append(run)
    for _, group in sorted(seeds.items()):
        if why := _compare_spent(group, design.matched):
            return why
    for group in arms.values():
        units = [unit for unit in BUDGETS if all(find_spent(run, unit) is not None for run in group)]
        alike = any(_compare_spent(group, unit) is None for unit in units)
        if not alike and (why := _compare_spent(group, design.matched)):
            return why
    return None


def _compare_spent(runs: Sequence[Record], unit: str) -> str | None:
    """Which of these runs differ by more than 1% in a unit, or None; runs without it do not count."""
    return find_unmatched({run.label: spent for run in runs if (spent := find_spent(run, unit)) is not None})


def find_spent(run: Record, matched: str) -> float | None:
    """What a run used of a budget such as tokens, or of that of a stage, such as further.tokens.

    None if there is no such number or stage; a stage of no step is none.
    """
    stage, _, unit = matched.rpartition(".")
    stages = run.further.get("stages", [{"stage": FIRST, "budget": run.budget}])
    budgets = {each["stage"]: each["budget"] for each in stages}
    spent = (budgets.get(stage, {}) if stage else run.budget).get(BUDGETS.get(unit, unit))
    return None if spent is None or (stage and not spent) else float(spent)


def average_budgets(design: Design, evidence: Evidence) -> Budget:
    """What each arm really used, as means over its finished runs."""
    arms: dict[str, dict[str, float]] = {}
    for arm in design.arms:
        runs = list(evidence.done(arm).values())
        spent = {key: [float(run.budget[key]) for run in runs if key in run.budget] for key in SPENT}
        if design.matched not in BUDGETS:  # that of a stage
            spent[design.matched] = [value for run in runs if (value := find_spent(run, design.matched)) is not None]
        arms[arm] = {key: rounded(mean_sd(values)[0]) for key, values in spent.items() if values}
    return Budget(design.matched, TOLERANCE, arms)
