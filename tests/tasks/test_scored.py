"""Zero-shot scoring: which option is likelier, how likely a text is, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from choice_tables import Numbers, table, write
from stories import story

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.heads.choices import Classifier
from paribus.tasks.docs.scored import ScoredNext, ScoredShift, ScoredText
from paribus.tasks.examples import ChoiceExample
from paribus.tasks.tables.choices import ClozeTable, LikelyTable
from paribus.tasks.types.scored import CHOSEN, LIKELY, MaskedScored, Scored, Totals, plan_windows
from paribus.training.run import run

VOCABULARY = Vocabulary(size=60, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
NUMBERS: Any = Numbers()
LEFT = ["objective=clm", "masking=none", "model.attention=left"]
PLACES = ("A", "B", "C")


def encode(kind: Scored, *examples: ChoiceExample, length: int = 16) -> Any:
    return kind.encode(examples, NUMBERS, VOCABULARY, FineTuning(head=Classifier(), length=length))


@pytest.mark.parametrize(
    ("stride", "expected"),
    [
        (2, [(0, 0, 4), (2, 4, 6), (4, 6, 8), (6, 8, 10)]),
        (4, [(0, 0, 4), (4, 4, 8), (8, 8, 10)]),
        (1, [(0, 0, 4), *((at, at + 3, at + 4) for at in range(1, 7))]),
    ],
)
def test_windows_count_every_token_once(stride: int, expected: list[tuple[int, int, int]]) -> None:
    assert list(plan_windows(10, 4, stride)) == expected
    counted = [token for _, first, end in expected for token in range(first, end)]
    assert counted == list(range(10))


def test_options_are_compared_in_every_known_way() -> None:
    options = ["a" * 8, "ä" * 15, "b" * 9]
    totals = Totals(np.array([-6.0, -9.0, -8.0]), np.array([-7.0, -13.0, -8.5]), np.array([2, 4, 3]), np.ones(3))
    kind = Scored(PLACES)
    found = {right: kind.score([totals], [ChoiceExample("", None, options, right)]) for right in range(3)}
    chosen = {name: next(right for right in range(3) if found[right][name]) for name in CHOSEN}
    expected = dict(zip(CHOSEN, (0, 1, 1, 1, 1), strict=True))
    assert chosen == expected
    options[1] = "a" * 7  # as many characters as need the bytes to tell
    assert kind.score([totals], [ChoiceExample("", None, ["ä" * 8, "b" * 13, "c" * 9], 0)])["accuracy_byte"] == 1.0
    assert kind.score([totals], [ChoiceExample("", None, ["ä" * 8, "b" * 13, "c" * 9], 1)])["accuracy_character"] == 1.0


def test_perplexities_are_of_all_right_options_together() -> None:
    rows = [ChoiceExample("", None, ["one two"], 0), ChoiceExample("", None, ["drei"], 0)]
    zero = np.zeros(1)
    totals = [
        Totals(np.array([-6.0]), zero, np.array([3]), zero),
        Totals(np.array([-3.0]), zero, np.array([2]), zero + 1),
    ]
    found = Scored((), (*LIKELY, "exact")).score(totals, rows)
    assert found["exact"] == 0.5
    assert found["perplexity"] == pytest.approx(math.exp(9 / 5))
    assert found["word_perplexity"] == pytest.approx(math.exp(9 / 3))
    assert found["bits_per_byte"] == pytest.approx(9 / math.log(2) / 11)


def test_only_the_option_counts_and_no_special_token() -> None:
    found = encode(Scored(PLACES), ChoiceExample("10 11", "12", ["20", "21 1 22", "23"], 1))
    batch = found.batch(np.arange(6), 1)
    real = [ids[:length].tolist() for ids, length in zip(batch["ids_BL"], batch["length_B"], strict=True)]
    assert real[::2] == [[2, 10, 11, 12, 20], [2, 10, 11, 12, 21, 1, 22], [2, 10, 11, 12, 23]]
    assert real[1::2] == [[2, 20], [2, 21, 1, 22], [2, 23]]
    assert batch["target_P"].tolist() == [20, 20, 21, 22, 21, 22, 23, 23]
    assert batch["asked_P"].tolist() == [0, 1, 2, 2, 3, 3, 4, 5]
    read = batch["ids_BL"].reshape(-1)[batch["slot_P"]]
    assert read.tolist() == [12, 2, 12, 1, 2, 1, 12, 2]
    assert found.tokens_N.tolist() == [1, 1, 2, 2, 1, 1]
    assert sorted(np.concatenate(found.split(np.arange(6))).tolist()) == list(range(6))


def test_a_masked_model_is_asked_for_one_token_after_the_other() -> None:
    found = encode(MaskedScored(PLACES, ("accuracy",)), ChoiceExample("10 11", None, ["20", "21 1 22"], 1))
    batch = found.batch(np.arange(3), 1)
    real = [ids[:length].tolist() for ids, length in zip(batch["ids_BL"], batch["length_B"], strict=True)]
    assert real == [[2, 10, 11, 4, 3], [2, 10, 11, 4, 1, 22, 3], [2, 10, 11, 21, 1, 4, 3]]
    assert batch["target_P"].tolist() == [20, 21, 22]
    assert batch["asked_P"].tolist() == [0, 1, 2]
    assert batch["ids_BL"].reshape(-1)[batch["slot_P"]].tolist() == [4, 4, 4]
    assert found.option_N.tolist() == [0, 1, 1]
    with pytest.raises(UserError, match=r"has 5 tokens with an option: finetune\.length=4: set finetune\.length=5 and"):
        encode(MaskedScored(PLACES), ChoiceExample("10 11", None, ["20", "21"], 1), length=4)


def test_the_rows_of_an_option_are_added_up() -> None:
    """As (Salazar et al. 2020) define the pseudo-log-likelihood."""
    kind, example = MaskedScored(PLACES, ("accuracy",)), ChoiceExample("10", None, ["20", "21 22"], 1)
    rows = encode(kind, example)
    (totals,) = kind.predict([(-5.0, 1.0), (-2.0, 0.0), (-2.5, 1.0)], rows, [example])
    assert totals.score_K.tolist() == [-5.0, -4.5]
    assert (totals.tokens_K.tolist(), totals.wrong_K.tolist()) == ([1, 2], [1, 1])
    assert kind.score([totals], [example]) == {"accuracy": 1.0}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"has 5 tokens with an option: finetune\.length=4: set finetune\.length=5 and"):
        encode(Scored(("A", "B")), ChoiceExample("10 11", None, ["20 21", "22"], 0), length=4)
    with pytest.raises(UserError, match="the option '1' has no known token"):
        encode(Scored(("A", "B")), ChoiceExample("10 11", None, ["1", "22"], 0))
    with pytest.raises(UserError, match="leaves no room for windows 4 tokens apart"):
        encode(Scored((), LIKELY, stride=4), ChoiceExample("", None, ["20 21"], 0), length=4)
    assert len(encode(Scored((), LIKELY), ChoiceExample("", None, ["20 21 22 23 24 25"], 0), length=4).length_N) == 4


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of texts of several windows."""
    folder = tmp_path_factory.mktemp("texts")
    write(folder, **{split: [{"line": story(n, 4)} for n in range(3)] for split in ("train", "validation")})
    return folder


OWN = """
_target_: paribus.tasks.tables.choices.LikelyTable
name: lines
path: {folder}
columns: {{text: line}}
"""


@pytest.mark.parametrize("stride", [None, 3, 15])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_perplexity_is_that_of_a_plain_loop_in_transformers(
    texts: Path,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stride: int | None,
    joined: bool,
    norm: str,
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (tmp_path / "conf/task").mkdir(parents=True)
    (tmp_path / "conf/task/lines.yaml").write_text(OWN.format(folder=texts))
    monkeypatch.chdir(tmp_path)
    own = [f"tasks.lines.stride={stride or 'null'}", f"tasks.lines.joined={joined}", "finetune.length=16"]
    shape = ["model.initializer_range=0.3", f"model.norm={norm}", "model.positions=32"]
    folder = run(compose([*arguments, *LEFT, "task=lines", *(f"++{text}" for text in own), *shape]))
    record = json.loads((folder / "result.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    lines = [story(n, 4) for n in range(3)]
    total = count = 0.0
    for text in ["\n".join(lines)] if joined else lines:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        done = 0
        for begin in range(0, len(ids), stride or 7):
            end = min(begin + 15, len(ids))
            read = torch.tensor([[tokenizer.cls_token_id, *ids[begin:end]]])
            labels = read.clone()
            labels[:, : 1 + done - begin] = -100
            labels[labels == tokenizer.unk_token_id] = -100
            counted = int((labels[:, 1:] != -100).sum())
            with torch.no_grad():
                total += float(model(read, labels=labels).loss) * counted
            count, done = count + counted, end
            if end == len(ids):
                break
    assert record["task_runs"][0]["metrics"]["perplexity"] == pytest.approx(math.exp(total / count), rel=1e-4)
    assert record["budget"]["steps"] == 2
    assert record["tuned"] == {}


LAST = """
_target_: paribus.tasks.tables.choices.LikelyTable
name: last
path: {folder}
columns: {{text: line}}
last_word: true
metrics: [exact, word_perplexity]
"""


def test_the_last_word_is_exact_if_a_plain_loop_writes_it(
    texts: Path, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    lines = [" ".join(story(n, 1).split()[: 4 + n % 5]) for n in range(40)]
    write(tmp_path / "rows", **{split: [{"line": line} for line in lines] for split in ("train", "validation")})
    (tmp_path / "conf/task").mkdir(parents=True)
    (tmp_path / "conf/task/last.yaml").write_text(LAST.format(folder=tmp_path / "rows"))
    monkeypatch.chdir(tmp_path)
    folder = run(compose([*arguments, *LEFT, "task=last", "trainer.max_steps=100", "optimizer.lr=0.005"]))
    metrics = json.loads((folder / "result.json").read_text())["task_runs"][0]["metrics"]
    model = AutoModelForCausalLM.from_pretrained(folder / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    exact, total = 0, 0.0
    for line in lines:
        before, word = line.rsplit(maxsplit=1)
        read = [tokenizer.cls_token_id, *tokenizer(before, add_special_tokens=False)["input_ids"]]
        asked = tokenizer(word, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([[*read, *asked]])).logits[0, len(read) - 1 : -1]
        counts = torch.tensor([token != tokenizer.unk_token_id for token in asked])
        exact += bool((logits.argmax(-1) == torch.tensor(asked))[counts].all())
        total -= float(logits.log_softmax(-1)[range(len(asked)), asked][counts].sum())
    assert 0 < exact < 40
    assert metrics["exact"] == pytest.approx(exact / 40)
    assert metrics["word_perplexity"] == pytest.approx(math.exp(total / 40), rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([{"line": "word"}], {}, "train has a text of one word: 'word': leave the row out"),
        ([{"line": 7}], {}, "row 0 of train has int, not text, in column 'line'"),
        ([{"line": "two words"}], {"joined": True}, "last_word=true scores one word of each row: set tasks.x.joined=f"),
        ([{"line": "two words"}], {"stride": 4}, "last_word=true scores one word of each row"),
    ],
)
def test_a_last_word_that_is_not_one_is_refused(
    rows: list[dict[str, Any]], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write(tmp_path, train=rows, validation=rows)
    with pytest.raises(UserError, match=message):
        LikelyTable("x", {"text": "line"}, path=str(tmp_path), last_word=True, **settings).examples(tmp_path)


CLOZE = {"text": "sentences", "question": "question", "options": "options", "label": "answer"}


def cloze(folder: Path, **changes: Any) -> ClozeTable:
    """A task of gaps in a folder, one of its rows changed."""
    names = ["fox", "hen", "dog"]
    row = {
        "sentences": ["1 A fox sat .", "2 A hen ran ."], "question": "3 The XXXXX saw it .", "options": names,
        "answer": "hen",
    }  # fmt: skip
    write(folder, train=[row], validation=[row, {**row, **changes}])
    return ClozeTable("gap", CLOZE, PLACES, ["accuracy"], path=str(folder))


def test_an_option_of_a_gap_is_compared_with_the_rest_of_its_sentence(tmp_path: Path) -> None:
    rows = cloze(tmp_path, question="XXXXX ran .", answer="dog").examples(tmp_path)["validation"]
    text, options = "1 A fox sat . 2 A hen ran .", ["fox saw it .", "hen saw it .", "dog saw it ."]
    assert rows[0] == ChoiceExample(text, "3 The", options, 1)
    assert rows[1] == ChoiceExample(text, "", ["fox ran .", "hen ran .", "dog ran ."], 2)
    batch = encode(Scored(PLACES), ChoiceExample("10 11", "12", ["20 30", "21 30", "22 30"], 1)).batch(np.arange(6), 1)
    assert batch["target_P"].tolist()[::2] == [20, 20, 21, 21, 22, 22]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": "no gap"}, "row 1 of validation has no XXXXX in its question: set tasks.gap.blank"),
        ({"answer": "cow"}, "the label 'cow' of row 1 of validation is not one of its options"),
        ({"options": ["fox", "hen"]}, "row 1 of validation has 2 options, but classes name 3"),
        ({"sentences": []}, "row 1 of validation lacks a text or an option"),
    ],
)
def test_a_gap_that_cannot_be_asked_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        cloze(tmp_path, **changes).examples(tmp_path)


def test_sentences_that_are_not_text_are_refused(tmp_path: Path) -> None:
    task = cloze(tmp_path)
    row = {"sentences": [1, 2], "question": "The XXXXX saw it .", "options": ["fox", "hen", "dog"], "answer": "hen"}
    write(tmp_path, train=[row], validation=[row])
    with pytest.raises(UserError, match="row 0 of train lacks a text or an option"):
        task.examples(tmp_path)


CHOICES = """
_target_: paribus.tasks.tables.choices.ChoiceTable
name: exam
path: {folder}
columns: {{text: article, question: question, options: options, label: answer}}
classes: [A, B, C]
scored: true
"""


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a task of options."""
    rows = [
        {
            "article": story(n, 1),
            "question": "who",
            "options": ["the captain", "a sailor", "one"],
            "answer": PLACES[n % 3],
        }
        for n in range(18)
    ]
    write(tmp_path, train=rows[:9], validation=rows[9:])
    (tmp_path / "conf/task").mkdir(parents=True)
    (tmp_path / "conf/task/exam.yaml").write_text(CHOICES.format(folder=tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("more", [[], ["finetune.ensemble=2"], ["finetune.epochs=0"], ["evaluation.task_points=2"]])
def test_a_run_answers_without_training(options: Path, arguments: list[str], more: list[str]) -> None:
    folder = run(compose([*arguments, *LEFT, "task=exam", *more]))
    record = json.loads((folder / "result.json").read_text())
    found = record["task_runs"][0]["metrics"]
    assert found.keys() == set(CHOSEN)
    assert all(0 <= value <= 1 for value in found.values())
    assert record["baselines"]["exam/accuracy"].keys() == {"majority", "bag_of_words"}
    if "task_points" in record:
        assert record["task_points"][0]["task_runs"][0]["metrics"] != {}


def test_a_masked_model_answers_as_a_plain_loop_in_transformers(options: Path, arguments: list[str]) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    shape = ["model.initializer_range=0.3", "model.positions=40", "finetune.length=40"]
    folder = run(compose([*arguments, "objective=mlm", "task=exam", *shape]))
    found = json.loads((folder / "result.json").read_text())["task_runs"][0]["metrics"]
    model = AutoModelForMaskedLM.from_pretrained(folder / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    right = {"accuracy": 0, "accuracy_token": 0}
    for line in (options / "validation.jsonl").read_text().splitlines():
        row, scores = json.loads(line), []
        for option in row["options"]:
            before = tokenizer(f"{row['article']} {row['question']}", add_special_tokens=False)["input_ids"]
            asked = tokenizer(option, add_special_tokens=False)["input_ids"]
            ids = [tokenizer.cls_token_id, *before, *asked, tokenizer.sep_token_id]
            places = [at for at in range(1 + len(before), len(ids) - 1) if ids[at] != tokenizer.unk_token_id]
            total = 0.0
            for at in places:
                masked = torch.tensor([[*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]])
                with torch.no_grad():
                    total += float(model(masked).logits[0, at].log_softmax(-1)[ids[at]])
            scores.append((total, total / len(places)))
        for way, name in enumerate(right):
            right[name] += max(range(3), key=lambda at, way=way: scores[at][way]) == PLACES.index(row["answer"])
    assert {name: found[name] for name in right} == {name: pytest.approx(count / 9) for name, count in right.items()}


def test_a_masked_model_has_no_likelihood_of_a_text(
    options: Path, arguments: list[str], refused_run: Callable[..., str]
) -> None:
    message = refused_run(*arguments, "objective=mlm", "task=exam", "+tasks.exam.metrics=[perplexity]")
    assert "tasks.exam.metrics: perplexity needs a left-to-right model: choose from accuracy" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["objective=mlm", "masking=bernoulli"], "set objective=clm masking=none model.attenti"),
        (["finetune.length=8"], r"tasks\.exam: the prompt .* tokens with an option: finetune.length=8: set "),
        (["finetune.length=64", "model.positions=32"], "finetune.length=64 exceeds model.positions=32"),
        (["finetune/head=bilstm"], "finetune.head is set, but it does nothing in tasks.exam"),
        (["finetune.truncation=tail"], "finetune.truncation is set, but it does nothing in tasks.exam"),
        (
            ["task=[exam,docs_package]", "tasks.docs_package.packages=[rich,networkx]", "finetune/joint=multi_task"],
            "finetune/joint is set, but nothing is trained in tasks.exam",
        ),
        (["+tasks.exam.metrics=[f1]"], "choose from accuracy, accuracy_token"),
        (["finetune.replay=0.5"], "finetune.replay=0.5, but no task is fine-tuned"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    options: Path, arguments: list[str], change: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        run(compose([*arguments, *LEFT, *([] if "task=" in change[0] else ["task=exam"]), *change]))
    assert "\n" not in str(error.value)


def test_a_head_of_another_kind_is_refused_before_training(
    options: Path, arguments: list[str], trust: Callable[..., None], refused_run: Callable[..., str]
) -> None:
    trust("toys_heads")
    message = refused_run(*arguments, *LEFT, "task=exam", "objective._target_=toys_heads.UntiedLM")
    assert "tasks.exam is answered by a MaskedLMHead, but the objective trains a Untied" in message


def test_a_table_of_options_may_be_scored(tmp_path: Path) -> None:
    assert isinstance(table(tmp_path, scored=True).task_type, Scored)
    with pytest.raises(UserError, match="or null for a task with options"):
        Scored(PLACES, stride=3).check("tasks.x")
    with pytest.raises(UserError, match="at least two different classes"):
        LikelyTable("x", {"text": "line"}, metrics=["accuracy"], path=str(tmp_path))


def test_tasks_on_docstrings_hold_what_they_say(cache: Path) -> None:
    limits: dict[str, Any] = {"max_train": 40, "max_validation": 40}
    shift = ScoredShift("a", ["rich", "networkx"], [6, 16], **limits).examples(cache)
    for row in (row for rows in shift.values() for row in rows):
        assert row.text == ""
        assert sorted(row.options[0].split()) == sorted(row.options[1].split())
        assert row.options[0] != row.options[1]
    assert {row.label for row in shift["train"]} == {0, 1}
    following = ScoredNext("b", ["rich", "networkx"], **limits).examples(cache)
    for row in (row for rows in following.values() for row in rows):
        assert len(set(row.options)) == 4
        assert 8 <= len(f"{row.text} {row.options[row.label]}".split()) <= 16
    assert {row.label for row in following["train"]} == {0, 1, 2, 3}
    texts = ScoredText("c", ["rich", "networkx"], max_train=4, max_validation=4).examples(cache)
    assert all(len(row.options) == 1 for rows in texts.values() for row in rows)
