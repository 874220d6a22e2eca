"""A run that is a chain of pre-trainings: each starts from the weights of the one before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.run import run

FIRST = ["+stages.first.trainer.max_steps=3", "+masking@stages.first.masking=whole_word"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()}


@pytest.fixture
def two(arguments: list[str]) -> list[str]:
    return [*arguments, *FIRST, "trainer.max_steps=2"]


def test_a_stage_begins_where_the_one_before_ended(two: list[str]) -> None:
    folder = run(compose([*two, "trainer.max_steps=0"]))
    assert weights(folder) == weights(folder / "stages" / "first")
    alone = run(compose([*two[: -len(FIRST) - 1], "trainer.max_steps=0"]))
    assert weights(folder) != weights(alone)


def test_budgets_are_of_each_stage_and_in_sum(two: list[str]) -> None:
    folder, plan = run(compose(two)), planned(Run.of(compose(two)))
    found = record(folder)
    assert [(stage["stage"], stage["budget"]["steps"]) for stage in found["stages"]] == [("first", 3), ("", 2)]
    assert found["budget"]["steps"] == 5 == plan["steps"]
    assert (
        found["budget"]["input_tokens"] == sum(s["budget"]["input_tokens"] for s in found["stages"]) == plan["tokens"]
    )
    assert found["budget"]["flops"] == pytest.approx(plan["flops"], rel=0.05)
    for place in (folder, folder / "stages" / "first"):
        assert (place / "metrics.jsonl").read_text().count("train/lr") >= 1


def test_arms_share_a_first_stage_and_a_chain_has_its_own_name(
    two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = Run.of(compose(two)), Run.of(compose([*two, "masking.rate=0.3"]))
    assert one.chain[0].identity.pretrain == other.chain[0].identity.pretrain
    alone, longer = Run.of(compose(two[: -len(FIRST) - 1])), Run.of(compose([*two, "stages.first.trainer.max_steps=4"]))
    assert len({each.identity.pretrain for each in (one, other, alone, longer)}) == 4
    for config in (one.config, other.config):
        run(config)
    assert "pre-training found" in capsys.readouterr().err
    assert weights(one.identity.folder / "stages" / "first") == weights(other.identity.folder / "stages" / "first")


def test_a_stage_may_read_other_text_with_the_tokenizer_of_the_first(
    two: list[str], text_folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("train", "validation"):
        source = next(text_folder.glob(f"{name}*"))
        text = source.read_text() if source.is_file() else "".join(p.read_text() for p in sorted(source.iterdir()))
        (other / f"{name}.txt").write_text(text[: len(text) // 2])
    chain = Run.of(compose([*two, f"+stages.first.corpus.path={other}"])).chain
    first, last = (own.data() for own in chain)
    assert first.tokenizer_folder == last.tokenizer_folder
    assert first.fingerprint["text"] != last.fingerprint["text"]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("+stages.first.finetune.epochs=1", "stages.first.finetune"),
        ("+stages.first.model.hidden=64", "stages.first.model"),
    ],
)
def test_what_a_stage_cannot_have_is_told_before_compute(
    two: list[str], bad: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *two, bad]) == 2
    assert named in capsys.readouterr().err
    assert not list(tmp_path.rglob("pretrain.json"))
