"""A cache of composed configs: composing takes 0.3 seconds per arm, so an unchanged config is not composed again.

A composed config depends only on the overrides and the files that Hydra reads. The name of a stored config covers both:
the overrides, the config files, our code for configs, and the versions of Hydra and OmegaConf. Whole configs are kept
on disk, the latest few thousand. Configs before plain values are set are kept in memory: Hydra sets plain values last,
so configs that differ only in values share the rest.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.checksums import digest
from paribus.core.errors import UserError
from paribus.core.files import user_cache, write_cached

if TYPE_CHECKING:
    from omegaconf import DictConfig

Compose = Callable[[str, Sequence[str]], "DictConfig"]
_VALUE = re.compile(r"[A-Za-z_][\w.]*")  # a key without +, ~, a group's / and a package's @
_RECIPE, _PRESET = "scale", "debug="  # a key that decides on the recipe; a preset that forbids `study=`
_MOST = 256  # kept bases, a few hundred kilobytes each
_MOST_FILES = 4000  # of 7 kilobytes each


_bases: dict[str, bytes] = {}  # what choices of groups give, by name; pickled, which copies nine times as fast


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
            _bases[key] = pickle.dumps(compose(name, chosen))
        parsed = OverridesParser.create().parse_overrides(values)
        if not any(override.is_sweep_override() for override in parsed):
            config: DictConfig = pickle.loads(_bases[key])
            ConfigLoaderImpl._apply_overrides_to_config(parsed, config)
            return config
    except (HydraException, UserError):
        pass  # the message is then that of the whole
    return compose(name, overrides)


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
