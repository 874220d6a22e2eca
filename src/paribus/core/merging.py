"""The files of a defaults list as one config, as Hydra makes it but faster. Presets set only known keys.

Hydra merges each file into a growing config and goes through all of that config each time. Here the files without
types are merged as plain dicts, and OmegaConf merges the sum into the typed files once.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.config import FAMILY, PRESETS, SCALE, renamed, unknown_key
from paribus.core.errors import UserError
from paribus.core.shortcuts import find_file

if TYPE_CHECKING:
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.config_repository import CachingConfigRepository
    from hydra.core.default_element import ResultDefault
    from omegaconf import DictConfig

    MergeAll = Callable[[list[ResultDefault]], DictConfig]

Tree = dict[str, Any]
_MOST = 64
_typed: dict[tuple[object, ...], bytes] = {}  # what typed files give together, pickled


class UnlikeError(Exception):
    """Plain dicts would merge these files in another way than OmegaConf does."""


class _File(NamedTuple):
    """A config file with its place in the config, as keys from the top, and its type if it has one."""

    default: ResultDefault
    place: list[str]
    body: Tree
    is_typed: bool
    of_type: object

    @classmethod
    def of(cls, default: ResultDefault, repo: CachingConfigRepository) -> _File:
        from omegaconf import OmegaConf

        path = str(default.config_path)
        loaded = repo.load_config(path)
        assert loaded is not None
        body: Any = OmegaConf.to_container(loaded.config)
        place = [part for part in str(default.package or "").split(".") if part not in ("", "_global_")]
        for part in reversed(place):
            body = {part: body}
        is_typed = path.startswith("hydra/") or bool(loaded.is_schema_source)
        return cls(default, place, body, is_typed, loaded.config._metadata.object_type)

    def key(self, repo: Any) -> tuple[object, ...]:
        """What the content of a typed file depends on. Hydra may import a plugin again, which makes other types."""
        path = str(self.default.config_path)
        return path, self.default.package, self.of_type, find_file(repo, path)


def install() -> None:
    """Make Hydra merge files this way. It merges them itself if it has to, and words its own errors."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from omegaconf.errors import OmegaConfBaseException

    original = ConfigLoaderImpl._compose_config_from_defaults_list
    if original.__module__ == __name__:
        return

    def compose(self: ConfigLoaderImpl, defaults: list[ResultDefault], repo: CachingConfigRepository) -> DictConfig:
        def merge_all(some: list[ResultDefault]) -> DictConfig:
            own = copy.copy(repo)
            own.cache = copy.deepcopy(repo.cache)  # Hydra merges other files into what it has loaded
            return original(self, some, own)

        files = [_File.of(default, repo) for default in defaults]
        if repo.config_exists(f"recipe/{FAMILY}/{SCALE}"):
            _check_presets(files)
        try:
            return _merge_files(files, repo, merge_all)
        except (UnlikeError, OmegaConfBaseException):
            return merge_all(defaults)

    ConfigLoaderImpl._compose_config_from_defaults_list = compose  # type: ignore[method-assign,assignment]


def _check_presets(files: Sequence[_File]) -> None:
    """Raises UserError if a preset sets a key that the chosen groups do not have: Hydra itself would add the key."""
    tree: Tree = {}
    presets: list[_File] = []
    for file in files:
        if str(file.default.config_path).partition("/")[0] in PRESETS:
            presets.append(file)
        else:
            _merge(tree, file.body)
    for file in presets:
        for key in _strays(file.body, tree):
            if new := renamed(key):
                raise UserError(f"{file.default.config_path}.yaml: '{key}' is now '{new}'", f"write {new}")
            raise UserError(f"{file.default.config_path}.yaml: {unknown_key(key)}")


def _strays(body: Mapping[str, Any], tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of `body` that `tree` lacks. Anything may be below an empty node."""
    for key, value in body.items():
        if key not in tree:
            yield f"{prefix}{key}"
        elif isinstance(value, dict) and isinstance(tree[key], dict) and tree[key]:
            yield from _strays(value, tree[key], f"{prefix}{key}.")


def _merge_files(files: Sequence[_File], repo: CachingConfigRepository, merge_all: MergeAll) -> DictConfig:
    """The config of `files`. Raises UnlikeError, and OmegaConfBaseException for a value of the wrong type."""
    from omegaconf import flag_override

    tree: Tree = {}
    typed: list[_File] = []
    for file in files:
        if not file.is_typed:
            _merge(tree, file.body, strict=True)
        elif _reach(tree, file.place):
            raise UnlikeError(file.default.config_path)
        else:
            typed.append(file)
    config = _merge_typed(typed, repo, merge_all)
    with flag_override(config, "no_deepcopy_set_nodes", True):
        config.merge_with(tree)
    nodes: Any = config._content
    for name in dict.fromkeys(name for file in files for name in file.body):  # in the order of the files
        nodes[name] = nodes.pop(name)
    return config


def _merge_typed(typed: Sequence[_File], repo: CachingConfigRepository, merge_all: MergeAll) -> DictConfig:
    """What Hydra makes of typed files, which it has to do once for each selection of them."""
    key = tuple(file.key(repo.delegate) for file in typed)
    if key in _typed:
        known: DictConfig = pickle.loads(_typed[key])
        return known
    config = merge_all([file.default for file in typed])
    if len(_typed) == _MOST:
        _typed.clear()
    with suppress(pickle.PicklingError):  # a process of joblib has types that its modules no longer have
        _typed[key] = pickle.dumps(config)
    return config


def _reach(tree: Tree, place: Sequence[str]) -> bool:
    """Whether something is set at `place` already, which a typed file would change."""
    found: Any = tree
    for part in place:
        if not isinstance(found, dict) or part not in found:
            return not isinstance(found, dict)
        found = found[part]
    return bool(found != {})


def _merge(tree: Tree, body: Mapping[str, Any], strict: bool = False) -> None:
    """Set the values of `body` in `tree`.

    Raises UnlikeError if `strict` and a dict meets an interpolation, which OmegaConf would follow.
    """
    for key, value in body.items():
        known = tree.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            _merge(known, value, strict)
        elif strict and isinstance(value, dict) and isinstance(known, str) and "${" in known:
            raise UnlikeError(key)
        elif value != "???" or key not in tree:
            tree[key] = copy.deepcopy(value) if isinstance(value, dict) else value
