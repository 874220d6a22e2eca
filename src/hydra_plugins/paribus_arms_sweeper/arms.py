"""The sweeper: it runs the arms that a sweep file lists, once per seed, instead of a product of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from paribus.sweeps.expand import Expanded


@dataclass
class ArmsSweeperConf:
    """`hydra.sweeper.*`."""

    _target_: str = "hydra_plugins.paribus_arms_sweeper.arms.ArmsSweeper"


ConfigStore.instance().store(group="hydra/sweeper", name="arms", node=ArmsSweeperConf, provider="paribus")


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
        from paribus.sweeps.expand import plan_budgets

        assert self.launcher is not None
        expanded = self._expanded(arguments)
        plan_budgets(expanded)
        batch = [list(job.overrides) for job in expanded.jobs]
        results: Sequence[JobReturn] = self.launcher.launch(batch, initial_job_idx=0)
        for result in results:
            _ = result.return_value  # raises what the run raised
        return results

    def _expanded(self, arguments: Sequence[str]) -> Expanded:
        from paribus.core.config import split_overrides
        from paribus.core.errors import UserError
        from paribus.sweeps.expand import expand
        from paribus.sweeps.request import parse
        from paribus.sweeps.tune_arms import apply_recorded_tuning

        given = split_overrides(arguments)
        if given.get("sweep") in (None, "null"):
            raise UserError("hydra/sweeper=arms needs a sweep", "add sweep=NAME, such as sweep=roberta_table1")
        name = given.pop("sweep")
        request = parse("train", [name, *(f"{key}={value}" for key, value in given.items())])
        return expand(apply_recorded_tuning(request), self._compose)

    def _compose(self, overrides: list[str]) -> Any:
        """Compose the config of an arm as the launcher will."""
        from paribus.core.config import explained

        assert self.hydra_context is not None
        assert self.config is not None
        with explained():
            config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
