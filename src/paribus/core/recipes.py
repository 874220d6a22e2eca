"""`scale=` and `family=` choose a recipe in every Hydra application on our configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paribus.core.config import FAMILY, SCALE, choices, renamed, unknown_recipe
from paribus.core.errors import UserError, suggest
from paribus.core.names import is_name
from paribus.core.trust import check_composed

if TYPE_CHECKING:
    from hydra._internal.config_repository import IConfigRepository
    from hydra._internal.defaults_list import DefaultsList
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

NONE = "none"  # the recipe that changes nothing; `scale=null`
_ADDED = ("experiment", "debug", "recipe")  # `+experiment=NAME` means `experiment=NAME`


def install() -> None:
    """Make Hydra resolve `scale`, `family` and `model` to a recipe whenever it composes our `conf/train.yaml`.

    The composed config is then checked for untrusted classes, before Hydra instantiates anything.

    Hydra's defaults list cannot do this itself: a group that is chosen by interpolation (`recipe: ${family}/${scale}`)
    may not override other groups, which is all that a recipe does.
    """
    from hydra._internal import config_loader_impl

    loader: Any = config_loader_impl
    create = loader.create_defaults_list
    if create.__module__ == __name__:
        return

    def create_defaults_list(
        repo: IConfigRepository,
        config_name: str | None,
        overrides_list: list[Override],
        prepend_hydra: bool,
        skip_missing: bool,
    ) -> DefaultsList:
        if repo.config_exists(f"recipe/{FAMILY}/{SCALE}"):
            _check_choices(repo, overrides_list)
            overrides_list = with_recipe(repo, overrides_list)
        found: DefaultsList = create(repo, config_name, overrides_list, prepend_hydra, skip_missing)
        return found

    loader.create_defaults_list = create_defaults_list
    load = config_loader_impl.ConfigLoaderImpl.load_configuration

    def load_configuration(self: Any, *arguments: Any, **named: Any) -> DictConfig:
        config = load(self, *arguments, **named)
        if self.repository.config_exists(f"recipe/{FAMILY}/{SCALE}"):
            check_composed(config)
        return config

    config_loader_impl.ConfigLoaderImpl.load_configuration = load_configuration  # type: ignore[method-assign]


def _check_choices(repo: IConfigRepository, overrides: Sequence[Override]) -> None:
    """Raises UserError for a choice that cannot be a file name, such as a number, since Hydra would crash on it."""
    from hydra.core.override_parser.types import QuotedString

    for override in overrides:
        group, value = override.key_or_group, override._value
        if override.is_sweep_override() or not repo.group_exists(group):
            continue
        if value is None and (override.is_delete() or group in _ADDED):
            continue
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str | QuotedString) for one in listed):
            raise UserError(f"unknown choice {group}={override.get_value_string()}", suggest("", choices(group)))


def with_recipe(repo: IConfigRepository, overrides: Sequence[Override]) -> list[Override]:
    """The overrides with the recipe that they imply.

    Raises UserError for an unknown scale, two different recipes and keys of earlier versions.
    """
    for override in overrides:
        if new := renamed(override.key_or_group):
            raise UserError(f"'{override.key_or_group}' is now '{new}'", f"write {new}=VALUE")
    plain = [_normalize(override) for override in overrides if not _is_default(override)]
    given = {override.key_or_group: override.value() for override in plain if _is_choice(override)}
    if "debug" in given and "study" in given:
        raise UserError("a debug run belongs to the study 'debug'", "leave study= out")
    recipe = _recipe(repo, given)
    return plain if recipe is None else [*plain, _choose("recipe", recipe)]


def _normalize(override: Override) -> Override:
    """`+experiment=NAME` as `experiment=NAME`, and `recipe=null` as `recipe=none`."""
    from hydra.core.override_parser.types import OverrideType

    group = override.key_or_group
    if group == "recipe" and override.value() is None:
        return _choose(group, NONE)
    return replace(override, type=OverrideType.CHANGE) if group in _ADDED and override.is_add() else override


def _is_default(override: Override) -> bool:
    """Whether it is `experiment=null` or `debug=null`: Hydra refuses a null as a choice, even if it is the default."""
    return override.key_or_group in ("experiment", "debug") and not override.is_delete() and override.value() is None


def _is_choice(override: Override) -> bool:
    return not override.is_sweep_override() and not override.is_delete() and override.package is None


def _choose(group: str, choice: str) -> Override:
    from hydra.core.override_parser.types import Override, OverrideType, ValueType

    return Override(OverrideType.CHANGE, group, ValueType.ELEMENT, choice, input_line=f"{group}={choice}")


def _recipe(repo: IConfigRepository, given: Mapping[str, Any]) -> str | None:
    """The recipe to choose, or None if `given` leaves the recipe as it is."""
    if "recipe" in given:
        _check_agreement(given)
        return None
    presets = [f"{group}/{given[group]}" for group in ("experiment", "debug") if given.get(group)]
    chosen = {group: choice for path in presets for group, choice in _overrides_of(repo, path).items()} | dict(given)
    current = str(chosen.get("recipe", f"{FAMILY}/{SCALE}"))
    family, scale = current.split("/", 1) if "/" in current else (FAMILY, NONE)
    brought = _overrides_of(repo, f"model/{chosen['model']}") if "model" in chosen else {}
    if (own := brought.get("family")) and given.get("family", own) != own:
        cause = f"model={chosen['model']} is of family={own}, not {given['family']}"
        raise UserError(cause, f"set family={own}, in a sweep file family: {own}")
    family = chosen.get("family") or own or family
    scale = (given["scale"] or NONE) if "scale" in given else scale
    recipe = NONE if scale == NONE else f"{family}/{scale}"
    if recipe != NONE and not (is_name(family) and is_name(scale) and repo.config_exists(f"recipe/{recipe}")):
        raise unknown_recipe(family, str(scale))
    return None if recipe == current else recipe


def _check_agreement(given: Mapping[str, Any]) -> None:
    recipe = str(given["recipe"])
    family, _, scale = recipe.partition("/")  # an earlier version is between them: bert/v1/smoke
    for key, own in (("family", family), ("scale", scale.rpartition("/")[2])) if scale else ():
        if given.get(key, own) != own:
            raise UserError(f"recipe={recipe} and {key}={given[key]} contradict each other", f"leave {key}= out")


def _overrides_of(repo: IConfigRepository, path: str) -> dict[str, str]:
    """{group: choice} of the `override` lines in a config's defaults list; empty if there is no such config.

    `override /model: t5_tiny` and `override /model@_global_.model: t5_tiny` are one, the latter from within a group.
    """
    from hydra.core.default_element import GroupDefault

    loaded = repo.load_config(path)
    lines = (loaded.defaults_list or []) if loaded is not None else []
    groups = {
        str(line.group).lstrip("/"): line for line in lines if isinstance(line, GroupDefault) and line.is_override()
    }
    return {name: str(line.value) for name, line in groups.items() if line.package in (None, f"_global_.{name}")}
