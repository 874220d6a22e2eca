"""`paribus show` from the command line to the file, on a small corpus."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from paribus.commands.cli import main

IN_PLACE = ["bernoulli", "geometric_span", "ngram", "subword_span", "whole_word", "random_spans", "iid", "deletion"]


def shown(arguments: list[str], out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], list[Any]]:
    assert main(["show", *arguments, "n=50", f"out={out}"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report, pq.read_table(out).to_pylist()


def test_rates_and_rows(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, rows = shown([*arguments, "masking.rate=0.3"], tmp_path / "a.parquet", capsys)
    assert [row["example_id"] for row in rows] == list(range(report["examples"]))
    assert max(len(row["input_ids"]) for row in rows) <= 32
    for row in rows:
        predicted = sum(label >= 0 for label in row["labels"])
        assert predicted == max(1, round(0.3 * len(row["labels"])))
    specials = set(report["special_tokens"].values())
    assert {"[CLS]", "[SEP]", "[MASK]", "[PAD]"} <= set(report["special_tokens"])
    assert all(
        label == -100 and start
        for row in rows
        for original, label, start in zip(row["original_ids"], row["labels"], row["word_starts"], strict=True)
        if original in specials
    )


def test_schedule_and_seed(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def labels(*extra: str) -> list[list[int]]:
        _, rows = shown([*arguments, *extra], tmp_path / "b.parquet", capsys)
        return [row["labels"] for row in rows]

    first = labels("epoch=0")
    assert labels("epoch=1") != first
    assert labels("epoch=1", "masking/schedule=static") == first
    assert labels("epoch=6", "masking/schedule=copies", "masking.schedule.copies=3") == first
    assert labels("seed=1") != first


@pytest.mark.parametrize("masking", IN_PLACE)
def test_every_masking_is_shown(
    masking: str,
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    trust: Callable[..., None],
) -> None:
    trust("fake_annotator")
    own = ["masking/annotator=function", "masking.annotator.call='fake_annotator:capitals'"]
    chosen = [f"masking={masking}", "masking.rate=0.3", *(own if masking == "annotated_span" else [])]
    report, rows = shown([*arguments, *chosen], tmp_path / "c.parquet", capsys)
    assert 0.2 < report["masking_rate"] == report["corruption_rate"] < 0.45
    assert report["predicted"] == sum(label >= 0 for row in rows for label in row["labels"])
    assert report["mean_span_length"] >= 1


def test_rows_are_shown_as_often_as_they_are_read(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [*arguments, "masking.rate=0.1", "masking.predict=0.3"]
    report, rows = shown(wanted, tmp_path / "d.parquet", capsys)
    assert [row["example_id"] for row in rows] == [number for number in range(report["examples"]) for _ in range(3)]
    assert report["predicted"] == report["noise"] == sum(label >= 0 for row in rows for label in row["labels"])
    for one, other in pairwise(rows):
        if one["example_id"] == other["example_id"]:
            assert one["original_ids"] == other["original_ids"]
            assert not any(a >= 0 <= b for a, b in zip(one["labels"], other["labels"], strict=True))


def test_noise_that_is_not_predicted_has_no_label(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, rows = shown([*arguments, "masking.rate=0.4", "masking.predict=0.2"], tmp_path / "e.parquet", capsys)
    assert report["predicted"] == sum(label >= 0 for row in rows for label in row["labels"])
    changed = [
        (read, label)
        for row in rows
        for read, original, label in zip(row["input_ids"], row["original_ids"], row["labels"], strict=True)
        if read != original
    ]
    assert 0.3 < sum(label < 0 for _, label in changed) / len(changed) < 0.7
    assert report["noise"] > 1.7 * report["predicted"]


BAD = [
    "n=none",
    "masking.rate=2",
    "masking.rate=0.001",
    "masking.predict=0.4",
    "objective.view.keep=0.5",
    "objective.view.unit=page",
    "input.length=2",
    "out=rows.csv",
]


@pytest.mark.parametrize("setting", BAD)
def test_bad_input_ends_with_status_two(setting: str, arguments: list[str], refusal: Callable[..., str]) -> None:
    assert setting.partition("=")[0].rpartition(".")[2] in refusal("show", *arguments, setting)
