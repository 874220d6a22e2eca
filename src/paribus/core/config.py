"""The config of a run, composed by Hydra, as plain data.

Composing takes 0.3 seconds per arm, so an unchanged config is not composed again: a composed config depends only on the
overrides and the files that Hydra reads. The name of a stored config covers both: the overrides, the config files, our
code for configs, and the versions of Hydra and OmegaConf. Whole configs are kept on disk, the latest few thousand.
Configs before plain values are set are kept in memory: Hydra sets plain values last, so configs that differ only in
values share the rest. `keep_bases` keeps those on disk too.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.checksums import digest
from paribus.core.config_errors import REFUSED, explain, explained
from paribus.core.config_names import choices, conf_dir, is_group, roots
from paribus.core.errors import UserError
from paribus.core.files import user_cache, write_cached
from paribus.core.recipes import check_presets, choices_with, list_presets, with_recipe
from paribus.core.trust import check_composed

if TYPE_CHECKING:
    from omegaconf import DictConfig

_lock = threading.RLock()  # Hydra's state is one for all threads
Compose = Callable[[str, Sequence[str]], "DictConfig"]
_VALUE = re.compile(r"[A-Za-z_][\w.]*")  # a key without +, ~, a group's / and a package's @
_RECIPE, _PRESET = "scale", "debug="  # a key that decides on the recipe; a preset that forbids `study=`
_SEVERAL = ("task", "experiment", "debug")  # groups of which a run may have several choices
_MOST = 256  # kept bases, a few hundred kilobytes each
_MOST_FILES = 4000  # of 7 kilobytes each
_MOST_BASES = 8000  # files, of 7 kilobytes each
_bases: dict[str, bytes] = {}  # what choices of groups give, by name; pickled, which copies nine times as fast
_bases_folder: Path | None = None


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
    composed = remember("train", overrides, roots(), compose_uncached)
    check_composed(composed)
    _refuse_numbers_for_switches(overrides, composed)
    return composed


def compose_launcher(overrides: Sequence[str]) -> DictConfig:
    """The config of the launcher that `overrides` of `conf/run.yaml` choose. Raises UserError as `compose` does."""
    composed = remember("run", overrides, roots(), compose_uncached)
    check_composed(composed)
    launcher: DictConfig = composed.launcher
    return launcher


def compose_whole(overrides: Sequence[str]) -> DictConfig:
    """As `compose`, with the node `hydra`, and before the check that its classes are trusted."""
    return compose_uncached("train", overrides, whole=True)


def job_overrides(overrides: Sequence[str]) -> list[str]:
    """The overrides of a job for one of Hydra's launchers, which composes them itself and makes objects of `hydra.*`.

    Raises UserError as `compose` does, also for a class in the node `hydra`.
    """
    check_composed(compose_whole(overrides))
    return with_recipe(overrides)


def compose_uncached(name: str, overrides: Sequence[str], whole: bool = False) -> DictConfig:
    """As `compose`, by Hydra itself, and before the check that its classes are trusted.

    Args:
        name: of the primary config: train or run.
        whole: whether the config has the node `hydra`.
    """
    from hydra import compose as hydra_compose
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from paribus.core.plugins import register

    if searched := next((text for text in overrides if text.lstrip("+~").startswith("hydra.searchpath")), None):
        raise UserError(f"'{searched}' could import a package", "put your choices into ./conf")
    require_keys(overrides)
    _require_single_choices(overrides)
    register()
    with explained(), _isolated_hydra():
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
            refused = REFUSED.search(str(error))
            try:
                choices = list_choices(refused[1] if refused else "").hydra.runtime.choices
            except (HydraException, OmegaConfBaseException):  # a choice is unknown
                choices = {}
            raise explain(error, choices) from error


@contextmanager
def _isolated_hydra() -> Iterator[None]:
    """Hydra on our folder alone; an application of the user's own that runs in this process keeps its own."""
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    running = GlobalHydra.instance()
    with _lock:
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


def _require_single_choices(overrides: Sequence[str]) -> None:
    """Raise UserError for a list of choices of a group that has one: Hydra would merge them, or take [] for none."""
    for text in overrides:
        key, _, value = text.partition("=")
        group = key.lstrip("+").partition("@")[0]
        if value.startswith("[") and group not in _SEVERAL and is_group(group):
            raise UserError(f"{text} is a list of choices", f"give one choice of {group}: {', '.join(choices(group))}")


def _refuse_numbers_for_switches(overrides: Sequence[str], composed: DictConfig) -> None:
    """Raise UserError for a number where the config has true or false: OmegaConf takes 7 and -1 for true."""
    from omegaconf import OmegaConf

    for text in overrides:
        number = re.fullmatch(r"\+{0,2}([\w.]+)=(-?\d+)", text)
        if number and isinstance(OmegaConf.select(composed, number[1], throw_on_missing=False), bool):
            raise UserError(f"{text.lstrip('+')} has the wrong type", "give true or false")


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


def remember(name: str, overrides: Sequence[str], roots: Sequence[Path], compose: Compose) -> DictConfig:
    """The config that `compose(name, overrides)` returns, read from disk if it is stored there.

    Args:
        roots: the folders that Hydra reads.
    """
    from omegaconf import OmegaConf

    state = [_describe(roots, ".yaml"), _describe([Path(__file__).parent], ".py"), _versions()]
    path = user_cache("configs") / f"{digest([name, list(overrides), state], 32)}.json"
    with suppress(OSError, ValueError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        config: DictConfig = OmegaConf.create(stored, flags={"struct": True})
        return config
    config = _compose_in_parts(name, overrides, roots, digest(state, 32), compose)
    content = OmegaConf.to_container(config, resolve=False)
    with suppress(UserError, TypeError):  # a folder that cannot be written, or a value that is not plain data
        if json.loads(text := json.dumps(content)) == content:
            write_cached(path, text.encode("utf-8"), _MOST_FILES)
    return config


def _compose_in_parts(
    name: str, overrides: Sequence[str], roots: Sequence[Path], state: str, compose: Compose
) -> DictConfig:
    """The result of `compose`: the cached config of the choices, with the values set. Raises what `compose` raises."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    preset = any(_PRESET in text for text in overrides)
    values = [text for text in overrides if not preset and _is_value(text, roots)]
    chosen = [text for text in overrides if text not in values]
    key = digest([name, chosen, state], 32)
    try:
        if key not in _bases:
            if len(_bases) == _MOST:
                _bases.clear()
            _bases[key] = _read_base(key) or _write_base(key, pickle.dumps(compose(name, chosen)))
        parsed = OverridesParser.create().parse_overrides(values)
        if not any(override.is_sweep_override() for override in parsed):
            config: DictConfig = pickle.loads(_bases[key])
            ConfigLoaderImpl._apply_overrides_to_config(parsed, config)
            return config
    except (HydraException, UserError):
        pass  # the message is then that of the whole
    return compose(name, overrides)


def keep_bases(folder: Path) -> None:
    """Keep composed choices of groups in this folder too, for the processes that name it and for the next time.

    Their files are pickled, which keeps the types of the values. A pickle can run code when it is read, so nobody else
    may have the right to write into the folder.
    """
    global _bases_folder
    _bases_folder = folder


def _read_base(key: str) -> bytes | None:
    """A base from the folder of `keep_bases`, or None if it is not there."""
    with suppress(OSError, zlib.error):
        return zlib.decompress((_bases_folder / key).read_bytes()) if _bases_folder else None
    return None


def _write_base(key: str, base: bytes) -> bytes:
    """The base itself, which is then in the folder of `keep_bases`, if there is one."""
    if _bases_folder:
        write_cached(_bases_folder / key, zlib.compress(base, 1), _MOST_BASES)
    return base


def _is_value(override: str, roots: Sequence[Path]) -> bool:
    """Whether an override sets a plain value. The others choose a group, a recipe or a preset, or add or drop a key."""
    key = override.partition("=")[0]
    if not _VALUE.fullmatch(key) or key == _RECIPE or key.startswith("hydra."):
        return False
    return not any((root / key).is_dir() for root in roots)


def _describe(folders: Sequence[Path], ending: str) -> list[list[Any]]:
    """Names, sizes and times of the files below some folders; a folder may be missing."""
    files = [(path, path.stat()) for folder in folders for path in sorted(folder.rglob(f"*{ending}"))]
    return [[str(path), state.st_size, state.st_mtime_ns] for path, state in files]


@cache
def _versions() -> list[str]:
    return [metadata.version(name) for name in ("hydra-core", "omegaconf")]
