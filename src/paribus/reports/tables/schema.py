"""The content of table.json, and how LaTeX prints a mean; `blocks.py` turns it into text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from paribus.core.files import at_scale
from paribus.core.jsonable import EMPTY, OMITTED
from paribus.verdict.checks import SOLID, Check, Strength, explain
from paribus.verdict.claims import OURS, OWNERS
from paribus.verdict.controls import TOLERANCE
from paribus.verdict.factorial import ZERO
from paribus.verdict.rules import NOT_RUN, UNDECIDED, Relation
from paribus.verdict.statistics import PAIRED

SCHEMA = 1
# what the n of a table counts; `RUNS`: of another framework, of which nothing is known but their numbers
PRETRAININGS, TUNINGS, RUNS = "pre-training runs", "fine-tuning runs of one checkpoint", "runs"
SETTINGS = "settings"  # of a universe
BOTH: Final = "both"
STYLES: Final = {  # of a mean: how the caption says it
    BOTH: "Mean (standard deviation) [95% t interval of the mean]",
    "sd": "Mean ± standard deviation",
    "interval": "Mean [95% t interval of the mean]",
}


@dataclass(frozen=True)
class About:
    """How a column is read. `unit`: "points" or "own"; `reason`: why it decides no claim, or None."""

    higher_is_better: bool
    unit: str
    decides: bool
    reason: str | None

    @property
    def factor(self) -> float:
        """What a value is multiplied by to be printed or drawn."""
        return 100.0 if self.unit == "points" else 1.0


@dataclass(frozen=True)
class Level:
    """The mean of a column of a row that has no seeds."""

    mean: float


@dataclass(frozen=True)
class Cell:
    """A column of a row: mean, standard deviation and 95% interval over `seeds`; None if one seed has none."""

    mean: float
    sd: float | None
    ci_low: float | None
    ci_high: float | None
    values: tuple[float, ...]
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Difference:
    """Arm minus baseline. `p`: t-test against zero, before Holm.

    `pairing`, `counts`: of arms that do not share all their seeds, which test it is and the runs of each.
    """

    difference: float
    ci_low: float | None
    ci_high: float | None
    p: float | None
    n: int
    pairing: str = field(default=PAIRED, metadata=OMITTED)
    counts: tuple[int, int] | None = field(default=None, metadata=OMITTED)

    @property
    def n_text(self) -> str:
        """`5`, or `8 v 4` of unpaired arms."""
        return format_n(self.n, self.counts)


def format_n(n: int, counts: tuple[int, int] | None) -> str:
    return str(n) if counts is None else f"{counts[0]} v {counts[1]}"


@dataclass(frozen=True)
class Printed:
    """A number of a paper. `text`: how the paper prints it, if the value alone would lose its last zeros."""

    value: float
    source: str
    text: str = field(default="", metadata=OMITTED)

    @property
    def shown(self) -> str:
        return self.text or str(self.value)


@dataclass(frozen=True)
class RunRow:
    """A run behind an arm."""

    seed: int
    status: str
    signature: str | None = field(default=None, metadata=OMITTED)
    wandb_id: str | None = field(default=None, metadata=OMITTED)
    error: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class OwnLoss:
    """Pre-trainings on their own noise: mean loss and floor of the trivial model, in nats, over n runs.

    `left`: how many left their plateau, between which `steps` and `tokens`; `memorized`: how many others ended far
    above their first loss. `fall`: how much the loss fell over the last quarter of the tokens; `falling`: how many
    runs were still falling. `held_out`: the noise is that of the held-out evaluation; `written`: the model writes it.
    """

    n: int
    loss: float
    floor: float
    left: int
    memorized: int
    steps: tuple[int, int] | None
    tokens: tuple[int, int] | None
    fall: float | None
    falling: int
    held_out: bool
    written: bool = field(default=False, metadata=OMITTED)

    @property
    def below(self) -> float:
        """Nats below the floor."""
        return self.floor - self.loss


@dataclass(frozen=True)
class ArmRow:
    """An arm. `best`: the columns on which it beats every other arm; `reason`: why no machine ran it.

    `own`: its loss on its own noise, if its runs measured it.
    """

    name: str
    overrides: tuple[str, ...]
    n: int
    status: str
    metrics: Mapping[str, Cell]
    versus_baseline: Mapping[str, Difference]
    best: tuple[str, ...]
    published: Mapping[str, Printed]
    runs: tuple[RunRow, ...]
    reason: str = field(default="", metadata=OMITTED)
    own: OwnLoss | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class AnchorRow:
    """A row without pre-training; `n` is None if it has no seeds."""

    name: str
    n: int | None
    metrics: Mapping[str, Cell | Level]


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95% interval."""

    value: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class OverallRow:
    """An arm over all tasks: the mean over them, and its paired difference from the baseline's; t intervals."""

    name: str
    n: int
    mean: Estimate
    gain: Estimate | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class Aggregate:
    """All arms over the tasks that were measured."""

    columns: tuple[str, ...]
    arms: tuple[OverallRow, ...]


@dataclass(frozen=True)
class Equivalence:
    """The customary test of |mean| < margin: `p`, and its 90% interval."""

    p: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Spread:
    """Where the spread of a contrast comes from; `narrower`: what unlimited fine-tuning seeds would take off it."""

    sd_between: float
    sd_within: float
    fine_tuning_seeds: float
    narrower: float


@dataclass(frozen=True)
class AfterExit:
    """Two arms as many input `tokens` after the exit of each run from its plateau, which decides nothing.

    `below`: how many nats the loss of each arm on its own noise is below its trivial floor; `difference`: of the two,
    paired over n seeds, with its 95% interval. `comparable`: whether both losses ask the same.
    """

    tokens: int
    below: tuple[float, float]
    difference: float
    ci_low: float | None
    ci_high: float | None
    n: int
    comparable: bool


@dataclass(frozen=True)
class SideRow:
    """A group of arms of which an effect is compared with another one. `name`: of a main effect, the level."""

    name: str
    arms: tuple[str, ...]


@dataclass(frozen=True)
class ContrastRow:
    """One pair of a claim on one column: the evidence and its verdict.

    `ci_low`, `ci_high`: the interval that the verdict was read off, at `level`, such as 0.975. `seeds_range`: between
    how many seeds would decide; the second is None if no end is in sight. Of runs of another framework, `superiority`
    is the chance that a run of `arm` is better than one of `versus`, and `order` the bound of almost stochastic order.
    `checks`: the six of `verdict/checks.py`, none for runs of another framework; `strength`: of a decided verdict, what
    they make of it; `after_exit`: beside a failed check of the arms' exits. `sides`: of an effect, which is compared
    with "0", the two groups of arms.
    """

    column: str
    arm: str
    relation: Relation
    versus: str
    margin: float
    difference: float | None
    sd: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_claim: float | None
    p_holm: float | None
    n: int
    verdict: str
    seeds_needed: int | None
    detectable: float | None
    reason: str
    published: float | None = None
    equivalence: Equivalence | None = None
    ci_bootstrap: tuple[float, float] | None = None
    components: Spread | None = None
    level: float | None = None
    seeds_range: tuple[int, int | None] | None = None
    pairing: str = field(default=PAIRED, metadata=OMITTED)
    counts: tuple[int, int] | None = field(default=None, metadata=OMITTED)
    superiority: float | None = field(default=None, metadata=OMITTED)
    order: float | None = field(default=None, metadata=OMITTED)
    checks: tuple[Check, ...] = field(default=(), metadata=OMITTED)
    strength: Strength | None = field(default=None, metadata=OMITTED)
    after_exit: AfterExit | None = field(default=None, metadata=OMITTED)
    sides: tuple[SideRow, SideRow] | None = field(default=None, metadata=OMITTED)

    @property
    def n_text(self) -> str:
        """`5`, or `8 v 4` of unpaired arms."""
        return format_n(self.n, self.counts)

    @property
    def pair(self) -> str:
        """Such as `dynamic - static`, or the name of an effect."""
        return self.arm if self.sides and self.versus == ZERO else f"{self.arm} - {self.versus}"

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms behind it."""
        return (self.arm, self.versus) if self.sides is None else (*self.sides[0].arms, *self.sides[1].arms)

    @property
    def names(self) -> tuple[str, str]:
        """Of what is compared: two arms, or the two sides of an effect."""
        return (self.arm, self.versus) if self.sides is None else (self.sides[0].name, self.sides[1].name)

    @property
    def barred(self) -> bool:
        """Whether it is undecided for another reason than the number of seeds."""
        return self.verdict == UNDECIDED and self.n > 1 and self.seeds_range is None


@dataclass(frozen=True)
class ClaimRow:
    """A claim. `said`: the verdict with its scale and reason; `open`: whether more seeds may decide it.

    `says`: the claim in plain words, if its sweep file has them; `whose`: "paper", "ours" or "A/A". `p`: the smallest
    error rate of the whole table at which it is decided. `measured` of the `asked` columns that it names were measured;
    every arm is below a linear model in those of `below`. `checks`: of each the heaviest result among the contrasts
    that the verdict rests on; `strength`: of a decided verdict, what they make of it. `words`: over the settings of a
    universe, such as "holds on average".
    """

    text: str
    verdict: str
    said: str
    seeds_needed: int | None = None
    open: bool = False
    contrasts: tuple[ContrastRow, ...] = ()
    says: str = field(default="", metadata=OMITTED)
    whose: str | None = field(default=None, metadata=OMITTED)
    p: float | None = field(default=None, metadata=OMITTED)
    seeds_range: tuple[int, int | None] | None = field(default=None, metadata=OMITTED)
    measured: int = field(default=0, metadata=OMITTED)
    asked: int = field(default=0, metadata=OMITTED)
    below: tuple[str, ...] = field(default=(), metadata=OMITTED)
    checks: tuple[Check, ...] = field(default=(), metadata=OMITTED)
    strength: Strength | None = field(default=None, metadata=OMITTED)
    words: tuple[str, ...] = field(default=(), metadata=OMITTED)

    @property
    def word(self) -> str:
        """The verdict with what qualifies it, such as "reproduced (1 of 6 columns)"."""
        return qualify(self.verdict, self.measured, self.asked, self.below, self.weakness, self.words)

    @property
    def short_word(self) -> str:
        """The same with the strength alone, such as "reproduced (weak)"."""
        strength = "" if self.strength in (None, SOLID) else str(self.strength)
        return qualify(self.verdict, self.measured, self.asked, self.below, strength, self.words)

    @property
    def weakness(self) -> str:
        """Why the verdict is weak or unchecked; empty for any other."""
        return describe_strength(self.checks, self.strength)

    @property
    def partial(self) -> bool:
        """Whether some of the claim's columns were not measured."""
        return 0 < self.measured < self.asked

    @property
    def sentence(self) -> str:
        """Such as "Removing the loss does not hurt (the paper's claim)", or the claim itself."""
        return f"{self.says} ({OWNERS[self.whose or OURS]})" if self.says else self.text


def describe_strength(checks: Sequence[Check], strength: Strength | None) -> str:
    """Such as `weak: base left the plateau at 75% of its tokens in seed 3`; empty for a verdict with nothing to add."""
    return "" if strength in (None, SOLID) else f"{strength}: {explain(checks)}"


def qualify(
    verdict: str, measured: int, asked: int, below: Sequence[str], strength: str = "", words: Sequence[str] = ()
) -> str:
    """The verdict with its words over settings, with what its checks make of it, with the columns that it rests on, and
    with those in which a linear model beats every arm.
    """
    parts = [*words, *[strength] * bool(strength)]
    parts += [f"{measured} of {asked} columns"] if 0 < measured < asked else []
    if below and verdict != NOT_RUN:
        parts.append(f"every arm is below the bag of words on {', '.join(below)}")
    return f"{verdict} ({'; '.join(parts)})" if parts else verdict


@dataclass(frozen=True)
class LooksTaken:
    """The looks at a table whose seeds were added until its claims were decided; `level`: of the one at n seeds."""

    first: int
    most: int
    n: int
    level: float


@dataclass(frozen=True)
class OrderRow:
    """Kendall's tau between our order of the arms on a column and the paper's."""

    column: str
    metric: str
    arms: tuple[str, ...]
    n: int
    tau: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class Paper:
    """The paper's table. `beside`: {our column: its metric}; `absent`: the same for columns that were not run; `own`:
    its other metrics; `rows`: {our arm: its row}.
    """

    table: str
    source: str
    claim: str
    setting: str
    metrics: tuple[str, ...]
    beside: Mapping[str, str]
    absent: Mapping[str, str]
    own: tuple[str, ...]
    rows: Mapping[str, str]
    orders: tuple[OrderRow, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """What the control audit found; `differences`: {arm: {key: (the baseline's value, its own)}}."""

    varies: tuple[str, ...]
    controlled: bool | None = field(default=None, metadata=OMITTED)
    differences: Mapping[str, Mapping[str, tuple[Any, Any]]] = field(default_factory=dict, metadata=OMITTED)


@dataclass(frozen=True)
class Budget:
    """What is equal in all arms, and what each arm used: {arm: {budget: mean over its runs}}."""

    matched: str
    tolerance: float
    arms: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Tuned:
    """How many trials an arm was tuned with, and the values that were chosen."""

    trials: int
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class Band:
    """A curve over runs: means and 95% intervals at numbers of tokens; of two runs their values, and no interval."""

    tokens: tuple[float, ...]
    mean: tuple[float | None, ...]
    ci_low: tuple[float | None, ...]
    ci_high: tuple[float | None, ...]
    n: int = 1
    runs: tuple[tuple[float | None, ...], ...] = field(default=(), metadata=OMITTED)


@dataclass(frozen=True)
class SettingRow:
    """A setting of a universe. `excluded`: why no arm's run there counts."""

    number: int
    values: Mapping[str, str]
    excluded: str = field(default="", metadata=OMITTED)


@dataclass(frozen=True)
class FactorRow:
    """An effect over one factor. `fitted`: {value: the effect there}; `p`: that it does not depend on the factor;
    `p_table`: the same adjusted for all factors and contrasts of the table, which decides below 0.05.
    """

    factor: str
    fitted: Mapping[str, float]
    p: float
    p_table: float


@dataclass(frozen=True)
class SettingsRow:
    """One pair on one column over the settings: n effects, `arm` minus `versus`, {number of the setting: effect}.

    `ci_low`, `ci_high`: of the mean, at 95%. `prediction`: where the effect in a new setting lies, at 95%; `wide`: the
    same at the level of the claim, which the words rest on. `holds` of the n settings are on the claim's side;
    `share`: the 95% interval of their share. `expected`, `seen`: of a control.
    """

    column: str
    arm: str
    versus: str
    n: int
    mean: float
    sd: float | None
    ci_low: float | None
    ci_high: float | None
    prediction: tuple[float, float] | None
    holds: int
    share: tuple[float, float]
    effects: Mapping[str, float]
    factors: tuple[FactorRow, ...] = ()
    wide: tuple[float, float] | None = field(default=None, metadata=OMITTED)
    level: float | None = field(default=None, metadata=OMITTED)
    words: tuple[str, ...] = field(default=(), metadata=OMITTED)
    expected: str = field(default="", metadata=OMITTED)
    seen: bool | None = field(default=None, metadata=OMITTED)

    @property
    def pair(self) -> str:
        """Such as `dynamic - static`, or the name of an effect."""
        return self.arm if self.versus == ZERO else f"{self.arm} - {self.versus}"


@dataclass(frozen=True)
class UniverseTable:
    """What the settings of a universe say. `factors`: {config key: its values, as the sweep file writes them};
    `claims`: {claim: its contrasts}; `controls`: the twin of the baseline and arms of known effect.
    """

    factors: Mapping[str, Any]
    settings: tuple[SettingRow, ...]
    claims: Mapping[str, tuple[SettingsRow, ...]]
    controls: tuple[SettingsRow, ...]

    @property
    def excluded(self) -> list[SettingRow]:
        """The settings that do not count."""
        return [row for row in self.settings if row.excluded]


@dataclass(frozen=True)
class EffectRow:
    """An effect of a design of several factors on a column: the mean of the arms on its first side less the mean of the
    others, over n seeds or settings that all these arms have, with its 95% interval.

    `aliases`: the interactions that the design cannot tell from it. `p`: of the paired t-test against zero; `p_holm`:
    the same adjusted for all effects on the column. `detectable`: the smallest effect that n would have told from zero
    with a chance of 80%.
    """

    column: str
    effect: str
    sides: tuple[str, str]
    n: int
    mean: float
    sd: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None
    detectable: float | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class FactorialTable:
    """What a design of several factors estimates. `kind`, `folded`, `factors`, `generators`: as in the sweep file.

    `arms`: {arm: {factor: its level}}; `equal_errors`: whether all effects on a column have the
    same standard error, as those of two levels have.
    """

    kind: str
    folded: bool
    factors: Mapping[str, tuple[str, ...]]
    generators: Mapping[str, tuple[str, ...]]
    arms: Mapping[str, Mapping[str, str]]
    said: str
    equal_errors: bool
    effects: tuple[EffectRow, ...]

    def on(self, column: str) -> list[EffectRow]:
        """The effects on a column."""
        return [row for row in self.effects if row.column == column]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A sweep's table at a scale. `tuning`: the search that chose values for the arms, as its JSON.

    `replication`: what n counts: PRETRAININGS, TUNINGS, SETTINGS or RUNS. `scale`: empty for RUNS. `facts`: {what: in
    words} of the text, the budget, the model, the vocabulary, the seeds, the processor and the overrides (see `facts`).
    `stage`: whether its verdicts explore, or confirm what was frozen before the runs (see `sweeps.lock`); empty for
    RUNS.
    """

    study: str
    scale: str
    columns: tuple[str, ...]
    arms: tuple[ArmRow, ...]
    claims: tuple[ClaimRow, ...]
    schema: int = SCHEMA
    title: str = ""
    stage: str = field(default="", metadata=OMITTED)
    baseline: str = ""
    about: Mapping[str, About] = field(default_factory=dict)
    anchors: tuple[AnchorRow, ...] = ()
    aggregate: Aggregate | None = field(default=None, metadata=EMPTY)
    looks: LooksTaken | None = None
    replication: str = PRETRAININGS
    paper: Paper | None = field(default=None, metadata=EMPTY)
    audit: Audit = Audit(())
    tuning: Mapping[str, Any] = field(default_factory=dict, metadata=OMITTED)
    budget: Budget = Budget("tokens", TOLERANCE, {})
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    curves: Mapping[str, Mapping[str, Band]] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict, metadata=OMITTED)
    universe: UniverseTable | None = field(default=None, metadata=OMITTED)
    factorial: FactorialTable | None = field(default=None, metadata=OMITTED)

    @property
    def label(self) -> str:
        """Such as `roberta_table1 at cpu scale`."""
        return f"{self.study}{at_scale(self.scale)}"

    @property
    def beside(self) -> Mapping[str, str]:
        """{our column: the paper's metric that is printed beside it}."""
        return {} if self.paper is None else self.paper.beside

    @property
    def absent(self) -> Mapping[str, str]:
        """{column that was not run: the paper's metric of it}."""
        return {} if self.paper is None else self.paper.absent
