"""One of the further processes of a training: `python -m paribus.training.helper FOLDER RANK SIZE PORT`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import yaml

from paribus.training.description import Run
from paribus.training.distributed import RankGroup, obey_the_first
from paribus.training.pretrain import help_to_train
from paribus.training.profile import resolve
from paribus.training.stage import open_stage


def main(arguments: list[str]) -> None:
    """Help to pre-train the run of a folder; a helper evaluates, saves and prints nothing."""
    obey_the_first()
    folder, group = Path(arguments[0]), RankGroup(*map(int, arguments[1:]))
    run = Run.of(yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")))
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):  # the first process prints it
        profile, data = resolve(run.profile), run.data()
        stage = open_stage(run, data, profile, folder)
    help_to_train(stage, group)


if __name__ == "__main__":
    main(sys.argv[1:])
