"""What a process that trains is set up with before torch is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TOLD = """
import sys, os, gc
import paribus.training.pretrain
import paribus.training.learner
print(os.environ["THP_MEM_ALLOC_ENABLE"])
from torchmetrics import Metric
from torchmetrics.functional.classification import accuracy
print(Metric.__module__, callable(accuracy))
from paribus.core.processes import OFTEN, collect_often, collect_rarely
collect_rarely()
print(gc.get_threshold() > OFTEN)
collect_often()
frozen = gc.get_freeze_count()
collect_often()
print(gc.get_threshold() == OFTEN, gc.get_freeze_count() == frozen > 100_000)
"""


@pytest.mark.slow
def test_training_starts_with_huge_pages_and_without_searches_for_garbage() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "THP_MEM_ALLOC_ENABLE"}
    done = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines() == ["1", "torchmetrics.metric True", "True", "True True"]
