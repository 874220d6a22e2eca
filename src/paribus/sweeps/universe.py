"""A universe: the settings that another user may have, such as her text, width, budget or learning rate.

They are drawn once, from ranges and lists in the sweep file, and numbered. A run of setting k has the seed k, so that
all that is known of seeds (pairs, resumed runs, looks) holds for settings: every setting trains every arm once, all
else equal, and the unit of replication is the setting.

The draw is a scrambled Sobol sequence (Owen 1998, by SciPy). It fills the ranges more evenly than independent draws,
most evenly at powers of two, and more settings continue it: the first twelve of twenty are the twelve of twelve.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from paribus.sweeps.search.space import Dimension

TWIN: Final = "twin"  # the arm that is the baseline with other draws
REPLICATE: Final = "replicate"  # the key in which it differs
BETTER, WORSE = DIRECTIONS = ("better", "worse")

Setting = Mapping[str, str]  # {factor: the text of its value}


@dataclass(frozen=True)
class Universe:
    """What a setting may be.

    Args:
        count: how many settings are drawn.
        seed: of the draw.
        factors: {config key or group: its values}.
        texts: the factors as the sweep file writes them.
        known: {arm: BETTER or WORSE}: arms whose effect is known, a control of the table's sensitivity.
    """

    count: int
    seed: int
    factors: Mapping[str, Dimension]
    texts: Mapping[str, Any]
    known: Mapping[str, str]

    def draw(self, count: int | None = None) -> list[Setting]:
        """The first `count` settings, by default all; the same whatever their number and the order of the factors."""
        import numpy as np
        from scipy.stats import qmc

        count = self.count if count is None else count
        sequence = qmc.Sobol(len(self.factors), scramble=True, seed=np.random.default_rng(self.seed))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The balance properties of Sobol", category=UserWarning)
            points = sequence.random(count)
        places = {key: at for at, key in enumerate(sorted(self.factors))}
        return [{key: part.at(float(point[places[key]])) for key, part in self.factors.items()} for point in points]


def find_key(text: str) -> str:
    """The key that an override or a factor sets: `model.changes.ffn` of `+model/change@model.changes.ffn=glu`."""
    group, _, package = text.partition("=")[0].lstrip("+~").partition("@")
    return (package or group).replace("/", ".")


def setting_overrides(setting: Setting) -> tuple[str, ...]:
    """The overrides that compose a setting."""
    return tuple(f"{key}={text}" for key, text in setting.items())
