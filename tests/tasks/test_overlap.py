"""How much of a task's evaluation texts stands in the pre-training text: by hand, against a slow count, in a record."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.core.config import compose
from paribus.tasks import overlap as module
from paribus.tasks.examples import Example, QuestionExample, TaggedExample
from paribus.tasks.overlap import find_overlap
from paribus.training.run import run


class Words:
    """A token for each word that was ever seen."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def flat(self, sentences: list[str]) -> Any:
        words = " ".join(sentences).split()
        ids = [self.known.setdefault(word, len(self.known)) for word in words]
        lengths = np.array([len(sentence.split()) for sentence in sentences])
        return SimpleNamespace(ids_T=np.array(ids, np.uint32), length_S=lengths)


TOKENIZER: Any = Words()


def sentences(text: str) -> list[str]:
    return text.split(". ")


SPLITTER: Any = sentences
READ = " ".join(f"w{n}" for n in range(100))


def ids(text: str) -> np.ndarray[Any, Any]:
    return np.array(TOKENIZER.flat([text]).ids_T, np.uint16)


def words(*numbers: int) -> str:
    return " ".join(f"w{n}" for n in numbers)


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        (words(*range(20, 40)), True),
        (words(*range(20, 26)), True),  # shorter than a window
        (words(3), True),
        ("neverseen", False),
        (words(*range(20, 40), 7, *range(50, 70)), True),  # 26 of 34 windows
        (words(*range(20, 30), 7, *range(50, 60)), False),  # 6 of 14 windows
        (words(*range(40, 20, -1)), False),
        ("", False),
    ],
)
def test_a_text_stands_there_if_most_of_its_windows_do(text: str, stands: bool) -> None:
    assert find_overlap([Example(text, None, 0)], [ids(READ)], TOKENIZER, SPLITTER).tolist() == [stands]


def test_the_longest_text_of_an_example_counts() -> None:
    rows = [
        Example("neverseen", words(*range(30)), 0),
        Example(words(1, 2), "neverseen at all in what was read", 0),
        QuestionExample("neverseen", words(*range(30)), ["w1"], [0]),
        TaggedExample(words(*range(9)).split(), [0] * 9),
    ]
    assert find_overlap(rows, [ids(READ)], TOKENIZER, SPLITTER).tolist() == [True, False, True, True]


def test_any_of_several_texts_may_have_it_in_any_of_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 16)
    draw = np.random.default_rng(0)
    texts = [words(*draw.integers(0, 5, 400)) for _ in range(2)]
    rows = [Example(words(*draw.integers(0, 5, size)), None, 0) for size in draw.integers(1, 7, 80)]
    rows += [Example(" ".join(texts[at % 2].split()[at : at + 12]), None, 0) for at in range(0, 388, 7)]
    found = find_overlap(rows, [ids(text) for text in texts], TOKENIZER, SPLITTER)
    for row, stands in zip(rows, found.tolist(), strict=True):
        own = row.text.split()
        size = min(8, len(own))
        windows = [" ".join(own[at : at + size]) for at in range(len(own) - size + 1)]
        hits = [any(f" {window} " in f" {text} " for text in texts) for window in windows]
        assert stands == (sum(hits) / len(hits) >= 0.7), row.text


def test_the_record_has_it_and_it_is_told(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(f"word{n % 7}{n % 11} and so" for n in range(60))
    (tmp_path / "train.txt").write_text(f"{text}\n")
    (tmp_path / "validation.txt").write_text("and so word and " * 40 + "\n")
    for split, rows in (
        ("train", ["one day", "two days"]),
        ("validation", [text[:80], "not one is there", "One  day"]),
    ):
        pq.write_table(
            pa.table({"sentence": rows, "label": [n % 2 for n in range(len(rows))]}), tmp_path / f"{split}.parquet"
        )
    task = ["task=sst2", f"tasks.sst2.path={tmp_path}", "tasks.sst2.config=null"]
    own = [*task, f"corpus.path={tmp_path}/*.txt", "tokenizer.vocab_size=100"]
    record = json.loads((run(compose([*arguments, *own])) / "result.json").read_text())
    assert record["overlap"] == {"sst2": pytest.approx(1 / 3)}
    counted = {"examples": {"train": 2, "validation": 3}, "leaked": {"validation": 1}}
    assert record["task_examples"] == {"sst2": counted}
    assert "task sst2: 33.3% of its evaluation texts also occur in the pre-training text" in capfd.readouterr().err
    unread = json.loads((run(compose([*arguments, *own, "trainer.max_steps=0"])) / "result.json").read_text())
    assert unread["overlap"] == {}
