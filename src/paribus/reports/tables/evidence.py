"""The records that count, and what their runs used. The table's notes name every record left out, with the reason."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from paribus.core.errors import UserError
from paribus.core.stages import FIRST
from paribus.reports.tables.design import Design
from paribus.reports.tables.schema import Budget
from paribus.reports.tables.targets import describe_apart, find_apart, is_of_loss
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH, TRIAL, UNMATCHED
from paribus.verdict.contrast import Share
from paribus.verdict.controls import TOLERANCE, Course, find_unjudged, find_unmatched, read_course
from paribus.verdict.factorial import ZERO, Factorial, Side, Weights
from paribus.verdict.metrics import MEAN, find_metric, is_averaged
from paribus.verdict.statistics import MeanDifference, is_number, mean_sd, pair_seeds, rounded, use_all_runs

OLDER = "Made under another version of the sweep file"  # which may have had other claims
BUDGETS = {
    "tokens": "input_tokens", "predictions": "predicted_tokens", "sequences": "sequences", "steps": "steps",
    "flops": "flops", UNMATCHED: "input_tokens",
}  # fmt: skip
SPENT = ("raw_tokens", "input_tokens", "predicted_tokens", "padding_tokens", "sequences", "steps", "flops")


@dataclass(frozen=True)
class Evidence:
    """`runs`: {arm: {seed: record}}, of any status; `notes`: what was left out or is missing.

    `tasks`: the design's task columns in points, of which the column `mean` is the mean. `unjudged`: arms with
    pre-trained runs that did not measure the loss on their own noise. `unpaired`: whether runs count whose seed the
    other arm lacks. `apart`: {held-out loss: the arms that have it over other targets than the table}; neither this
    loss nor its accuracy and perplexity are values of theirs. `excluded`: {number of a universe's setting: why no run
    there counts}; `runs` has none of these. `factorial`: the design whose effects are compared with zero, or None.
    """

    runs: Mapping[str, Mapping[int, Record]]
    notes: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    unpaired: bool = False
    apart: Mapping[str, frozenset[str]] = field(default_factory=dict)
    excluded: Mapping[int, str] = field(default_factory=dict)
    factorial: Factorial | None = None
    _read: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict, repr=False, compare=False)

    def done(self, arm: str) -> dict[int, Record]:
        """{seed: record} of the arm's finished runs, by seed."""
        return {seed: run for seed, run in sorted(self.runs.get(arm, {}).items()) if run.done}

    def find_seeds(self, arms: Sequence[str]) -> tuple[int, ...]:
        """The seeds of which at least two of the arms have a finished run, so that a contrast may use them."""
        counts = Counter(seed for arm in arms for seed in self.done(arm))
        return tuple(sorted(seed for seed, count in counts.items() if count > 1))

    def is_apart(self, arm: str, column: str) -> bool:
        """Whether the arm's values of the column are over other targets than those of the table."""
        return any(arm in arms for loss, arms in self.apart.items() if is_of_loss(column, loss))

    def values(self, arm: str, column: str) -> dict[int, float]:
        """{seed: value} of the runs in which the column is a number. Do not change it: it is read once."""
        if (arm, column) not in self._read and column == MEAN:
            # the mean over tasks of the seeds that have all of them
            tasks = [self.values(arm, task) for task in self.find_averaged()]
            seeds = sorted(set.intersection(*map(set, tasks))) if tasks else []
            self._read[arm, column] = {seed: math.fsum(values[seed] for values in tasks) / len(tasks) for seed in seeds}
        if (arm, column) not in self._read:
            read = find_metric(column).read or (lambda run: run.metrics.get(column))
            runs = {} if self.is_apart(arm, column) else self.done(arm)
            values = {seed: read(run) for seed, run in runs.items()}
            self._read[arm, column] = {seed: float(value) for seed, value in values.items() if is_number(value)}
        return self._read[arm, column]

    def find_sides(self, arm: str, versus: str) -> tuple[Side, Side]:
        """The arms behind each of two names that a claim compares: two arms, or an effect and zero."""
        if self.factorial is None or ZERO not in (arm, versus):
            return Side(arm, {arm: 1.0}), Side(versus, {versus: 1.0})
        if versus == ZERO:
            return self.factorial.find_sides(arm)
        first, second = self.factorial.find_sides(versus)
        return second, first

    def average_side(self, weights: Weights, column: str) -> dict[int, float]:
        """{seed: weighted mean of the arms} of the seeds that all of them have."""
        if len(weights) == 1:
            return self.values(next(iter(weights)), column)
        values = {arm: self.values(arm, column) for arm in weights}
        seeds = sorted(set.intersection(*(set(of_arm) for of_arm in values.values())))
        return {seed: math.fsum(share * values[arm][seed] for arm, share in weights.items()) for seed in seeds}

    def pair(self, arm: str, versus: str, column: str) -> tuple[dict[int, float], dict[int, float]]:
        """({seed: value}, {seed: value}) of both sides of a comparison."""
        first, second = self.find_sides(arm, versus)
        return self.average_side(first.weights, column), self.average_side(second.weights, column)

    def subtract(self, arm: str, versus: str, column: str, seeds: Collection[int] | None = None) -> MeanDifference:
        """The difference of two arms on a column, or an effect, over these seeds or all.

        Our own arms share their seeds, initial weights and noise, so a seed that one of them lacks is still to be run.
        Runs of another framework are all that there is.
        """
        first, second = self.pair(arm, versus, column)
        if self.unpaired:
            return use_all_runs(first, second)
        return pair_seeds({seed: first[seed] for seed in first if seeds is None or seed in seeds}, second)

    def count_diverged(self, arm: str, column: str) -> Share:
        """The runs of an arm that diverged, of those that diverged or measured the column.

        A run of another framework diverged if the column, or one that it averages, is NaN or infinite.
        """
        runs = self.runs.get(arm, {}).values()
        diverged = sum(run.status == "diverged" for run in runs) + len(self.find_not_finite(arm, column))
        return Share(diverged, diverged + len(self.values(arm, column)))

    def find_not_finite(self, arm: str, column: str) -> list[int]:
        """The seeds of finished runs in which the column, or one that it averages, is NaN or infinite."""
        read = self.find_averaged() if column == MEAN else (column,)
        cells = {seed: [run.metrics.get(name) for name in read] for seed, run in self.done(arm).items()}
        return [seed for seed, of_run in cells.items() if any(c is not None and not is_number(c) for c in of_run)]

    def find_averaged(self) -> tuple[str, ...]:
        """The columns that the mean over tasks averages: those that some arm has."""
        return tuple(column for column in self.tasks if any(self.values(arm, column) for arm in self.runs))

    def count_pretrained(self) -> int:
        """How many finished runs have trained at all; the others start from a checkpoint."""
        return sum(run.done and run.pretrained for seeds in self.runs.values() for run in seeds.values())

    def own_losses(self, arm: str) -> dict[int, Mapping[str, Any]]:
        """{seed: what the record says of the loss on the run's own noise} of the runs that measured it."""
        return {seed: run.own for seed, run in self.done(arm).items() if run.own}

    def courses(self, arm: str, seeds: Collection[int] | None = None) -> list[Course]:
        """The course of the loss of each run that measured it, for these seeds or for all."""
        return [read_course(loss) for seed, loss in self.own_losses(arm).items() if seeds is None or seed in seeds]

    def nested(self, arm: str, column: str) -> dict[int, dict[int, float]]:
        """{seed: {fine-tuning seed: value}} of a task's column, for the seeds that `values` has."""
        task, _, metric = column.rpartition("/")
        return {
            seed: {
                run.seed: float(value)
                for run in self.runs[arm][seed].task_runs
                if run.task == task and is_number(value := run.metrics.get(metric))
            }
            for seed in self.values(arm, column)
        }

    def anchors(self, arm: str, column: str) -> dict[str, dict[int, float]]:
        """{name: {seed: value}} of what needs no neural model, on the arm's text and labels: unigram, bag_of_words,
        majority. The column `mean` has those that all its tasks have.
        """
        if column == MEAN:
            tasks = [self.anchors(arm, task) for task in self.find_averaged()]
            shared = sorted(set.intersection(*map(set, tasks))) if tasks else []
            seeds = {name: set.intersection(*(set(task[name]) for task in tasks)) for name in shared}
            return {
                name: {seed: math.fsum(task[name][seed] for task in tasks) / len(tasks) for seed in sorted(seeds[name])}
                for name in shared
            }
        anchors: dict[str, dict[int, float]] = defaultdict(dict)
        if self.is_apart(arm, column):
            return {}
        for seed, run in self.done(arm).items():
            for name, value in run.baselines.get(column, {}).items():
                anchors[name][seed] = float(value)
        return dict(sorted(anchors.items()))


def gather(design: Design, records: Sequence[Record]) -> Evidence:
    """Sort the records of a study and scale by arm and seed; leave out and note what cannot be trusted.

    Runs on another text than most are left out unless the text is what the sweep varies.
    """
    known = (*design.arms, SCRATCH)
    ours = [r for r in records if r.study == design.study and r.scale == design.scale and r.arm in known]
    notes: list[str] = []
    if design.looks is not None:
        beyond = sorted({record.seed for record in ours} - set(design.seeds))
        ours = [record for record in ours if record.seed in design.seeds]
        notes += [f"Left out, because no look includes them: seed {', '.join(map(str, beyond))}."] if beyond else []
    groups: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in ours:
        groups[record.arm, record.seed].append(record)
    runs: dict[str, dict[int, Record]] = {}
    for (arm, seed), group in sorted(groups.items()):
        if len(signatures := sorted({record.signature for record in group})) > 1:
            notes.append(f"{arm}/seed{seed} is left out: records with several signatures ({', '.join(signatures)}).")
        else:
            runs.setdefault(arm, {})[seed] = next((record for record in group if record.done), group[0])
    if not design.varies_text:
        for run in find_foreign_text([run for _, seeds in sorted(runs.items()) for _, run in sorted(seeds.items())]):
            del runs[run.arm][run.seed]
            notes.append(f"{run.label} is left out: it was trained on a different text than the other runs.")
    excluded: dict[int, str] = {}
    if design.universe is not None and design.scale != TRIAL:
        excluded = find_excluded(runs.get(design.baseline, {}))
        counting = runs.get(design.baseline, {}).keys() - excluded.keys()
        runs = {arm: {seed: run for seed, run in of_arm.items() if seed in counting} for arm, of_arm in runs.items()}
    trained = [run for seeds in runs.values() for run in seeds.values() if run.done and run.pretrained]
    unjudged = {run.arm for run in trained if not run.own}
    judged = () if design.foreign or design.scale == TRIAL else design.arms
    tasks = tuple(filter(is_averaged, design.columns))
    told = tuple(arm for arm in judged if arm in unjudged)
    everything = Evidence(runs, (), tasks, told, unpaired=design.foreign, factorial=design.factorial)
    apart = find_apart(design, everything)
    evidence = replace(everything, apart=apart, excluded=excluded, _read={})
    if not evidence.done(design.baseline):
        notes.append(f"No run of the baseline {design.baseline} is finished: no differences from it.")
    mixed = find_mixed_precisions(run for seeds in evidence.runs.values() for run in seeds.values())
    notes += [
        *_note_statuses(design, evidence),
        *_note_not_finite(design, evidence),
        *_note_older(design, evidence),
        *describe_apart(design, everything, apart),
        *(
            f"Seed {seed} has runs in {' and '.join(sorted(groups))}: its arms differ in more than the sweep varies."
            for seed, groups in mixed.items()
        ),
    ]
    if why := find_unjudged(evidence.unjudged):
        notes.append(f"{why[0].upper()}{why[1:]}.")
    return replace(evidence, notes=tuple(notes))


def find_excluded(baseline: Mapping[int, Record]) -> dict[int, str]:
    """{number of a setting: why it does not count} by what the baseline's runs, {number: run}, say alone, so that no
    arm's result can choose the settings.
    """
    excluded = {}
    for seed, run in sorted(baseline.items()):
        if not run.done:
            excluded[seed] = f"the baseline's run {run.status}"
        elif run.pretrained:
            if not run.own:
                excluded[seed] = "not recorded whether the baseline left the plateau of a trivial model"
            elif read_course(run.own).stuck:
                excluded[seed] = "the baseline is still on the plateau of a trivial model"
    return excluded


def find_foreign_text(runs: Sequence[Record]) -> list[Record]:
    """The runs on another text than most.

    A record names the text of its last stage. The anchor from scratch has no stages and reads no text: it is the same
    if its tokenizer and its tasks are.
    """
    counts = Counter(run.text for run in runs if run.text is not None and run.arm != SCRATCH)
    if not counts:
        return []
    most = min(counts, key=lambda text: (-counts[text], text))
    odd = [run for run in runs if run.text not in (None, most)]
    same = [_list_inputs(run) for run in runs if run.text == most]
    return [run for run in odd if run.arm != SCRATCH or _list_inputs(run) not in same]


def _list_inputs(run: Record) -> tuple[Any, Any]:
    return run.data.get("tokenizer"), run.data.get("tasks")


def find_mixed_precisions(runs: Iterable[Record]) -> dict[int, dict[str, list[str]]]:
    """{seed: {precision: labels of its runs}} of the seeds whose runs were not all trained in the same precision."""
    seeds: dict[int, dict[str, list[str]]] = {}
    for run in runs:
        if run.done and run.precision is not None:
            seeds.setdefault(run.seed, {}).setdefault(run.precision, []).append(run.label)
    return {seed: groups for seed, groups in sorted(seeds.items()) if len(groups) > 1}


def _note_statuses(design: Design, evidence: Evidence) -> list[str]:
    notes = []
    for arm in (*design.arms, SCRATCH):
        for seed, run in sorted(evidence.runs.get(arm, {}).items()):
            if not run.done:
                cause = f": {run.error}" if run.error else ""
                notes.append(f"{arm}/seed{seed} {run.status}{cause.rstrip('.')}.")
        missing = design.find_missing(arm, [*evidence.runs.get(arm, {}), *evidence.excluded])
        if arm in design.absent:
            notes.append(f"{arm} not run: {design.absent[arm].rstrip('.')}.")
        elif missing and (arm != SCRATCH or evidence.runs.get(arm)):
            notes.append(f"{arm}: no record of seed {', '.join(map(str, missing))}.")
    return notes


def _note_not_finite(design: Design, evidence: Evidence) -> list[str]:
    """NaN and infinities. All that is known of another framework's run with such a number is that it diverged."""
    if not design.foreign:
        return [
            f"{arm}/seed{seed}: {column} is not a number and is left out."
            for arm in (*design.arms, SCRATCH)
            for seed, run in evidence.done(arm).items()
            for column in design.columns
            if (value := run.metrics.get(column)) is not None and not is_number(value)
        ]
    notes = []
    for arm, column in product(design.arms, design.columns):
        if seeds := evidence.find_not_finite(arm, column):
            if not evidence.values(arm, column):
                notes.append(f"{arm}: all {len(seeds)} runs diverged in {column}.")
                continue
            which = f" (seed {', '.join(map(str, seeds))})" if design.seeds else ""
            share = evidence.count_diverged(arm, column)
            notes.append(
                f"{arm}: {share.part} of {share.whole} runs diverged in {column}{which}; its mean leaves them out."
            )
    return notes


def _note_older(design: Design, evidence: Evidence) -> list[str]:
    """Runs made under a different version of the sweep file, which may have had different claims."""
    if design.sweep_hash is None:
        return []
    older = [
        run.label
        for arm in design.arms
        for run in evidence.done(arm).values()
        if run.sweep_hash not in (None, design.sweep_hash)
    ]
    return [f"{OLDER}: {', '.join(older)}."] if older else []


def require_equal_budgets(design: Design, evidence: Evidence) -> None:
    """Raises UserError if the arms' real budgets differ by more than 1%, and for a budget that is not known."""
    if design.matched.rpartition(".")[2] not in BUDGETS:
        raise UserError(f"matched: {design.matched} is not a budget", f"known: {', '.join(BUDGETS)}")
    runs = [run for arm in design.arms for run in evidence.done(arm).values()]
    if why := find_off_budget(design, runs):
        cause = f"budgets differ by more than 1% in {design.matched}: {why}"
        raise UserError(cause, "run the arms with equal budgets: no fair table can be made of these")


def find_off_budget(design: Design, runs: Iterable[Record]) -> str | None:
    """Which runs of the arms used budgets that differ by more than 1%, or None. At scale=test nothing is compared.

    The arms of a seed must agree in what is matched. The seeds of an arm must agree in some unit: with equal tokens,
    another order of the text fills other numbers of sequences.
    """
    if design.matched == UNMATCHED or design.scale == TRIAL:
        return None
    seeds: dict[int, list[Record]] = {}
    arms: dict[str, list[Record]] = {}
    for run in runs:
        seeds.setdefault(run.seed, []).append(run)
        arms.setdefault(run.arm, []).append(run)
    for _, group in sorted(seeds.items()):
        if why := _compare_spent(group, design.matched):
            return why
    for group in arms.values() if design.universe is None else ():  # settings may have budgets of their own
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
