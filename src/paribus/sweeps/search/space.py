"""A search space in the grammar of Hydra's sweeps: interval(a, b), int(...), tag(log, ...), range(a, b), choice(x, y).

Values are the texts of overrides, so that a run is trained with exactly the value that was tried. The names of the
classes and of their fields are part of a search's signature (`settings.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.core.errors import UserError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_MEND = "write interval(a, b), int(interval(a, b)), tag(log, interval(a, b)), range(a, b) or choice(x, y)"


@dataclass(frozen=True)
class Interval:
    """Numbers from `low` to `high`, both included. `whole`: integers only; `log`: evenly spaced in the logarithm."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def distribution(self) -> BaseDistribution:
        """The same space for Optuna."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def text(self, value: float) -> str:
        """A value rounded to four digits, inside the interval."""
        if self.whole:
            return str(round(value))
        return repr(min(max(float(f"{value:.4g}"), self.low), self.high))

    def points(self, count: int) -> list[str]:
        """`count` evenly spaced values with both ends; a single one is the middle."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        shares = [at / (count - 1) for at in range(count)] if count > 1 else [0.5]
        between = [low + share * (high - low) for share in shares]
        return [self.text(math.exp(value) if self.log else value) for value in between]

    def at(self, share: float) -> str:
        """The value at a share (0 to 1) of the interval; whole numbers have equal parts of it."""
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        value = low * (high / low) ** share if self.log else low + share * (high - low)
        return str(min(int(value), int(self.high))) if self.whole else self.text(value)


@dataclass(frozen=True)
class Choice:
    """One of several values or choices of a config group."""

    values: tuple[str, ...]

    def distribution(self) -> BaseDistribution:
        """The same space for Optuna."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)

    def text(self, value: object) -> str:
        return str(value)

    def at(self, share: float) -> str:
        """The value at a share (0 to 1) of the list, of which each has an equal part."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def number(self, text: str) -> object:
        """The value that Optuna has for one of the texts."""
        return text


@dataclass(frozen=True)
class Range(Choice):
    """Evenly spaced numbers, in increasing order: unlike those of a choice, their order counts."""

    def distribution(self) -> BaseDistribution:
        """The same space for Optuna."""
        from optuna.distributions import FloatDistribution, IntDistribution

        first, second, last = (self.number(self.values[at]) for at in (0, 1, -1))
        if isinstance(first, int):
            return IntDistribution(first, int(last), step=int(second) - first)
        return FloatDistribution(first, last, step=round(second - first, 12))

    def text(self, value: object) -> str:
        return min(self.values, key=lambda text: abs(self.number(text) - float(str(value))))

    def number(self, text: str) -> float:
        """The value that Optuna has for one of the texts."""
        return int(text) if self.values[0].lstrip("-").isdecimal() else float(text)


Dimension = Interval | Choice


def dimension(key: str, value: object) -> Dimension:
    """Read the space of one key: a text of Hydra's grammar, or a list of values.

    Raises UserError naming the key if the text is not a space, holds a single value, is shuffled, or has a tag or an
    end that no search can use.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, RangeSweep
    from hydra.errors import HydraException

    text = f"choice({', '.join(_read_item(key, item) for item in value)})" if isinstance(value, list) else str(value)
    try:
        override = OverridesParser.create().parse_override(f"{key}={text}")
    except HydraException as error:
        raise UserError(f"the space of '{key}' cannot be read: {text}", _MEND) from error
    if not override.is_sweep_override():
        raise UserError(f"the space of '{key}' is the single value {text}", _MEND)
    sweep = override.value()
    assert isinstance(sweep, ChoiceSweep | RangeSweep | IntervalSweep)
    if unknown := sorted(sweep.tags - ({"log"} if isinstance(sweep, IntervalSweep) else set())):
        mend = "remove it, or write tag(log, interval(a, b))"
        raise UserError(f"the space of '{key}' has the tag {unknown[0]}, which changes nothing: {text}", mend)
    if isinstance(sweep, IntervalSweep):
        low, high, log = sweep.start, sweep.end, "log" in sweep.tags
        assert low is not None
        assert high is not None
        if not low < high or not math.isfinite(high - low):
            raise UserError(f"the space of '{key}' runs from {low} to {high}", "write interval(a, b) with a below b")
        if log and low <= 0:
            mend = "start it above 0, or write interval(a, b) without tag(log, ...)"
            raise UserError(f"the space of '{key}' starts at {low}, which has no logarithm", mend)
        return Interval(low, high, log, whole=isinstance(low, int))
    if isinstance(sweep, ChoiceSweep | RangeSweep) and sweep.shuffle:
        raise UserError(f"the space of '{key}' is shuffled", "remove shuffle; the sampler orders the trials")
    values = tuple(dict.fromkeys(override.sweep_string_iterator()))
    if len(values) < 2:
        raise UserError(f"the space of '{key}' is the single value {', '.join(values) or 'none'}", _MEND)
    if isinstance(sweep, RangeSweep):
        return Range(tuple(sorted(values, key=float)))
    return Choice(tuple(_read_item(key, text) for text in values))  # Hydra drops the quotes of `Bücher`


def _read_item(key: str, item: object) -> str:
    """A value of a list in Hydra's grammar; a text that the grammar cannot read, such as a path, is quoted.

    Raises UserError for a text with a comma outside of quotes and brackets, which may be one value or several.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from paribus.sweeps.sweep import quote  # which imports this module

    text = "null" if item is None else str(item)
    try:
        several = OverridesParser.create().parse_override(f"{key}={text}").is_sweep_override()
        if not several:
            OverridesParser.create().parse_override(f"{key}=choice({text}, 0)")
    except HydraException:
        return quote(text)
    if several:
        mend = f"""write "{quote(text)}" for the one, or list them apart"""
        raise UserError(f"the space of '{key}' lists {text}, which is one value or several", mend)
    return text


def grid(space: Mapping[str, Dimension], trials: int) -> list[dict[str, str]]:
    """Every combination of evenly spaced points: every value of a choice, and equally many points of each interval.

    Raises UserError if no grid has exactly `trials` points.
    """
    fixed = math.prod(len(part.values) for part in space.values() if isinstance(part, Choice))
    intervals = sum(isinstance(part, Interval) for part in space.values())
    each = round((trials / fixed) ** (1 / intervals)) if intervals else 1
    if each < 1 or fixed * each**intervals != trials:
        size = f"{fixed} x n^{intervals}" if intervals else str(fixed)
        raise UserError(f"{trials} trials do not fill a grid of {size}", "change trials, or use sampler: tpe")
    axes = [list(part.values) if isinstance(part, Choice) else part.points(each) for part in space.values()]
    if any(len(set(axis)) < len(axis) for axis in axes):
        raise UserError(f"{trials} trials exceed the distinct points of the grid", "lower trials")
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*axes)]
