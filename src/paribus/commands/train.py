"""`paribus train`: a Hydra application around one run."""

from __future__ import annotations

import os
import sys
from typing import Any

from paribus.core.config import conf_dir, explained
from paribus.core.errors import UserError

_SINGULAR = {"seeds": "seed", "arms": "arm"}
_FLAGS_WITH_VALUE = (
    "--config-name",
    "--config-path",
    "--config-dir",
    "--package",
    "-cn",
    "-cp",
    "-cd",
    "-p",
    "--info",
    "--cfg",
    "-c",
    "-i",
)


def train(argv: list[str]) -> int:
    """Run Hydra on `argv`. One bad job of a multirun is named and the others go on; the status is then 2.

    A launcher with processes of its own runs all jobs as well; then the first error is raised.
    """
    import hydra

    failures: list[UserError] = []
    here = os.getpid()

    def job(cfg: Any) -> float | dict[str, float] | None:
        if cfg.trial is not None:
            return _trial(cfg)  # its errors are the search's to tell
        try:
            return _job(cfg)
        except UserError as error:
            if os.getpid() != here:  # a launcher's process: it hands the error back, which ends the multirun
                raise
            failures.append(error)
            print(f"paribus: {error}", file=sys.stderr)
            return None

    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach `explained` instead of Hydra's own printer
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages: torch makes large arrays anew each step
    flags, overrides = _split(argv)
    sys.argv = ["paribus train", *flags, *(_singular(overrides) if "hydra/sweeper=arms" in overrides else overrides)]
    with explained():
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")(job)()
    return 2 if failures else 0


def _job(cfg: Any) -> float | None:
    import json

    from paribus.training.run import RECORD, run
    from paribus.verdict.metrics import COMMON

    folder = run(cfg)
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    print(json.dumps({"run": str(folder), "status": record["status"], "metrics": record.get("metrics", {})}))
    losses = [f"{test}loss" for test in COMMON]
    return next((value for name, value in record.get("metrics", {}).items() if name in losses), None)


def _trial(cfg: Any) -> dict[str, float]:
    """What a search may optimize: the run's metrics and its budget (`flops`, `input_tokens`, ...)."""
    import json

    from paribus.sweeps.search.pruning import reporter
    from paribus.training.run import RECORD, run

    record = json.loads((run(cfg, reporter(cfg.trial)) / RECORD).read_text(encoding="utf-8"))
    if record["status"] != "done":
        raise UserError(f"the run {record['status']}: {record.get('error', '')}")
    return {**record["budget"], **record["metrics"]}


def _singular(overrides: list[str]) -> list[str]:
    """`seeds=` and `arms=` by the names that a run has for them: Hydra refuses a single value of a key it has not."""
    pairs = (text.partition("=") for text in overrides)
    return [f"{_SINGULAR.get(key, key)}{equals}{value}" for key, equals, value in pairs]


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Hydra's own flags (with their values) apart from the overrides."""
    flags: list[str] = []
    overrides: list[str] = []
    waiting = False
    for text in argv:
        if waiting or text.startswith("-"):
            flags.append(text)
            waiting = text in _FLAGS_WITH_VALUE
        else:
            overrides.append(text)
    return flags, overrides
