"""Whether a pre-training will leave the plateau of a trivial model, foretold before anything is trained.

A recipe says after how many input tokens its runs left the plateau, by the positions that its model may have
(`exit_tokens`, measured on its own settings). A run of the recipe that reads fewer will most likely decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from paribus.core.build import kind
from paribus.models.bert import Bert
from paribus.models.t5 import T5

ENOUGH: Final = 1.25  # times the measured tokens: seeds and texts differ
_BUDGETS = ("max_epochs", "max_steps", "max_tokens")  # settings of the trainer that make a run longer


class Outlook(NamedTuple):
    """A run that will probably end on the plateau.

    Attributes:
        tokens: input tokens that it reads.
        exit: input tokens after which the recipe's own runs left the plateau.
        longer: an override that makes the run long enough; empty if no single budget does.
    """

    tokens: float
    exit: float
    longer: str

    @property
    def factor(self) -> float:
        """How many times as long the run would have to be."""
        return ENOUGH * self.exit / self.tokens

    def __str__(self) -> str:
        return (
            "will probably stay on the plateau of a model that only knows word frequencies, and decide nothing: "
            f"{_millions(self.tokens)} input tokens are too few, the recipe's runs left it after {_millions(self.exit)}"
        )


def foresee(config: Mapping[str, Any], tokens: float) -> Outlook | None:
    """The outlook of a run of this config that reads so many input tokens; None if nothing speaks against it.

    A run from a checkpoint, one without pre-training and one with positions that were not measured have none.
    """
    exit_tokens = (config.get("exit_tokens") or {}).get(name_positions(config["model"]))
    if exit_tokens is None or not 0 < tokens < exit_tokens:
        return None
    return Outlook(tokens, float(exit_tokens), lengthen(config["trainer"], ENOUGH * exit_tokens / tokens))


def name_positions(model: Mapping[str, Any]) -> str:
    """How a model that is trained from scratch knows where its tokens are: "learned", "relative" (T5) or the change
    that sets its positions, such as "rotary"; empty for other models, and for a change with settings of its own.
    """
    component = kind(model["_target_"])
    if issubclass(component, T5):
        return "relative"
    if not issubclass(component, Bert):
        return ""
    for change in model.get("changes", {}).values():
        component = kind(change["_target_"])
        if "positions" in getattr(component, "sets", ()):
            usual = all(getattr(component, key, value) == value for key, value in change.items())
            return component.__name__.lower() if usual else ""
    return "learned"


def lengthen(trainer: Mapping[str, Any], factor: float) -> str:
    """The override by which the only budget that is set grows by this factor."""
    given = {key: trainer[key] for key in _BUDGETS if trainer.get(key)}
    if len(given) != 1:
        return ""
    ((key, value),) = given.items()
    return f"trainer.{key}={math.ceil(value * factor)}"


def _millions(tokens: float) -> str:
    return f"{tokens / 1e6:.2g} million"
