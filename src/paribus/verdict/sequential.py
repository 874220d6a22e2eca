"""Repeated looks without raising the error rate: alpha spending for paired t-tests.

A sweep that adds seeds until its claims are decided looks at its table after `first`, `first + 1`, ..., `most` seeds.
Of the error rate alpha it may have spent A(n / most) by the look at n seeds, where

    A(t) = alpha * log(1 + (e - 1) t)            (Lan and DeMets 1983, of Pocock's type)

so that early looks, which save most, are worth something. `level` is the two-sided level at which the look at n seeds
tests. It is exact for normal differences at any n: with S and Q the sums of differences and of their squares,
U = S / sqrt(Q) carries the t statistic, is independent of Q if the true difference is zero (Basu), and one more
seed makes of it (U + y) / sqrt(1 + y^2) with y = t_n / sqrt(n). The levels follow from this chain, look by look; the
customary ones, of a chain of normal sums, let 6% through if looks begin at three seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

FIRST = 3  # seeds before the first look: below them a t-test sees next to nothing
MOST = 12  # seeds at the last look, by default
_USED = 0.97  # of the error rate; the rest is for the grid and the interpolation, which are right to 1%
_BINS = 150  # of |U| below the boundary
_RATES = (1e-6, 0.2, 17)  # error rates whose levels are computed, from, to, how many; others are interpolated


def spent(fraction: float) -> float:
    """The share of the error rate that may be spent when this fraction of the seeds is in."""
    return math.log1p((math.e - 1.0) * min(1.0, fraction))


@dataclass(frozen=True)
class Looks:
    """A look after each of `first` to `most` seeds."""

    first: int
    most: int

    def level(self, alpha: float, n: int) -> float:
        """The level of the test at n seeds, so that all looks together err at most at rate alpha; 0 before the first.

        Past the last look it stays what it was there.
        """
        import numpy as np

        if n < self.first:
            return 0.0
        rates, levels = _table(self.first, self.most)
        at_n = levels[:, min(n, self.most) - self.first]
        return float(np.exp(np.interp(math.log(_USED * alpha), np.log([*rates, 1.0]), np.log([*at_n, 1.0]))))

    def p(self, p: float, n: int) -> float:
        """The smallest error rate of all looks together at which a test at n seeds with this p decides."""
        import numpy as np

        if n < self.first:
            return 1.0
        rates, levels = _table(self.first, self.most)
        at_n = levels[:, min(n, self.most) - self.first]
        if p <= at_n[0]:
            return float(p / at_n[0] * rates[0] / _USED)
        rate = float(np.exp(np.interp(math.log(p), np.log([*at_n, 1.0]), np.log([*rates, 1.0]))))
        return min(1.0, rate / _USED)


@cache
def _table(first: int, most: int) -> tuple[Floats, Floats]:
    """(error rates, levels of their looks: one line a rate, one column a look)."""
    import numpy as np

    rates = np.geomspace(*_RATES)
    return rates, np.array([levels(rate, first, most) for rate in rates])


def levels(alpha: float, first: int, most: int) -> list[float]:
    """The two-sided level of each look."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    before, of_looks = 0.0, list[float]()
    nodes = mass = np.empty(0)  # of |U| while no boundary has been crossed
    for n in range(first, most + 1):
        due = alpha * spent(n / most)
        level = due if n == first else _crossing(nodes, mass, n, due - before)
        scores = np.linspace(0.0, -ndtri(level / 2.0), 2 * _BINS + 1)  # equal steps of the normal score of p
        p = 2.0 * ndtr(-scores)
        edges = _boundary(p[::2], n)
        below = 1.0 - p[::2] if n == first else mass @ _inside(nodes[:, None], edges[None, :], n - 1)
        nodes, mass = _boundary(p[1::2], n), np.diff(below)
        before = due
        of_looks.append(level)
    return of_looks


def _crossing(nodes: Floats, mass: Floats, n: int, due: float) -> float:
    """The level at n seeds at which the chain crosses for the first time with probability `due`."""
    from scipy.optimize import brentq

    def excess(log_level: float) -> float:
        bound = _boundary(math.exp(log_level), n)
        return float(mass @ (1.0 - _inside(nodes, bound, n - 1))) - due

    return math.exp(brentq(excess, math.log(due) - 1.0, 0.0, xtol=1e-9))


def _boundary(level: Any, n: int) -> Any:
    """|U| at which the two-sided t-test over n seeds has this p; a number or an array."""
    import numpy as np
    from scipy.special import stdtrit

    t = stdtrit(n - 1, 1.0 - level / 2.0)
    return np.sqrt(n) * t / np.sqrt(t * t + n - 1)


def _inside(u: Floats, bound: Floats | float, n: int) -> Floats:
    """P(the next |U| <= bound | U = u >= 0 over n seeds), by broadcasting.

    (u + y) / sqrt(1 + y^2) rises with y from -1 to sqrt(1 + u^2) and falls to 1; it meets a bound above 1 twice.
    """
    import numpy as np
    from scipy.special import stdtr

    bound = np.asarray(bound, dtype=float)
    square = bound * bound
    reach = bound * np.sqrt(np.maximum(0.0, 1.0 + u * u - square))
    scale = math.sqrt(n) / np.where(np.abs(1.0 - square) < 1e-12, 1e-12, 1.0 - square)
    one, other = stdtr(n, (reach - u) * scale), stdtr(n, (-reach - u) * scale)
    chance: Floats = np.where(square < 1.0, one - other, np.where(reach > 0.0, 1.0 + one - other, 1.0))
    return chance
