"""`scale=cpu family=t5` chooses the preset `recipe=t5/cpu`, also in a Hydra application that is not ours."""

from __future__ import annotations

from paribus.core import merging, recipes, shortcuts

merging.install()
recipes.install()
shortcuts.install()
