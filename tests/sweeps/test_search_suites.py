"""Hydra's own suites of launchers and sweepers, beside our plugins and through our sweeper."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra.version
import pytest
from hydra.test_utils.launcher_common_tests import BatchedSweeperTestSuite, IntegrationTestSuite, LauncherTestSuite
from hydra.version import VersionBase

from paribus.core.plugins import register

JOBLIB = importlib.util.find_spec("hydra_plugins.hydra_joblib_launcher") is not None
LAUNCHERS = ["basic", pytest.param("joblib", marks=pytest.mark.skipif(not JOBLIB, reason="no joblib launcher"))]
OURS = ["hydra/sweeper=optuna", "hydra/sweeper/sampler=grid", "hydra.sweeper.study_name=s"]
Runner = Callable[..., Any]


@pytest.fixture(autouse=True)
def _registered() -> None:
    register()


@pytest.fixture(autouse=True)
def _no_version_base() -> Iterator[None]:
    """Hydra's suites name none; what another test of this process has named would stay."""
    own = VersionBase.instance()
    before, own.version_base = own.version_base, hydra.version._UNSPECIFIED_
    yield
    own.version_base = before


@pytest.mark.parametrize("launcher_name", LAUNCHERS)
@pytest.mark.parametrize("overrides", [[]])
class TestLaunchers(LauncherTestSuite):
    """Hydra's launchers and its basic sweeper are as they were where our plugins are installed."""


@pytest.mark.slow
@pytest.mark.parametrize("task_launcher_cfg", [{}])
@pytest.mark.parametrize("extra_flags", [["-m"]])
class TestApplications(IntegrationTestSuite):
    """Whole applications with the basic sweeper, as processes."""


@pytest.mark.parametrize("launcher_name", LAUNCHERS)
class TestOurSweeper(BatchedSweeperTestSuite):
    """A grid in order, two trials side by side where the launcher can."""

    @pytest.fixture
    def overrides(self) -> list[str]:
        return [*OURS, "hydra.sweeper.n_jobs=2"]  # the suite adds to them

    @pytest.fixture
    def hydra_sweep_runner(self, hydra_sweep_runner: Runner) -> Runner:
        """As the suite's, but its jobs return an objective."""

        def runner(**given: Any) -> Any:
            return hydra_sweep_runner(**given | {"task_function": objective})

        return runner


def objective(cfg: Any) -> float:
    return float(cfg.bar)


@pytest.mark.parametrize("chosen", [OURS, [*OURS, "hydra.sweeper.seeds=[1]"]])
def test_a_job_of_our_sweeper_is_a_job_of_hydra(hydra_sweep_runner: Runner, tmp_path: Path, chosen: list[str]) -> None:
    given = {"calling_file": None, "calling_module": "hydra.test_utils.a_module", "task_function": objective}
    overrides = [*chosen, "bar=choice(100,200)", "+seed=0"]
    with hydra_sweep_runner(
        **given, config_path="configs", config_name="compose.yaml", overrides=overrides, temp_dir=tmp_path
    ) as sweep:
        jobs = [job for batch in sweep.returns for job in batch]
    assert [job.return_value for job in jobs] == [100.0, 200.0]
    assert [Path(job.working_dir).name for job in jobs] == ["0", "1"]


def test_a_grid_has_an_end(hydra_sweep_runner: Runner, tmp_path: Path) -> None:
    from paribus.core.errors import UserError

    given = {"calling_file": None, "calling_module": "hydra.test_utils.a_module", "task_function": objective}
    overrides = [*OURS, "bar=interval(1,2)"]
    with pytest.raises(UserError, match="a grid needs a finite space, but bar is an interval"):
        hydra_sweep_runner(
            **given, config_path="configs", config_name="compose.yaml", overrides=overrides, temp_dir=tmp_path
        ).__enter__()
