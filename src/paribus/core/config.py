"""The config of a run, composed by Hydra, with a one-line error for a bad key."""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paribus.core.checksums import digest
from paribus.core.config_cache import remember
from paribus.core.errors import UserError, nearest, suggest
from paribus.core.files import is_name
from paribus.core.strict_yaml import load_mapping
from paribus.core.trust import check_composed

if TYPE_CHECKING:
    from omegaconf import DictConfig

FAMILY, SCALE = "bert", "smoke"  # of `conf/train.yaml`
PRESETS = ("family", "recipe", "experiment", "debug")  # groups of `# @package _global_`, in the order of precedence
# Keys of earlier versions by their names of today. Groups are written with a dot as well.
RENAMED = {
    "finetuning": "finetune.method",
    "finetune.bilstm": "finetune.head",
    "finetune.layers": "finetune.head.layers",
    "finetune.combine": "finetune.head.layers",
    "finetune.pooling": "finetune.head.pooling",
    "finetune.windows": "finetune.head.windows",
    "finetune.stride": "finetune.head.windows.stride",
    "finetune.most_windows": "finetune.head.windows.most",
    "finetune.siamese": "finetune.head.parts",
    "finetune.pooler": "finetune.head.pooler",
    "finetune.dropout": "finetune.head.dropout",
    "objective.encoding": "objective.view",
    "objective.disorder": "objective.shuffling",
    "objective.sight": "objective.attention_mask",
}


def _packaged(name: str) -> Path:
    """A folder at the top of a checkout, or inside the package of a wheel."""
    package = Path(__file__).parents[1]
    inside, checkout = package / "_files" / name, package.parents[1] / name
    return inside if inside.is_dir() else checkout


def conf_dir() -> Path:
    """The shipped config groups. A `conf` folder in the working directory extends them (Hydra's search path)."""
    return _packaged("conf")


def sweeps_dir() -> Path:
    """The published tables as sweep files."""
    return _packaged("sweeps")


def compose(overrides: Sequence[str]) -> DictConfig:
    """The config of one run, as Hydra composes it: `conf/train.yaml` with presets and `overrides`.

    Later wins; the fourth and fifth exist only for the arms of a sweep, the sixth and seventh only for single runs:

        1. defaults        `conf/train.yaml` and the file of each choice
        2. family          `conf/family/NAME.yaml`: objective, input format, held-out evaluation
        3. scale           `conf/recipe/FAMILY/SCALE.yaml`: the size and the recipe that was measured for it; a sweep
                           that names an earlier version has `conf/recipe/FAMILY/VERSION/SCALE.yaml`
        4. sweep           `base` of the sweep file, then its `scales.SCALE.overrides`
        5. arm             `arms.NAME`, then `scales.SCALE.arms.NAME`, then what a search chose for the arm
        6. experiment      `conf/experiment/NAME.yaml`, a preset of the user's own
        7. debug           `conf/debug/NAME.yaml`
        8. command line    `key=value`, the last one if a key is given twice

    A value outlasts a later choice of its group: a recipe's `model.dropout` also holds for `model=bert_base`.

    Raises UserError naming an unknown key, group or choice, and what comes near it, and a class that is not trusted.
    """
    return _trusted(remember("train", overrides, roots(), _compose))


def compose_launcher(overrides: Sequence[str]) -> DictConfig:
    """The config of the launcher that `overrides` of `conf/run.yaml` choose. Raises UserError as `compose` does."""
    composed = _trusted(remember("run", overrides, roots(), _compose))
    launcher: DictConfig = composed.launcher
    return launcher


def _trusted(composed: DictConfig) -> DictConfig:
    check_composed(composed)
    return composed


def compose_whole(overrides: Sequence[str]) -> DictConfig:
    """As `compose`, with the node `hydra`, and before the check that its classes are trusted."""
    return _compose("train", overrides, whole=True)


def job_overrides(overrides: Sequence[str]) -> list[str]:
    """The overrides of a job for one of Hydra's launchers, which composes them itself and makes objects of `hydra.*`.

    Raises UserError as `compose` does, also for a class in the node `hydra`.
    """
    from paribus.core.recipes import with_recipe

    check_composed(compose_whole(overrides))
    return with_recipe(overrides)


def _compose(name: str, overrides: Sequence[str], whole: bool = False) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from paribus.core.plugins import register
    from paribus.core.recipes import check_presets, choices_with, list_presets, with_recipe

    if own := next((text for text in overrides if text.lstrip("+~").startswith("hydra.searchpath")), None):
        raise UserError(f"'{own}' could import a package", "put your choices into ./conf")
    require_keys(overrides)
    register()
    with explained(), _own_hydra():
        chosen = with_recipe(overrides) if name == "train" else list(overrides)
        presets = list_presets(chosen)

        def list_choices(without: str = "") -> DictConfig:
            texts = [text for text in choices_with(presets, chosen) if text.partition("=")[0].lstrip("+") != without]
            return hydra_compose(name, texts, return_hydra_config=True)

        if presets:
            known: Any = OmegaConf.to_container(list_choices(), resolve=False)
            check_presets(presets, known)
        try:
            return hydra_compose(name, chosen, return_hydra_config=whole)
        except HydraException as error:
            refused = _REFUSED.search(str(error))
            try:
                choices = list_choices(refused[1] if refused else "").hydra.runtime.choices
            except (HydraException, OmegaConfBaseException):  # a choice is unknown
                choices = {}
            raise explain(error, choices) from error


_alone = threading.RLock()  # Hydra's state is one for all threads


@contextmanager
def _own_hydra() -> Iterator[None]:
    """Hydra on our folder; an application of the user's own that runs in this process keeps its own."""
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    running = GlobalHydra.instance()
    with _alone:
        theirs = running.hydra
        running.clear()
        try:
            with initialize_config_dir(str(conf_dir()), version_base="1.3"):
                yield
        finally:
            running.hydra = theirs


def require_keys(overrides: Sequence[str]) -> None:
    """Raise UserError for an override without a key, which Hydra does not expect."""
    if keyless := next((text for text in overrides if re.match(r"[+~]*(@[^=]*)?=", text)), None):
        raise UserError(f"override {keyless!r} has no key", "write key=value")


def family_of(model: str) -> str:
    """The family that a choice of `model=` brings, or the usual one."""
    for folder in roots() if is_name(model) else ():
        if (path := folder / "model" / f"{model}.yaml").is_file():
            lines = load_mapping(path).get("defaults") or []
            brought = [line for line in lines if isinstance(line, dict) and "override /family@_global_.family" in line]
            return next((str(value) for line in brought for value in line.values()), FAMILY)
    return FAMILY


def root_seed(cfg: Mapping[str, Any]) -> int:
    """The seed of every draw in a run: `seed` itself, or a hash of `seed` and `replicate` if `replicate` is not 0."""
    replicate, seed = int(cfg.get("replicate", 0)), int(cfg["seed"])
    return seed if replicate == 0 else int(digest(["replicate", replicate, seed], 12), 16)


def split_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """`key=value` strings as a dict in order of last mention.

    Raises UserError for a string without `=`.
    """
    pairs: dict[str, str] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals and not key.startswith("~"):
            raise UserError(f"override {text!r} has no value", f"write {text}=VALUE")
        pairs.pop(key, None)
        pairs[key] = value
    return pairs


def name_recipe(family: str, scale: str, version: str | None = None) -> str:
    """The choice of `recipe=` for a scale; `version`: of an earlier recipe, which older runs have, or None."""
    return "/".join(part for part in (family, version, scale) if part is not None)


def table_seeds(family: str, scale: str, version: str | None = None) -> tuple[int, ...]:
    """The seeds that the recipe of a scale gives every arm of a table.

    Raises UserError naming the known scales, and for a recipe without seeds.
    """
    name = name_recipe(family, scale, version)
    for folder in roots() if is_name(family) and is_name(scale) else ():
        if (path := folder / "recipe" / f"{name}.yaml").is_file():
            settings = load_mapping(path)
            if not settings.get("table_seeds"):
                raise UserError(f"{path} lacks 'table_seeds'", "add table_seeds: [0, 1, 2]")
            return tuple(settings["table_seeds"])
    raise unknown_recipe(family, scale)


def unknown_recipe(family: str, scale: str) -> UserError:
    """The error for a scale that a family has no recipe for, or for an unknown family."""
    known = choices(f"recipe/{family}")
    if not known:
        return UserError(f"unknown choice family={family}", suggest(family, choices("family")))
    return UserError(f"scale={scale} is unknown for family={family}", suggest(scale, known))


class explained:
    """Turn Hydra's and OmegaConf's composition errors into one UserError that suggests similar names."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        if isinstance(error, HydraException | OmegaConfBaseException):
            raise explain(error) from error


def explain(error: BaseException, choices_made: Mapping[str, str] = MappingProxyType({})) -> UserError:
    """The UserError for a failed composition: the cause in one line, with similar names if a key is unknown.

    choices_made: {group: its choice}, as far as they are known.
    """
    from omegaconf.errors import MissingMandatoryValue

    text = " ".join((str(error) or str(error.__cause__)).split())
    if key := _REFUSED.search(text):
        cause: Any = error.__cause__
        beside = cause.parent_node if getattr(cause, "full_key", None) == key[1] and "." in key[1] else ()
        return unknown_key(key[1], [str(name) for name in beside or () if name != "_target_"], choices_made)
    if isinstance(error, MissingMandatoryValue):
        return UserError(f"{error.full_key} is missing", f"write {error.full_key}={str(error.key).upper()}")
    if several := re.match(r"Ambiguous value for argument '([^=]+)=(.+)' 1\.", text):
        mend = f"add -m for one run each, or write {several[1]}=[{several[2]}] for a list"
        return UserError(f"{several[1]}={several[2]} gives several values", mend)
    if chosen := re.search(r"Could not (?:find|load) '([^']+)'", text):
        group, _, name = chosen[1].rpartition("/")
        if (preset := chosen[1].partition("/"))[0] in PRESETS:
            group, name = preset[0], preset[2]
        listed = re.search(r"Available options in '[^']+': ([\w ]+?) Config search path", text)
        near = suggest(name, choices(group) or (listed[1].split() if listed else []))
        if group == "experiment" and is_name(name):
            near = f"{near} or " * near.startswith("did you mean") + f"write conf/experiment/{name}.yaml"
        return UserError(f"unknown choice {group}={name}", near)
    if text.startswith("Error merging override "):
        return _mistyped(text.removeprefix("Error merging override "), error.__cause__)
    if unread := getattr(error, "override", None):
        if "=" not in unread:
            return UserError(f"override {unread!r} has no value", f"write {unread}=VALUE")
        return UserError(f"override {unread!r} cannot be read", "write key=value and quote special characters")
    return UserError(text.split(" full_key:")[0])


_REFUSED = re.compile(r"Could not override '([^'@]+)")
_TYPES = {  # what OmegaConf says of a wrong value: what to give instead
    "to Integer": "a whole number",
    "to Float": "a number",
    "valid bool": "true or false",
    "not a ListConfig": "a list, such as [0]",
    "not Optional": "a value",
    "not optional": "a value",
    "Non optional": "a value",
}


def _mistyped(override: str, cause: BaseException | None) -> UserError:
    """The UserError for a value of the wrong type."""
    said = " ".join(str(cause).split()).split(" full_key:")[0]
    wanted = next((words for part, words in _TYPES.items() if part in said), None)
    return UserError(f"{override} has the wrong type", f"give {wanted}" if wanted else said)


def unknown_key(
    key: str, beside: Sequence[str] = (), choices_made: Mapping[str, str] = MappingProxyType({})
) -> UserError:
    """The error for a key that does not exist, or not in this config.

    beside: the names that its parent has. choices_made: {group: its choice}, as far as they are known.
    """
    from paribus.core.config_names import settings

    parts = re.split("[./]", key)
    owners = ["/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
    if (conf_dir() / key).is_dir() or key in _keys() or (owners and parts[-1] in settings(owners[0])):
        owner = next((name for name in owners if name in choices_made), parts[0])
        chosen = f"{owner}={choices_made[owner]}" if owner in choices_made else "this config"
        return UserError(f"'{key}' does not apply to {chosen}", f"leave it out, or choose another {owner}=")
    if key in _sweeper_keys() and not nearest(key, _top(), 0.8):
        return UserError(f"'{key}' is a key of the sweeper", f"write hydra.sweeper.{key}=VALUE")
    return UserError(f"'{key}' is not a config group or key", _near(key, beside))


def _sweeper_keys() -> set[str]:
    """The settings of a search."""
    from paribus.core.plugins import OptunaSweeperConf

    return {each.name for each in fields(OptunaSweeperConf) if not each.name.startswith("_")}


def check_keys(config: Mapping[str, Any]) -> None:
    """Raises UserError for a top-level key that `conf/train.yaml` does not have, because nothing would read it."""
    if stray := next((str(key) for key in config if key not in _top()), None):
        raise unknown_key(stray)


@cache
def _top() -> frozenset[str]:
    """The keys at the top of every config: those of the primary config, and the groups of its defaults."""
    import yaml

    primary = yaml.safe_load((conf_dir() / "train.yaml").read_text(encoding="utf-8"))
    return frozenset(primary) | {group for line in primary["defaults"] if isinstance(line, dict) for group in line}


def renamed(key: str) -> str | None:
    """The current name of a key from an earlier version; None for any other key."""
    dotted = key.replace("/", ".")
    for old, new in RENAMED.items():
        if dotted == old or dotted.startswith(f"{old}."):
            name = new + dotted.removeprefix(old)
            return group if (conf_dir() / (group := name.replace(".", "/"))).is_dir() else name
    return None


def _near(key: str, beside: Sequence[str]) -> str:
    parent, _, last = key.rpartition(".")
    found = [f"{parent}.{name}" for name in nearest(last, beside)]
    if not found:
        names = sorted(name for name in {*_groups(), *_keys()} if not name.endswith("_target_"))
        tail = [name for name in names if name.rpartition(".")[2] == last]
        found = list(dict.fromkeys(difflib.get_close_matches(key, names, n=3, cutoff=0.55) + tail[:3]))
    return f"did you mean {' or '.join(found)}?" if found else "see `paribus train --cfg job` for every key"


def roots() -> tuple[Path, Path]:
    """Where config groups are: the shipped `conf`, and that of the working directory."""
    return conf_dir(), Path.cwd() / "conf"


def is_group(name: str) -> bool:
    """Whether a config group has this name, such as `masking/schedule`."""
    return any((root / name).is_dir() for root in roots())


def choices(group: str) -> list[str]:
    """The choices of a config group, shipped and the user's own; those of presets may be in folders."""
    pattern = "**/*.yaml" if group in PRESETS else "*.yaml"
    paths = ((root / group, path) for root in roots() for path in (root / group).glob(pattern))
    return sorted({path.relative_to(folder).with_suffix("").as_posix() for folder, path in paths})


def _groups() -> Iterator[str]:
    for path in conf_dir().rglob("*.yaml"):
        if (name := path.parent.relative_to(conf_dir()).as_posix()) != ".":
            yield name


def _keys() -> list[str]:
    from omegaconf import OmegaConf

    return [key for name in ("train", "run") for key in flat(OmegaConf.to_container(_compose(name, []), resolve=False))]


def flat(value: object, prefix: str = "") -> dict[str, Any]:
    """A nested config as {dotted key: leaf}; lists and empty dicts are leaves."""
    if not isinstance(value, dict) or not value:
        return {prefix: value} if prefix else {}
    leaves: dict[str, Any] = {}
    for key, inner in value.items():
        leaves |= flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return leaves


def plain(config: object) -> Any:
    """A resolved config as plain Python data. Raises UserError for a missing value or a broken interpolation."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise explain(error) from error
