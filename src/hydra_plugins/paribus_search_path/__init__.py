"""A `conf` folder in the working directory extends Paribus' config groups. Also registers the types of the groups."""

from __future__ import annotations

from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

from paribus.core.config import conf_dir
from paribus.core.settings import register

register()


class UserConf(SearchPathPlugin):
    """Appends `./conf` to Hydra's search path, after the shipped configs, so that it adds choices and replaces none."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        folder = Path.cwd() / "conf"
        if folder.is_dir() and folder.resolve() != conf_dir().resolve():
            search_path.append("paribus-user", f"file://{folder}")
