"""`paribus show` on text-to-text objectives: the rows of T5's table 3 on one sentence, and the file's columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from paribus.commands.cli import main

SENTENCE = "The old sailor wrote a letter near the river. A friend watched the house."
ROWS = {
    "prefix_lm": ["masking=prefix", "objective/inputs=drop", "objective/targets=drop", "input.cross=false"],
    "iid_15_r10s90_f": ["masking=iid", "objective/inputs=mask_random", "objective/targets=full"],
    "all_permute": ["masking=permute", "objective/inputs=permuted", "objective/targets=full", "input.cross=false"],
    "iid_15_m_f": ["masking=iid", "objective/inputs=mask", "objective/targets=full"],
    "iid_15_u_u": ["masking=iid"],
    "iid_15_d_d": ["masking=iid", "objective/inputs=drop", "objective/targets=drop"],
    "span_3_15_u_u": ["masking=random_spans"],
    "span_2_25_s_s": [
        "masking=random_spans",
        "masking.rate=0.25",
        "masking.mean_length=2",
        "objective/inputs=shared",
        "objective/targets=shared",
    ],
    "infilling_3_30_s_f": [
        "masking=infilling",
        "objective/inputs=shared",
        "objective/inputs.symbol=mask",
        "objective/targets=full",
    ],
    "deletion_15_d_f": ["masking=deletion", "objective/inputs=drop", "objective/targets=full"],
    "rotation_p_f": ["masking=rotation", "objective/inputs=permuted", "objective/targets=full"],
    "sentences_p_f": ["masking=sentence_permutation", "objective/inputs=permuted", "objective/targets=full"],
    "fragment_50_r10k10s80_fragment": [
        "masking=fragment",
        "objective/inputs=mask_80_10_10",
        "objective/targets=fragment",
    ],
}


@pytest.fixture
def settings(arguments: list[str]) -> list[str]:
    return [*arguments, "objective=denoising", "input=windows", "tokenizer.sentinels=20", "masking=random_spans"]


@pytest.mark.parametrize("name", ROWS)
def test_every_row_on_one_sentence(name: str, settings: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    row = [text.replace("objective/inputs.", "objective.inputs.") for text in ROWS[name]]
    assert main(["show", *settings, *row, "input.length=64", f"text={SENTENCE}"]) == 0
    out, drawn = capsys.readouterr()
    report = json.loads(out)
    assert (report["objective"], report["examples"]) == (name, 1)
    text, read, written = (
        line.split(None, 1)[1] for line in drawn.splitlines() if line.startswith(("  text", "  inputs", "  targets"))
    )
    assert text == SENTENCE.lower().replace(".", " .").replace("  ", " ") or text.startswith("the old sailor wrote")
    assert read != text
    if name.endswith("_f") or name == "all_permute":
        assert written == f"{text} [SEP]"
    if name in ("span_3_15_u_u", "iid_15_u_u"):
        assert "<extra_id_0>" in read
        assert "<extra_id_0>" in written
    if name == "rotation_p_f":
        words = read.removesuffix(" [SEP]").replace(" ", "")
        assert sorted(words.replace("#", "")) == sorted(text.replace(" ", "").replace("#", ""))
    assert {"raw_tokens", "input_tokens", "target_tokens", "noise", "spans", "corruption_rate"} <= set(report)


def test_rows_of_the_file(settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.parquet"
    assert main(["show", *settings, "n=300", f"out={out}", "epoch=2"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    assert [row["example_id"] for row in rows] == list(range(report["examples"]))
    specials = report["special_tokens"]
    for row in rows:
        text = iter(row["original_ids"])
        spans, end = row["decoder_labels"][:-1], specials["[SEP]"]
        assert row["input_ids"][-1] == row["decoder_labels"][-1] == end
        assert len(row["labels"]) == len(row["token_type_ids"]) == len(row["input_ids"]) <= 32
        assert len(row["word_starts"]) == len(row["original_ids"])
        first = specials["<extra_id_0>"]
        for token in row["input_ids"][:-1]:
            if token <= first - 20:
                assert token == next(text)
                continue
            assert spans.pop(0) == token
            while spans and spans[0] <= first - 20:
                assert spans.pop(0) == next(text)
        assert next(text, None) is None
    assert sum(len(row["decoder_labels"]) for row in rows) == report["target_tokens"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["tokenizer.sentinels=2"], "tokenizer.sentinels=2: set tokenizer.sentinels="),
        (["masking.rate=0"], "masking.rate=0"),
        (["masking.rate=1"], "masking.rate=1"),
        (["masking.mean_length=30"], "masking.mean_length=30 is longer than the noise"),
        (["input=full_sentences"], "set input=windows"),
        (["objective=mlm"], "rows of this input have no [CLS] and [SEP]"),
        (["masking=rotation"], "Rotation reorders the text"),
        (["objective/inputs=permuted"], "RandomSpans does not reorder the text"),
        (["text= "], "holds no token"),
        (["text="], "give a value"),
    ],
)
def test_bad_settings_are_one_line(
    changes: list[str], said: str, settings: list[str], refusal: Callable[..., str]
) -> None:
    assert said in refusal("show", *settings, "input.length=64", *changes)


def test_in_place_objectives_refuse_what_has_no_place(arguments: list[str], refusal: Callable[..., str]) -> None:
    for masking in ("permute", "all", "infilling", "rotation", "sentence_permutation"):
        assert "nothing to predict in place" in refusal("show", *arguments, f"masking={masking}")
