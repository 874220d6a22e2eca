"""Where a run's curves go besides metrics.jsonl."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ceteris.console import say
from ceteris.errors import UserError


@dataclass(frozen=True)
class Nothing:
    """No logger."""

    def open(self, **run: Any) -> None:
        """There is none."""


@dataclass(frozen=True)
class Wandb:
    """Weights & Biases through Lightning's logger; offline where no key is set. It never stops a run."""

    project: str = "ceteris"
    entity: str | None = None
    mode: str = "auto"

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "online", "offline"):
            raise UserError(f"logger.mode={self.mode} is unknown", "use auto, online or offline")

    def open(
        self, *, run_id: str, name: str, group: str, job_type: str, tags: list[str], config: Any, folder: Path
    ) -> Any:
        """A Lightning logger whose run has a deterministic id and is resumed; None where W&B cannot start."""
        offline = self.mode == "offline" or (self.mode == "auto" and not _has_key())
        os.environ.setdefault("WANDB_SILENT", "true")
        os.environ.setdefault("WANDB_DATA_DIR", str(folder.resolve() / "wandb"))
        try:
            import wandb
            from pytorch_lightning.loggers import WandbLogger

            run = wandb.init(
                name=name, project=self.project, entity=self.entity, id=run_id, dir=str(folder), group=group,
                job_type=job_type, tags=tags, config=config, resume="allow", mode="offline" if offline else "online",
            )  # fmt: skip
            run.define_metric("*", step_metric="trainer/global_step")
            return WandbLogger(experiment=run, log_model=False)
        except Exception as error:  # the service, its server or its disk may fail in any way
            say(f"W&B is off for this run: {' '.join(str(error).split())[:200]}")
            return None


def _has_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    netrc = Path(os.environ.get("NETRC", Path.home() / ".netrc"))
    return netrc.is_file() and "wandb.ai" in netrc.read_text(encoding="utf-8", errors="replace")
