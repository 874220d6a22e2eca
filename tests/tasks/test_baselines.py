"""Baselines: against hand counts, the same every time, kept by the task's fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.tasks import baselines as module
from paribus.tasks.baselines import classify_by_words, compare_words, measure_baselines, regress_by_words
from paribus.tasks.examples import Example
from paribus.tasks.tables.table import LabelTable

GLUE = Path(__file__).parents[2] / "../shared/data/glue"
COLUMNS = {"text": "sentence", "label": "label"}
TRAIN = [("a warm film", 1), ("a cold film", 0), ("warm warm light", 1), ("cold night", 0), ("cold and grey", 0)]
VALIDATION = [("warm", 1), ("the cold", 0), ("cold light film", 1), ("nothing here", 0)]


@pytest.fixture
def task(tmp_path: Path) -> LabelTable:
    for split, rows in (("train", TRAIN), ("validation", VALIDATION)):
        columns = {"sentence": [text for text, _ in rows], "label": [label for _, label in rows]}
        pq.write_table(pa.table(columns), tmp_path / f"{split}.parquet")
    return LabelTable("toy", COLUMNS, ["bad", "good"], ["accuracy", "matthews"], path=str(tmp_path))


def test_values_by_hand(task: LabelTable, tmp_path: Path) -> None:
    found = measure_baselines(task, tmp_path / "cache")
    assert found["accuracy"]["majority"] == 0.5
    assert found["matthews"]["majority"] == 0.0
    assert found["accuracy"]["bag_of_words"] == 0.75
    assert list(found) == ["accuracy", "matthews"]


def test_kept_by_fingerprint(task: LabelTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = measure_baselines(task, cache)
    path = cache / "baselines" / f"{task.data_hash(cache)}.json"
    assert json.loads(path.read_text())["values"] == first
    monkeypatch.setattr(module, "_measure", None)  # a second fit would fail
    assert measure_baselines(task, cache) == first


def test_other_metrics_are_measured_anew(task: LabelTable, tmp_path: Path) -> None:
    measure_baselines(task, tmp_path / "cache")
    other = LabelTable("toy", COLUMNS, ["bad", "good"], ["f1"], path=str(tmp_path))
    assert other.data_hash(tmp_path / "cache") == task.data_hash(tmp_path / "cache")
    assert list(measure_baselines(other, tmp_path / "cache")) == ["f1"]


def test_a_pair_is_two_bags() -> None:
    """The same words in the other place mean the other class."""
    rows = [Example("red", "tan", 0), Example("tan", "red", 1)] * 5
    assert classify_by_words(rows, rows).tolist() == [0, 1] * 5


def pairs(seed: int, count: int) -> list[Example]:
    """Ten letters a word; texts of a pair share most of their words or none; no word tells which."""
    draw = np.random.default_rng(seed)

    def words(number: int) -> list[str]:
        return ["".join(draw.choice(list("abcdefghijklmnop"), 10)) for _ in range(number)]

    rows = []
    for at in range(count):
        common, own, other = words(4 * (at % 2)), words(6 - 4 * (at % 2)), words(6)
        rows.append(Example(" ".join([*common, *own]), " ".join([*common, *other]), at % 2))
    return rows


def test_what_the_texts_of_a_pair_share_is_seen() -> None:
    train, validation = pairs(0, 60), pairs(1, 40)
    assert classify_by_words(train, validation).tolist() == [row.label for row in validation]
    values = regress_by_words(train, validation)
    assert np.corrcoef(values, [row.label for row in validation])[0, 1] > 0.9
    likeness = compare_words(train, validation)
    assert min(likeness[1::2]) > max(likeness[::2])


def test_parts_of_words_are_seen() -> None:
    draw = np.random.default_rng(0)
    ends = [("ing", "ness")[at % 2] for at in range(120)]
    rows = [Example("".join(draw.choice(list("bcdfgh"), 6)) + end, None, at % 2) for at, end in enumerate(ends)]
    found = classify_by_words(rows[:60], rows[60:])
    assert found.tolist() == [0, 1] * 30


@pytest.mark.parametrize("count", [2, 3])
def test_a_few_examples_are_enough(count: int) -> None:
    rows = [Example("warm light", None, 1), Example("cold night", None, 0), Example("a cold day", None, 0)][:count]
    assert classify_by_words(rows, rows).tolist() == [row.label for row in rows]


@pytest.mark.skipif(not (GLUE / "sst2").is_dir(), reason="no local GLUE")
def test_sst2_is_above_majority(tmp_path: Path) -> None:
    classes = ["negative", "positive"]
    sst2 = LabelTable("sst2", COLUMNS, classes, path=str(GLUE / "sst2"), max_train=4000)
    found = measure_baselines(sst2, tmp_path)["accuracy"]
    assert found["majority"] == pytest.approx(444 / 872)
    assert 0.68 < found["bag_of_words"] < 0.82
