"""The kind of question that a study asks, from the keys in which its arms differ."""

from __future__ import annotations

import pytest

from paribus.reports.questions import CHOICE, FURTHER, TUNING, find_question


@pytest.mark.parametrize(
    ("varies", "kind"),
    [
        (["masking.rate"], CHOICE),
        (["objective", "input.pairs"], CHOICE),
        (["objective", "masking", "model.attention", "finetune.head"], CHOICE),
        (["stages.tasks.objective"], CHOICE),
        (["corpus"], CHOICE),
        (["untrained", "trainer.max_steps", "finetune.epochs"], FURTHER),
        (["untrained", "trainer.max_steps", "stages.further.trainer.max_steps", "tasks"], FURTHER),
        (["stages.further.corpus", "stages.further.trainer.max_steps", "finetune.method"], FURTHER),
        (["finetune/method", "finetune/head"], TUNING),
        (["finetune.head", "tasks"], TUNING),
    ],
)
def test_a_study_asks_one_kind_of_question(varies: list[str], kind: str) -> None:
    assert find_question(varies) == kind
