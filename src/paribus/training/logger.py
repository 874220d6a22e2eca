"""Loggers: where a run's curves go besides metrics.jsonl."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from paribus.core.errors import UserError
from paribus.runs.wandb_tracker import Destination, Tracked, WandbInit, reachable


@dataclass(frozen=True)
class Nothing:
    """No logger."""

    tells: ClassVar[bool] = False

    def open(self, about: WandbInit) -> Tracked | None:
        """There is none."""
        return None


@dataclass(frozen=True)
class Wandb:
    """Weights & Biases; offline if no key is set or no server is reached. It never stops a run."""

    tells: ClassVar[bool] = True
    project: str = "paribus"
    entity: str | None = None
    mode: str = "auto"

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "online", "offline"):
            raise UserError(f"logger.mode={self.mode} is unknown", "use auto, online or offline")

    def open(self, about: WandbInit) -> Tracked | None:
        """A W&B run, resumed if its id is known; None if W&B cannot start."""

        def online() -> bool:
            asked = self.mode == "online" or (self.mode == "auto" and _has_key())
            return asked and reachable()

        tracked = Tracked(about, Destination(self.project, self.entity, online))
        return tracked if tracked.alive else None


def _has_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    server = urlsplit(os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai").hostname or ""
    netrc = Path(os.environ.get("NETRC", Path.home() / ".netrc"))
    return netrc.is_file() and server in netrc.read_text(encoding="utf-8", errors="replace").split()
