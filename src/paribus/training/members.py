"""How many models a run trains, and what differs between them.   T5 (arXiv 1910.10683), section 3.6. No torch here.

A run pre-trains `members` models, each of draws of its own, and fine-tunes each of them `finetune.ensemble` times. The
first member is what the run would be without an ensemble, and is shared with such runs.
"""

from __future__ import annotations

from typing import Any

from paribus.core.errors import UserError
from paribus.core.hashing import digest

FOLDER = "members"  # in a run's folder: what the members after the first have pre-trained


def members(cfg: Any) -> int:
    """Models that a run pre-trains; configs of older runs do not say it."""
    return int(cfg.get("members", 1))


def turns(cfg: Any) -> int:
    """Fine-tunings of each of them that count as one."""
    return int(cfg.finetune.get("ensemble", 1))


def member(cfg: Any, number: int) -> Any:
    """The config of a run's pre-training of this number: another replicate under the same seed."""
    if number == 0:
        return cfg
    own = cfg.copy()
    own.replicate = int(digest(["member", int(cfg.get("replicate", 0)), number], 12), 16)
    own.members, own.trial = 1, None
    return own


def check_members(cfg: Any) -> None:
    """Raise UserError for numbers of models that make no ensemble."""
    for key, value in (("members", cfg.get("members", 1)), ("finetune.ensemble", cfg.finetune.get("ensemble", 1))):
        if not isinstance(value, int) or value < 1:
            raise UserError(f"{key}={value} is no number of models", "give a whole number, at least 1")
    if turns(cfg) == 1:
        return
    if not cfg.tasks:
        raise UserError(f"finetune.ensemble={turns(cfg)}, but there is no task", "give task=, or finetune.ensemble=1")
    if cfg.finetune.epochs == 0:
        cause = f"finetune.ensemble={turns(cfg)} with finetune.epochs=0 is the same model again and again"
        raise UserError(cause, "give at least 1 epoch, or members= in its place")
