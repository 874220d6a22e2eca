"""Extractive QA: SQuAD's scores, windows, the best span, bad offsets; and questions on a model that writes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from text_to_text import T5

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.tasks.baselines import answer_by_words
from paribus.tasks.examples import QuestionExample
from paribus.tasks.metrics import Answer, match, normalize_answer, overlap, overlap_or_empty, score_answers
from paribus.tasks.tables.table import QuestionTable
from paribus.tasks.types.question_answering import ExtractiveQA, WrittenAnswers, find_best_span, squad_windows
from paribus.training.run import run
from paribus.training.steps import task_batch

VOCABULARY: Any = SimpleNamespace(pad=0, cls=2, sep=3)


class Words:
    """Every word is a token."""

    def locate(self, texts: list[str]) -> tuple[Any, np.ndarray[Any, Any]]:
        rows = [[match.span() for match in re.finditer(r"\S+", text)] for text in texts]
        lengths = np.array([len(row) for row in rows])
        return SimpleNamespace(ids_T=np.arange(10, 10 + lengths.sum()), length_S=lengths), np.concatenate(rows)

    def encode(self, texts: list[str]) -> list[tuple[np.ndarray[Any, Any], None]]:
        return [(np.arange(5, 5 + len(text.split())), None) for text in texts]


TOKENIZER: Any = Words()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("an apple, a day", "apple day"),
        ("U.S.-based theatre", "usbased theatre"),
        ("the", ""),
        ("Anne", "anne"),
    ],
)
def test_answers_are_normalized_as_the_official_script_does(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("guess", "answer", "em", "f1"),
    [
        ("the Normans", "Normans", 1.0, 1.0),
        ("in the 10th century", "10th century", 0.0, 0.8),
        ("France, Italy", "italy france", 0.0, 1.0),
        ("a cat cat", "cat", 0.0, 2 / 3),
        ("", "Normans", 0.0, 0.0),
        ("Normans", "", 0.0, 0.0),
    ],
)
def test_em_and_f1_of_one_answer(guess: str, answer: str, em: float, f1: float) -> None:
    assert match(guess, answer) == em
    assert overlap(guess, answer) == overlap_or_empty(guess, answer) == pytest.approx(f1)


def test_two_answers_without_words_match_and_share_words_in_version_2_alone() -> None:
    assert match("the", ".") == overlap_or_empty("the", ".") == 1.0
    assert overlap("the", ".") == 0.0


def test_the_best_of_several_answers_counts() -> None:
    assert score_answers([Answer("France")], [["Paris", "france."]], None) == {"em": 1.0, "f1": 1.0}
    assert score_answers([Answer("north of France")], [["Paris", "France"]], None)["f1"] == pytest.approx(0.5)


def test_golds_that_normalize_to_nothing() -> None:
    """`evaluate-v1.1.py` counts them as they are. `evaluate-v2.0.py` leaves them out; if none is left, the empty text
    is right, but the question still has an answer.
    """
    found, answers = [Answer("!", -1.0), Answer("x", -1.0), Answer("x", 1.0)], [[".", "yes"], [".", "x"], ["."]]
    assert score_answers(found, answers, None) == {"em": 2 / 3, "f1": 1 / 3}
    assert score_answers(found, answers, 0.0) == {"em": 1 / 3, "f1": 1 / 3, "best_em": 1 / 3, "best_f1": 1 / 3}


def test_any_text_for_a_question_without_answer_costs_one() -> None:
    """`find_best_thresh` looks at the text as it is given: "the" normalizes to nothing, and is an answer."""
    found, answers = [Answer("the", -2.0), Answer("", -1.5), Answer("x", -1.0)], [[], [], ["x"]]
    assert score_answers(found, answers, 0.0)["em"] == 1.0
    assert score_answers(found, answers, 0.0)["best_em"] == 2 / 3


def test_the_scores_are_torchmetrics_own_for_version_1_1() -> None:
    from torchmetrics.functional.text import squad

    rows = [("the Rhine river", ["Rhine", "river Rhine"]), ("1,000", ["1000"]), ("north", ["south", "the north east"])]
    predictions = [{"prediction_text": guess, "id": str(at)} for at, (guess, _) in enumerate(rows)]
    targets: list[Any] = [
        {"answers": {"text": answers, "answer_start": [0] * len(answers)}, "id": str(at)}
        for at, (_, answers) in enumerate(rows)
    ]
    theirs = squad(predictions, targets)
    ours = score_answers([Answer(guess) for guess, _ in rows], [answers for _, answers in rows], None)
    assert ours["em"] == pytest.approx(float(theirs["exact_match"]) / 100)
    assert ours["f1"] == pytest.approx(float(theirs["f1"]) / 100)


def test_no_answer_is_given_above_the_threshold_and_the_best_one_is_found() -> None:
    """By hand; `best_*` also against all thresholds."""
    found = [Answer("x", -2.0), Answer("y", -1.0), Answer("z", 1.0), Answer("w", 1.0), Answer("v", 3.0)]
    answers: list[list[str]] = [["x"], [], ["z"], [], []]
    values = score_answers(found, answers, 0.0)
    assert values["em"] == pytest.approx((1 + 0 + 0 + 1 + 1) / 5)
    thresholds = [-9.0, *(guess.null for guess in found)]
    assert values["best_em"] == max(score_answers(found, answers, t)["em"] for t in thresholds)
    assert values["best_em"] == pytest.approx(4 / 5)
    assert score_answers(found, answers, -9.0)["em"] == pytest.approx(3 / 5)


def test_windows_reach_the_end_and_each_other() -> None:
    assert squad_windows(10, 10, 4) == [0]
    assert squad_windows(11, 10, 4) == [0, 4]
    for tokens in range(1, 60):
        for room, stride in ((7, 3), (8, 8), (5, 1)):
            starts = squad_windows(tokens, room, stride)
            assert starts[-1] + room >= tokens
            assert len(starts) == 1 or starts[-2] + room < tokens
            assert all(b - a == stride for a, b in itertools.pairwise(starts))


EXAMPLES = [
    QuestionExample("who is it", "one two three four five six seven eight nine ten", ["five six"], [19]),
    QuestionExample("what else", "alpha beta", [], []),
]


def rows() -> Any:
    settings: Any = SimpleNamespace(length=12)
    return ExtractiveQA(answerless=True, stride=4).encode(EXAMPLES, TOKENIZER, VOCABULARY, settings)


def test_rows_have_the_answer_where_the_window_has_it_whole() -> None:
    found = rows()  # 3 + 3 special tokens, so 6 words of the context, and strides of 3
    assert found.example_N.tolist() == [0, 0, 0, 1]
    assert found.length_N.tolist() == [12, 12, 10, 7]
    assert found.label_N.tolist() == [[9, 10], [6, 7], [0, 0], [0, 0]]
    batch = task_batch(found, np.arange(4))
    assert batch["label_B"].shape == (4, 2)
    assert batch["part_BL"][0].tolist() == [0] * 5 + [1] * 7 + [0] * 4


def test_a_question_that_is_cut_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    rows()
    assert not capfd.readouterr().err
    ExtractiveQA(stride=4, question=2).encode(EXAMPLES, TOKENIZER, VOCABULARY, SimpleNamespace(length=12))  # type: ignore[arg-type]
    assert "1 of 2 questions are cut to their first 2 tokens; raise finetune.length" in capfd.readouterr().err


def test_labels_read_back_as_the_answers() -> None:
    found, task_type = rows(), ExtractiveQA(answerless=True, metrics=("em", "f1"))
    outputs = []
    for (start, end), length in zip(found.label_N.tolist(), found.length_N.tolist(), strict=True):
        score_L2 = np.zeros((length + 4, 2), np.float32)  # with padding, that must not count
        score_L2[length:] = 99.0
        score_L2[start, 0] = score_L2[end, 1] = 5.0
        outputs.append(score_L2)
    answers = task_type.predict(outputs, found, EXAMPLES)
    assert answers[0].text == "five six"
    assert answers[0].null < 0 < answers[1].null
    assert task_type.score(answers, EXAMPLES) == {"em": 1.0, "f1": 1.0}


def test_the_best_span_is_the_best_of_all() -> None:
    score_L2 = np.random.default_rng(0).normal(size=(12, 2))
    for longest in (1, 3, 30):
        spans = [(a, b) for a in range(12) for b in range(a, min(12, a + longest))]
        start, end = max(spans, key=lambda span: score_L2[span[0], 0] + score_L2[span[1], 1])
        assert find_best_span(score_L2, longest)[1:] == (start, end)
    assert find_best_span(score_L2[:0], 3) == (-np.inf, 0, 0)


def test_the_head_s_loss_is_the_mean_of_both_ends_without_padding() -> None:
    from paribus.models.heads.tokens import SpanHead

    torch.manual_seed(0)
    head, hidden_BLD = SpanHead(4), torch.randn(2, 6, 4)
    batch = {"length_B": torch.tensor([6, 4]), "label_B": torch.tensor([[1, 3], [0, 0]])}
    outputs: Any = SimpleNamespace(hidden_BLD=hidden_BLD)
    expected = 0.0
    for row, length in enumerate((6, 4)):
        logs_L2 = head.edges(hidden_BLD[row, :length]).log_softmax(0)
        expected -= sum(float(logs_L2[int(batch["label_B"][row, side]), side]) for side in (0, 1)) / 2
    assert float(head(outputs, batch)) == pytest.approx(expected, abs=1e-5)


def test_the_words_beside_those_of_the_question() -> None:
    asked = [
        QuestionExample("When did Rome burn?", "Long ago Rome burn 64 quietly; then came peace and trade", ["64"], [19])
    ]
    assert answer_by_words(asked, asked)[0].text in ("64", "ago")


def write(folder: Path, split: str, **answers: Any) -> None:
    row = {"question": "who", "context": "it was Ada", "answers": {"text": ["Ada"], "answer_start": [7]}}
    pq.write_table(pa.Table.from_pylist([row, {**row, **answers}]), folder / f"{split}.parquet")


def task(folder: Path, **changes: Any) -> QuestionTable:
    columns = {"question": "question", "context": "context", "answers": "answers"}
    return QuestionTable("toy", columns, path=str(folder), **changes)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"answers": {"text": ["Ada"], "answer_start": [6]}}, "row 1 of train: the answer 'Ada' is not at character 6"),
        ({"answers": {"text": ["Ada"], "answer_start": [70]}}, "is not at character 70 of its context: fix"),
        ({"answers": {"text": ["Ada"], "answer_start": [-3]}}, "is not at character -3"),
        ({"answers": {"text": [""], "answer_start": [3]}}, "the answer '' is not at"),
        ({"answers": {"text": [], "answer_start": []}}, "row 1 of train has no answer: set tasks.toy.answerless=true"),
        ({"answers": {"text": ["Ada"], "answer_start": []}}, "1 answers and 0 offsets"),
        ({"question": " "}, "row 1 of train has no text in column 'question'"),
    ],
)
def test_bad_rows(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    write(tmp_path, "train", **bad)
    write(tmp_path, "validation")
    with pytest.raises(UserError, match=message):
        task(tmp_path).examples(tmp_path / "cache")


def test_examples_are_kept_as_they_are(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        write(tmp_path, split, answers={"text": [], "answer_start": []})
    found = task(tmp_path, answerless=True)
    rows = [QuestionExample("who", "it was Ada", ["Ada"], [7]), QuestionExample("who", "it was Ada", [], [])]
    assert found.examples(tmp_path / "cache")["train"] == rows
    assert found.summary(tmp_path / "cache")["labels"]["train"] == {"answered": 1, "unanswered": 1}
    with pytest.raises(UserError, match="needs answerless"):
        task(tmp_path, metrics=["best_f1"])


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


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"text": ["Oslo"], "answer_start": [17]}, (["Oslo"], [17])),
        ({"text": ["Oslo"], "answer_start": [17.0]}, (["Oslo"], [17])),
        ({"text": ["Oslo"], "answer_start": [17.6]}, r"the answer_start 17\.6 of 'Oslo' is not a whole number"),
        ({"text": ["Oslo"], "answer_start": [None]}, "the answer_start None of 'Oslo' is not a whole number"),
        ({"text": ["Oslo"], "answer_start": [float("nan")]}, "the answer_start nan of 'Oslo'"),
        ({"text": ["Oslo"], "answer_start": [18]}, "the answer 'Oslo' is not at character 18"),
        ({"text": ["Oslo"], "answer_start": [-27]}, "the answer 'Oslo' is not at character -27"),
        ({"text": ["Oslo"], "answer_start": []}, "has 1 answers and 0 offsets"),
        ({"text": [None], "answer_start": [3]}, "has no text for the answer at 3"),
        ({"text": [3], "answer_start": [3]}, "has int, not text, for the answer at 3"),
        ({"text": "Oslo", "answer_start": 17}, "has no lists of text and answer_start"),
        ({"text": [None], "answer_start": [None]}, ([], [])),
        ({"text": None, "answer_start": None}, ([], [])),
        ({"text": ["Oslo", "Anna"], "answer_start": [" 17", "0"]}, (["Oslo", "Anna"], [17, 0])),
        ({"text": ["Oslo"], "answer_start": ["17.5"]}, r"the answer_start '17\.5' of 'Oslo' is not a whole number"),
        ([{"text": "Oslo", "answer_start": 17}, {"text": "Anna", "answer_start": "0"}], (["Oslo", "Anna"], [17, 0])),
        ([{"text": "Oslo", "start": 17}], "has no text and answer_start in 'answers'"),
        (None, ([], [])),
        ([], ([], [])),
    ],
)
def test_answers_are_read_or_their_row_is_named(tmp_path: Path, answers: Any, expected: Any) -> None:
    row = {"question": "Where?", "context": "Anna was born in Oslo. She ran.", "answers": answers}
    (tmp_path / "train.jsonl").write_text(json.dumps(row), encoding="utf-8")
    columns = {name: name for name in row}
    table = QuestionTable("toy", columns, answerless=True, path=str(tmp_path))
    if isinstance(expected, str):
        with pytest.raises(UserError, match=f"row 0 of train.*{expected}"):
            table.read("train")
    else:
        (found,) = table.read("train")["train"]
        assert (found.answers, found.starts) == expected


def test_rows_of_one_file_may_spell_their_answers_in_several_ways(tmp_path: Path) -> None:
    lists = {"text": ["Oslo"], "answer_start": [17]}
    rows = [lists, [{"text": "Oslo", "answer_start": "17"}], [], None]
    lines = [
        json.dumps({"question": "Where?", "context": "Anna was born in Oslo.", "answers": answers}) for answers in rows
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    found = task(tmp_path, answerless=True).read("train")["train"]
    assert [row.answers for row in found] == [["Oslo"], ["Oslo"], [], []]
    with pytest.raises(UserError, match=r"row 2 of train has no answer: set tasks\.toy\.answerless=true"):
        task(tmp_path).read("train")


def write_articles(folder: Path, *questions: dict[str, Any], encoding: str = "utf-8") -> None:
    articles = [{"title": "Ada", "paragraphs": [{"context": "it was Ada", "qas": [asked]}]} for asked in questions]
    (folder / "train.json").write_text(json.dumps({"version": "2.0", "data": articles}), encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_json_of_squad_is_read(tmp_path: Path, encoding: str) -> None:
    first = {"id": "1", "question": "who", "answers": [{"text": "Ada", "answer_start": 7}]}
    likely = [{"text": "it", "answer_start": 0}]
    second = {"id": "2", "question": "why", "answers": [], "is_impossible": True, "plausible_answers": likely}
    write_articles(tmp_path, first, second, encoding=encoding)
    rows = [QuestionExample("who", "it was Ada", ["Ada"], [7]), QuestionExample("why", "it was Ada", [], [])]
    assert task(tmp_path, answerless=True).read("train")["train"] == rows
    write_articles(tmp_path, first)
    assert task(tmp_path).read("train")["train"] == rows[:1]
    write_articles(tmp_path, first, {**second, "answers": first["answers"]})
    with pytest.raises(UserError, match="question 1 has answers, but is_impossible is true"):
        task(tmp_path, answerless=True).read("train")
    write_articles(tmp_path, first, {"id": "2"})
    with pytest.raises(UserError, match=r"question 1 is not in data\[\]\.paragraphs\[\]\.qas\[\]"):
        task(tmp_path).read("train")
