"""The sweeper's settings and its registration with Hydra; `paribus.sweeps.search` does the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import MISSING, DictConfig

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn

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
class OptunaSweeperConf:
    """`hydra.sweeper.*`: first the keys of Hydra's own Optuna sweeper, then ours."""

    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "tpe"}])
    _target_: str = "hydra_plugins.paribus_optuna_sweeper.optuna_sweeper.OptunaSweeper"
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


def _register() -> None:
    store = ConfigStore.instance()
    store.store(group="hydra/sweeper", name="optuna", node=OptunaSweeperConf, provider="paribus")
    for name, kind in _SAMPLERS.items():
        node = {"_target_": f"optuna.samplers.{kind}", "seed": None}
        store.store(group="hydra/sweeper/sampler", name=name, node=node, provider="paribus")


_register()


class OptunaSweeper(Sweeper):
    """Searches the space of `params` and of the command line's sweeps through any launcher."""

    hydra_context: HydraContext | None = None
    config: DictConfig | None = None
    launcher: Launcher | None = None

    def __init__(self, **settings: object) -> None:
        self.settings = settings

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from hydra.core.plugins import Plugins

        from paribus.sweeps.search.settings import hide_password

        hide_password(config, self.settings)
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[list[JobReturn]]:
        """Search until `n_trials` have finished.

        Returns what the jobs of this process returned, in batches of `n_jobs` trials as from Hydra's own sweepers (no
        trial waited for its batch).

        Raises UserError for bad settings, a study of another search space and too many failed trials.
        """
        from paribus.reporting.tracking.study import track_search
        from paribus.sweeps.search.settings import read_settings
        from paribus.sweeps.search.worker import Returns, search

        assert self.config is not None
        assert self.launcher is not None
        assert self.hydra_context is not None
        settings = read_settings(self.settings, self.config, self.hydra_context, arguments)
        if self.config.hydra.output_subdir is not None:
            self._save(Path(str(self.config.hydra.sweep.dir)))
        returns: Returns = {}
        search(settings, self.launcher, returns, track_search)
        trials = [returns[number] for number in sorted(returns)]
        batches = (trials[at : at + settings.jobs] for at in range(0, len(trials), settings.jobs))
        return [[job for trial in batch for job in trial] for batch in batches]

    def _save(self, folder: Path) -> None:
        """Write multirun.yaml as Hydra's own sweepers do."""
        from omegaconf import OmegaConf

        from paribus.core.files import write_text

        write_text(folder / "multirun.yaml", OmegaConf.to_yaml(self.config))
