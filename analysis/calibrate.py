"""How often do tables of known truth say something false? Simulated sweeps through the code that builds real tables.

python analysis/calibrate.py [--out analysis/results/calibration.json] [--share 1.0] [--designs WORD]

Every simulated sweep is a list of records that `paribus.reports.tables.claims.judge_claims` rules on;
the false verdicts are counted in the claims that it returns. An entry of the file is one design:

    design, seeds, tasks, nested (fine-tuning seeds in each pre-training seed), tails (normal, or t3: Student's t with
    three degrees of freedom); simulations and tables: how many were made; false_verdicts: simulations with at least
    one in a table that is read;
    coverage = covered / intervals: of the contrasts' 95 % intervals over the true difference, nominal: 0.95;
    bootstrap: the same of the bias-corrected bootstrap on the same differences, on which no verdict rests;
    lent (one noisy arm alone): the same of the intervals of that arm's contrasts if the spread of all arms were lent to
    them, on which no verdict rests;
    power and formula (planted effects alone): decided / intervals, beside the noncentral t;
    mean_seeds (seeds added until decided, or by hand, alone): seeds used per sweep;
    generations (tables frozen again alone): how many tables of new seeds are read;
    prediction (settings of a universe alone): covered / intervals: of the 95 % prediction intervals over the effect
    in one further setting; words: how many tables said each of them of a claim;
    found and found_one_at_a_time (one of eight factors alone): the share of tables in which its effect is found, and
    that of as many runs that change one factor at a time;
    runs, shared, spread, luck (runs of another framework alone): {arm: its runs}, how many seeds all arms share,
    {arm: its noise, as a multiple of the others'}, and what the arms of one seed share, in standard deviations of one
    arm.

A verdict is false if the truth is another: `>` reproduced if the arm is not better, contradicted if it is not worse,
equivalent if the true difference is the margin or more; `>=` and `~` likewise at their margins. It is also false if the
column could not have shown the difference: apart though the better arm is not truly above the model from scratch, alike
though no arm (for `>=`, the arm compared with) truly gains more than the margin over it. Of settings: `nearly
everywhere` is false if the effect lies beyond the margin in less than nine of ten, and `depends on` if it names a
factor on which the effect does not depend.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from paribus.core.console import progress, say
from paribus.core.files import write_json
from paribus.reports.tables.claims import Verdicts, judge_claims
from paribus.reports.tables.design import Design
from paribus.reports.tables.schema import ClaimRow, ContrastRow
from paribus.reports.tables.universe import judge_settings
from paribus.runs.record import Record, TaskRun
from paribus.sweeps.search.space import dimension
from paribus.sweeps.sweep import SCRATCH, UNMATCHED
from paribus.sweeps.universe import TWIN, Universe
from paribus.verdict.factorial import PLACKETT_BURMAN, ZERO, Factorial, Side, make_factorial
from paribus.verdict.metrics import Metric, declare, lower_is_better
from paribus.verdict.power import power
from paribus.verdict.resampling import bca
from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, REPRODUCED, Route, find_word
from paribus.verdict.sequential import FIRST, Looks
from paribus.verdict.statistics import ALPHA, LEVEL, summarize
from paribus.verdict.universe import EVERYWHERE

OUT = Path(__file__).parent / "results" / "calibration.json"
SD = 0.01  # of one arm's score over pre-training seeds: a point
GAP = SD * math.sqrt(2.0)  # standard deviation of a paired difference of two such arms
PLANTED = "planted effect"
AGAIN = "identical arms, tables frozen again"
READ = "identical arms, seeds added to a table that was read, until decided"
SCREEN, BIASED = "effects: one of eight, 12 runs", "effects: an interaction, not folded"
STRONG, RARE = "settings: strongly skewed effects", "settings: an effect in one setting of seven"
NEARLY = 0.9  # of all settings: what `nearly everywhere` says at least
FACTOR = "optimizer.lr"  # the factor that moves the effects of `settings="factor"`
BASE, ARMS = "base", ("base", "a", "b", "c")
BOOTSTRAPPED = 400  # sweeps whose differences are bootstrapped too


@dataclass(frozen=True)
class Plan:
    """A design of simulated sweeps.

    Args:
        claims: on all tasks, `{m}` stands for `margin` in points.
        effects: {arm: true gain over the others}, in standard deviations of a paired difference, as is `margin`.
        tunings: fine-tuning seeds in each pre-training seed; half of the variance is theirs if there are several.
        luck: of a seed, shared by its arms, in standard deviations of one arm, as is `scratch`: how far the model from
            scratch lies below.
        most: if seeds are added until the claims are decided, how many at most.
        by_hand: if claims are open, the seeds that are run by hand next, without saying so before.
        read: whether a table of the first seeds is read at the full error rate before seeds are added.
        generations: how many tables of new seeds are read, one after the other, as a sweep that is frozen again has.
        spread: {arm: its own noise, as a multiple of the others'}.
        collapse: the chance that a run ends where the model from scratch is.
        loss: whether the only column is a held-out loss.
        runs: {arm: its runs}, if they are of another framework; the first `shared` have the same seeds in all arms.
        settings: how the effects of the arms in `vary` vary over the settings of a universe (see `vary_effects`), which
            then take the place of seeds; empty for seeds.
        vary: {arm: the standard deviation of its effect over settings}, in standard deviations of a paired difference.
        noise: of the noisiest setting, as a multiple of the quietest.
        factorial: the design whose combinations of levels the arms are; claims are then about its effects.
        planted: {effect of the design: its true size}, in standard deviations of a paired difference, as are the
            `effects` that they make of the arms.
    """

    name: str
    claims: tuple[str, ...]
    seeds: int
    tasks: int = 1
    tunings: int = 1
    tails: str = "normal"
    effects: Mapping[str, float] = field(default_factory=dict)
    margin: float = 0.0
    arms: tuple[str, ...] = ARMS
    luck: float = 3.0
    scratch: float = 30.0
    simulations: int = 2000
    most: int | None = None
    by_hand: int | None = None
    read: bool = False
    generations: int = 1
    spread: Mapping[str, float] = field(default_factory=dict)
    collapse: float = 0.0
    loss: bool = False
    runs: Mapping[str, int] = field(default_factory=dict)
    shared: int = 0
    settings: str = ""
    vary: Mapping[str, float] = field(default_factory=dict)
    noise: float = 1.0
    factorial: Factorial | None = None
    planted: Mapping[str, float] = field(default_factory=dict)

    @property
    def scale(self) -> str:
        return "" if self.runs else "simulated"

    @property
    def last(self) -> int:
        """The most seeds that a sweep may take."""
        return max(self.runs.values(), default=0) or self.most or self.by_hand or self.seeds

    def gain(self, arm: str) -> float:
        """Over the model from scratch."""
        return self.effects.get(arm, 0.0) * GAP + self.scratch * SD

    def truth(self, arm: str, versus: str) -> float:
        if self.factorial is not None and versus == ZERO:
            return self.planted.get(arm, 0.0) * GAP
        return (self.effects.get(arm, 0.0) - self.effects.get(versus, 0.0)) * GAP

    def average(self, side: Side) -> float:
        """The true mean of the arms on a side of an effect."""
        return GAP * math.fsum(share * self.effects.get(arm, 0.0) for arm, share in side.weights.items())

    @property
    def columns(self) -> tuple[str, ...]:
        return ("mlm_loss",) if self.loss else tuple(f"task{at}/accuracy" for at in range(self.tasks))

    def design(self, seeds: int, looks: Looks | None = None, universe: Universe | None = None) -> Design:
        points = f"{100 * self.margin * GAP:.10f}"
        return Design(
            study="calibration",
            scale=self.scale,
            baseline=BASE if self.factorial is None else self.arms[0],
            columns=self.columns,
            arms={arm: [] for arm in self.arms},
            claims=tuple(claim.format(m=points) for claim in self.claims),
            seeds=tuple(range(seeds)),
            looks=looks,
            matched=UNMATCHED if self.runs else "tokens",
            universe=universe,
            factorial=self.factorial,
        )


def plans() -> list[Plan]:
    """All designs: identical arms first, then truths on the boundaries, planted effects, seeds added as needed."""
    better = tuple(f"{arm} > {BASE}" for arm in ARMS[1:])
    inside = tuple(f"{arm} > {BASE}, margin {{m}} points" for arm in ARMS[1:])
    kinds = [(n, tails) for n in (3, 5, 10) for tails in ("normal", "t3")]
    many = {3: 10_000, 5: 6000, 10: 6000}  # three claims on one task come nearest to 5 %: these are counted finely
    some = {"normal": 4000, "t3": 2000}
    found = [
        Plan("identical arms, one task", better, n, tails=tails, simulations=many[n] if tails == "normal" else 2000)
        for n, tails in kinds
    ]
    found += [Plan("identical arms, four tasks", better, n, 4, 1, tails, simulations=some[tails]) for n, tails in kinds]
    found += [
        Plan("identical arms, nested seeds", better, n, 2, 3, tails, simulations=some[tails]) for n, tails in kinds
    ]
    found += [
        Plan("identical arms, claims of all kinds", _mixed(), n, 2, tails=tails, margin=2.0) for n, tails in kinds
    ]
    for n, width in ((5, 1.5), (10, 1.2), (20, 0.85)):  # margins as wide as an interval: equivalence is a close call
        edge = dict.fromkeys(ARMS[1:], width)
        found += [
            Plan("identical arms, margins", inside, n, 4, margin=width),
            Plan("true difference at the margin, >", inside, n, 4, margin=width, effects=edge),
            Plan("true difference at the margin, >=", _all(">="), n, 2, margin=1.0, effects=_times(edge, -1.0 / width)),
            Plan("true difference at the margin, ~", _all("~"), n, 2, margin=width, effects=edge),
            Plan("identical arms, columns at the sensitivity control", better, n, 4, luck=0.0, scratch=2.0),
        ]
    found += [
        Plan(PLANTED, (f"a > {BASE}",), n, effects={"a": effect}, arms=(BASE, "a"))
        for n in (3, 5, 10)
        for effect in (0.5, 1.0, 2.0)
    ]
    found += [
        Plan("identical arms, seeds added until decided", better, FIRST, tasks, tails=tails, most=12, simulations=2000)
        for tasks, tails in ((1, "normal"), (2, "normal"), (1, "t3"))
    ]
    found += [
        Plan("identical arms, seeds added until the one claim is decided", (f"a > {BASE}",), FIRST, arms=(BASE, "a"),
             tails=tails, most=8, simulations=count) for tails, count in (("normal", 10_000), ("t3", 2000))
    ]  # fmt: skip
    again = [Plan(AGAIN, better, 5, generations=count, simulations=6000) for count in (2, 3)]
    return [*found, *_corners(), *_foreign(), *_universes(), *again, *_effects()]


def plan_effects(
    name: str, factorial: Factorial, seeds: int, claims: Sequence[str], planted: Mapping[str, float]
) -> Plan:
    """A plan whose arms are the combinations of a design, and whose true means are the sums of planted effects."""
    signs = {effect: dict(zip(factorial.arms, factorial.columns[effect], strict=True)) for effect in planted}
    means = {arm: sum(size * signs[effect][arm] / 2 for effect, size in planted.items()) for arm in factorial.arms}
    arms, stated = tuple(factorial.arms), tuple(f"{effect} > {ZERO}" for effect in claims)
    return Plan(name, stated, seeds, arms=arms, effects=means, factorial=factorial, planted=planted)


def _effects() -> list[Plan]:
    """Designs of several factors: one effect, an interaction that biases a design or does not, and no effect."""
    cube = make_factorial("full", {name: (f"{name}0", f"{name}1") for name in "abc"})
    eight = {name: (f"{name}0", f"{name}1") for name in "abcdefgh"}
    screen, folded = make_factorial(PLACKETT_BURMAN, eight), make_factorial(PLACKETT_BURMAN, eight, folded=True)
    interaction = {"a x b": 1.0}
    return [
        plan_effects(SCREEN, screen, 6, screen.mains, {"a": 1.0}),
        plan_effects("effects: an interaction, folded", folded, 5, folded.mains, interaction),
        plan_effects(BIASED, screen, 5, screen.mains, interaction),
        plan_effects("effects: identical arms, 12 runs", screen, 5, screen.mains, {}),
        plan_effects("effects: identical arms, 2 x 2 x 2", cube, 5, tuple(cube.columns), {}),
    ]


def _universes() -> list[Plan]:
    """Arms in the settings of a universe: two claims, a twin of the baseline, six factors."""
    arms, better = (BASE, "a", "b", TWIN), (f"a > {BASE}", f"b > {BASE}")
    margins = tuple(f"{claim}, margin {{m}} points" for claim in better)
    alike, half = {"a": 1.0, "b": 1.0}, {"a": 0.5, "b": 0.5}
    edge = dict.fromkeys("ab", 1.2816 * math.sqrt(2.0))  # beyond zero in nine of ten settings
    found = []
    for n in (8, 12, 24):
        found += [
            Plan("settings: identical arms", better, n, arms=arms, settings="same", noise=4.0),
            Plan("settings: effects that vary", better, n, arms=arms, settings="normal", vary=alike, noise=2.0),
            Plan("settings: skewed effects", better, n, arms=arms, settings="skewed", vary=alike, noise=2.0),
            Plan("settings: an effect of one factor", better, n, arms=arms, settings="factor", vary=alike, noise=2.0),
            Plan("settings: an effect in nine of ten", better, n, arms=arms, settings="normal", vary=alike,
                 effects=edge),
            Plan("settings: margins", margins, n, arms=arms, settings="normal", vary=half, margin=0.8,
                 effects={"a": 0.8, "b": -0.8}),
        ]  # fmt: skip
    return [
        *found,
        Plan(STRONG, better, 12, arms=arms, settings="skewed", vary={"a": 2.0, "b": 2.0}),
        Plan(RARE, better, 12, arms=arms, settings="rare", vary={"a": 2.0, "b": 2.0}),
        Plan("settings: a planted effect", better, 12, arms=arms, settings="factor", vary={"a": 0.5, "b": 2.0},
             effects={"a": 2.0}),
    ]  # fmt: skip


def _corners() -> list[Plan]:
    """Designs in which the control of a column, or a run, is at its limit."""
    better = tuple(f"{arm} > {BASE}" for arm in ARMS[1:])
    low = dict.fromkeys(("a", "b"), -10.0 / math.sqrt(2.0))
    hollow = ("a ~ b, margin {m} points", "a >= b, margin {m} points", "a > b, margin {m} points")
    found = []
    for n in (5, 10):
        found += [
            Plan("identical arms, many columns", better, n, 8),
            Plan("identical arms, noisy baseline", better, n, 8, luck=0.0, scratch=4.0, spread={BASE: 3.0}),
            Plan("identical arms, collapsing runs", better, n, 2, collapse=0.15),
            Plan("identical arms, one claim on many columns", better[:1], n, 8),
            Plan("hollow sameness", hollow, n, 2, margin=3.0, effects=low, scratch=10.0),
            Plan("two arms below from scratch", ("a > b", f"a > {BASE}"), n, 2, scratch=10.0,
                 effects={"a": low["a"] - 1.0, "b": low["a"] - 6.0}),
        ]  # fmt: skip
    return [
        *found,
        Plan("identical arms, two rounds by hand", better, 5, by_hand=10),
        Plan(READ, better[:1], 5, arms=(BASE, "a"), most=8, read=True, simulations=10_000),
        Plan("identical arms, one claim with a margin on many columns", _all(">")[:1], 20, 8, margin=1.25),
        Plan("identical arms, a held-out loss", better, 5, loss=True, simulations=4000),
        Plan(READ, better[:1], 5, arms=(BASE, "a"), most=12, read=True, simulations=10_000),
        Plan(READ, better, 5, most=8, read=True, simulations=4000),
        Plan("one better arm, seeds added until decided", better, FIRST, effects={"a": 3.0}, most=12),
        *(Plan("identical arms, one noisy arm", better, n, spread={"a": 3.0}, simulations=4000) for n in (3, 5)),
    ]


def _foreign() -> list[Plan]:
    """Arms of another framework that share some of their seeds or none."""
    one, three = (f"a > {BASE}",), tuple(f"{arm} > {BASE}" for arm in ARMS[1:])
    found = [
        Plan("identical arms, no seed shared", one, n, arms=(BASE, "a"), runs={BASE: m, "a": n}, spread={"a": spread},
             luck=0.0, simulations=4000)
        for n, m in ((3, 3), (3, 8), (3, 30), (5, 5), (5, 10), (10, 30), (30, 30)) for spread in (0.25, 1.0, 4.0)
    ]  # fmt: skip
    found += [
        Plan("identical arms, some seeds shared", one, n, arms=(BASE, "a"), runs={BASE: m, "a": n}, shared=shared,
             spread={"a": spread}, luck=luck, simulations=4000)
        for n, m, shared in ((4, 3, 3), (4, 8, 4), (5, 5, 3), (12, 10, 8))
        for spread, luck in ((1.0, 0.0), (1.0, 3.0), (3.0, 0.0), (3.0, 3.0))
    ]  # fmt: skip
    return [
        *found,
        *(Plan("identical arms, no seed shared, three claims", three, n, runs=dict.fromkeys(ARMS, n), luck=0.0)
          for n in (3, 10)),
        *(Plan("true difference at the margin, no seed shared, ~", _all("~"), n, runs=dict.fromkeys(ARMS, n), luck=0.0,
               margin=2.0, effects=dict.fromkeys(ARMS[1:], 2.0)) for n in (5, 10)),
    ]  # fmt: skip


def _all(relation: str) -> tuple[str, ...]:
    return tuple(f"{arm} {relation} {BASE}, margin {{m}} points" for arm in ARMS[1:])


def _times(effects: Mapping[str, float], factor: float) -> dict[str, float]:
    return {arm: factor * effect for arm, effect in effects.items()}


def _mixed() -> tuple[str, ...]:
    margin = ", margin {m} points"
    return (f"best is a{margin}", f"monotone({BASE}, a, b){margin}", f"b ~ {BASE}{margin}", f"c >= {BASE}{margin}")


def simulate(plan: Plan, random: Any, seeds: int) -> list[Record]:
    """Records of one sweep. A seed's luck is shared by its arms; half an arm's own noise is shared by its tasks."""
    arms, tasks, tunings = len(plan.arms) + 1, plan.tasks, plan.tunings
    nested = 0.5 if tunings > 1 else 0.0
    own = _noise(plan, random, (arms, seeds, tasks)) + _noise(plan, random, (arms, seeds, 1))
    tuned = math.sqrt(nested * tunings) * _noise(plan, random, (arms, seeds, tasks, tunings))
    pretrained = math.sqrt((1.0 - nested) / 2.0) * own
    shared = plan.luck * np.broadcast_to(random.standard_normal((seeds, tasks)), (arms, seeds, tasks))
    if plan.runs:
        apart = plan.luck * random.standard_normal((arms, seeds, tasks))
        shared = np.where(np.arange(seeds)[:, None] < plan.shared, shared, apart)
    gains = [plan.effects.get(arm, 0.0) * math.sqrt(2.0) for arm in plan.arms]
    gains.append(-plan.scratch)
    names = (*plan.arms, SCRATCH)
    noise = np.array([plan.spread.get(name, 1.0) for name in names])[:, None, None, None]
    own_part, luck = pretrained[..., None] + tuned, shared[..., None]
    fallen = random.random((arms, seeds, 1, 1)) < plan.collapse if plan.collapse else False
    level = np.where(fallen, -plan.scratch, np.array(gains)[:, None, None, None])
    scores = 0.6 + SD * (level + luck + noise * own_part)
    if not plan.runs:
        return [_record(plan, names[at], seed, scores[at, seed]) for at in range(arms) for seed in range(seeds)]
    return [
        _record(plan, arm, seed if seed < plan.shared else 1000 * (at + 1) + seed, scores[at, seed])
        for at, arm in enumerate(plan.arms)
        for seed in range(plan.runs[arm])
    ]


WIDTHS = ("128", "192", "256")  # of models: settings of wider ones are noisier
FACTORS = {
    FACTOR: "tag(log, interval(1e-3, 1e-2))", "trainer.max_tokens": "int(tag(log, interval(1e6, 8e6)))",
    "model.hidden": list(WIDTHS), "model.layers": [2, 4, 6], "masking.rate": "interval(0.15, 0.4)",
    "corpus": ["docstrings", "prose", "news"],
}  # fmt: skip
SPACE = {key: dimension(key, values) for key, values in FACTORS.items()}


def simulate_settings(plan: Plan, random: Any) -> tuple[Design, list[Record], dict[str, float]]:
    """(a design, its records, {arm: minus the baseline in one further setting}).

    A setting's luck is shared by its arms.
    """
    n = plan.seeds
    universe = Universe(n, int(random.integers(2**31)), SPACE, FACTORS, {})
    points = [*universe.draw(), {key: part.at(random.random()) for key, part in SPACE.items()}]
    width = np.array([WIDTHS.index(point["model.hidden"]) - 1.0 for point in points])
    noise_S = plan.noise ** (width / 2.0)
    scores: dict[str, Any] = {}
    luck_S = plan.luck * random.standard_normal(n + 1)
    for arm in plan.arms:
        effect_S = plan.effects.get(arm, 0.0) + plan.vary.get(arm, 0.0) * vary_effects(plan.settings, points, random)
        own_S = noise_S * random.standard_normal(n + 1)
        scores[arm] = 0.6 + SD * (math.sqrt(2.0) * effect_S + luck_S + own_S)
    scores[SCRATCH] = 0.6 + SD * (luck_S - plan.scratch + random.standard_normal(n + 1))
    records = [_record(plan, arm, at, np.array([[of_arm[at]]])) for arm, of_arm in scores.items() for at in range(n)]
    further = {arm: float(scores[arm][n] - scores[BASE][n]) for arm in plan.arms}
    return plan.design(n, universe=universe), records, further


def vary_effects(kind: str, points: Sequence[Mapping[str, str]], random: Any) -> Any:
    """Effects in settings, of mean zero and unit variance: normal, skewed (exponential), rare (0 but in one of seven),
    or moved by one factor alone; all 0 if they are the same.
    """
    n = len(points)
    if kind == "normal":
        return random.standard_normal(n)
    if kind == "skewed":
        return random.exponential(size=n) - 1.0
    if kind == "rare":
        share = 1.0 / 7.0
        return ((random.random(n) < share) - share) / math.sqrt(share * (1.0 - share))
    if kind == "factor":
        return math.sqrt(12.0) * (np.array([math.log10(float(point[FACTOR])) for point in points]) + 2.5)
    return np.zeros(n)


def _noise(plan: Plan, random: Any, shape: tuple[int, ...]) -> Any:
    """Of unit variance."""
    return random.standard_normal(shape) if plan.tails == "normal" else random.standard_t(3, shape) / math.sqrt(3.0)


def _record(plan: Plan, arm: str, seed: int, scores_TK: Any) -> Record:
    loss = 5.0 - float(scores_TK.mean()) if plan.loss else 5.0
    common: dict[str, Any] = {
        "study": "calibration", "scale": plan.scale, "arm": arm, "seed": seed, "signature": f"{arm}-{seed}",
        "status": "done", "budget": {"input_tokens": 1.0},
        "own": {  # every run leaves the plateau
            "loss": loss, "floor": 6.0, "held_out": False,
            "curve": [[100, 1e5, 6.5], [300, 3e5, loss], [400, 4e5, loss]],
        },
    }  # fmt: skip
    if plan.loss:
        return Record(metrics={"mlm_loss": loss}, baselines={"mlm_loss": {"unigram": 6.5}}, **common)
    means = scores_TK.mean(1).tolist()
    tunings = [
        TaskRun(column.partition("/")[0], tuning, {"accuracy": score})
        for column, scores in zip(plan.columns, scores_TK.tolist(), strict=True)
        for tuning, score in enumerate(scores)
    ]
    return Record(metrics=dict(zip(plan.columns, means, strict=True)), task_runs=tuple(tunings), **common)


def _judge(design: Design, records: Sequence[Record]) -> Verdicts:
    foreign = {column: Metric(column, False, True, 1, foreign=True) for column in design.columns if design.foreign}
    with declare(foreign):
        return judge_claims(design, records, count_seeds=False)


def rule_sweep(plan: Plan, random: Any) -> tuple[list[Verdicts], int]:
    """(the tables of one simulated sweep that are read, the last one last; seeds it took)."""
    if plan.generations > 1:
        design = plan.design(plan.seeds)
        tables = [_judge(design, simulate(plan, random, plan.seeds)) for _ in range(plan.generations)]
        return tables, plan.seeds * plan.generations
    records, read = simulate(plan, random, plan.last), list[Verdicts]()
    if plan.by_hand is not None or plan.read or plan.most is None:
        first = [one for one in records if plan.runs or one.seed < plan.seeds]
        read.append(_judge(plan.design(plan.seeds), first))
        if plan.runs or plan.last == plan.seeds or not any(claim.open for claim in read[0].claims):
            return read, plan.seeds
    last, seeds = (
        (_judge(plan.design(plan.seeds), records), plan.last) if plan.most is None else add_seeds(plan, records)
    )
    return [*read, last], seeds


def add_seeds(plan: Plan, records: Sequence[Record]) -> tuple[Verdicts, int]:
    """(the verdicts if seeds are added to the arms of open claims, seeds of the arm that got most)."""
    assert plan.most is not None
    looks = Looks(plan.seeds, plan.most)
    if len(plan.claims) == 1:  # its arms get every seed until it is decided: one table has all looks
        found = _judge(plan.design(plan.most, looks), records)
        return found, max(contrast.n for contrast in found.claims[0].contrasts)
    read = [one for one in records if one.seed < plan.seeds]
    found = _judge(plan.design(plan.seeds, looks), read)
    for seed in range(plan.seeds, plan.most):
        waiting = [contrast for claim in found.claims if claim.open for contrast in claim.contrasts]
        if not waiting:
            return found, seed
        still = {SCRATCH, *(arm for contrast in waiting for arm in (contrast.arm, contrast.versus))}
        read += [one for one in records if one.seed == seed and one.arm in still]
        found = _judge(plan.design(seed + 1, looks), read)
    return found, plan.most


def false(plan: Plan, contrast: ContrastRow) -> bool:
    """Whether a contrast of a table says what is not so."""
    gain, margin = plan.truth(contrast.arm, contrast.versus), contrast.margin
    gain = -gain if lower_is_better(contrast.column) else gain
    near = 1e-9  # a truth on the boundary is on neither side of it
    wrong = {
        ">": {
            "reproduced": gain <= near,
            "contradicted": gain >= -near,
            "equivalent": abs(gain) >= margin - near,
        },
        ">=": {"reproduced": gain <= -margin + near, "contradicted": gain >= -margin - near},
        "~": {"reproduced": abs(gain) >= margin - near, "contradicted": abs(gain) <= margin + near},
    }
    return wrong[contrast.relation].get(contrast.verdict, False) or _is_blind(plan, contrast)


def _is_blind(plan: Plan, contrast: ContrastRow) -> bool:
    """Whether a contrast is decided on a column that could not have shown the difference."""
    if plan.runs:
        return False
    if contrast.sides is None:
        first, second = (plan.gain(arm) for arm in (contrast.arm, contrast.versus))
    else:
        assert plan.factorial is not None
        first, second = (plan.average(side) + plan.scratch * SD for side in plan.factorial.find_sides(contrast.arm))
    word, relation, near = contrast.verdict, contrast.relation, 1e-9
    if word == CONTRADICTED or (word, relation) == (REPRODUCED, ">"):
        return max(first, second) <= near
    if word not in (REPRODUCED, EQUIVALENT):
        return False
    return (second if relation == ">=" else max(first, second)) <= contrast.margin + near


def find_share(plan: Plan, arm: str, random: Any, draws: int = 10_000) -> float:
    """In which share of all settings the effect of an arm, one run of each, lies beyond the margin."""
    points = [{key: part.at(random.random()) for key, part in SPACE.items()} for _ in range(draws)]
    noise_S = plan.noise ** ((np.array([WIDTHS.index(p["model.hidden"]) for p in points]) - 1.0) / 2.0)
    effect_S = plan.effects.get(arm, 0.0) + plan.vary.get(arm, 0.0) * vary_effects(plan.settings, points, random)
    return float(np.mean(effect_S + noise_S * random.standard_normal(draws) > plan.margin))


def is_false_in_settings(plan: Plan, share: float, claim: ClaimRow) -> bool:
    """Whether the words of a claim over settings say what is not so. `share`: of all settings, where the effect lies
    beyond the margin.
    """
    true = {FACTOR} if plan.settings == "factor" and plan.vary.get(claim.contrasts[0].arm) else set()
    named = {factor for word in claim.words if word.startswith("depends on ") for factor in word[11:].split(", ")}
    return bool(named - true) or (any(EVERYWHERE in word for word in claim.words) and share < NEARLY - 0.005)


def measure_settings(plan: Plan, simulations: int, random: Any) -> dict[str, Any]:
    """One entry of the file, of a plan with settings."""
    wrong = covered = intervals = predicted = 0
    words = Counter[str]()
    shares = {arm: find_share(plan, arm, random) for arm in plan.arms if arm not in (BASE, TWIN)}
    for _ in range(simulations):
        design, records, further = simulate_settings(plan, random)
        claims, universe = judge_settings(_judge(design, records))
        said = [(claim, row) for claim in claims for row in universe.claims[claim.text]]
        wrong += any(
            any(false(plan, contrast) for contrast in claim.contrasts)
            or is_false_in_settings(plan, shares[row.arm], claim)
            for claim, row in said
        )
        for claim, row in said:
            assert row.ci_low is not None
            assert row.ci_high is not None
            assert row.prediction is not None
            covered += row.ci_low <= plan.truth(row.arm, BASE) <= row.ci_high
            predicted += row.prediction[0] <= further[row.arm] <= row.prediction[1]
            words.update(f"{row.arm} {word}" for word in claim.words)
        intervals += len(said)
    return {
        "design": plan.name, "seeds": plan.seeds, "tasks": 1, "nested": 1, "tails": plan.tails,
        "simulations": simulations, "tables": simulations, "false_verdicts": wrong, "intervals": intervals,
        "covered": covered, "coverage": round(covered / intervals, 4), "nominal": LEVEL,
        "prediction": {"covered": predicted, "intervals": intervals, "coverage": round(predicted / intervals, 4)},
        "words": dict(sorted(words.items())),
    }  # fmt: skip


def measure(plan: Plan, simulations: int, random: Any) -> dict[str, Any]:
    """One entry of the file."""
    if plan.settings:
        return measure_settings(plan, simulations, random)
    wrong = covered = intervals = decided = seeds = found = 0
    bootstrap, lent = [0, 0], [0, 0]
    for at in range(simulations):
        tables, n = rule_sweep(plan, random)
        table = tables[-1]
        wrong += any(false(plan, contrast) for one in tables for claim in one.claims for contrast in claim.contrasts)
        contrasts = [contrast for claim in table.claims for contrast in claim.contrasts]
        covered += sum(_covers(plan, c, _find_ends(table, c)) for c in contrasts)
        intervals += len(contrasts)
        decided += sum(find_word(contrast.verdict).decides for contrast in contrasts)
        found += any(contrast.arm == "a" and contrast.verdict == REPRODUCED for contrast in contrasts)
        seeds += n
        if at < BOOTSTRAPPED and not plan.runs and plan.tasks == 1 and plan.most is None and plan.by_hand is None:
            hits = [_covers(plan, c, bca(_values(table, c), resamples=1000)) for c in contrasts[:1]]
            bootstrap = [bootstrap[0] + sum(hits), bootstrap[1] + len(hits)]
        noisy = [] if plan.runs else [c for c in contrasts if {c.arm, c.versus} & plan.spread.keys()]
        hits = [_covers(plan, c, _lend(table, c)) for c in noisy]
        lent = [lent[0] + sum(hits), lent[1] + len(hits)]
    entry: dict[str, Any] = {
        "design": plan.name, "seeds": plan.last, "tasks": plan.tasks, "nested": plan.tunings,
        "tails": plan.tails, "simulations": simulations, "tables": simulations, "false_verdicts": wrong,
        "intervals": intervals, "covered": covered, "coverage": round(covered / intervals, 4), "nominal": LEVEL,
    }  # fmt: skip
    if bootstrap[1]:
        entry["bootstrap"] = {"covered": bootstrap[0], "intervals": bootstrap[1]}
    if lent[1]:
        entry["lent"] = {"covered": lent[0], "intervals": lent[1]}
    if plan.name == PLANTED:
        formula = power([Route(plan.effects["a"])], 1.0 / math.sqrt(plan.seeds), plan.seeds - 1)
        entry |= {"effect": plan.effects["a"], "decided": decided, "power": round(decided / intervals, 4)}
        entry["formula"] = round(formula, 4)
    if plan.name == SCREEN:
        entry |= {"effect": plan.planted["a"], "found": round(found / simulations, 4)}
        entry["found_one_at_a_time"] = round(measure_one_at_a_time(plan, simulations, random), 4)
    if plan.runs:
        entry |= {"runs": dict(plan.runs), "shared": plan.shared, "spread": dict(plan.spread), "luck": plan.luck}
    if plan.generations > 1:
        entry["generations"] = plan.generations
    if plan.most is not None or plan.by_hand is not None:
        entry["mean_seeds"] = round(seeds / simulations, 2)
    return entry


def measure_one_at_a_time(plan: Plan, simulations: int, random: Any) -> float:
    """How often the planted effect of `a` is found if as many runs change one factor at a time."""
    assert plan.factorial is not None
    arms = (BASE, *plan.factorial.levels)
    seeds = len(plan.arms) * plan.seeds // len(arms)
    claims = tuple(f"{arm} > {BASE}" for arm in arms[1:])
    alone = Plan(plan.name, claims, seeds, arms=arms, effects=plan.planted)
    tables = (rule_sweep(alone, random)[0][-1] for _ in range(simulations))
    return sum(table.claims[0].verdict == REPRODUCED for table in tables) / simulations


def _find_ends(table: Verdicts, contrast: ContrastRow) -> tuple[float, float] | None:
    """The contrast's 95 % interval, or if there were looks, the one at the level of the last."""
    level = ALPHA if table.design.looks is None else table.design.looks.level(ALPHA, contrast.n)
    if table.design.foreign:
        low, high = table.evidence.subtract(contrast.arm, contrast.versus, contrast.column).interval(level)
        return None if low is None or high is None else (low, high)
    _, _, _, low, high = summarize(_values(table, contrast)[: contrast.n], level)
    return None if low is None or high is None else (low, high)


def _lend(table: Verdicts, contrast: ContrastRow) -> tuple[float, float]:
    """The contrast's 95 % interval if its variance is moderated by the residual of arms and seeds (Smyth 2004).

    The prior counts as half of the contrast's own degrees of freedom.
    """
    scores = np.array([list(table.evidence.values(arm, contrast.column).values()) for arm in table.design.arms])
    arms, n = scores.shape
    residual = scores - scores.mean(1, keepdims=True) - scores.mean(0) + scores.mean()
    pooled = 2.0 * float(np.square(residual).sum()) / ((arms - 1) * (n - 1))
    values = _values(table, contrast)
    own, prior = float(np.var(values, ddof=1)), (n - 1) / 2.0
    freedom = prior + n - 1
    variance = (prior * pooled + (n - 1) * own) / freedom
    half = float(student.isf(ALPHA / 2.0, freedom)) * math.sqrt(variance / n)
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def _covers(plan: Plan, contrast: ContrastRow, ends: Sequence[float] | None) -> bool:
    return ends is not None and ends[0] <= plan.truth(contrast.arm, contrast.versus) <= ends[1]


def _values(table: Verdicts, contrast: ContrastRow) -> list[float]:
    """A contrast's differences, seed by seed."""
    first, second = table.evidence.pair(contrast.arm, contrast.versus, contrast.column)
    return [first[seed] - second[seed] for seed in first if seed in second]


def _measure_all(share: float, chosen: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The entries of these designs, in order, one process per core."""
    every = plans()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(_measure_one, chosen, [max(1, round(share * every[at].simulations)) for at in chosen])


def _measure_one(at: int, simulations: int) -> dict[str, Any]:
    return measure(plans()[at], simulations, np.random.default_rng([20190726, at]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--share", type=float, default=1.0, help="of the simulations, for a quick look")
    parser.add_argument("--designs", default="", help="only those whose name holds this; the others keep their entries")
    given = parser.parse_args()
    chosen = [at for at, plan in enumerate(plans()) if given.designs in plan.name]
    start, entries = time.perf_counter(), list[dict[str, Any]]()
    if given.designs and given.out.exists():
        kept = json.loads(given.out.read_text())
        entries = [entry for entry in kept if given.designs not in entry["design"]]
    for entry in progress(_measure_all(given.share, chosen), "designs", unit="design", total=len(chosen)):
        entries.append(entry)
        rate = 100.0 * entry["false_verdicts"] / entry["tables"]
        rates = f"{rate:.2f} % false tables, coverage {100.0 * entry['coverage']:.2f} %"
        more = f", power {entry['power']} (formula {entry['formula']})" if "power" in entry else ""
        if "found" in entry:
            alone = entry["found_one_at_a_time"]
            more = f", an effect of {entry['effect']:g} found in {entry['found']} (one factor at a time: {alone})"
        say(f"{entry['design']}: n={entry['seeds']}, tasks={entry['tasks']}, {entry['tails']}: {rates}{more}")
    write_json(given.out, entries)
    say(f"{len(entries)} designs in {time.perf_counter() - start:.0f} s, written to {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
