"""The control audit: arms differ in what the sweep says they vary and in nothing else, and cost the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.core.config import flat, plain
from paribus.core.errors import UserError
from paribus.sweeps.sweep import UNMATCHED, Sweep
from paribus.verdict.controls import unmatched

NAMES = frozenset({"study", "arm", "seed", "sweep", "sweep_hash", "run_dir", "hydra"})  # of a run, not of its meaning

Differences = dict[str, dict[str, list[Any]]]


def audit(sweep: Sweep, configs: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the composed configs of all arms ({arm: config}, each of the same seed).

    A key counts as declared where the sweep varies it or a part of the config that holds it, and as derived where it
    is the same interpolation in both arms (its sources are compared themselves).

    Returns:
        {"controlled": True, "differences": {arm: {key: [value in the baseline, value in the arm]}}}, every key that
        differs, derived ones included; a key that an arm has not is None there.

    Raises:
        UserError: naming the undeclared keys and the arms, arms without any difference, and what is varied nowhere.
    """
    origins = {arm: _leaves(config, resolved=False) for arm, config in configs.items()}
    values = {arm: _leaves(config, resolved=True) for arm, config in configs.items()}
    base = values[sweep.baseline]
    differences = {arm: _differences(base, own) for arm, own in values.items()}
    hidden = {
        arm: [
            key
            for key in keys
            if not _declared(sweep, key) and not _derived(key, origins[sweep.baseline], origins[arm])
        ]
        for arm, keys in differences.items()
    }
    _require_controlled(sweep, hidden)
    _require_distinct(sweep, values)
    _require_varied(sweep, values)
    return {"controlled": True, "differences": differences}


def _leaves(config: Any, resolved: bool) -> dict[str, Any]:
    """{dotted key: value} of a config without the names of the run; unresolved values keep their interpolations."""
    from omegaconf import OmegaConf

    if "hydra" in config:
        config = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
    tree: Any = plain(config) if resolved else OmegaConf.to_container(config, resolve=False)
    return flat({key: value for key, value in tree.items() if key not in NAMES})


def _differences(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, list[Any]]:
    keys = sorted(base.keys() | own.keys())
    return {key: [base.get(key), own.get(key)] for key in keys if not _same(key, base, own)}


def _same(key: str, base: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    return key in base and key in own and base[key] == own[key] and type(base[key]) is type(own[key])


def _declared(sweep: Sweep, key: str) -> bool:
    """Whether `key` is varied or tuned: named itself, below what is named, or the empty place of what is named."""
    return any(f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}.") for name in sweep.declared)


def _derived(key: str, base: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    before, after = _origin(key, base), _origin(key, own)
    return isinstance(before, str) and "${" in before and before == after


def _origin(key: str, leaves: Mapping[str, Any]) -> Any:
    """The unresolved value behind a key: its own, or that of the nearest node above it."""
    while key not in leaves and "." in key:
        key = key.rpartition(".")[0]
    return leaves.get(key)


def _require_controlled(sweep: Sweep, hidden: Mapping[str, list[str]]) -> None:
    odd = {arm: keys for arm, keys in hidden.items() if keys}
    if odd:
        named = "; ".join(f"{arm}: {', '.join(keys)}" for arm, keys in odd.items())
        raise UserError(
            f"{sweep.path}: arms differ from {sweep.baseline} in more than 'varies' says ({named})",
            "make them equal in 'base', or add the keys to 'varies'",
        )


def _require_distinct(sweep: Sweep, values: Mapping[str, dict[str, Any]]) -> None:
    arms = list(values)
    for at, arm in enumerate(arms):
        for other in arms[at + 1 :]:
            if not _differences(values[arm], values[other]):
                raise UserError(f"{sweep.path}: arms {arm} and {other} do not differ at all", "remove one of them")


def _require_varied(sweep: Sweep, values: Mapping[str, dict[str, Any]]) -> None:
    keys = {key for leaves in values.values() for key in leaves}
    for name in sweep.varies:
        if not any(f"{key}.".startswith(f"{name}.") for key in keys):
            raise UserError(f"{sweep.path}: 'varies' names '{name}', which no arm has", "name a key or a group")


def require_matched(sweep: Sweep, budgets: Mapping[str, Mapping[str, float]]) -> None:
    """Compare planned budgets, {arm: {"tokens", "sequences", "steps", "flops"}}, as the sweep's `matched` says.

    Raises UserError naming the arms and their amounts where two are more than 1 % apart.
    """
    if sweep.matched == UNMATCHED:
        return
    planned = {arm: float(budget[sweep.matched]) for arm, budget in budgets.items()}
    if why := unmatched(planned):
        amounts = why.replace("used", "plans")
        raise UserError(
            f"{sweep.path}: the arms' budgets differ by more than 1 % in {sweep.matched} ({amounts})",
            f"give all arms the same {sweep.matched}, or change 'matched'",
        )
