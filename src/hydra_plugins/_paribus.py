"""Our sweepers, registered by `paribus.core.plugins`.

    paribus train -m hydra/sweeper=arms sweep=roberta_table1 scale=smoke
    paribus train -m search=optuna_lr scale=smoke

Hydra 1.3 makes plugins only of classes in this namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

if TYPE_CHECKING:
    from paribus.sweeps.expand import Expanded


class ArmsSweeper(Sweeper):
    """Launches every arm x seed of `sweep=` in one batch, after auditing them and checking their budgets."""

    hydra_context: HydraContext | None = None
    config: DictConfig | None = None
    launcher: Launcher | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from hydra.core.plugins import Plugins

        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Sequence[JobReturn]:
        """Launch the runs. `arguments` are `sweep=NAME`, `scale=`, `seeds=`, `arms=` and overrides for all arms.

        Returns the launcher's results in the order of the runs. Raises UserError for a bad sweep. If runs fail, the
        others still finish; then the error of the first one is raised.
        """
        from paribus.core.config import job_overrides
        from paribus.sweeps.expand import plan_budgets

        assert self.launcher is not None
        expanded = self._expanded(arguments)
        plan_budgets(expanded)
        batch = [job_overrides(job.overrides) for job in expanded.jobs]
        results: Sequence[JobReturn] = self.launcher.launch(batch, initial_job_idx=0)
        for result in results:
            _ = result.return_value  # raises what the run raised
        return results

    def _expanded(self, arguments: Sequence[str]) -> Expanded:
        from paribus.core.config import split_overrides
        from paribus.core.errors import UserError
        from paribus.core.recipes import without_recipe
        from paribus.sweeps.expand import expand
        from paribus.sweeps.request import parse
        from paribus.sweeps.tune_arms import apply_recorded_tuning

        given = split_overrides(without_recipe(arguments))
        if given.get("sweep") in (None, "null"):
            raise UserError("hydra/sweeper=arms needs a sweep", "add sweep=NAME, such as sweep=roberta_table1")
        name = given.pop("sweep")
        request = parse("train", [name, *(f"{key}={value}" for key, value in given.items())])
        return expand(apply_recorded_tuning(request))


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
        from paribus.reports.wandb_study import track_search
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
