"""A head on the encoder of a text-to-text model: its states, a record, what is frozen, what is only pre-trained on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from stories import story
from text_to_text import T5

from paribus.core.config import compose
from paribus.models.text_to_text import TextEncoder
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run

ENCODER = "finetune.encoder=true"
FEATURES = ["finetune/method=frozen", "finetune/head/layers=concat", "finetune.head.layers.read=[0,-1]"]


@pytest.fixture
def t5(arguments: list[str], task_folder: Path) -> list[str]:
    """Overrides of a text-to-text run of seconds with a task of two labels."""
    return [*arguments, *T5, "task=sst2", f"tasks.sst2.path={task_folder}", "finetune.length=64"]


def record(*overrides: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run(compose(list(overrides))) / "result.json").read_text())
    return found


@pytest.fixture
def pairs(t5: list[str], tmp_path: Path) -> list[str]:
    """The same, and texts to write from others."""
    own = tmp_path / "pairs"
    own.mkdir()
    for split in ("train", "validation"):
        lines = [f"{story(n, 1)[:40]},{story(n + 1, 1)[:20]}" for n in range(24)]
        (own / f"{split}.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    return [*t5, "task=[sst2,text_table]", f"tasks.text_table.path={own}"]


def test_the_states_are_those_of_the_encoder(t5: list[str]) -> None:
    chosen = Run.of(compose(t5))
    resolve(chosen.profile)
    whole: Any = chosen.model.build(chosen.data().vocabulary, 1)
    own = TextEncoder(whole).eval()
    whole.eval()
    batch = {"ids_BL": torch.randint(5, 90, (3, 8)), "length_B": torch.tensor([8, 5, 2]), "full": False}
    mask_BL = torch.arange(8) < batch["length_B"][:, None]
    states = own.states(batch)
    expected = whole.backbone.encoder(input_ids=batch["ids_BL"], attention_mask=mask_BL).last_hidden_state
    assert torch.equal(own(batch).hidden_BLD, expected)
    assert torch.equal(states[own.depth], expected)
    assert torch.equal(states[0], whole.table_VD[batch["ids_BL"]])
    assert {id(p) for p in own.parameters()} < {id(p) for p in whole.parameters()}
    assert own.depth_of("backbone.embed_tokens.weight") == 0


def test_a_head_on_the_encoder_has_a_record(t5: list[str]) -> None:
    words, head = record(*t5), record(*t5, ENCODER)
    assert set(words["task_runs"][0]["metrics"]) == {"accuracy", "unknown_rate"}
    assert set(head["task_runs"][0]["metrics"]) == {"accuracy"}
    assert words["pretrain_signature"] == head["pretrain_signature"]
    assert words["signature"] != head["signature"]
    features = record(*t5, ENCODER, *FEATURES)
    assert features["tuned"]["trained_parameters"] == features["tuned"]["head_parameters"]
    assert head["tuned"]["trained_parameters"] > head["tuned"]["head_parameters"]


@pytest.mark.slow
def test_a_head_on_the_encoder_learns(t5: list[str]) -> None:
    own = ["finetune.epochs=20", "finetune.batch_size=16", "finetune.optimizer.lr=2e-3", "model.dropout=0"]
    assert record(*t5, ENCODER, *own)["metrics"]["sst2/accuracy"] == 1.0


def test_texts_to_write_are_only_pre_trained_on(pairs: list[str]) -> None:
    own = [*pairs, ENCODER, "mixture=equal", "mixture.tasks=[text_table]", "mixture.denoising=false"]
    found = record(*own)
    assert {each["task"] for each in found["task_runs"]} == {"sst2"}
    assert found["pretrain_signature"] != record(*pairs, ENCODER)["pretrain_signature"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["model.architecture=prefix_lm"], "finetune.encoder=true, but the model has only one stack"),
        (["finetune.forgetting=true"], "finetune.encoder=true leaves out the decoder"),
        (["evaluation.task_points=2"], "finetune.encoder=true"),
        (["finetune.head.pooler=pretrained", "finetune/head/pooling=cls"], "finetune.head.pooler=pretrained"),
        (["finetune.epochs=0"], "leaves a new head untrained"),
    ],
)
def test_what_an_encoder_cannot_do_is_told(
    t5: list[str], bad: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*t5, ENCODER, *bad)


def test_an_encoder_and_a_task_to_write_are_told(
    arguments: list[str], task_folder: Path, pairs: list[str], refused_run: Callable[..., str]
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    assert "finetune.encoder=true, but the model is an encoder" in refused_run(*arguments, *task, ENCODER)
    folder = next(text for text in pairs if text.startswith("tasks.text_table.path="))
    assert "no task for an encoder" in refused_run(*arguments, *T5, "task=text_table", folder, ENCODER)
