"""The best of several candidates: how rows become examples, the loss, a run to its record, a head of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from stories import story

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.models.heads.head import Head, Loss
from paribus.models.heads.wrappers import OnOptions
from paribus.models.network import Batch, Outputs
from paribus.tasks.examples import Example
from paribus.tasks.tables.ranking import group_candidates
from paribus.training.description import Run
from paribus.training.run import run


class Given(Head):
    """Scores that the states themselves are."""

    denominator = "rows"
    loss = Loss()

    def logits(self, outputs: Outputs, batch: Batch) -> torch.Tensor:
        return outputs.row_BD

    def forward(self, outputs: Outputs, batch: Batch) -> torch.Tensor:
        raise AssertionError("options have their own loss")


def test_the_loss_is_over_the_candidates_of_each_text() -> None:
    """MT-DNN, section 3: one right candidate at 1.2 and a wrong one at 0.3 cost 0.341154; a third one counts too."""
    head = OnOptions(Given())
    both = {"place_BK": torch.tensor([[0, 1, -1], [2, 3, 4]]), "label_B": torch.tensor([0, 2])}
    outputs = Outputs(torch.tensor([1.2, 0.3, 0.0, 0.0, 0.0]).view(5, 1, 1))
    assert float(head(outputs, both)) == pytest.approx(0.341154 + 1.098612, abs=1e-6)
    assert head.logits(outputs, both)[0].tolist() == pytest.approx([1.2, 0.3, float("-inf")])


def test_rows_of_a_text_are_its_candidates() -> None:
    rows = [Example("who", "right one", 0), Example("who", "wrong one", 1), Example("who", "worse one", 1),
            Example("what", "right alone", 0), Example("when", "wrong alone", 1),
            Example("why", "a right", 0), Example("why", "second right", 0), Example("why", "wrong", 1)]  # fmt: skip
    found = group_candidates(rows, 0)
    assert [(row.text, row.options[row.label], len(row.options)) for row in found] == [
        ("who", "right one", 3), ("why", "a right", 2), ("why", "second right", 2)]  # fmt: skip
    assert group_candidates(list(reversed(rows)), 0)[-1] == found[0]  # the order of candidates is that of their hashes


@pytest.fixture
def ranked(arguments: list[str], tmp_path: Path) -> list[str]:
    """Overrides of a run of seconds with texts of two or three candidates and some with one; a word shows which."""
    for split, count in (("train", 40), ("validation", 12)):
        lines = ["question,sentence,label"]
        for n in range(count):
            question = f"which {story(n, 1)[:20]} {split}"
            labels = ["entailment"] if n % 4 == 3 else ["entailment", "not_entailment", "not_entailment"][: 2 + n % 2]
            for at, label in enumerate(labels):
                sign = "bright" if label == "entailment" else "dull"
                lines.append(f"{question},{sign} {story(n + 7 * at, 1)[:30]} {at},{label}")
        (tmp_path / f"{split}.csv").write_text("\n".join(lines) + "\n")
    own = [f"tasks.qnli_ranking.path={tmp_path}", "tasks.qnli_ranking.config=null", "finetune.batch_size=8"]
    return [*arguments, "task=qnli_ranking", *own]


def test_a_ranking_has_a_record(ranked: list[str], cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads((run(compose([*ranked, "finetune.length=32"])) / "result.json").read_text())
    assert set(found["task_runs"][0]["metrics"]) == {"accuracy"}
    assert found["baselines"]["qnli_ranking/accuracy"].keys() == {"majority", "bag_of_words"}
    assert (
        "task qnli_ranking: 3 of 12 texts of validation have no right or no wrong candidate" in capsys.readouterr().err
    )
    summary = Run.of(compose(ranked)).tasks["qnli_ranking"].summary(cache)
    assert summary["examples"] == {"train": 30, "validation": 9}
    assert summary["labels"]["validation"] == {"2": 6, "3": 3}


@pytest.mark.slow
def test_a_ranking_is_learned(ranked: list[str]) -> None:
    more = ["finetune.epochs=20", "finetune.optimizer.lr=3e-3", "trainer.max_steps=20"]
    assert (
        json.loads((run(compose([*ranked, *more])) / "result.json").read_text())["metrics"]["qnli_ranking/accuracy"]
        == 1
    )


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["tasks.qnli_ranking.right=yes"], "tasks.qnli_ranking.right=yes is not a class"),
        (["~tasks.qnli_ranking.columns.pair"], "tasks.qnli_ranking.columns"),
        (["tasks.qnli_ranking.metrics=[f1]"], "tasks.qnli_ranking.metrics"),
        (["finetune/head=san"], "finetune/head=san is for tasks on pairs of texts"),
        (["finetune/head=siamese"], "finetune/head=siamese is for tasks on pairs of texts"),
        (["finetune.label_smoothing=0.1"], "finetune.label_smoothing is set, but it does nothing"),
        (["+finetune.each.qnli_ranking.head=san"], "finetune.each.qnli_ranking.head=san is not a head"),
        (["+finetune/head@finetune.each.qnli_ranking.head=san"], "finetune/head=san is for tasks on pairs"),
        (["tasks.qnli_ranking.columns={text: sentence, pair: question, label: label}"], "no labeled examples in train"),
    ],
)
def test_what_is_no_ranking_is_told(
    ranked: list[str], bad: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*ranked, *bad)


def test_tasks_can_have_heads_of_their_own(ranked: list[str], task_folder: Path, tmp_path: Path) -> None:
    """MT-DNN's heads: SAN for classes of pairs, a classifier for single texts, a ranking, trained together."""
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for split in ("train", "validation"):
        lines = [f"{story(n, 1)[:30]},{('dull', 'bright')[n % 2]} {split} {n},{n % 2}" for n in range(24)]
        (pairs / f"{split}.csv").write_text("\n".join(["sentence1,sentence2,label", *lines]) + "\n")
    three = [*ranked, "task=[qnli_ranking,rte,sst2]", f"tasks.sst2.path={task_folder}", f"tasks.rte.path={pairs}"]
    own = [*three, "tasks.rte.config=null", "finetune.epochs=1"]
    san = "+finetune/head@finetune.each.rte.head=san"

    def record(*more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((run(compose([*own, *more])) / "result.json").read_text())
        return found

    plain, headed = record(), record(san)
    assert plain["tuned"]["head_parameters"] != headed["tuned"]["head_parameters"]
    for task in ("qnli_ranking", "sst2"):
        assert plain["metrics"][f"{task}/accuracy"] == headed["metrics"][f"{task}/accuracy"]
    assert plain["signature"] != headed["signature"]
    assert record("finetune/joint=multi_task", san, "finetune.keep=true")["joint"]["tasks"].keys() == {
        "qnli_ranking", "rte", "sst2"}  # fmt: skip


def test_a_head_of_one_task_takes_the_pooler_that_it_asks_for(ranked: list[str]) -> None:
    own = [
        "+finetune/head@finetune.each.qnli_ranking.head=classifier",
        "finetune.each.qnli_ranking.head.pooler=pretrained",
    ]
    assert main(["train", *ranked, *own]) == 2  # no objective brings one
    pairs = ["objective=mlm_nsp", "input=segment_pair"]
    asked, whole = (json.loads((run(compose([*ranked, *pairs, *more])) / "result.json").read_text())["gold"]
                    for more in (own, ["finetune.head.pooler=pretrained"]))  # fmt: skip
    assert asked == whole
