"""Task files of SuperGLUE, RACE, CNN/DailyMail and WMT: each on a small local folder of the hub's own layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.tasks.examples import GroupedExample
from paribus.tasks.tables.superglue import mark_two
from paribus.training.run import run

TEXT, NUMBER = Value("string"), Value("int32")
WORDS = ("river", "house", "road", "garden")
SPANS = Features({"text": Sequence(TEXT), "start": Sequence(NUMBER), "end": Sequence(NUMBER)})
PASSAGE = "Anna saw Ben at the <b>house</b>.\n@highlight\nBen left."
READ = "Anna saw Ben at the <b>house</b>. Ben left."  # by T5


def choose(names: list[str]) -> ClassLabel:
    return ClassLabel(names=names)


BOTH = choose(["False", "True"])
HUB: dict[str, tuple[dict[str, Any], Any]] = {  # task: columns of the hub, and a row for each number
    "boolq": (
        {"question": TEXT, "answer": Value("bool"), "passage": TEXT},
        lambda n: {"question": f"is it {n}", "answer": bool(n % 2), "passage": f"the {WORDS[n % 4]} is old"},
    ),
    "rte": (
        {"sentence1": TEXT, "sentence2": TEXT, "label": choose(["entailment", "not_entailment"])},
        lambda n: {"sentence1": f"a {WORDS[n % 4]} {n}", "sentence2": "it is so", "label": n % 2},
    ),
    "cb": (
        {"premise": TEXT, "hypothesis": TEXT, "label": choose(["entailment", "contradiction", "neutral"])},
        lambda n: {"premise": f"it was {n}", "hypothesis": f"a {WORDS[n % 4]}", "label": n % 3},
    ),
    "copa": (
        {
            **dict.fromkeys(("premise", "choice1", "choice2", "question"), TEXT),
            "label": choose(["choice1", "choice2"]),
        },
        lambda n: {
            "premise": f"it rained {n}", "choice1": "wet", "choice2": "dry", "question": "effect", "label": n % 2
        },
    ),
    "multirc": (
        {**dict.fromkeys(("paragraph", "question", "answer"), TEXT), "label": BOTH},
        lambda n: {
            "paragraph": "<b>Sent 1: </b>It rained.<br>", "question": f"why {n // 2}", "answer": WORDS[n % 2],
            "label": n % 2,
        },
    ),
    "record": (
        {"passage": TEXT, "query": TEXT, "entities": Sequence(TEXT), "entity_spans": SPANS, "answers": Sequence(TEXT)},
        lambda n: {
            "passage": PASSAGE, "query": f"@placeholder left {n}", "entities": ["Anna", "Ben"],
            "entity_spans": {"text": ["Anna", "Ben", "Ben"], "start": [0, 9, 45], "end": [4, 12, 48]},
            "answers": [("Ben", "Anna")[n % 2]],
        },
    ),
    "wic": (
        {**dict.fromkeys(("word", "sentence1", "sentence2"), TEXT), "start1": NUMBER, "label": BOTH},
        lambda n: {
            "word": "bank", "sentence1": f"the bank of {n}", "sentence2": "a bank", "start1": 4, "label": n % 2
        },
    ),
    "wsc": (
        {
            "text": TEXT, "span1_index": NUMBER, "span2_index": NUMBER, "span1_text": TEXT, "span2_text": TEXT,
            "label": BOTH,
        },
        lambda n: {
            "text": f"The old man saw {n} as he sat.", "span1_index": 0, "span2_index": 6, "span1_text": "The old man",
            "span2_text": "he", "label": n % 2,
        },
    ),
    "race": (
        {"article": TEXT, "question": TEXT, "options": Sequence(TEXT), "answer": TEXT},
        lambda n: {
            "article": f"a red house {n}", "question": "what is _ ?", "options": list(WORDS), "answer": "ABCD"[n % 4]
        },
    ),
    "cnn_dailymail": (
        {"article": TEXT, "highlights": TEXT, "id": TEXT},
        lambda n: {"article": f"a long {WORDS[n % 4]} {n}", "highlights": f"a {WORDS[n % 4]}", "id": str(n)},
    ),
    "wmt14_en_de": (
        {"translation": {"de": TEXT, "en": TEXT}},
        lambda n: {"translation": {"de": f"ein Fluss {n}", "en": f"a river {n}"}},
    ),
}  # fmt: skip
READ = {  # what T5 reads of the first row, and what it writes
    "boolq": ("boolq passage: the river is old question: is it 0", "False"),
    "rte": ("rte sentence1: a river 0 sentence2: it is so", "entailment"),
    "cb": ("cb hypothesis: a river premise: it was 0", "entailment"),
    "copa": ("copa choice1: wet choice2: dry premise: it rained 0 question: effect", "choice1"),
    "multirc": ("multirc question: why 0 answer: river paragraph: Sent 1: It rained.", "False"),
    "record": (f"record query: @placeholder left 0 entities: Anna, Ben passage: {READ}", "Ben"),
    "wic": ("wic sentence1: the bank of 0 sentence2: a bank word: bank", "False"),
    "wsc": ("wsc text: * The old man * saw 0 as # he # sat.", "False"),
    "race": ("race A: river B: house C: road D: garden article: a red house 0 question: what is _ ?", "A"),
    "cnn_dailymail": ("summarize: a long river 0", "a river"),
    "wmt14_en_de": ("translate English to German: a river 0", "ein Fluss 0"),
}
WRITTEN = ("cnn_dailymail", "wmt14_en_de")
CBT = (
    {"sentences": Sequence(TEXT), **dict.fromkeys(("question", "answer"), TEXT), "options": Sequence(TEXT)},
    lambda n: {
        "sentences": [f"{at} There was a {WORDS[at % 4]} ." for at in range(20)], "question": "21 The XXXXX is old .",
        "options": [*WORDS, "tree", "stone", "wall", "roof", "gate", "well"], "answer": WORDS[n % 4],
    },
)  # fmt: skip
SCORED: dict[str, tuple[dict[str, Any], Any]] = {
    "cbt_cn": CBT,
    "cbt_ne": CBT,
    "lambada": (
        {"text": TEXT, "domain": TEXT},
        lambda n: {"text": f"it rained {n} on the {WORDS[n % 4]}", "domain": "x"},
    ),
}


def make(folder: Path, name: str) -> list[str]:
    """A folder as the hub has it, and the overrides that read it."""
    columns, row = {**HUB, **SCORED}[name]
    for split, count in (("train", 24), ("validation", 8), ("test", 8)):
        data = Dataset.from_list([row(n) for n in range(count)], features=Features(columns))
        (folder / "data").mkdir(parents=True, exist_ok=True)
        data.to_parquet(str(folder / f"data/{split}-00000-of-00001.parquet"))
    return [f"task={name}", f"tasks.{name}.path={folder}", f"tasks.{name}.config=null"]


@pytest.mark.parametrize("name", HUB)
def test_t5_reads_what_its_authors_give_it(name: str, tmp_path: Path) -> None:
    task = build(compose(["scale=test", *make(tmp_path / name, name)]).tasks[name])
    first = task.examples(tmp_path)["train"][0]
    words = task.task_type.verbalize(task.fields, False)
    assert " ".join(f"{announced} {text}" for announced, text in words.source(first)) == READ[name][0]
    assert words.target(first) == READ[name][1]
    assert len(task.examples(tmp_path)["validation"]) == 8


@pytest.mark.parametrize("name", sorted(HUB.keys() - {"boolq", "rte", *WRITTEN}))
def test_an_encoder_is_fine_tuned_on_it(name: str, tmp_path: Path, arguments: list[str]) -> None:
    folder = run(compose([*arguments, *make(tmp_path / name, name)]))
    metrics = json.loads((folder / "result.json").read_text())["task_runs"][0]["metrics"]
    assert metrics.keys() == set(build(compose(["scale=test", f"task={name}"]).tasks[name]).task_type.metrics)


@pytest.mark.parametrize("name", ["multirc", "race", "record", "wmt14_en_de"])
def test_a_model_that_writes_is_fine_tuned_on_it(name: str, tmp_path: Path, arguments: list[str]) -> None:
    sizes = ["family=t5", "tokenizer.vocab_size=100", "finetune.length=64"]
    folder = run(compose([*arguments, *make(tmp_path / name, name), *sizes]))
    assert json.loads((folder / "result.json").read_text())["task_runs"]


def test_a_question_counts_only_if_all_of_its_answers_are_right(tmp_path: Path) -> None:
    task = build(compose(["scale=test", *make(tmp_path / "m", "multirc")]).tasks.multirc)
    examples = [GroupedExample("a", None, label, group) for label, group in ((0, "x"), (1, "x"), (1, "y"))]
    assert task.task_type.score([0, 1, 0], examples) == pytest.approx({"f1": 2 / 3, "em": 0.5})
    assert task.examples(tmp_path)["train"][0].group != task.examples(tmp_path)["train"][2].group


def test_marks_of_two_spans_and_of_a_span_that_is_elsewhere() -> None:
    assert mark_two("a b. c d", "c", 2, "b", 1) == "a # b #. * c * d"
    assert mark_two("a b c", "c", 1, "b", 1) == "a # b # c"


def test_a_text_or_an_answer_that_is_missing_is_named(tmp_path: Path) -> None:
    own = make(tmp_path / "w", "wic")
    Dataset.from_list([{"word": " ", "sentence1": "a", "sentence2": "b", "label": 0}]).to_parquet(
        str(tmp_path / "w/data/train-00000-of-00001.parquet")
    )
    with pytest.raises(UserError, match="row 0 has no text in column 'word'"):
        build(compose(["scale=test", *own]).tasks.wic).examples(tmp_path)
    own = make(tmp_path / "r", "record")
    missing = {**HUB["record"][1](0), "answers": ["Carl"]}
    Dataset.from_list([missing]).to_parquet(str(tmp_path / "r/data/train-00000-of-00001.parquet"))
    with pytest.raises(UserError, match="row 0 of train has no answer"):
        build(compose(["scale=test", *own]).tasks.record).examples(tmp_path)


@pytest.mark.parametrize("name", SCORED)
def test_a_left_to_right_model_answers_it_without_training(name: str, tmp_path: Path, arguments: list[str]) -> None:
    left = ["objective=clm", "masking=none", "model.attention=left", "finetune.length=512", "model.positions=512"]
    folder = run(compose([*arguments, *left, *make(tmp_path / name, name)]))
    record = json.loads((folder / "result.json").read_text())
    metrics = record["task_runs"][0]["metrics"]
    assert metrics.keys() == set(build(compose(["scale=test", f"task={name}"]).tasks[name]).task_type.metrics)
    assert record["tuned"] == {}
