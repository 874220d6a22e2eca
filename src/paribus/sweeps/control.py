"""The control audit: arms differ only in what the sweep file declares, and have the same budget."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from paribus.core.config import flat, plain
from paribus.core.errors import UserError
from paribus.sweeps.sweep import UNMATCHED, Sweep
from paribus.verdict.controls import find_unmatched

if TYPE_CHECKING:
    from omegaconf import DictConfig

NAMES = frozenset({"study", "arm", "seed", "sweep", "sweep_hash", "run_dir", "hydra"})  # they identify a run

Leaves = dict[str, Any]  # {dotted key: value}


def audit(sweep: Sweep, configs: Mapping[str, DictConfig]) -> dict[str, Any]:
    """Compare the composed configs of all arms, {arm: config}, each with the same seed.

    A key is declared if the sweep varies it or a part of the config that holds it. It is derived if it is the same
    interpolation in both arms, since the sources of the interpolation are compared themselves.

    Returns:
        {"controlled": True, "differences": {arm: {key: [value in the baseline, value in the arm]}}} with every key
        that differs, derived ones included. A missing key has the value None.

    Raises:
        UserError: naming undeclared keys with their arms, arms that do not differ, or varied keys that no arm has.
    """
    origins = {arm: _leaves(config, resolved=False) for arm, config in configs.items()}
    values = {arm: _leaves(config, resolved=True) for arm, config in configs.items()}
    differences = {arm: _differences(values[sweep.baseline], of_arm) for arm, of_arm in values.items()}

    def allowed(arm: str, key: str) -> bool:
        if any(_inside(key, name) or name.startswith(f"{key}.") for name in sweep.declared_keys):
            return True
        before, after = _origin(key, origins[sweep.baseline]), _origin(key, origins[arm])
        return isinstance(before, str) and "${" in before and before == after  # derived

    hidden = {arm: [key for key in keys if not allowed(arm, key)] for arm, keys in differences.items()}
    if named := "; ".join(f"{arm}: {', '.join(keys)}" for arm, keys in hidden.items() if keys):
        raise UserError(
            f"{sweep.path}: arms differ from {sweep.baseline} in more than 'varies' says ({named})",
            "make them equal in 'base', or add the keys to 'varies'",
        )
    for arm, other in combinations(values, 2):
        if not _differences(values[arm], values[other]):
            mend = "remove one of them, or the key=value of the command line that sets both alike"
            raise UserError(f"{sweep.path}: arms {arm} and {other} do not differ at all", mend)
    known = {key for leaves in values.values() for key in leaves}
    for name in sweep.varies:
        if not any(_inside(key, name) for key in known):
            raise UserError(f"{sweep.path}: 'varies' names '{name}', which no arm has", "name a key or a group")
    return {"controlled": True, "differences": differences}


def _leaves(config: DictConfig, resolved: bool) -> Leaves:
    """A config without the names of the run. Unresolved values keep their interpolations."""
    from omegaconf import OmegaConf

    if "hydra" in config:
        config = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    tree: Any = plain(config) if resolved else OmegaConf.to_container(config, resolve=False)
    return list_settings(tree, NAMES)


def list_settings(tree: Mapping[str, Any], ignored: Collection[str]) -> Leaves:
    """A config as dotted keys, without the `ignored` ones at the top; a component has one key for its class.

    A component of this package counts as its class, wherever its module lies.
    """
    leaves = {}
    for key, value in flat({key: value for key, value in tree.items() if key not in ignored}).items():
        ours = key.endswith("._target_") and str(value).startswith("paribus.")
        leaves[key.removesuffix("._target_")] = value.rpartition(".")[2] if ours else value
    return leaves


def _differences(base: Leaves, other: Leaves) -> dict[str, list[Any]]:
    def same(key: str) -> bool:
        in_both = key in base and key in other
        return in_both and base[key] == other[key] and type(base[key]) is type(other[key])

    return {key: [base.get(key), other.get(key)] for key in sorted(base.keys() | other.keys()) if not same(key)}


def _inside(key: str, name: str) -> bool:
    """Whether `key` is `name` or is below it."""
    return f"{key}.".startswith(f"{name}.")


def _origin(key: str, leaves: Leaves) -> object:
    """The unresolved value behind a key: its own, or that of the nearest node above it."""
    while key not in leaves and "." in key:
        key = key.rpartition(".")[0]
    return leaves.get(key)


def describe_changes(differences: Mapping[str, Sequence[Any]]) -> list[str]:
    """How an arm differs from the baseline, such as `masking.rate = 0.4 (baseline: 0.15)`.

    Args:
        differences: {key: (the baseline's value, the arm's)}. None stands for a missing key as well; a key that one
            side lacks and the other leaves at null or empty makes no difference.
    """

    def write(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    lines = []
    for key, (base, value) in sorted(differences.items()):
        if all(one is None or one in ({}, []) for one in (base, value)):
            continue
        baseline = f"(baseline: {'none' if base is None else write(base)})"
        lines.append(f"no {key} {baseline}" if value is None else f"{key} = {write(value)} {baseline}")
    return lines


def require_matched(sweep: Sweep, budgets: Mapping[str, Mapping[str, Any]]) -> None:
    """Compare planned budgets, {arm: {unit: amount}}, in the unit that `matched` names.

    Those of a stage, such as further.tokens, are below `stages`; arms that do not train it are left out.

    Raises UserError naming the arms and their amounts if two differ by more than 1%.
    """
    if sweep.matched == UNMATCHED:
        return
    stage, _, unit = sweep.matched.rpartition(".")
    parts = {arm: budget["stages"].get(stage, {}) if stage else budget for arm, budget in budgets.items()}
    planned = {arm: float(part[unit]) for arm, part in parts.items() if not stage or part.get(unit)}
    if stage and not planned:
        raise UserError(f"{sweep.path}: matched '{sweep.matched}', but no arm trains the stage", "name another stage")
    if why := find_unmatched(planned):
        amounts = why.replace("used", "plans")
        raise UserError(
            f"{sweep.path}: the arms' budgets differ by more than 1% in {sweep.matched} ({amounts})",
            f"give all arms the same {sweep.matched}, or change 'matched'",
        )
