"""`ceteris train`: a Hydra application around one run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from ceteris.config import conf_dir, expand, explained, split_overrides
from ceteris.errors import UserError

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
    """Run Hydra on `argv`. One bad job of a multirun is named and the others go on; the status is then 2."""
    import hydra

    argv = _without_password(argv)
    failures: list[UserError] = []

    def job(cfg: Any) -> float | dict[str, float] | None:
        if cfg.trial is not None:
            return _trial(cfg)  # its errors are the search's to tell
        try:
            return _job(cfg)
        except UserError as error:
            failures.append(error)
            print(f"ceteris: {error}", file=sys.stderr)
            return None

    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach `explained` instead of Hydra's own printer
    flags, overrides = _split(argv)
    overrides = [*_searched(overrides), *overrides]
    multirun = "-m" in flags or "--multirun" in flags
    own_scale = (
        multirun and "hydra/sweeper=arms" in overrides
    )  # that sweeper lays the scale over the sweep's base itself
    sys.argv = ["ceteris train", *flags, *(overrides if own_scale else expand(overrides))]
    with explained():
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")(job)()
    return 2 if failures else 0


def _without_password(argv: list[str]) -> list[str]:
    """The arguments without a database's password; where the process title has it, the process starts again."""
    from ceteris.search.storage import without_password

    title = [without_password(text) for text in sys.orig_argv]
    if title != sys.orig_argv:
        sys.stdout.flush()
        os.execv(sys.executable, title)
    return [without_password(text) for text in argv]


def _job(cfg: Any) -> float | None:
    import json

    from ceteris.training.run import RECORD, run
    from ceteris.verdict.metrics import COMMON

    folder = run(cfg)
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    print(json.dumps({"run": str(folder), "status": record["status"], "metrics": record.get("metrics", {})}))
    losses = [f"{test}loss" for test in COMMON]
    return next((value for name, value in record.get("metrics", {}).items() if name in losses), None)


def _trial(cfg: Any) -> dict[str, float]:
    """What a search may optimise: the run's metrics and its budget (`flops`, `input_tokens`, ...)."""
    import json

    from ceteris.training.run import RECORD, run

    record = json.loads((run(cfg) / RECORD).read_text(encoding="utf-8"))
    if record["status"] != "done":
        raise UserError(f"the run {record['status']}: {record.get('error', '')}")
    return {**record["budget"], **record["metrics"]}


def _searched(overrides: list[str]) -> list[str]:
    """The space of `search=NAME` as overrides: they come after the scale's recipe and before the user's own."""
    import yaml

    name = split_overrides(overrides).get("search")
    for folder in (conf_dir(), Path.cwd() / "conf"):
        if name and (path := folder / "search" / f"{name}.yaml").is_file():
            sweeper = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("hydra", {}).get("sweeper", {})
            return [f"{key}={value}" for key, value in sweeper.get("params", {}).items()]
    return []


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
