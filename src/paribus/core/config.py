"""Composing an arm: Hydra's config groups, the measured recipe of a scale, one clear line for a bad key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.errors import UserError
from paribus.core.hashing import digest

if TYPE_CHECKING:
    from omegaconf import DictConfig

FAMILY, SCALE = "bert", "smoke"  # what `paribus train` composes where nothing is said


def _packaged(name: str) -> Path:
    """A folder that stands at the top of a checkout and inside the package of a wheel."""
    package = Path(__file__).parents[1]
    inside, checkout = package / "_files" / name, package.parents[1] / name
    return inside if inside.is_dir() else checkout


def conf_dir() -> Path:
    """The config groups; a `conf` folder in the working directory extends them (Hydra's search path)."""
    return _packaged("conf")


def sweeps_dir() -> Path:
    """The published tables as sweep files."""
    return _packaged("sweeps")


def compose(overrides: Sequence[str]) -> DictConfig:
    """The config of one run: defaults, then the scale's choices, then `overrides`.

    Raises UserError naming an unknown key, group or choice, and what comes near it.
    """
    return _composed("train", expand(overrides))


def compose_launcher(overrides: Sequence[str]) -> DictConfig:
    """The config of the launcher that `overrides` of `conf/run.yaml` choose. Raises UserError as `compose` does."""
    launcher: DictConfig = _composed("run", overrides).launcher
    return launcher


def _composed(name: str, overrides: Sequence[str]) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with explained(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return hydra_compose(name, overrides=list(overrides))


def root_seed(cfg: Mapping[str, Any]) -> int:
    """What every draw of a run follows from: its seed, or another that seed and `replicate` name together."""
    replicate, seed = int(cfg.get("replicate", 0)), int(cfg["seed"])
    return seed if replicate == 0 else int(digest(["replicate", replicate, seed], 12), 16)


def expand(overrides: Sequence[str]) -> list[str]:
    """Put the scale's choices before the explicit overrides; of a key that is given twice the last one counts."""
    given = split_overrides(overrides)
    family, scale = given.get("family", FAMILY), given.get("scale", SCALE)
    recipe = [] if scale in ("null", "none") else scale_settings(family, scale)["overrides"]
    return [f"{key}={value}" for key, value in {**split_overrides(recipe), **given}.items()]


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


@cache
def scale_settings(family: str, scale: str) -> dict[str, Any]:
    """The file `conf/recipe/<family>/<scale>.yaml`: `overrides` (the measured recipe) and `seeds`.

    A file of the same name in the working directory's own `conf` counts too.
    Raises UserError naming the known scales.
    """
    import yaml

    folders = [root / "recipe" / family for root in (conf_dir(), Path.cwd() / "conf")]
    for folder in folders:
        if (path := folder / f"{scale}.yaml").is_file():
            settings: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
            return settings
    known = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
    raise UserError(f"scale={scale} is unknown for family={family}", f"known scales: {', '.join(known) or 'none'}")


class explained:
    """Turn Hydra's and OmegaConf's composition errors into one UserError that says what is near."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException

        if isinstance(error, HydraException | OmegaConfBaseException):
            raise explain(error) from error


def explain(error: BaseException) -> UserError:
    """The UserError for a failed composition: the cause in one line, with near names where a key is unknown."""
    text = " ".join(str(error).split())
    if "is not in struct" in text and "Could not override '" in text:
        key = text.split("Could not override '")[1].split("'")[0]
        return UserError(f"unknown key '{key}'", _near(key))
    if text.startswith("Could not override '"):
        key = text.split("'")[1]
        return UserError(f"'{key}' is no config group or key", _near(key))
    if "Could not find '" in text:
        choice = text.split("Could not find '")[1].split("'")[0]
        group, _, name = choice.rpartition("/")
        return UserError(f"unknown choice {group}={name}", f"known: {', '.join(choices(group)) or 'none'}")
    if text.startswith("Error merging override "):
        return _mistyped(text.removeprefix("Error merging override "), error.__cause__)
    if unread := getattr(error, "override", None):
        return UserError(f"override {unread!r} cannot be read", "write key=value and quote special characters")
    return UserError(text.split(" full_key:")[0])


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
    """The UserError for a value of another type than its key has."""
    said = " ".join(str(cause).split()).split(" full_key:")[0]
    wanted = next((words for part, words in _TYPES.items() if part in said), None)
    return UserError(f"{override} has the wrong type", f"give {wanted}" if wanted else said)


def _near(key: str) -> str:
    names = sorted(set(_groups()) | set(_keys()))
    near = difflib.get_close_matches(key, names, n=3, cutoff=0.55)
    tail = [name for name in names if name.rsplit(".", 1)[-1] == key.rsplit(".", 1)[-1]]
    found = list(dict.fromkeys(near + tail[:3]))
    return f"did you mean {' or '.join(found)}?" if found else "see `paribus train --cfg job` for every key"


def choices(group: str) -> list[str]:
    """The choices of a config group, shipped and the user's own."""
    return sorted({p.stem for root in (conf_dir(), Path.cwd() / "conf") for p in (root / group).glob("*.yaml")})


def _groups() -> Iterator[str]:
    for path in conf_dir().rglob("*.yaml"):
        if (name := path.parent.relative_to(conf_dir()).as_posix()) != ".":
            yield name


def _keys() -> list[str]:
    from omegaconf import OmegaConf

    return [
        key for name in ("train", "run") for key in flat(OmegaConf.to_container(_composed(name, []), resolve=False))
    ]


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """A nested config as {dotted key: leaf}; lists and empty dicts are leaves."""
    if not isinstance(value, dict) or not value:
        return {prefix: value} if prefix else {}
    leaves: dict[str, Any] = {}
    for key, inner in value.items():
        leaves |= flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return leaves


def plain(config: Any) -> Any:
    """A resolved config as plain Python data. Raises UserError for a missing value or a broken interpolation."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise explain(error) from error
