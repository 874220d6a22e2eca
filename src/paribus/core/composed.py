"""Composed configs on disk, so that an unchanged one is not composed again: that takes 0.2 seconds for each arm.

What Hydra composes follows from the overrides and the files that it reads. The name of a stored config covers both:
the overrides, the config files, our code for configs, and the versions of Hydra and OmegaConf.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.core.hashing import digest

if TYPE_CHECKING:
    from omegaconf import DictConfig

_PLUGINS = ("paribus_", "hydra_")  # ours, and Hydra's own; others may read files that are not known here


def remember(
    name: str, overrides: Sequence[str], roots: Sequence[Path], compose: Callable[[], DictConfig]
) -> DictConfig:
    """The config that `compose` gives, from disk if it is there. `roots`: the folders that Hydra reads."""
    from omegaconf import OmegaConf

    plugins = list(_list_plugins())
    if any(not path.name.startswith(_PLUGINS) for path in plugins):
        return compose()
    state = [_describe(roots, "*.yaml"), _describe([Path(__file__).parent, *plugins], "*.py"), _versions()]
    path = _folder() / f"{digest([name, list(overrides), state], 32)}.json"
    with suppress(OSError, ValueError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        config: DictConfig = OmegaConf.create(stored, flags={"struct": True})
        return config
    config = compose()
    content = OmegaConf.to_container(config, resolve=False)
    with suppress(UserError, TypeError):  # a folder that cannot be written, or a value that is not plain data
        if json.loads(text := json.dumps(content)) == content:
            write_text(path, text)
    return config


def _list_plugins() -> Iterator[Path]:
    """The packages in Hydra's namespace for plugins."""
    spec = importlib.util.find_spec("hydra_plugins")
    for place in spec.submodule_search_locations or () if spec else ():
        yield from (path for path in Path(place).iterdir() if not path.name.startswith("_"))


def _describe(folders: Sequence[Path], pattern: str) -> list[list[Any]]:
    """Names, sizes and times of the files below some folders."""
    found = ((path, path.stat()) for folder in folders for path in folder.rglob(pattern))
    return sorted([str(path), state.st_size, state.st_mtime_ns] for path, state in found)


def _versions() -> list[str]:
    return [metadata.version(name) for name in ("hydra-core", "omegaconf")]


def _folder() -> Path:
    """Below the default of `paths.cache`."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PARIBUS_CACHE") or home / "paribus") / "configs"
