"""Shortcuts that more than halve the time until a run has its config, without changing what Hydra composes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core.config import conf_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.config_repository import ConfigRepository
    from hydra._internal.defaults_list import Overrides
    from hydra.core.default_element import InputDefault
    from hydra.plugins.config_source import ConfigResult
    from omegaconf import DictConfig


class ConfigFile(NamedTuple):
    """A config file in its current version, with Hydra's name for its folder."""

    provider: str
    file: str
    size: int
    changed: int


_loaded: dict[ConfigFile, tuple[ConfigResult, bytes]] = {}  # and its defaults, pickled, since Hydra changes those


def install() -> None:
    """Parse each config file once in a process, and do what few configs need only for those.

    Hydra parses every file again for every composition, copies all types and, for every file, all choices made so far
    in case it has an interpolation of choices, and composes every config twice in case it sets `hydra.mode`.
    """
    from hydra._internal import defaults_list as lists
    from hydra._internal.config_repository import CachingConfigRepository, ConfigRepository
    from hydra._internal.hydra import Hydra
    from omegaconf import DictConfig

    prepare = lists._create_interpolation_map
    if prepare.__module__ == __name__:
        return
    load, find_mode = ConfigRepository.load_config, Hydra.get_mode

    def load_config(self: ConfigRepository, config_path: str) -> ConfigResult | None:
        key = find_file(self, config_path)
        if key is None:
            return load(self, config_path)
        if key not in _loaded:
            result = load(self, config_path)
            assert result is not None
            _loaded[key] = result, pickle.dumps(result.defaults_list)
        result, defaults = _loaded[key]
        return replace(result, defaults_list=pickle.loads(defaults))

    def begin(self: CachingConfigRepository, delegate: ConfigRepository) -> None:
        self.delegate = copy.copy(delegate)  # its list of sources may be replaced
        self.cache = {}

    def prepare_if_asked(overrides: Overrides, defaults_list: list[InputDefault], self_added: bool) -> DictConfig:
        asked = any(not default.is_self() and default.is_interpolation() for default in defaults_list)
        return prepare(overrides, defaults_list, self_added) if asked else DictConfig({})

    def get_mode(self: Hydra, config_name: str | None, overrides: list[str]) -> Any:
        loader: Any = self.config_loader
        return find_mode(self, config_name, overrides) if _may_set_mode(loader, overrides) else None

    ConfigRepository.load_config = load_config  # type: ignore[method-assign]
    CachingConfigRepository.__init__ = begin  # type: ignore[method-assign,assignment]
    Hydra.get_mode = get_mode  # type: ignore[method-assign]
    lists._create_interpolation_map = prepare_if_asked


def find_file(repository: ConfigRepository, config: str) -> ConfigFile | None:
    """The file that Hydra reads for `config`; None if it comes from anywhere else."""
    from hydra.core.object_type import ObjectType

    source = repository._find_object_source(config, ObjectType.CONFIG)
    if source is None or source.scheme() not in ("pkg", "file"):
        return None
    if source.scheme() == "pkg":  # inside of a package: it does not change
        return ConfigFile(source.provider, f"{source.full_path()}/{config}", 0, 0)
    file = Path(source.path, source._normalize_file_name(config)).resolve()
    state = file.stat()
    return ConfigFile(source.provider, str(file), state.st_size, state.st_mtime_ns)


def _may_set_mode(loader: ConfigLoaderImpl, overrides: Sequence[str]) -> bool:
    """Whether an override or a file may set `hydra.mode`; our own files do not."""
    if any("hydra" in text for text in overrides):
        return True
    folders = [Path(source.path) for source in loader.get_sources() if source.scheme() not in ("pkg", "structured")]
    if conf_dir() not in folders:  # another application
        return True
    files = (path for folder in folders if folder != conf_dir() for path in folder.rglob("*.yaml"))
    return any("mode" in path.read_text("utf-8", "replace") for path in files)
