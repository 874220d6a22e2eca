"""Baselines: against hand counts, the same every time, kept by the task's fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.tasks import baselines as module
from paribus.tasks.baselines import bag_of_words, baselines
from paribus.tasks.example import Example
from paribus.tasks.table import Table

GLUE = Path(__file__).parents[1] / "../shared/data/glue"
COLUMNS = {"text": "sentence", "label": "label"}
TRAIN = [("a warm film", 1), ("a cold film", 0), ("warm warm light", 1), ("cold night", 0), ("cold and grey", 0)]
VALIDATION = [("warm", 1), ("the cold", 0), ("cold light film", 1), ("nothing here", 0)]


@pytest.fixture
def task(tmp_path: Path) -> Table:
    for split, rows in (("train", TRAIN), ("validation", VALIDATION)):
        columns = {"sentence": [text for text, _ in rows], "label": [label for _, label in rows]}
        pq.write_table(pa.table(columns), tmp_path / f"{split}.parquet")
    return Table("toy", COLUMNS, ["bad", "good"], ["accuracy", "matthews"], path=str(tmp_path))


def test_values_by_hand(task: Table, tmp_path: Path) -> None:
    found = baselines(task, tmp_path / "cache")
    assert found["accuracy"]["majority"] == 0.5
    assert found["matthews"]["majority"] == 0.0
    assert found["accuracy"]["bag_of_words"] == 0.75
    assert list(found) == ["accuracy", "matthews"]


def test_kept_by_fingerprint(task: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    first = baselines(task, cache)
    path = cache / "baselines" / f"{task.fingerprint(cache)}.json"
    assert json.loads(path.read_text())["values"] == first
    monkeypatch.setattr(module, "bag_of_words", None)  # a second fit would fail
    assert baselines(task, cache) == first


def test_other_metrics_are_measured_anew(task: Table, tmp_path: Path) -> None:
    baselines(task, tmp_path / "cache")
    other = Table("toy", COLUMNS, ["bad", "good"], ["f1"], path=str(tmp_path))
    assert other.fingerprint(tmp_path / "cache") == task.fingerprint(tmp_path / "cache")
    assert list(baselines(other, tmp_path / "cache")) == ["f1"]


def test_a_pair_is_two_bags() -> None:
    """The same words in the other place mean the other class."""
    rows = [Example("red", "blue", 0), Example("blue", "red", 1)] * 5
    assert bag_of_words(rows, rows).tolist() == [0, 1] * 5


@pytest.mark.skipif(not (GLUE / "sst2").is_dir(), reason="no local GLUE")
def test_sst2_is_above_majority(tmp_path: Path) -> None:
    classes = ["negative", "positive"]
    sst2 = Table("sst2", COLUMNS, classes, path=str(GLUE / "sst2"), max_train=4000)
    found = baselines(sst2, tmp_path)["accuracy"]
    assert found["majority"] == pytest.approx(444 / 872)
    assert 0.68 < found["bag_of_words"] < 0.82
