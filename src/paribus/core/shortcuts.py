"""Shortcuts that halve the time of a Hydra composition without changing its result."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hydra._internal.config_repository import ConfigRepository
    from hydra._internal.defaults_list import Overrides
    from hydra.core.default_element import InputDefault
    from hydra.plugins.config_source import ConfigResult
    from omegaconf import DictConfig


class _Key(NamedTuple):
    """A config file in its current version, with Hydra's name for its folder."""

    provider: str
    file: str
    size: int
    changed: int


_loaded: dict[_Key, bytes] = {}  # pickled, since Hydra merges other files into what it has loaded


def install() -> None:
    """Parse each config file once in a process, and prepare interpolations of choices only where there are any.

    Hydra parses every file again for every composition, and copies all choices made so far for every file.
    """
    from hydra._internal import defaults_list as lists
    from hydra._internal.config_repository import ConfigRepository
    from omegaconf import DictConfig

    prepare = lists._create_interpolation_map
    if prepare.__module__ == __name__:
        return
    load = ConfigRepository.load_config

    def load_config(self: ConfigRepository, config_path: str) -> ConfigResult | None:
        key = _find(self, config_path)
        if key is None:
            return load(self, config_path)
        if key not in _loaded:
            result = load(self, config_path)
            assert result is not None
            _loaded[key] = pickle.dumps(result)
        copied: ConfigResult = pickle.loads(_loaded[key])
        return copied

    def prepare_if_asked(overrides: Overrides, defaults_list: list[InputDefault], self_added: bool) -> DictConfig:
        asked = any(not default.is_self() and default.is_interpolation() for default in defaults_list)
        return prepare(overrides, defaults_list, self_added) if asked else DictConfig({})

    ConfigRepository.load_config = load_config  # type: ignore[method-assign]
    lists._create_interpolation_map = prepare_if_asked


def _find(repository: ConfigRepository, config: str) -> _Key | None:
    """The file that Hydra reads for `config`; None if it comes from anywhere else."""
    from hydra.core.object_type import ObjectType

    source = repository._find_object_source(config, ObjectType.CONFIG)
    if source is None or source.scheme() not in ("pkg", "file"):
        return None
    if source.scheme() == "pkg":  # inside of a package: it does not change
        return _Key(source.provider, f"{source.full_path()}/{config}", 0, 0)
    file = Path(source.path, source._normalize_file_name(config)).resolve()
    state = file.stat()
    return _Key(source.provider, str(file), state.st_size, state.st_mtime_ns)
