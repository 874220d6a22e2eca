"""What a sweep will probably not decide as it is, and the command that would, told before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paribus.core.config import plain
from paribus.sweeps.expand import Expanded
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, TRIAL
from paribus.training.outlook import Outlook, foresee


class Prospect(NamedTuple):
    """The arms whose runs will probably stay on the plateau, and the outlook of the one with the longest way to go."""

    arms: tuple[str, ...]
    worst: Outlook

    def __str__(self) -> str:
        return f"{', '.join(self.arms)} {self.worst}"


def look_ahead(expanded: Expanded, budgets: Mapping[str, Mapping[str, Any]]) -> Prospect | None:
    """The prospect of arms with these planned budgets, {arm: budget}; None if nothing speaks against their runs."""
    if expanded.request.scale == TRIAL:
        return None
    found = {}
    for arm, budget in budgets.items():
        config = expanded.configs[arm]
        if arm != SCRATCH and (outlook := foresee(plain(config), _tokens(budget, config))) is not None:
            found[arm] = outlook
    return Prospect(tuple(found), max(found.values(), key=lambda outlook: outlook.factor)) if found else None


def _tokens(budget: Mapping[str, Any], config: Any) -> float:
    """Input tokens that one member reads, in all its stages."""
    return float(budget["tokens"]) / max(1, int(config.get("members", 1)))


def command_with(request: Request, override: str) -> str:
    """The command that runs a sweep with one more override, as a user types it."""
    key = override.partition("=")[0]
    kept = [text for text in request.overrides if text.partition("=")[0].lstrip("+") != key]
    return " ".join([request.command("run"), *kept, override])


def lengthens(request: Request, override: str) -> bool:
    """Whether the override makes every arm longer: none of them sets a budget of its own."""
    return bool(override) and not any(key.startswith("trainer") for key in request.sweep.declared)
