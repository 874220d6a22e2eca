"""What a head reads and what it loses; the kinds of Adam; long text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from small_finetuning import backbone, config, logits, rows, tuned

from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.heads.choices import RowAnswer, StochasticAnswer
from paribus.models.heads.head import Loss, name_places
from paribus.models.heads.rows import mean_of_turns
from paribus.models.network import Outputs
from paribus.optim.adamw import AdamW
from paribus.tasks.examples import Example
from paribus.tasks.rows import encode
from paribus.training.steps import task_batch

LAYERS = "finetune/head/layers=concat"


def read(learner: Any, batch: Any) -> torch.Tensor:
    head = learner.objective.heads["task"]
    with torch.inference_mode():
        found: torch.Tensor = head.logits(learner.encoder(name_places([head], batch)), batch)
    return found


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_last_layer_is_what_is_read_by_default(norm: str) -> None:
    encoder = backbone(config(norm=norm))
    plain = logits(tuned(config(norm=norm), encoder, fit=False))
    for layer in (-1, 2):
        assert torch.equal(
            plain, logits(tuned(config(LAYERS, f"finetune.head.layers.read=[{layer}]", norm=norm), encoder, fit=False))
        )
    lower = logits(tuned(config(LAYERS, "finetune.head.layers.read=[1]", norm=norm), encoder, fit=False))
    assert not torch.allclose(plain, lower, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layers_are_combined_as_named(norm: str) -> None:
    batch = task_batch(rows(), np.arange(4))
    states = {}
    for combine in ("concat", "mean", "max", "weighted"):
        cfg = config(f"finetune/head/layers={combine}", "finetune.head.layers.read=[0,1,2]", norm=norm)
        learner = tuned(cfg, backbone(cfg), fit=False)
        with torch.inference_mode():
            head = learner.objective.heads["task"]
            states[combine] = head.read(learner.encoder({**batch, "layers": True}), batch).hidden_BLD
    parts = states["concat"].chunk(3, -1)
    assert torch.allclose(states["mean"], sum(parts) / 3, atol=1e-6)
    assert torch.equal(states["max"], torch.stack(parts).amax(0))
    assert torch.allclose(states["weighted"], states["mean"], atol=1e-6)  # equal weights at first
    assert all(part.std() > 0.01 for part in parts)


@pytest.mark.parametrize("settings", ["mean", "max", "sep", "cls_sep", "cnn", "bilstm"])
def test_padding_moves_no_logit_of_any_head(settings: str) -> None:
    extra = (
        ["finetune/head=bilstm", "finetune/head/pooling=max"]
        if settings == "bilstm"
        else [f"finetune/head/pooling={settings}"]
    )
    cfg = config(*extra, LAYERS, "finetune.head.layers.read=[1,2]")
    learner = tuned(cfg, backbone(cfg), fit=False)
    batch = task_batch(rows(), np.arange(4))
    whole = read(learner, batch)
    for row, length in enumerate(batch["length_B"].tolist()):
        alone = {name: batch[name][row : row + 1, :length] for name in ("ids_BL", "part_BL")}
        alone |= {"length_B": batch["length_B"][row : row + 1], "full": True}
        assert torch.allclose(read(learner, alone)[0], whole[row], atol=1e-5)


@pytest.mark.parametrize(("kind", "places"), [("sep", [-1]), ("cls_sep", [0, -1])])
def test_the_ends_of_a_row_summarize_it(kind: str, places: list[int]) -> None:
    cfg = config(f"finetune/head/pooling={kind}")
    learner, batch = tuned(cfg, backbone(cfg), fit=False), task_batch(rows(), np.arange(4))
    with torch.inference_mode():
        outputs = learner.encoder(batch)
        row_BD = learner.objective.heads["task"].read(outputs, batch).row_BD
    for row, length in enumerate(batch["length_B"].tolist()):
        expected = torch.cat([outputs.hidden_BLD[row, place % length] for place in places])
        assert torch.equal(row_BD[row], expected)


def test_the_answer_is_the_mean_of_the_turns_that_are_kept() -> None:
    right_K = torch.tensor([0.7, 0.6, 0.9, 0.5, 0.8])
    share_KBC = torch.stack([right_K, 1 - right_K], -1)[:, None]
    kept_KB = torch.ones(5, 1, dtype=torch.bool)
    assert float(-mean_of_turns(share_KBC, kept_KB).log()[0, 0]) == pytest.approx(0.356675, abs=1e-6)
    kept_KB[1] = False
    assert float(mean_of_turns(share_KBC, kept_KB)[0, 0]) == pytest.approx(0.725)


def test_the_answer_of_turns_reads_both_texts_and_no_padding() -> None:
    head = StochasticAnswer().for_rows(backbone(config()), RowAnswer(3, Loss()), 7).eval()
    hidden_BLD = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
    batch = {"part_BL": torch.tensor([[0, 0, 0, 1, 1, 0, 0, 0]] * 2), "length_B": torch.tensor([5, 5])}
    whole = head.logits(Outputs(hidden_BLD), batch)
    assert torch.allclose(whole.exp().sum(-1), torch.ones(2), atol=1e-6)
    for place, read in ((1, True), (4, True), (6, False)):
        other_BLD = hidden_BLD.clone()
        other_BLD[:, place] += 5.0
        assert torch.equal(head.logits(Outputs(other_BLD), batch), whole) != read
    torch.manual_seed(0)
    kept_KB = head.train()._keep(torch.zeros(5, 4000, 3))
    assert kept_KB.any(0).all()
    assert float(kept_KB.float().mean()) == pytest.approx(1 - 0.1 * 0.8, abs=0.01)


def test_frozen_features_have_no_dropout() -> None:
    cfg = config(
        "finetune/method=frozen", "model.dropout=0.5", "model.attention_dropout=0.5", "finetune.head.dropout=0"
    )
    learner = tuned(cfg, backbone(cfg), fit=False).train()
    batch = task_batch(rows(), np.arange(4))
    assert torch.equal(read(learner, batch), read(learner, batch))


def test_losses_are_their_formulas() -> None:
    logits_BC, label_B = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.2, 0.3]]), torch.tensor([0, 1])
    logs_BC = logits_BC.log_softmax(-1)
    own_B = logs_BC[torch.arange(2), label_B]
    assert Loss()(logits_BC, label_B) == pytest.approx(float(-own_B.sum()), rel=1e-6)
    smooth = -(0.9 * own_B + 0.1 * logs_BC.mean(-1)).sum()
    assert Loss(smoothing=0.1)(logits_BC, label_B) == pytest.approx(float(smooth), rel=1e-6)
    focal = -((1 - own_B.exp()) ** 2 * own_B).sum()
    assert Loss(focal=2)(logits_BC, label_B) == pytest.approx(float(focal), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_a_certain_row_costs_the_focal_loss_nothing(gamma: float) -> None:
    logits_BC = torch.tensor([[200.0, 0.0], [0.5, 0.0]], requires_grad=True)
    Loss(focal=gamma)(logits_BC, torch.tensor([0, 0])).backward()
    assert logits_BC.grad is not None
    assert torch.isfinite(logits_BC.grad).all()
    assert not logits_BC.grad[0].any()
    assert logits_BC.grad[1].all()


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("corrected", [True, False])
def test_every_kind_of_adam_is_its_formula(decoupled: bool, corrected: bool) -> None:
    weight = torch.nn.Parameter(torch.tensor([[1.0, -2.0]]))
    spec = AdamW(0.1, (0.9, 0.99), 1e-6, 0.5, decoupled=decoupled, bias_correction=corrected)
    optimizer = spec.build([("w", weight)])
    gradient = np.array([[0.3, -0.4]])
    expected, first, second = np.array([[1.0, -2.0]]), 0.0, 0.0
    for step in (1, 2, 3):
        weight.grad = torch.tensor(gradient, dtype=torch.float32)
        optimizer.step()
        whole = gradient if decoupled else gradient + 0.5 * expected
        first, second = 0.9 * first + 0.1 * whole, 0.99 * second + 0.01 * whole**2
        unbias = (1 - 0.9**step, 1 - 0.99**step) if corrected else (1, 1)
        update = first / unbias[0] / (np.sqrt(second / unbias[1]) + 1e-6)
        expected = expected - 0.1 * update - (0.1 * 0.5 * expected if decoupled else 0)
    assert np.allclose(weight.detach().numpy(), expected, atol=1e-6)


class Numbers:
    """A tokenizer of texts that are numbers apart by spaces."""

    def encode(self, texts: list[str]) -> list[tuple[np.ndarray[Any, Any], None]]:
        return [(np.array([int(word) for word in text.split()], np.int32), None) for text in texts]


@pytest.mark.parametrize(
    ("truncation", "kept"),
    [("head", range(100, 134)), ("tail", range(166, 200)), ("head_tail", [*range(100, 108), *range(174, 200)])],
)
def test_long_text_keeps_the_part_that_is_named(truncation: str, kept: Any) -> None:
    texts = [" ".join(map(str, numbers)) for numbers in (range(100, 200), range(300, 334), range(400, 410))]
    vocabulary = Vocabulary(size=500, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
    numbers: Any = Numbers()
    found = encode([Example(text, None, 0) for text in texts], numbers, vocabulary, 36, truncation)
    cut = np.split(found.ids_T, found.start_N[1:])
    assert [list(row[1:-1]) for row in cut] == [list(kept), list(range(300, 334)), list(range(400, 410))]
    assert len(kept) == 34
