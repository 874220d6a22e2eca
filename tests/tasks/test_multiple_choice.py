"""Multiple choice: tables, rows, the head that compares options, and a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from choice_tables import PLACES, Numbers, table, write
from small_finetuning import backbone, config

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.heads.choices import Classifier
from paribus.tasks.baselines import measure_baselines
from paribus.tasks.examples import ChoiceExample
from paribus.tasks.prompts import Fields
from paribus.tasks.rows import fill_question
from paribus.tasks.types.multiple_choice import MultipleChoice
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.steps import task_batch

VOCABULARY = Vocabulary(size=60, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
ROW: dict[str, Any] = {
    "article": "a red house",
    "question": "what is _",
    "options": ["the river", "the house", "a road"],
    "answer": "B",
}


def test_options_are_read_from_a_column_of_lists_or_from_columns(tmp_path: Path) -> None:
    other = {**ROW, "article": "an old road", "answer": "C"}
    write(tmp_path / "race", train=[ROW, other], validation=[{**other, "answer": None}, ROW])
    found = table(tmp_path / "race").examples(tmp_path)
    assert found["train"][0] == ChoiceExample("a red house", "what is _", ["the river", "the house", "a road"], 1)
    assert [row.label for row in found["train"] + found["validation"]] == [1, 2, 1]
    rows = [{"premise": "it rained", "one": "wet", "two": "dry", "label": at} for at in (0, 1)]
    write(tmp_path / "copa", train=rows, validation=rows)
    columns = {"text": "premise", "options": ["one", "two"], "label": "label"}
    copa = table(tmp_path / "copa", columns=columns, classes=["first", "second"]).examples(tmp_path)
    assert copa["train"] == [ChoiceExample("it rained", None, ["wet", "dry"], at) for at in (0, 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": ["the river", "a road"]}, "row 1 of train has 2 options, but classes name 3"),
        ({"options": ["a", "b", " "]}, "row 1 of train lacks a text or an option"),
        ({"question": None}, "row 1 of train lacks a text or an option"),
        ({"answer": "D"}, "row 1 of train has the label 'D'"),
    ],
)
def test_rows_that_are_no_choice_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write(tmp_path / "race", train=[ROW, {**ROW, **change}], validation=[ROW])
    with pytest.raises(UserError, match=message):
        table(tmp_path / "race").examples(tmp_path)


def test_an_option_stands_in_the_gap_of_its_question_or_behind_it() -> None:
    assert fill_question("what is _ here", "a road") == "what is a road here"
    assert fill_question("what is it", "a road") == "what is it a road"
    assert fill_question(None, "a road") == "a road"


def rows(length: int = 16, **settings: Any) -> Any:
    examples = [ChoiceExample("10 11 12", "20", ["30", "31 32"], 1), ChoiceExample("13", None, ["33", "34"], 0)]
    numbers: Any = Numbers()
    kind = MultipleChoice(("A", "B"))
    return kind.encode(examples, numbers, VOCABULARY, FineTuning(head=Classifier(), length=length, **settings))


def test_every_option_has_a_row_of_its_own() -> None:
    found = rows().batch(np.arange(2), 1)
    real = [ids[:length].tolist() for ids, length in zip(found["ids_BL"], found["length_B"], strict=True)]
    expected = [[2, 10, 11, 12, 3, 20, 30, 3], [2, 10, 11, 12, 3, 20, 31, 32, 3], [2, 13, 3, 33, 3], [2, 13, 3, 34, 3]]
    assert real == expected
    assert found["place_BK"].tolist() == [[0, 1], [2, 3]]
    assert found["label_B"].tolist() == [1, 0]
    assert rows(6).rows.length_N.max() == 6
    with pytest.raises(UserError, match="leaves no room"):
        rows(4)


def scored(order: list[int]) -> torch.Tensor:
    """[1, 3]: the scores of three options in this order."""
    cfg = config("finetune/head/pooling=mean")
    encoder, options = backbone(cfg), ["30", "31 32", "33"]
    settings, kind = Run.of(cfg).finetune, MultipleChoice(PLACES)
    head = kind.make_head(settings, encoder, 7).eval()
    numbers: Any = Numbers()
    example = ChoiceExample("10 11 12", None, [options[at] for at in order], 0)
    batch = task_batch(kind.encode([example], numbers, VOCABULARY, settings), np.arange(1))
    with torch.inference_mode():
        logits = head.logits(encoder(batch), batch)
        loss = head(encoder(batch), batch)
    assert float(loss) == pytest.approx(float(torch.nn.functional.cross_entropy(logits, batch["label_B"])), rel=1e-5)
    return logits


def test_options_that_change_places_change_their_scores() -> None:
    plain, turned = scored([0, 1, 2]), scored([2, 0, 1])
    assert plain.shape == (1, 3)
    assert torch.allclose(plain[:, [2, 0, 1]], turned, atol=1e-6)
    assert plain.std() > 1e-5


def test_a_text_to_text_model_writes_the_name_of_the_right_place() -> None:
    words = MultipleChoice(("choice1", "choice2")).verbalize(Fields("copa", "premise", "question"), False)
    example = ChoiceExample("it rained", "effect", ["wet", "dry"], 0)
    said = " ".join(f"{name} {text}" for name, text in words.source(example))
    assert said == "copa choice1: wet choice2: dry premise: it rained question: effect"
    assert words.target(example) == "choice1"


def test_a_linear_model_finds_the_option_that_shares_the_words(tmp_path: Path) -> None:
    words = ["river", "garden", "captain", "letter", "morning", "winter", "sister", "friend"]
    made = [
        {
            "article": f"the {words[n % 8]} of {n}",
            "question": "of what",
            "options": [f"the {words[(n + shift - n % 3) % 8]}" for shift in range(3)],
            "answer": PLACES[n % 3],
        }
        for n in range(96)
    ]
    write(tmp_path / "race", train=made[:72], validation=made[72:])
    found = measure_baselines(table(tmp_path / "race"), tmp_path)["accuracy"]
    assert found["bag_of_words"] > 0.9
    assert found["majority"] == pytest.approx(1 / 3, abs=0.05)


OWN = """
_target_: paribus.tasks.tables.choices.ChoiceTable
name: exam
path: {folder}
columns: {{text: article, question: question, options: options, label: answer}}
classes: [A, B, C]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a task of options."""
    made = [{**ROW, "article": f"a red house of {n}", "answer": PLACES[n % 3]} for n in range(20)]
    write(tmp_path, train=made[:14], validation=made[14:])
    (tmp_path / "conf/task").mkdir(parents=True)
    (tmp_path / "conf/task/exam.yaml").write_text(OWN.format(folder=tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "more", [[], ["finetune/head=bilstm"], ["finetune/head/pooling=mean"], ["finetune.ensemble=2"]]
)
def test_a_run_fine_tunes_on_options(own: Path, arguments: list[str], more: list[str]) -> None:
    record = json.loads((run(compose([*arguments, "task=exam", *more])) / "result.json").read_text())
    assert 0 <= record["task_runs"][0]["metrics"]["accuracy"] <= 1
    assert record["gold"]["log_loss"]["exam/seed0"] > 0


@pytest.mark.parametrize("group", ["head/windows=mean", "head=siamese", "head=san"])
def test_heads_of_other_tasks_are_refused(own: Path, arguments: list[str], group: str) -> None:
    with pytest.raises(UserError, match="is for tasks on"):
        run(compose([*arguments, "task=exam", f"finetune/{group}"]))
