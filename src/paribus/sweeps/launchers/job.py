"""A run that another machine does: it carries its whole config, and what is edited while it waits does not reach it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paribus.core.console import say
from paribus.core.errors import UserError

LOST = -9  # the status of a run whose process ended without saying how


@dataclass(frozen=True)
class Remote:
    """What a job does."""

    label: str
    config: Mapping[str, Any]

    def __call__(self) -> int:
        """Train in this process, as the log tells; returns 0, or 2 where it failed."""
        from omegaconf import OmegaConf

        from paribus.training.run import run

        print(f"$ {self.label}", file=sys.stderr, flush=True)
        try:
            run(OmegaConf.create(dict(self.config)))
        except UserError as error:
            say(f"paribus: {error}")
            return 2
        except Exception as error:  # also submitit's own, for a job that ran out of time too often
            traceback.print_exc()
            say(f"paribus: {type(error).__name__}: {error}")
            return 2
        return 0
