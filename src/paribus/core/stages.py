"""The stages of a run: successive pre-trainings, each with a config that overrides that of the stage before.

The config of a run is its first stage. `stages` holds the others in order, {name: what differs from the one before}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.core.errors import UserError

FIRST = "pretraining"  # the name of the first stage
PARTS = (
    "corpus", "input", "masking", "objective", "model", "optimizer", "lr_schedule", "batch", "trainer", "evaluation",
    "mixture",
)  # fmt: skip


def list_stages(config: Mapping[str, Any]) -> list[str]:
    """The names of a run's stages in order. Raises UserError for a stage without settings, or with those of a run."""
    stages = config.get("stages") or {}
    if not isinstance(stages, Mapping):
        raise UserError("stages names no stage", "set a key of one, such as +stages.further.trainer.max_steps=100")
    for name, changes in stages.items():
        if name == FIRST:
            raise UserError(f"stages.{FIRST} is the run's own config", "set its keys at the top, or name another stage")
        if not isinstance(changes, Mapping) or not changes:
            raise UserError(f"stages.{name} changes nothing", f"set a key, such as stages.{name}.trainer.max_steps")
        if unknown := sorted(changes.keys() - set(PARTS)):
            cause = f"stages.{name}.{unknown[0]} is not part of a pre-training"
            if unknown[0] == "tokenizer":
                cause = f"stages.{name}.tokenizer would change the vocabulary, which all stages share"
            raise UserError(cause, f"set {', '.join(PARTS)}")
    return [FIRST, *stages]


def settle(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a run's last stage: its first one under what each stage changes."""
    settled = dict(config)
    for name in list_stages(config)[1:]:
        changes = config["stages"][name]
        settled |= {part: _overlay(settled.get(part), changes[part]) for part in changes}
    return settled


def end_at(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The config of a run that ends with an earlier stage. It can be resumed on its own; its tasks are those that it
    mixes in.
    """
    stages = list_stages(config)
    kept = stages[1 : stages.index(name) + 1]
    ended = {**config, "stages": {each: config["stages"][each] for each in kept}, "stage": name}
    mixes = bool(settle(ended).get("mixture"))
    return {**ended, "tasks": config["tasks"] if mixes else {}, "members": 1, "trial": None}


def _overlay(base: object, over: object) -> Any:
    """A config node with another over it; a component takes the place of the one below."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping) or "_target_" in over:
        return over
    return {**base, **{key: _overlay(base.get(key), value) for key, value in over.items()}}
