"""Designs of several factors at once: their arms, the effects that these estimate, and what is aliased with what.

Each arm has one level of every factor, and every effect is estimated from all arms: the mean of some of them less the
mean of the others. So a design costs what its arms cost, whatever the number of its factors (Fisher 1935; Box, Hunter
and Hunter 2005).

- `full`: every combination of levels.
- `fractional`: of two levels each, a fraction 2^(k-p). Each of the last p factors is set to a product of others, its
  generator; by default, the last factor is the product of all others (a half fraction).
- `plackett_burman`: of two levels each, 12, 20 or 24 arms for up to 11, 19 or 23 factors (Plackett and Burman 1946).
- A fold-over adds each arm with all its levels exchanged, so that no main effect is aliased with an interaction of two
  factors.

The main effect of a factor is the mean at its second level less the mean at its first one. The interaction of two
factors is half the difference between the effects of one at both levels of the other, which is the mean of the arms in
which both are alike (both first, or both second) less the mean of the others. A factor with further levels has an
effect for each level after the first, against the first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from statistics import median
from typing import Final, NamedTuple

from paribus.core.errors import UserError, suggest
from paribus.verdict.power import detectable

FULL: Final = "full"
FRACTIONAL: Final = "fractional"
PLACKETT_BURMAN: Final = "plackett_burman"
KINDS: Final = (FULL, FRACTIONAL, PLACKETT_BURMAN)
BY: Final = " x "  # between the two factors of an interaction
ZERO: Final = "0"  # what claims compare an effect with
MOST_ARMS: Final = 256
_FIRST_ROWS: Final = {  # of Plackett and Burman: the other rows are its rotations, and one of minuses
    12: "++-+++---+-",
    20: "++--++++-+-+----++-",
    24: "+++++-+-++--++--+-+----",
}
_NEAR_ZERO: Final = 1e-9

Weights = Mapping[str, float]  # {arm: its share in a mean}


class Side(NamedTuple):
    """One of the two groups of arms whose means an effect compares. `name`: of a main effect, the level."""

    name: str
    weights: Weights


@dataclass(frozen=True)
class Factorial:
    """A design. `make_factorial` checks one.

    Args:
        kind: one of KINDS.
        levels: {factor: names of its levels}.
        generators: {factor: the factors whose product it is}, of a fraction.
        folded: whether each arm is there with all its levels exchanged, too.
    """

    kind: str
    levels: Mapping[str, tuple[str, ...]]
    generators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    folded: bool = False

    @cached_property
    def arms(self) -> dict[str, dict[str, str]]:
        """{arm: {factor: its level}}, an arm of all first levels at the start if the design has one."""
        names = {}
        for row in self._list_rows():
            chosen = {factor: of_factor[at] for (factor, of_factor), at in zip(self.levels.items(), row, strict=True)}
            names["-".join(chosen.values())] = chosen
        return names

    def _list_rows(self) -> list[tuple[int, ...]]:
        """The numbers of the levels in each arm, in the order of the factors."""
        if self.kind == PLACKETT_BURMAN:
            rows = _list_plackett_burman(len(self.levels))
        elif self.kind == FULL:
            rows = list(product(*(range(len(of_factor)) for of_factor in self.levels.values())))
        else:
            rows = list[tuple[int, ...]]()
            basic = [factor for factor in self.levels if factor not in self.generators]
            for chosen in product((0, 1), repeat=len(basic)):
                row = dict(zip(basic, chosen, strict=True))
                for factor, parents in self.generators.items():
                    minuses = sum(row[parent] == 0 for parent in parents)
                    row[factor] = 1 - minuses % 2
                rows.append(tuple(row[factor] for factor in self.levels))
        return rows + [tuple(1 - at for at in row) for row in rows] if self.folded else rows

    @property
    def two_levels(self) -> bool:
        """Whether each factor has two levels, so that all effects have the same standard error."""
        return all(len(of_factor) == 2 for of_factor in self.levels.values())

    @cached_property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """{effect: +1, -1 or 0 for each arm} of all main effects, then of all interactions of two factors."""
        mains: dict[str, tuple[str, tuple[int, ...]]] = {}
        for factor, (first, *others) in self.levels.items():
            for level in others:
                of_level = tuple({level: 1, first: -1}.get(chosen[factor], 0) for chosen in self.arms.values())
                mains[factor if len(others) == 1 else f"{factor}.{level}"] = factor, of_level
        columns = {name: signs for name, (_, signs) in mains.items()}
        for (one, (factor, signs)), (two, (other, of_other)) in combinations(mains.items(), 2):
            if factor != other:
                columns[f"{one}{BY}{two}"] = tuple(a * b for a, b in zip(signs, of_other, strict=True))
        return columns

    @property
    def mains(self) -> tuple[str, ...]:
        """The main effects."""
        return tuple(name for name in self.columns if BY not in name)

    def correlate(self, one: str, two: str) -> float:
        """By how much of itself the second effect biases the estimate of the first one: 1 or -1 if they cannot be told
        apart.
        """
        if not self.two_levels:  # every combination is there
            return 1.0 if one == two else 0.0
        return sum(a * b for a, b in zip(self.columns[one], self.columns[two], strict=True)) / len(self.arms)

    def find_aliases(self, effect: str) -> dict[str, float]:
        """{other effect: its bias}, of main effects and interactions of two factors."""
        found = {other: self.correlate(effect, other) for other in self.columns if other != effect}
        return {other: bias for other, bias in found.items() if abs(bias) > _NEAR_ZERO}

    @cached_property
    def estimated(self) -> dict[str, tuple[str, ...]]:
        """{effect: the interactions that cannot be told from it} of what the arms estimate.

        These are all main effects, and the interactions of two factors that no other effect biases in part. Of those
        that cannot be told apart, the first one stands for all.
        """
        kept: dict[str, tuple[str, ...]] = {}
        for effect in self.columns:
            aliases = self.find_aliases(effect)
            full = tuple(other for other, bias in aliases.items() if abs(bias) > 1.0 - _NEAR_ZERO)
            is_new = not any(other in kept for other in full)
            if BY not in effect or (len(full) == len(aliases) and is_new):
                kept[effect] = full
        return kept

    def find_sides(self, effect: str) -> tuple[Side, Side]:
        """The arms on either side of an effect, each with its share in their mean."""
        signs = dict(zip(self.arms, self.columns[effect], strict=True))
        counts = Counter(signs.values())
        if BY in effect:
            names = f"arms with + in {effect}", f"arms with - in {effect}"
        else:
            factor, _, level = effect.partition(".")
            names = level or self.levels[factor][1], self.levels[factor][0]
        first, second = (
            Side(name, {arm: 1.0 / counts[sign] for arm, of_arm in signs.items() if of_arm == sign})
            for name, sign in zip(names, (1, -1), strict=True)
        )
        return first, second

    def require_clear(self, effect: str) -> None:
        """Raises UserError for an interaction that the design cannot tell from other effects."""
        aliases = self.find_aliases(effect)
        if BY in effect and aliases:
            cause = f"the design cannot tell '{effect}' from {', '.join(list(aliases)[:3])}"
            raise UserError(cause, "make the claim about a main effect, or write design: full")

    def describe(self) -> str:
        """Such as `8 factors in 12 arms (plackett_burman)`."""
        folded = ", folded over" if self.folded else ""
        return f"{len(self.levels)} factors in {len(self.arms)} arms ({self.kind}{folded})"

    def describe_aliases(self) -> list[str]:
        """A sentence for each kind of aliases."""
        lines, by = [], BY.strip()
        biased: dict[float, list[str]] = {}
        for effect in self.mains:
            for other, bias in self.find_aliases(effect).items():
                if abs(bias) > 1.0 - _NEAR_ZERO:
                    lines.append(f"{effect} is aliased with {other}: the design cannot tell them apart.")
                else:
                    biased.setdefault(round(abs(bias), 3), []).append(effect)
        for bias, effects in biased.items():
            lines.append(
                f"An interaction of two factors biases the main effects of the others by up to {bias:.2g} of itself: "
                f"{', '.join(dict.fromkeys(effects))}."
            )
        groups = [(name, others) for name, others in self.estimated.items() if BY in name and others]
        lines += [f"{name} is aliased with {', '.join(others)}." for name, others in groups]
        if self.two_levels and not any(BY in name for name in self.estimated):
            lines.append(f"No interaction (a {by} b) has an estimate of its own.")
        return lines or ["No main effect and no interaction of two factors is aliased with another."]


def _list_plackett_burman(factors: int) -> list[tuple[int, ...]]:
    """The levels of so many factors in each arm; the arm of all first levels is first."""
    first_row = next(row for arms, row in _FIRST_ROWS.items() if arms > factors)
    signs = [int(sign == "+") for sign in first_row]
    signs = [int(sign == "+") for sign in first_row]
    rotated = [(*signs[-at:], *signs[:-at]) if at else tuple(signs) for at in range(len(signs))]
    return [row[:factors] for row in ((0,) * len(signs), *rotated)]


def make_factorial(
    kind: str,
    levels: Mapping[str, Sequence[str]],
    generators: Mapping[str, Sequence[str]] | None = None,
    folded: bool = False,
) -> Factorial:
    """A design without ambiguity.

    generators: {factor: the factors whose product it is}; None: the last factor is the product of all others.

    Raises:
        UserError: for a factor with one level, a design that needs two levels and has others, generators that do not
            fit, and if main effects are aliased with each other.
    """
    if kind not in KINDS:
        raise UserError(f"design '{kind}' is unknown", f"use {', '.join(KINDS)}")
    if len(levels) < 2:
        raise UserError("a design needs two factors or more", "add a factor, or write arms")
    for factor, names in levels.items():
        if len(names) < 2:
            raise UserError(f"the factor '{factor}' has one level", "give it two, or put its settings into base")
        if len(names) > 2 and kind != FULL:
            raise UserError(f"the factor '{factor}' has {len(names)} levels", f"give it two, as design: {kind} needs")
    if folded and kind == FULL:
        raise UserError("a full design has every combination, so that 'folded' adds nothing", "remove folded")
    if generators is not None and kind != FRACTIONAL:
        raise UserError(f"'generators' belong to design: {FRACTIONAL}, not to {kind}", "remove them")
    if kind == PLACKETT_BURMAN and len(levels) >= max(_FIRST_ROWS):
        raise UserError(f"there is no design: {kind} for {len(levels)} factors", f"use at most {max(_FIRST_ROWS) - 1}")
    chosen: dict[str, tuple[str, ...]] = {}
    if kind == FRACTIONAL:
        *others, last = levels
        chosen = {name: tuple(parents) for name, parents in (generators or {last: others}).items()}
        for factor, parents in chosen.items():
            for name in (factor, *parents):
                if name not in levels:
                    raise UserError(f"'generators' name the unknown factor '{name}'", suggest(name, list(levels)))
            if generated := [name for name in parents if name in chosen]:
                cause = f"the generator of '{factor}' has '{generated[0]}', which has a generator itself"
                raise UserError(cause, "write products of factors that have none")
            if not parents or len(set(parents)) < len(parents):
                raise UserError(f"the generator of '{factor}' is no product of different factors", "write a x b")
    size = math.prod(map(len, levels.values())) if kind == FULL else 2 ** (len(levels) - len(chosen))
    if kind != PLACKETT_BURMAN and size * (1 + folded) > MOST_ARMS:
        cause = f"the design has {size * (1 + folded)} arms, more than {MOST_ARMS}"
        raise UserError(cause, f"write design: {PLACKETT_BURMAN}, or take factors out")
    design = Factorial(kind, {name: tuple(of_factor) for name, of_factor in levels.items()}, chosen, folded)
    if len(design.arms) < len(design._list_rows()):
        if kind == PLACKETT_BURMAN:
            raise UserError(f"design: {kind} has arms twice for {len(levels)} factors", f"write design: {FRACTIONAL}")
        raise UserError("the fold-over has the same arms as the design itself", "remove folded")
    for one, two in combinations(design.mains, 2):
        if abs(design.correlate(one, two)) > _NEAR_ZERO:
            cause = f"the main effects of {one} and {two} are aliased: no arm has one without the other"
            raise UserError(cause, "give products of two factors or more as generators, or write design: full")
    return design


class EffectPower(NamedTuple):
    """The smallest effects that are seen with a chance of 80%, in standard deviations of the difference of two arms
    with the same seed. `one_at_a_time`: if as many runs change one factor at a time; None if these are too few seeds.
    """

    runs: int
    together: float
    one_at_a_time: float | None


def plan_power(design: Factorial, seeds: int, claims: int, alpha: float) -> EffectPower | None:
    """What a main effect must be to be seen, before anything is run; None with one seed, which has no interval.

    claims: how many share the error rate alpha. One factor at a time has an arm for each level but the first of each,
    and one for all first levels, each with as many seeds as the runs of the design pay for.
    """
    if seeds < 2:
        return None
    arms, single = len(design.arms), 1 + sum(len(of_factor) - 1 for of_factor in design.levels.values())
    level = alpha / max(1, claims)
    fewest = min(len(side.weights) for effect in design.mains for side in design.find_sides(effect))
    together = detectable(1.0 / math.sqrt(fewest * seeds), seeds - 1, level)
    each = arms * seeds // single
    alone = detectable(1.0 / math.sqrt(each), each - 1, level) if each > 1 else None
    assert together is not None
    return EffectPower(arms * seeds, together, alone)


def lenth_error(effects: Sequence[float]) -> float | None:
    """Lenth's pseudo standard error (1989): the spread of effects of which most are zero, without any replicate; None
    below three effects. `effects`: with equal standard errors.
    """
    sizes = [abs(effect) for effect in effects]
    if len(sizes) < 3:
        return None
    first = 1.5 * median(sizes)
    small = [size for size in sizes if size < 2.5 * first]
    return 1.5 * median(small) if small else None


def half_normal_places(count: int) -> list[float]:
    """Where the sizes of so many effects lie on average, in their standard deviations, the smallest first."""
    from scipy.special import ndtri

    return [float(ndtri(0.5 + 0.5 * (at + 0.5) / count)) for at in range(count)]
