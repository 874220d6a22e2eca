"""`finetune.max_examples`: a small part of any task, so that a task at test scale takes two steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.core.config import compose
from paribus.core.settings import FineTuning
from paribus.runs.identity import meaning
from paribus.training.description import Run


def test_a_limit_holds_for_every_set_and_names_another_run(arguments: list[str], task_folder: Path) -> None:
    given = [*arguments, "task=sst2", f"tasks.sst2.path={task_folder}"]
    whole, part = (Run.of(compose([*given, f"finetune.max_examples={most}"])) for most in ("null", 10))
    few, every = (run.tasks["sst2"].summary(run.cache) for run in (part, whole))
    assert few["examples"] == {"train": 10, "validation": 10}
    assert every["examples"] == {"train": 64, "validation": 32}
    rows = whole.tasks["sst2"].examples(whole.cache)["train"]
    assert all(row in rows for row in part.tasks["sst2"].examples(part.cache)["train"])
    assert part.identity.signature != whole.identity.signature
    assert part.identity.pretrain == whole.identity.pretrain
    assert Run.of(whole.config, like=part).tasks["sst2"].summary(whole.cache) == every
    assert meaning({"max_examples": None}, FineTuning) == {}


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_a_task_at_test_scale_takes_two_steps(family: str) -> None:
    settings = compose(["scale=test", f"family={family}"]).finetune
    assert settings.max_examples == 2 * settings.batch_size
    assert settings.epochs == 1
