"""Sweeps whose arms differ in stages: what they share is trained once, and a stage can be matched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stories import story

from paribus.commands.cli import main
from paribus.verdict.metrics import find_incomparable, is_score

SWEEP = """# Text of two kinds after the first.
study: two_texts
varies: [stages]
matched: {matched}
base: ["corpus=text", "corpus.path={text}", "tokenizer.vocab_size=150", "task=sst2", "tasks.sst2.path={task}",
  "finetune.forgetting=true"]
arms:
  as_it_is: []
  own: [+stages.further.trainer.max_steps=2, "+stages.further.corpus.path={own}"]
  other: [+stages.further.trainer.max_steps={steps}, "+stages.further.corpus.path={other}"{hidden}]
baseline: as_it_is
columns: [mlm_loss, stage_forgetting, sst2/accuracy, sst2/forgetting]
claims:
  - own > other on stage_forgetting, sst2/forgetting, margin 0.1 nats
  - own > other on sst2/accuracy, margin 1 points
"""


@pytest.fixture
def sweep(text_folder: Path, task_folder: Path, tmp_path: Path) -> Any:
    """Writes the sweep with the steps of its third arm, what is matched and a further override; returns its path."""
    texts = {}
    for name, first in (("own", 200), ("other", 400)):
        texts[name] = tmp_path / name
        texts[name].mkdir()
        for split, at in (("train", first), ("validation", first + 100)):
            (texts[name] / f"{split}.txt").write_text("\n\n".join(story(n, 20) for n in range(at, at + 12)) + "\n")

    def write(steps: int = 2, matched: str = "further.steps", hidden: str = "") -> str:
        path = tmp_path / "two_texts.yaml"
        path.write_text(
            SWEEP.format(text=text_folder, task=task_folder, steps=steps, matched=matched, hidden=hidden, **texts)
        )
        return str(path)

    return write


def run(path: str, cache: Path, tmp_path: Path, *more: str) -> int:
    folder = f"runs={tmp_path / 'runs'}"
    return main(["run", path, "scale=test", folder, f"cache={cache}", "slots=1", "profile.threads=1", *more])


def table(path: str, tmp_path: Path) -> dict[str, Any]:
    assert main(["table", path, "scale=test", f"runs={tmp_path / 'runs'}", f"out={tmp_path / 'out'}"]) == 0
    (found,) = (tmp_path / "out").rglob("table.json")
    content: dict[str, Any] = json.loads(found.read_text())
    return content


def test_arms_train_their_common_stage_once_for_each_seed_and_the_table_shows_what_is_forgotten(
    sweep: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import paribus.training.pretrain as module

    trained: list[str] = []
    take = module.take_steps
    count = lambda stage, *rest: (trained.append(stage.run.last_stage), take(stage, *rest))  # noqa: E731
    monkeypatch.setattr(module, "take_steps", count)
    path = sweep()
    assert run(path, cache, tmp_path) == 0
    assert sorted(trained) == ["further"] * 4 + ["pretraining"] * 2  # 2 seeds
    found = table(path, tmp_path)
    arms = {arm["name"]: arm["metrics"] for arm in found["arms"]}
    assert arms["as_it_is"]["stage_forgetting"]["values"] == [0.0, 0.0]
    assert all(value != 0.0 for value in arms["own"]["stage_forgetting"]["values"])
    assert arms["own"]["sst2/forgetting"]["values"] != arms["other"]["sst2/forgetting"]["values"]
    reasons = {name: about["reason"] for name, about in found["about"].items()}
    assert reasons["stage_forgetting"] is reasons["sst2/forgetting"] is None
    assert "arms differ in stages" in reasons["mlm_loss"]
    assert found["budget"]["arms"]["own"]["further.steps"] == 2.0
    assert "further.steps" not in found["budget"]["arms"]["as_it_is"]
    scratch = next(tmp_path.glob("runs/two_texts/from_scratch/*/result.json"))
    assert "stages" not in json.loads(scratch.read_text())
    assert "sst2/forgetting" not in json.loads(scratch.read_text())["metrics"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"steps": 3, "matched": "further.steps"}, "differ by more than 1% in further.steps"),
        ({"matched": "later.steps"}, "no arm trains the stage"),
        ({"matched": "further.meters"}, "matched 'further.meters' is unknown"),
        ({"hidden": ", masking.rate=0.3"}, "masking.rate"),
    ],
)
def test_unequal_stages_and_hidden_keys_are_told_before_compute(
    sweep: Any, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any], said: str
) -> None:
    path = sweep(**wrong)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("paribus.sweeps.expand.TRIAL", "none")
        assert run(path, cache, tmp_path) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob("pretrain.json"))


def test_what_is_forgotten_can_be_compared_on_other_text_but_not_under_other_masks() -> None:
    assert not is_score("sst2/forgetting")
    assert is_score("sst2/accuracy")
    assert find_incomparable("stage_forgetting", ("stages.further.corpus", "stages.further.trainer")) is None
    assert "stages.further.masking" in str(find_incomparable("sst2/forgetting", ("stages.further.masking.rate",)))
    assert "stages.further.corpus" in str(find_incomparable("mlm_loss", ("stages.further.corpus",)))
    assert find_incomparable("mlm_loss", ("stages.further.optimizer.lr",)) is None
