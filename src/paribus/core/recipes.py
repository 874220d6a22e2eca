"""`scale=`, `family=` and `model=` as a recipe, before Hydra composes: from the overrides and the config files alone.

Hydra's defaults list cannot do this itself: a group that is chosen by interpolation (`recipe: ${family}/${scale}`) may
not override other groups, which is all that a recipe does. With plain Hydra one writes `recipe=bert/cpu`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.config_errors import SLOTS, renamed, unknown_key
from paribus.core.config_names import PRESETS, choices, is_group, load_mapping, roots
from paribus.core.errors import UserError, suggest
from paribus.core.files import is_name

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

FAMILY, SCALE = "bert", "smoke"  # of `conf/train.yaml`
NONE = "none"  # the recipe that changes nothing; `scale=null`
_ADDED = ("experiment", "debug", "recipe")  # `+experiment=NAME` means `experiment=NAME`
_DECIDING = ("scale", "family", "model", "experiment", "debug")  # of the recipe
_PRESET = re.compile(rf"\+?({'|'.join(PRESETS)})=([\w./-]+)")


def with_recipe(overrides: Sequence[str]) -> list[str]:
    """The overrides for plain Hydra: with the recipe that they imply.

    Values of a sweep (`scale=smoke,cpu`) imply none; each of its runs has its own.
    Raises UserError for an unknown scale, two different recipes, keys of earlier versions, and a choice that cannot be
    a file name. Raises Hydra's errors for what cannot be read.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_overrides(list(overrides))
    for override in parsed:
        if new := renamed(override.key_or_group):
            raise UserError(f"'{override.key_or_group}' is now '{new}'", f"write {new}=VALUE")
    _check_choices(parsed)
    plain = [_normalize(override) for override in parsed if not _is_default(override)]
    given = {
        override.key_or_group: override.value()
        for override in plain
        if not override.is_sweep_override() and not override.is_delete() and override.package is None
    }
    if "debug" in given and "study" in given:
        raise UserError("a debug run belongs to the study 'debug'", "leave study= out")
    texts = [str(override.input_line) for override in plain]
    if any(override.is_sweep_override() and override.key_or_group in _DECIDING for override in plain):
        return texts
    recipe = _imply_recipe(given)
    return texts if recipe is None else [*texts, f"recipe={recipe}"]


def without_recipe(overrides: Sequence[str]) -> list[str]:
    """The overrides without a recipe that `with_recipe` has added, and would add again."""
    kept = [text for text in overrides if not text.startswith("recipe=")]
    return kept if with_recipe(kept) == list(overrides) else list(overrides)


def list_presets(overrides: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """(choice such as `experiment/mine`, content of its file) of the user's own presets that the overrides choose."""
    shipped, folder = roots()
    if folder.resolve() == shipped.resolve():
        return []
    chosen = [f"{match[1]}/{match[2]}" for text in overrides if (match := _PRESET.fullmatch(text))]
    return [(name, load_mapping(path)) for name in chosen if (path := folder / f"{name}.yaml").is_file()]


def check_presets(presets: Sequence[tuple[str, Mapping[str, Any]]], known: Mapping[str, Any]) -> None:
    """Raises UserError for a key of a preset that the chosen groups do not have: Hydra itself would add it.

    Args:
        presets: as `list_presets` gives them.
        known: the config that `choices_with` gives, with its node `hydra`.
    """
    choices_made = known["hydra"]["runtime"]["choices"]
    for name, content in presets:
        body = {key: value for key, value in content.items() if key not in ("defaults", "hydra")}
        for key in _strays(body, known):
            if new := renamed(key):
                raise UserError(f"{name}.yaml: '{key}' is now '{new}'", f"write {new}")
            raise UserError(f"{name}.yaml: {unknown_key(key, choices_made=choices_made)}")


def choices_with(presets: Sequence[tuple[str, Mapping[str, Any]]], overrides: Sequence[str]) -> list[str]:
    """The choices of groups that presets and overrides make, without the values that they set."""
    texts: dict[str, str] = {}
    for name, _ in presets:
        for group, choice in _overrides_of(name).items():
            chosen = f"[{','.join(map(str, choice))}]" if isinstance(choice, list) else choice
            texts[group] = f"{group}={chosen}"
    choosing = {name.replace("/", "=", 1) for name, _ in presets}  # overrides that choose the presets
    for text in (text for text in overrides if text.lstrip("+") not in choosing):
        key = text.partition("=")[0]
        if is_group(key.lstrip("+~").partition("@")[0]):
            texts[key] = text
    return list(texts.values())


def _strays(body: Mapping[str, Any], tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of `body` that `tree` lacks. Anything may be below an empty node."""
    for key, value in body.items():
        if key not in tree:
            yield f"{prefix}{key}"
        elif isinstance(value, dict) and isinstance(tree[key], dict) and tree[key]:
            yield from _strays(value, tree[key], f"{prefix}{key}.")


def _check_choices(overrides: Sequence[Override]) -> None:
    """Raises UserError for a choice that cannot be a file name, such as a number, since Hydra would crash on it, and
    for one that lacks its name.
    """
    from hydra.core.override_parser.types import QuotedString

    for override in overrides:
        group, value = override.key_or_group, override._value
        if group in SLOTS and override.package is None:
            raise unknown_key(group)
        if override.is_sweep_override() or not is_group(group):
            continue
        if value is None and (override.is_delete() or group in _ADDED):
            continue
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str | QuotedString) for one in listed):
            raise UserError(f"unknown choice {group}={override.get_value_string()}", suggest("", choices(group)))


def _normalize(override: Override) -> Override:
    """`+experiment=NAME` as `experiment=NAME`, and `recipe=null` as `recipe=none`."""
    from hydra.core.override_parser.types import Override, OverrideType, ValueType

    group = override.key_or_group
    if group == "recipe" and override.value() is None:
        line = f"{group}={NONE}"
        return Override(OverrideType.CHANGE, group, ValueType.ELEMENT, NONE, input_line=line)
    if group in _ADDED and override.is_add():
        return replace(override, type=OverrideType.CHANGE, input_line=str(override.input_line).lstrip("+"))
    return override


def _is_default(override: Override) -> bool:
    """Whether it is `experiment=null` or `debug=null`: Hydra refuses a null as a choice, even if it is the default."""
    return override.key_or_group in ("experiment", "debug") and not override.is_delete() and override.value() is None


def _imply_recipe(given: Mapping[str, Any]) -> str | None:
    """The recipe to choose, or None if `given` leaves the recipe as it is."""
    if "recipe" in given:
        name = str(given["recipe"])
        family, _, scale = name.partition("/")  # an earlier version is between them: bert/v1/smoke
        for key, part in (("family", family), ("scale", scale.rpartition("/")[2])) if scale else ():
            if given.get(key, part) != part:
                raise UserError(f"recipe={name} and {key}={given[key]} contradict each other", f"leave {key}= out")
        return None
    presets = [f"{group}/{given[group]}" for group in ("experiment", "debug") if given.get(group)]
    chosen = {group: choice for path in presets for group, choice in _overrides_of(path).items()} | dict(given)
    current = str(chosen.get("recipe", f"{FAMILY}/{SCALE}"))
    family, scale = current.split("/", 1) if "/" in current else (FAMILY, NONE)
    brought = _overrides_of(f"model/{chosen['model']}") if "model" in chosen else {}
    if (needed := brought.get("family")) and given.get("family", needed) != needed:
        cause = f"model={chosen['model']} is of family={needed}, not {given['family']}"
        raise UserError(cause, f"set family={needed}, in a sweep file family: {needed}")
    family = chosen.get("family") or needed or family
    scale = (given["scale"] or NONE) if "scale" in given else scale
    recipe = NONE if scale == NONE else f"{family}/{scale}"
    if recipe != NONE and not (is_name(family) and is_name(scale) and _find(f"recipe/{recipe}")):
        raise unknown_recipe(family, str(scale))
    return None if recipe == current else recipe


def _overrides_of(path: str) -> dict[str, Any]:
    """{group: choice} of the `override` lines in a config's defaults list; empty if there is no such config.

    `override /model: t5_tiny` and `override /model@_global_.model: t5_tiny` are one, the latter from within a group.
    """
    file = _find(path)
    lines = (load_mapping(file).get("defaults") or []) if file is not None else []
    overrides: dict[str, Any] = {}
    for key, choice in (pair for line in lines if isinstance(line, dict) for pair in line.items()):
        group, _, package = str(key).removeprefix("override ").lstrip("/").partition("@")
        if str(key).startswith("override ") and package in ("", f"_global_.{group}"):
            overrides[group] = choice
    return overrides


def _find(config: str) -> Path | None:
    """The file of a config, in the shipped folder or in the user's."""
    return next((path for root in roots() if (path := root / f"{config}.yaml").is_file()), None)


def family_of(model: str) -> str:
    """The family that a choice of `model=` brings, or the usual one."""
    return str(_overrides_of(f"model/{model}").get("family", FAMILY)) if is_name(model) else FAMILY


def name_recipe(family: str, scale: str, version: str | None = None) -> str:
    """The choice of `recipe=` for a scale; `version`: of an earlier recipe, which older runs have, or None."""
    return "/".join(part for part in (family, version, scale) if part is not None)


def table_seeds(family: str, scale: str, version: str | None = None) -> tuple[int, ...]:
    """The seeds that the recipe of a scale gives every arm of a table.

    Raises UserError naming the known scales, and for a recipe without seeds.
    """
    name = name_recipe(family, scale, version)
    path = _find(f"recipe/{name}") if is_name(family) and is_name(scale) else None
    if path is None:
        raise unknown_recipe(family, scale)
    settings = load_mapping(path)
    seeds = settings.get("table_seeds")
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        cause = f"{path} lacks 'table_seeds'" if not seeds else f"{path}: table_seeds={seeds} is not a list of seeds"
        raise UserError(cause, "write table_seeds: [0, 1, 2]")
    return tuple(seeds)


def unknown_recipe(family: str, scale: str) -> UserError:
    """The error for a scale that a family has no recipe for, or for an unknown family."""
    known = choices(f"recipe/{family}")
    if not known:
        return UserError(f"unknown choice family={family}", suggest(family, choices("family")))
    return UserError(f"scale={scale} is unknown for family={family}", suggest(scale, known))
