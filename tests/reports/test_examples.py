"""What `paribus show` draws, writes and prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import tokenizers
from fake_store import CLS, MASK, SEP, FakeStore, FakeVocabulary, examples_of, random_store

from paribus.commands.show import show
from paribus.core.errors import UserError
from paribus.corruption.collators.stream import StreamCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.pairs import SegmentPair
from paribus.data.formats.streams import Streams
from paribus.data.mask_schedule import Static
from paribus.data.tokens.units import Bytes, Characters, GivenUnits
from paribus.reports.examples import show_examples


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Word pieces: every third token of the fake store goes on a word."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names += [f"##n{n}" if n % 3 == 2 else f"w{n}" for n in range(995)]
    model = tokenizers.models.WordPiece({name: at for at, name in enumerate(names)}, unk_token="[UNK]")
    return SimpleNamespace(backend=tokenizers.Tokenizer(model), vocabulary=FakeVocabulary())


@pytest.fixture(scope="module")
def store() -> FakeStore:
    return random_store(500, seed=2)


def written(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_rows_hold_the_contract_s_columns(store: FakeStore, tokenizer: Any, tmp_path: Path) -> None:
    examples = examples_of(store, 48)
    show_examples(examples, tokenizer, 30, 2, tmp_path / "deep" / "rows.parquet")
    rows = written(tmp_path / "deep" / "rows.parquet")
    assert [row["example_id"] for row in rows] == list(range(30))
    assert [len(row["input_ids"]) for row in rows] == examples.lengths(2)[:30].tolist()
    for row in rows:
        columns = [row[name] for name in ("input_ids", "labels", "original_ids", "token_type_ids", "word_starts")]
        for read, label, original, part, start in zip(*columns, strict=True):
            assert label in (-100, original)
            assert read == original or label == original
            assert start is True or original > MASK
            assert part == 0
        assert row["original_ids"][0] == CLS
        assert row["original_ids"][-1] == SEP
    text = [token for row in rows for token in row["original_ids"] if token > MASK]
    assert text == store.ids[: len(text)].tolist()


def test_ids_follow_the_corpus_whatever_the_epoch(store: FakeStore, tokenizer: Any, tmp_path: Path) -> None:
    examples = examples_of(store, 48)
    for epoch in (0, 1):
        show_examples(examples, tokenizer, 9, epoch, tmp_path / f"{epoch}.parquet")
    one, other = written(tmp_path / "0.parquet"), written(tmp_path / "1.parquet")
    assert [row["original_ids"] for row in one] == [row["original_ids"] for row in other]
    assert [row["labels"] for row in one] != [row["labels"] for row in other]


def test_stdout_is_one_json_object(
    store: FakeStore, tokenizer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = show_examples(examples_of(store, 48), tokenizer, 20, 0, tmp_path / "rows.parquet")
    out, err = capsys.readouterr()
    assert json.loads(out) == report
    labels = [label for row in written(tmp_path / "rows.parquet") for label in row["labels"]]
    assert report["predicted_share"] == pytest.approx(np.mean(np.array(labels) >= 0))
    assert report["special_tokens"] == {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    assert report["examples"] == 20
    assert "8 of 20 examples drawn" in err
    assert "#7" in err
    assert "#8" not in err


def test_the_drawing_reads_without_color(store: FakeStore, tokenizer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    examples = examples_of(store, 48, masking=Bernoulli(0.4, schedule=Static()))
    show_examples(examples, tokenizer, 6)
    drawn = capsys.readouterr().err
    views = examples.views(0, np.arange(6))
    original, read = views.text.ids_BL, views.inputs.ids_BL
    noise = views.marks.span_BL > 0
    assert "\x1b" not in drawn
    body = drawn.split("\n", 1)[1]
    assert body.count("[MASK](") == (read == MASK).sum()
    assert body.count("=") // 2 == (noise & (read == original)).sum()
    assert body.count("~(") == (noise & (read != original) & (read != MASK)).sum()
    assert "##" not in drawn
    assert "predicted tokens: [MASK](original)  ~random~(original)  =kept=" in drawn


@pytest.mark.parametrize("kind", [Characters, Bytes])
def test_white_space_that_is_text_is_drawn_as_it_stands(
    kind: type[GivenUnits], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n\nThe cat sat.\nIt  is #1, a cat."
    letters = kind(300).build([text], tmp_path)
    ids_T, start_T = letters.encode([text])[0]
    store = FakeStore(ids_T, start_T, np.array([0, len(ids_T)]), np.array([0, 1]))
    unchanged = Corruption(NoNoise(schedule=Static()), Unchanged())
    examples = Examples(store, Streams(64), unchanged, StreamCollator(), letters.vocabulary, seed=0, length=64)
    show_examples(examples, letters, 1)
    assert "#0  ↵↵The cat sat.↵It  is #1, a cat.\n" in capsys.readouterr().err


def test_color_on_demand(store: FakeStore, tokenizer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    show_examples(examples_of(store, 48), tokenizer, 2, color=True)
    assert "\x1b[1;31m[MASK](" in capsys.readouterr().err


def test_more_than_there_is_shows_all(store: FakeStore, tokenizer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    examples = examples_of(store, 48)
    report = show_examples(examples, tokenizer, 10**9)
    assert report["examples"] == examples.size(0)
    assert f"the corpus has {examples.size(0)} examples" in capsys.readouterr().err


def test_a_failed_file_is_named(store: FakeStore, tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        show_examples(examples_of(store, 48), tokenizer, 2, 0, tmp_path / "file" / "rows.parquet")
    with pytest.raises(UserError, match=r"out=/proc/rows\.parquet cannot be written \(No such file or directory\): ch"):
        show_examples(examples_of(store, 48), tokenizer, 2, 0, Path("/proc/rows.parquet"))


def test_a_file_that_cannot_be_written_is_named_before_anything_is_drawn(refusal: Callable[..., str]) -> None:
    said = refusal("show", "out=/proc/rows.parquet")
    assert said.startswith("paribus: /proc/rows.parquet cannot be written (No such file or directory): ")


@pytest.mark.parametrize("setting", ["n=0", "n=many", "n=-1", "epoch=1.5", "epoch=-1"])
def test_bad_counts_are_named(setting: str) -> None:
    with pytest.raises(UserError, match=setting):
        show([setting])


def test_pairs_are_drawn_and_written_with_their_label(
    store: FakeStore, tokenizer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = examples_of(store, 48, input_format=SegmentPair(48))
    show_examples(examples, tokenizer, 20, 0, tmp_path / "rows.parquet")
    labels = examples.batch(0, np.arange(20))["label_N"].tolist()
    rows = written(tmp_path / "rows.parquet")
    assert [row["pair_label"] for row in rows] == labels
    assert all(
        row["token_type_ids"] == sorted(row["token_type_ids"]) and row["token_type_ids"][-1] == 1 for row in rows
    )
    assert f"#7  label {labels[7]}  " in capsys.readouterr().err
