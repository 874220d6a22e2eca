"""Right-to-left language models, and one of each direction side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import FakeVocabulary, examples_of, random_store
from left_to_right import LENGTH, changed

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.collators.encoder import BackwardCollator, TwoWayCollator
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.pairs import SegmentPair
from paribus.models import checkpoint
from paribus.models.bert import Bert
from paribus.models.network import as_batch
from paribus.objectives.mlm import BackwardLM, CausalLM, TwoWayLM
from paribus.objectives.spec import Statistics
from paribus.training.description import Run
from paribus.training.run import run

RIGHT = ["objective=clm_right", "masking=none", "model.attention=right"]
TWO_WAY = ["objective=clm_two_way", "masking=none", "model.attention=two_way"]
VOCABULARY: Any = FakeVocabulary()


def spec(norm: str = "pre", attention: str = "right") -> Bert:
    return Bert(2, 32, 2, 64, 64, 0.0, 0.0, norm=norm, attention=attention, initializer_range=0.2)


def pack(collator: Any, rows: int = 6) -> dict[str, Any]:
    """Segment pairs of unequal lengths."""
    input_format = SegmentPair(LENGTH, short_seq_prob=0.5)
    examples = examples_of(random_store(300, mean=7), LENGTH, masking=NoNoise(), input_format=input_format)
    found: dict[str, Any] = collator.pack(examples.views(0, np.arange(rows)), VOCABULARY)
    return found


def test_targets_are_beside_the_places_that_predict_them() -> None:
    packed, both = pack(BackwardCollator()), pack(TwoWayCollator())
    ids_P, width = packed["ids_BL"].reshape(-1), packed["ids_BL"].shape[1]
    text_P = np.flatnonzero(ids_P >= 5)
    assert packed["slot_P"].tolist() == both["back_P"].tolist() == (text_P + 1).tolist()
    assert both["slot_P"].tolist() == (text_P - 1).tolist()
    assert packed["target_P"].tolist() == both["target_P"].tolist() == ids_P[text_P].tolist()
    assert (packed["slot_P"] // width == text_P // width).all()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_earlier_token_leaves_later_states_unchanged(norm: str) -> None:
    encoder = spec(norm).build(VOCABULARY, 3).eval()
    batch, at = as_batch(pack(BackwardCollator())), 4
    with torch.inference_mode():
        before, after = (encoder(each).hidden_BLD for each in (batch, changed(batch, at)))
    real_BL = torch.arange(before.shape[1]) < batch["length_B"][:, None]
    behind_BL = real_BL & (torch.arange(before.shape[1]) > at)
    assert torch.equal(before[behind_BL], after[behind_BL])
    assert (before - after)[:, : at + 1].abs().amax((0, 2)).min() > 1e-4


def test_padding_moves_nothing_and_the_first_token_summarizes_a_row() -> None:
    encoder = spec().build(VOCABULARY, 3).eval()
    batch = as_batch(pack(BackwardCollator()))
    with torch.inference_mode():
        whole = encoder(batch)
        assert torch.equal(whole.row_BD, whole.hidden_BLD[:, 0])
        for row, length in enumerate(batch["length_B"].tolist()):
            alone = {name: batch[name][row : row + 1, :length] for name in ("ids_BL", "part_BL")}
            alone |= {"length_B": batch["length_B"][row : row + 1], "full": True}
            assert torch.allclose(encoder(alone).hidden_BLD[0], whole.hidden_BLD[row, :length], atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_two_ways_are_both_encoders_side_by_side(norm: str, tmp_path: Path) -> None:
    both = spec(norm, "two_way").build(VOCABULARY, 3).eval()
    left, right = (spec(norm, side).build(VOCABULARY, 3).eval() for side in ("left", "right"))
    batch = as_batch(pack(TwoWayCollator()))
    objective = TwoWayLM(Unchanged()).build(both, VOCABULARY, 3).eval()
    alone = CausalLM(Unchanged()).build(left, VOCABULARY, 3).eval()
    behind = BackwardLM(Unchanged()).build(right, VOCABULARY, 3)
    with torch.inference_mode():
        found, apart = both(batch), [left(batch), right(batch)]
        losses = objective(both, batch)[0]
        assert torch.equal(found.hidden_BLD, torch.cat([own.hidden_BLD for own in apart], -1))
        assert torch.equal(found.row_BD, torch.cat([own.row_BD for own in apart], -1))
        assert torch.equal(losses["clm"], alone(left, batch)[0]["clm"])
        behind.heads["clm"].load_state_dict(objective.heads["clm_right"].state_dict())
        backward = behind.eval()(right, {**batch, "slot_P": batch["back_P"]})[0]["clm"]
    assert torch.equal(losses["clm_right"], backward)
    assert both.parameter_count() == left.parameter_count() + right.parameter_count()
    checkpoint.save(both, objective.heads["clm"], tmp_path)
    other = spec(norm, "two_way").build(VOCABULARY, 4).eval()
    checkpoint.load(other, tmp_path)
    with torch.inference_mode():
        assert torch.equal(other(batch).hidden_BLD, found.hidden_BLD)


def test_gradients_reach_each_encoder_from_its_own_loss_alone() -> None:
    both = spec(attention="two_way").build(VOCABULARY, 3)
    objective, batch = TwoWayLM(Unchanged()).build(both, VOCABULARY, 3), as_batch(pack(TwoWayCollator()))
    objective(both, batch)[0]["clm_right"].backward()
    moved = {name.split(".")[1] for name, own in both.named_parameters() if own.grad is not None and own.grad.any()}
    assert moved == {"right"}


def test_two_ways_cost_twice_as_much() -> None:
    one, two = spec(attention="left"), spec(attention="two_way")
    assert two.forward_flops(1e4, LENGTH) == 2 * one.forward_flops(1e4, LENGTH)
    statistics = Statistics({"input_tokens": 1e4, "predicted": 9e3}, LENGTH, 1000)
    assert TwoWayLM(Unchanged()).flops(statistics, two) == 2 * CausalLM(Unchanged()).flops(statistics, one)
    assert replace(one, attention="right").forward_flops(1e4, LENGTH) == one.forward_flops(1e4, LENGTH)


@pytest.mark.parametrize(
    "overrides",
    [
        RIGHT,
        TWO_WAY,
        [*TWO_WAY, "finetune/method=layerwise_decay", "finetune/head=bilstm"],
        [*TWO_WAY, "finetune/method=adapters", "finetune/head/pooling=mean"],
        [*TWO_WAY, "finetune.transfer_layers=1", "finetune.replay=0.5", "finetune.keep=true"],
    ],
)
def test_a_run_ends_and_resumes_with_the_same_model(
    overrides: list[str], arguments: list[str], task_folder: Path
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    folder = run(compose([*arguments, *task, *overrides]))
    record = json.loads((folder / "result.json").read_text())
    assert record["metrics"]["clm_loss"] > 0
    assert 0 <= record["metrics"]["sst2/accuracy"] <= 1
    (folder / "result.json").unlink()
    again = json.loads((run(compose([*arguments, *task, *overrides])) / "result.json").read_text())
    assert again["metrics"] == record["metrics"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["objective=clm_right", "masking=none"], "predicts each token from its right, but model.attention=full"),
        ([*TWO_WAY, "model.attention=left"], "from its left and from its right, but model.attention=left differs"),
        (
            [*TWO_WAY, "finetune/head/layers=mean", "task=docs_package", "tasks.docs_package.packages=[rich,networkx]"],
            "does not give the states of single layers: set finetune",
        ),
        (["model.attention=up"], "model.attention=up is unknown"),
        (
            ["objective=unilm", "+model/change@model.changes.seen=window", "model.changes.seen.sides=left"],
            "needs both sides of a token, but model.changes.seen hides one",
        ),
        (["+model/change@model.changes.seen=blocks", "model.changes.seen.size=7"], "is not divided by the blocks of"),
    ],
)
def test_what_does_not_fit_is_refused(overrides: list[str], message: str, arguments: list[str]) -> None:
    with pytest.raises(UserError, match=message):
        run(compose([*arguments, *overrides]))


def test_directions_count_in_the_name_of_a_run(arguments: list[str]) -> None:
    names = {Run.of(compose([*arguments, *one])).identity.pretrain for one in (RIGHT, TWO_WAY)}
    assert len(names) == 2
