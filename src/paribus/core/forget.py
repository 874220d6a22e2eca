"""Frees what Hydra keeps of each run of a multirun."""

from __future__ import annotations

from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback
from omegaconf import DictConfig


class Forget(Callback):
    """Drops the configs of a run that has ended; Hydra would keep them, 0.15 MB per run, until the multirun ends."""

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: object) -> None:
        job_return.cfg = job_return.hydra_cfg = None
