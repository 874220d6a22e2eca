"""What the records say about the six checks of each contrast (`verdict/checks.py`)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from paribus.reports.tables.curves import Curve, interpolate
from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import AfterExit
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH
from paribus.verdict.checks import FAILS, ArmEvidence, Check, Exit, pool_arms, run_checks
from paribus.verdict.contrast import Contrast
from paribus.verdict.controls import read_course
from paribus.verdict.metrics import MEAN, find_incomparable, is_controlled, is_score, is_task
from paribus.verdict.statistics import MeanDifference, average, mean_sd, rounded

OWN_NOISE = "mlm_loss"  # a column with the conditions of every held-out loss: what makes losses comparable


def check_contrast(design: Design, evidence: Evidence, contrast: Contrast) -> tuple[Check, ...]:
    """The checks of a contrast that has a number; none if the runs are of another framework, which kept no record."""
    if design.foreign or contrast.difference.mean is None:
        return ()
    column, seeds = contrast.column, find_seeds(design, evidence, contrast)
    gains = contrast.gains or (None, None)
    groups = [
        [_gather_arm(design, evidence, column, arm, seeds, gain) for arm in side.weights]
        for side, gain in zip(evidence.find_sides(contrast.pair.arm, contrast.pair.versus), gains, strict=True)
    ]
    arms = tuple(arm for of_side in groups for arm in of_side)
    sides = None
    if contrast.sides is not None:
        first, second = (
            pool_arms(name, of_side, gain) for name, of_side, gain in zip(contrast.sides, groups, gains, strict=True)
        )
        sides = first, second
    return run_checks(column, arms, controlled=is_controlled(column), tuned=bool(design.tuning.spec), sides=sides)


def find_seeds(design: Design, evidence: Evidence, contrast: Contrast) -> list[int]:
    """The seeds that the contrast rests on: those that both arms have, up to the look that decided it."""
    arm, versus = evidence.pair(contrast.pair.arm, contrast.pair.versus, contrast.column)
    order = {seed: at for at, seed in enumerate(design.seeds)}
    shared = sorted(arm.keys() & versus.keys(), key=lambda seed: (order.get(seed, len(order)), seed))
    return shared[: contrast.difference.n]


def _gather_arm(
    design: Design, evidence: Evidence, column: str, arm: str, seeds: Sequence[int], gain: MeanDifference | None
) -> ArmEvidence:
    done = evidence.done(arm)
    runs = {seed: done[seed] for seed in seeds}
    checkpoints = _count_checkpoints(design, evidence, runs.values())
    tasks = evidence.find_averaged() if column == MEAN else (column,) if is_task(column) and is_score(column) else ()
    tuned = design.tuning.arms.get(arm)
    return ArmEvidence(
        name=arm,
        exits={seed: _find_exit(run) for seed, run in runs.items() if run.pretrained},
        scratch=arm == SCRATCH or arm in design.references.values() or not checkpoints,
        gain=gain,
        above_chance={task: list_above_chance(runs.values(), task) for task in tasks},
        at_edge=None if tuned is None else tuned.edges,
        checkpoints=checkpoints,
        texts=len({run.text for run in runs.values() if run.text is not None}),
    )


def _find_exit(run: Record) -> Exit:
    """When a run left the plateau, as a share of the tokens that it read in all stages.

    Each stage has a loss of its own. The record of an earlier version has that of the last stage alone.
    """
    stages = [stage for stage in run.further.get("stages", []) if stage["budget"]["steps"]]
    if len(stages) < 2:
        return _read_exit(run.own) if run.own else Exit(None)
    total, before = sum(stage["budget"]["input_tokens"] for stage in stages), 0.0
    for stage in stages:
        own = stage.get("own") or (run.own if stage is stages[-1] else {})
        if own and (share := read_course(own).share) is not None:
            return Exit((before + share * stage["budget"]["input_tokens"]) / total, bound="own" not in stages[0])
        before += stage["budget"]["input_tokens"]
    return _read_exit(run.own) if run.own else Exit(None)


def _read_exit(own: Mapping[str, Any]) -> Exit:
    """The exit of a run of one stage."""
    course = read_course(own)
    return Exit(math.inf if course.share is None else course.share, memorized=course.memorized)


def list_above_chance(runs: Iterable[Record], column: str) -> list[float] | None:
    """By how much each fine-tuning scored above the best constant answer; None if that is not on record."""
    task, _, metric = column.partition("/")
    scores = []
    for run in runs:
        least = run.baselines.get(column, {}).get("majority")
        values = [tuning.metrics.get(metric) for tuning in run.task_runs if tuning.task == task]
        if least is None and values:
            return None
        scores += [value - least for value in values if value is not None and least is not None]
    return scores


def _trains_from_scratch(run: Record) -> bool:
    """Whether the run pre-trained its first stage, so that it started from no checkpoint."""
    stages = run.further.get("stages")
    return bool(stages[0]["budget"]["steps"]) if stages else run.pretrained


def _count_checkpoints(design: Design, evidence: Evidence, runs: Collection[Record]) -> int:
    """How many different checkpoints the runs of an arm were fine-tuned from; 0 if they were not pre-trained.

    A further pre-training of a checkpoint does not make it two. A record that does not name its checkpoint has one for
    all runs if no run of the table pre-trained its model.
    """
    if named := {str(run.further["checkpoint"]) for run in runs if "checkpoint" in run.further}:
        return len(named)
    if not any(_trains_from_scratch(run) for name in design.arms for run in evidence.done(name).values()):
        return min(1, len(runs))
    trained = [run for run in runs if run.pretrained]
    return len({str(run.further.get("pretrain_signature", run.signature)) for run in trained})


def compare_after_exit(
    design: Design, evidence: Evidence, contrast: Contrast, checks: Sequence[Check]
) -> AfterExit | None:
    """How far below their trivial floors two arms are as many tokens after the exit of each run; None unless their
    exits are too far apart (or one never left), and for an effect.

    So many tokens as every run still read after its exit, by the loss on each run's own noise.
    """
    if contrast.sides is not None or not any(c.name == "exits_alike" and c.state == FAILS for c in checks):
        return None
    first, second = evidence.own_losses(contrast.pair.arm), evidence.own_losses(contrast.pair.versus)
    seeds = [seed for seed in find_seeds(design, evidence, contrast) if seed in first and seed in second]
    runs = [(own, read_course(own)) for seed in seeds for own in (first[seed], second[seed])]
    exits = [course.left for _, course in runs if course.left is not None]
    if not seeds or len(exits) < len(runs):
        return None
    tokens = min(own["curve"][-1][1] - left.tokens for (own, _), left in zip(runs, exits, strict=True))
    below = []
    for (own, _), left in zip(runs, exits, strict=True):
        _, places, losses = zip(*own["curve"], strict=True)
        below.append(own["floor"] - interpolate(Curve(list(places), list(losses)), left.tokens + tokens))
    difference = average([one - other for one, other in zip(below[::2], below[1::2], strict=True)])
    assert difference.mean is not None
    return AfterExit(
        tokens=tokens,
        below=(rounded(mean_sd(below[::2])[0]), rounded(mean_sd(below[1::2])[0])),
        difference=rounded(difference.mean),
        ci_low=difference.interval()[0],
        ci_high=difference.interval()[1],
        n=len(seeds),
        comparable=find_incomparable(OWN_NOISE, design.varies) is None,
    )
