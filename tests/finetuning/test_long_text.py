"""Long texts: every way to read them works, in rows that are longer than those of pre-training."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stories import story

from paribus.core.config import compose
from paribus.training.run import run

STREAMS = [
    "model._target_=paribus.models.memory.MemoryBert",
    "+model.memory=16",
    "model.attention=left",
    "objective=stream_lm",
    "input=streams",
    "masking=none",
]
SPARSE = ["+model/change@model.changes.visibility=longformer", "model.changes.visibility.width=8"]


@pytest.fixture(scope="module")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews of several hundred tokens in the layout of imdb."""
    folder = tmp_path_factory.mktemp("imdb")
    for split, count in (("train", 12), ("test", 6)):
        rows = [
            {
                "text": " ".join(story(9 * n + part) for part in range(3)) + f" {('dull', 'fine')[n % 2]}.",
                "label": n % 2,
            }
            for n in range(count)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}.parquet")
    return folder


@pytest.mark.parametrize(
    "way",
    [
        ["finetune.length=300", "model/position=rotary", *SPARSE],
        ["finetune/head/windows=memory", *STREAMS],
        ["finetune/head/windows=memory", "model=xlnet_tiny", "input=xlnet_pair", "model.memory=16"],
        ["finetune.truncation=random_sentences"],
        ["finetune.truncation=central_sentences"],
    ],
    ids=["sparse", "memory", "xlnet", "random", "central"],
)
def test_a_long_text_is_read(way: list[str], arguments: list[str], long_folder: Path) -> None:
    task = ["task=imdb", f"tasks.imdb.path={long_folder}", "finetune.batch_size=4"]
    record = json.loads((run(compose([*arguments, *task, *way])) / "result.json").read_text())
    assert 0 <= record["metrics"]["imdb/accuracy"] <= 1
