"""What Paribus adds to Hydra, in this process alone: the user's `./conf`, the types of the config, and two sweepers.

Hydra imports every module of its namespace `hydra_plugins` in every application, unless the name begins with an
underscore. Ours does, and is registered here, so that other applications in the environment stay as they are. One that
wants `hydra/sweeper=optuna` calls `register`.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import MISSING, DictConfig, OmegaConf

from paribus.core import settings
from paribus.core.config_names import PRESETS, conf_dir, readable, require_mapping
from paribus.core.errors import UserError, suggest

_parsed: dict[tuple[str, int, int], bytes] = {}
LIMITS = {"max_train": None, "max_validation": None}
_SAMPLERS = {
    "tpe": "TPESampler",
    "random": "RandomSampler",
    "nsgaii": "NSGAIISampler",
    "qmc": "QMCSampler",
    "gp": "GPSampler",
    "cmaes": "CmaEsSampler",
    "grid": "GridSampler",  # every combination, in order
}


@dataclass
class ArmsSweeperConf:
    """`hydra.sweeper.*` of `hydra/sweeper=arms`."""

    _target_: str = "hydra_plugins._paribus.ArmsSweeper"


@dataclass
class OptunaSweeperConf:
    """`hydra.sweeper.*` of `hydra/sweeper=optuna`: first the keys of Hydra's own Optuna sweeper, then ours."""

    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "tpe"}])
    _target_: str = "hydra_plugins._paribus.OptunaSweeper"
    _recursive_: bool = False
    sampler: Any = MISSING
    """A sampler of Optuna. Its `seed` is that of the search and is logged; null means 0."""
    direction: Any = "minimize"
    """minimize or maximize; for several objectives a list."""
    storage: Any = None
    """journal:FILE, sqlite:///FILE or postgresql://USER@HOST/DATABASE; null: a journal in `folder`."""
    study_name: str | None = None
    """null: a hash of the search space and the fixed settings."""
    n_trials: int = 20
    """Trials that finish (complete, pruned, or failed in every retry), counted over all starts of the study."""
    n_jobs: int = 1
    """Trials at the same time. Each is launched separately, so that no slot waits for another."""
    max_failure_rate: float = 0.0
    """If a larger share of the trials fails, the search ends with an error after its last trial."""
    params: Any = None
    """{key: interval(a, b) | int(...) | tag(log, ...) | range(a, b) | choice(x, y)}."""
    custom_search_space: str | None = None
    """Dotted path of a function (cfg, trial) that adds parameters, such as conditional ones."""
    pruner: Any = None
    """{_target_: optuna.pruners....}; a run reports at each validation."""
    seeds: Any = None
    """[0, 1, 2]: every trial runs once per seed; the objective is the mean."""
    resume: Any = True
    """true: resume the study; false: refuse one that has trials; force: resume even if its search space differs."""
    trial_timeout: float | None = None
    """Seconds after which a trial fails."""
    retries: int = 1
    """How many times a failed trial runs again with the same parameters."""
    objective: Any = None
    """The name of the objective if the job returns a dict; for several objectives a list. null: the held-out loss."""
    folder: str | None = None
    """Folder of the journal and the results; null: <hydra.sweep.dir>/<study_name>."""


def register() -> None:
    """Make these known to Hydra in this process, and so in the processes of its launchers."""
    from hydra_plugins import _paribus  # type: ignore[attr-defined,unused-ignore]

    if ArmsSweeperConf._target_ in Plugins.instance().class_name_to_class:
        return
    settings.register()
    store = ConfigStore.instance()
    store.store(group="hydra/sweeper", name="arms", node=ArmsSweeperConf, provider="paribus")
    store.store(group="hydra/sweeper", name="optuna", node=OptunaSweeperConf, provider="paribus")
    for name, kind in _SAMPLERS.items():
        node = {"_target_": f"optuna.samplers.{kind}", "seed": None}
        store.store(group="hydra/sweeper/sampler", name=name, node=node, provider="paribus")
    for plugin in (UserConf, ShippedFiles, UserFiles, _paribus.ArmsSweeper, _paribus.OptunaSweeper):
        Plugins.instance().register(plugin)


def check_hydra(node: DictConfig) -> None:
    """Check the node `hydra` of a composed config.

    Raises UserError for a key that nothing reads, although `+` has put it there, and for a sweeper or a launcher that
    is a plain value.
    """
    for name in ("sweeper", "launcher"):
        if not isinstance(value := node._get_node(name), DictConfig):
            raise UserError(f"hydra.{name}={value} is not a component", f"write hydra/{name}=NAME")
    _check_hydra_keys(node, "hydra")
    most = node.sweeper.get("max_batch_size")
    if most is not None and most < 1:
        raise UserError(
            f"hydra.sweeper.max_batch_size={most} is out of range", "give an integer of at least 1, or null"
        )


def _check_hydra_keys(node: DictConfig, place: str) -> None:
    typed = OmegaConf.get_type(node)
    known = [each.name for each in fields(typed)] if typed is not None and is_dataclass(typed) else None
    for key in map(str, node):
        if known is not None and key not in known and f"{place}.{key}" != "hydra.env":  # Hydra adds that one itself
            names = [name for name in known if not name.startswith("_") and name != "defaults"]
            raise UserError(f"unknown key '{place}.{key}'", suggest(key, names))
        if isinstance(child := node._get_node(key), DictConfig) and not (child._is_none() or child._is_missing()):
            _check_hydra_keys(child, f"{place}.{key}")


class UserConf(SearchPathPlugin):
    """Appends `./conf` to Hydra's search path, after the shipped configs, so that it adds choices and replaces none."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for part in search_path.get_path():
            if str(part.path).removeprefix("file://") == str(conf_dir()):
                part.path = f"{ShippedFiles.scheme()}://{conf_dir()}"
        folder = Path.cwd() / "conf"
        if folder.is_dir() and folder.resolve() != conf_dir().resolve():
            search_path.append("paribus-user", f"{UserFiles.scheme()}://{folder}")


class ShippedFiles(FileConfigSource):
    """The shipped files, each parsed once in a process: parsing takes a third of the time of a composition."""

    @staticmethod
    def scheme() -> str:
        return "paribus-shipped"

    def load_config(self, config_path: str) -> ConfigResult:
        file = Path(self.path, self._normalize_file_name(config_path))
        state = file.stat()
        key = (str(file), state.st_size, state.st_mtime_ns)
        if key not in _parsed:
            _parsed[key] = pickle.dumps(super().load_config(config_path))
        copy: ConfigResult = pickle.loads(_parsed[key])  # since Hydra changes what it gets
        return copy


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
            result = super().load_config(config_path)
        require_mapping(file, result.config)
        if path.parts[0] in PRESETS:
            result.header["package"] = result.header.get("package") or "_global_"
        if path.parent.name == "task":
            result.header["package"] = result.header.get("package") or f"tasks.{path.stem}"
            if str(OmegaConf.select(result.config, "_target_")).startswith("paribus.tasks."):
                result.config = OmegaConf.merge(LIMITS, result.config)
        return result


class DropEndedConfigs(Callback):
    """Drops the configs of a run that has ended; Hydra would keep them, 0.15 MB per run, until the multirun ends."""

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: object) -> None:
        job_return.cfg = job_return.hydra_cfg = None
