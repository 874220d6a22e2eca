"""A `conf` folder in the working directory extends Paribus' config groups. Also registers the types of the groups."""

from __future__ import annotations

from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from paribus.core.config import PRESETS, conf_dir
from paribus.core.settings import register
from paribus.core.strict_yaml import readable, require_mapping

LIMITS = {"max_train": None, "max_validation": None}

register()


class UserConf(SearchPathPlugin):
    """Appends `./conf` to Hydra's search path, after the shipped configs, so that it adds choices and replaces none."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        folder = Path.cwd() / "conf"
        if folder.is_dir() and folder.resolve() != conf_dir().resolve():
            search_path.append("paribus-user", f"{UserFiles.scheme()}://{folder}")


class UserFiles(FileConfigSource):
    """The files of that folder.

    A file of `conf/task` needs no `# @package tasks.NAME` line; NAME is the file's. A preset, such as a file of
    `conf/experiment`, needs no `# @package _global_`. A task of this package has the keys that limit its examples, so
    that the command line can set them.
    """

    @staticmethod
    def scheme() -> str:
        return "paribus"

    def load_config(self, config_path: str) -> ConfigResult:
        path, file = Path(config_path), Path("conf", self._normalize_file_name(config_path))
        with readable(file):
            found = super().load_config(config_path)
        require_mapping(file, found.config)
        if path.parts[0] in PRESETS:
            found.header["package"] = found.header.get("package") or "_global_"
        if path.parent.name == "task":
            found.header["package"] = found.header.get("package") or f"tasks.{path.stem}"
            if str(OmegaConf.select(found.config, "_target_")).startswith("paribus.tasks."):
                found.config = OmegaConf.merge(LIMITS, found.config)
        return found
