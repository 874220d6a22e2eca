"""Embeddings of texts: a classifier in training, their cosine in the evaluation; and nothing trained at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.tasks.examples import Example
from paribus.tasks.types.regression import Similarity
from paribus.training.description import Run
from paribus.training.run import run

TEXTS = ["a ship at sea", "the ship is at sea", "two men talk", "men are talking", "a dull film", "no film at all"]


def write(folder: Path, split: str, header: str, labels: list[Any]) -> None:
    folder.mkdir(exist_ok=True)
    rows = [f"{TEXTS[n % 6]},{TEXTS[n % 5]},{label}" for n, label in enumerate(labels)]
    (folder / f"{split}.csv").write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture
def own(tmp_path: Path) -> list[str]:
    """Overrides for a task on two folders: pairs with three classes, and pairs with values."""
    for split in ("train", "dev"):
        write(tmp_path / "nli", split, "premise,hypothesis,label", [n % 3 for n in range(18)])
    for split in ("train", "validation"):
        write(tmp_path / "sts", split, "sentence1,sentence2,label", [n % 6 for n in range(12)])
    places = {"learned": tmp_path / "nli", "scored": tmp_path / "sts"}
    return ["task=nli_stsb", *(f"tasks.nli_stsb.{k}.{key}={value}" for k, folder in places.items()
                               for key, value in (("path", folder), ("config", "null")))]  # fmt: skip


SIAMESE = ["finetune/head=siamese", "finetune/head/pooling=mean"]


def test_it_trains_on_classes_and_evaluates_on_values(own: list[str], arguments: list[str], tmp_path: Path) -> None:
    task = Run.of(compose([*arguments, *own])).tasks["nli_stsb"]
    found = task.examples(tmp_path / "cache")
    assert {row.label for row in found["train"]} == {0, 1, 2}
    assert [row.label for row in found["validation"]] == [n % 6 for n in range(12)]
    assert task.summary(tmp_path / "cache")["examples"] == {"train": 18, "validation": 12}


def test_the_cosine_is_scored_and_the_classifier_is_trained(own: list[str], arguments: list[str]) -> None:
    cfg = compose([*arguments, *own, *SIAMESE, "finetune.head.parts=[u,v,difference]"])
    record = json.loads((run(cfg) / "result.json").read_text())
    assert set(record["task_runs"][0]["metrics"]) == {"spearman", "pearson"}
    assert set(record["baselines"]["nli_stsb/spearman"]) == {"majority", "bag_of_words"}
    other = compose([*arguments, *own, *SIAMESE, "finetune.head.parts=[u,v,difference]", "finetune.epochs=4"])
    assert record["metrics"] != json.loads((run(other) / "result.json").read_text())["metrics"]


@pytest.mark.parametrize("head", [[], [*SIAMESE, "finetune.head.parts=cosine"]])
def test_it_needs_a_classifier_on_texts_that_are_read_apart(
    own: list[str], arguments: list[str], head: list[str]
) -> None:
    with pytest.raises(UserError, match=r"tasks\.nli_stsb is trained by a classifier on two texts that are read apart"):
        run(compose([*arguments, *own, *head]))


def test_a_value_is_scored_by_what_was_trained(own: list[str], arguments: list[str], tmp_path: Path) -> None:
    """A classifier on parts of two embeddings answers with its own output, not with a cosine that no loss has seen."""
    sts = ["task=stsb", f"tasks.stsb.path={tmp_path / 'sts'}", "tasks.stsb.config=null", *SIAMESE]
    spans = {}
    for parts in ("cosine", "[u,v]"):
        described = Run.of(compose([*arguments, *sts, f"finetune.head.parts={parts}"]))
        spans[parts] = described.task_type("stsb").answer_range(described.finetune)  # type: ignore[attr-defined]
    assert spans == {"cosine": (0.0, 5.0), "[u,v]": None}


def test_nothing_new_needs_no_epoch(own: list[str], arguments: list[str], tmp_path: Path) -> None:
    """Zero-shot similarity: the cosine of what pre-training left."""
    sts = ["task=stsb", f"tasks.stsb.path={tmp_path / 'sts'}", "tasks.stsb.config=null", "finetune.epochs=0", *SIAMESE]
    record = json.loads((run(compose([*arguments, *sts, "finetune.head.parts=cosine"])) / "result.json").read_text())
    assert -1 <= record["metrics"]["stsb/spearman"] <= 1
    for head in (["finetune.head.parts=[u,v]"], ["finetune.head.parts=cosine", "finetune/head/pooling=cnn"]):
        with pytest.raises(UserError, match="leaves a new head untrained"):
            run(compose([*arguments, *sts, *head]))


def test_scores_are_correlations_with_the_cosines() -> None:
    rows = [Example("a", "b", value) for value in (0.0, 2.0, 3.0, 5.0)]
    task_type = Similarity(("no", "yes"), ("pearson", "spearman"))
    assert task_type.score(np.array([[0.1], [0.2], [0.3], [0.9]]), rows)["spearman"] == pytest.approx(1.0)
