"""Questions on a model that writes: what is read and learned, how it is scored, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_to_text import T5

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.tasks.examples import QuestionExample
from paribus.tasks.types.question_answering import WrittenAnswers
from paribus.training.run import run

ROW = QuestionExample("Who wrote?", "the old sailor wrote a letter", ["old sailor", "sailor"], [4, 8])


@pytest.fixture
def squad(tmp_path: Path) -> Path:
    """A folder of the layout of SQuAD."""
    answers = {"text": ["old sailor", "sailor"], "answer_start": [4, 8]}
    for split, count in (("train", 12), ("validation", 6)):
        rows = {"question": [f"Who wrote {n}?" for n in range(count)]}
        columns = {**rows, "context": [ROW.context] * count, "answers": [answers] * count}
        pq.write_table(pa.table(columns), tmp_path / f"{split}.parquet")
    return tmp_path


def test_a_question_and_its_context_are_read_as_t5_has_them() -> None:
    task_type = WrittenAnswers(single=False)
    assert task_type.source(ROW) == [("question:", "Who wrote ?"), ("context:", "the old sailor wrote a letter")]
    assert task_type.target(ROW) == "old sailor"
    row = QuestionExample("What's X-ray?", 'a "ray" (1895)', ['"ray" (1895)'], [2])
    assert task_type.source(row) == [("question:", "What ' s X - ray ?"), ("context:", 'a " ray " ( 1895 )')]
    assert task_type.target(row) == '" ray " ( 1895 )'


@pytest.mark.parametrize("written", ["the U . S . -based firm", "U.S.-based firm"])
def test_punctuation_has_spaces_in_what_is_scored(written: str) -> None:
    """A tokenizer may lose the spaces. Without any, SQuAD's rules make one word of "U.S.-based"."""
    task_type = WrittenAnswers(single=False)
    row = QuestionExample("Who?", "the U.S.-based firm", ["U.S.-based firm"], [4])
    assert task_type.score(task_type.parse([written], None), [row]) == {"em": 1.0, "f1": 1.0}
    assert task_type.score(task_type.parse(["S based"], None), [row])["f1"] == pytest.approx(2 * 2 / (2 + 4))


@pytest.mark.parametrize(
    ("written", "em", "f1"), [("The Sailor!", 1.0, 1.0), ("an old red sailor", 0.0, 0.8), ("", 0.0, 0.0)]
)
def test_what_is_written_is_scored_against_all_answers(written: str, em: float, f1: float) -> None:
    task_type = WrittenAnswers(single=False)
    found = task_type.score(task_type.parse([written], None), [ROW])
    assert found == pytest.approx({"em": em, "f1": f1})


@pytest.mark.parametrize("architecture", ["encoder_decoder", "prefix_lm"])
def test_questions_on_a_text_to_text_model_have_a_record(arguments: list[str], squad: Path, architecture: str) -> None:
    own = ["task=squad_v1", f"tasks.squad_v1.path={squad}", "finetune.length=64", "finetune.target_length=12"]
    cfg = compose([*arguments, *T5, *own, f"model.architecture={architecture}"])
    found: dict[str, Any] = json.loads((run(cfg) / "result.json").read_text())
    assert set(found["task_runs"][0]["metrics"]) == {"f1", "em"}
    assert "bag_of_words" in found["baselines"]["squad_v1/f1"]


def test_questions_of_our_own_are_written_too() -> None:
    cfg = compose([*T5, "task=docs_default"])
    task_type = build(cfg.tasks.docs_default).type_for(build(cfg.model))
    assert isinstance(task_type, WrittenAnswers)
    assert build(task_type.config()) == task_type


def test_questions_without_answers_are_refused() -> None:
    cfg = compose([*T5, "task=squad_v2"])
    with pytest.raises(UserError, match="squad_v2 has questions without an answer, but the model always writes one"):
        build(cfg.tasks.squad_v2).type_for(build(cfg.model))
