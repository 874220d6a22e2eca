"""The loss equals that of `transformers`, and accumulation changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining, AutoModelForMaskedLM, BertForPreTraining

from paribus.corruption.views.replace import Replace
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.bert import Bert
from paribus.models.encoder import Encoder
from paribus.models.heads.rows import PairHead
from paribus.models.network import Outputs, as_batch, initialize
from paribus.objectives.mlm import MaskedLM, MaskedLMWithNSP, MaskedLMWithSOP
from paribus.objectives.objective import Objective
from paribus.optim.lr_schedule import Schedule
from paribus.optim.spec import OptimizerSpec
from paribus.training.learner import Pretraining
from paribus.training.profile import ResolvedProfile
from paribus.training.trainer import trainer

VOCABULARY = Vocabulary(size=97, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))


def parts(norm: str, dropout: float = 0.0, input_format: Any = MaskedLM) -> tuple[Encoder, Objective]:
    spec = Bert(
        2, 32, 2, 64, positions=40, dropout=dropout, attention_dropout=dropout, norm=norm, initializer_range=0.2
    )
    encoder = spec.build(VOCABULARY, seed=3)
    objective = input_format(Replace()).compose(encoder, encoder.vocabulary)
    initialize(objective, 3, 0.2)
    return encoder, objective


def arrays(rows: int, seed: int = 0, padded: bool = True) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    length_B = random.integers(8, 25, rows) if padded else np.full(rows, 24)
    ids_BL = random.integers(5, 97, (rows, 24))
    real_BL = np.arange(24) < length_B[:, None]
    ids_BL = np.where(real_BL, ids_BL, 0)
    slot_P = np.sort(random.permutation(np.flatnonzero(real_BL))[: rows * 3])
    target_P = ids_BL.reshape(-1)[slot_P].copy()
    ids_BL.reshape(-1)[slot_P] = 4
    counts = {"predicted": len(slot_P), "input_tokens": int(length_B.sum()), "raw_tokens": 0, "padding": 0}
    return {
        "ids_BL": ids_BL,
        "length_B": length_B,
        "part_BL": np.zeros_like(ids_BL),
        "slot_P": slot_P,
        "target_P": target_P,
        "counts": counts,
    }


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("padded", [True, False])
def test_loss_equals_transformers(norm: str, padded: bool, tmp_path: Path) -> None:
    encoder, objective = parts(norm)
    packed = arrays(5, padded=padded)
    batch = as_batch(packed)
    assert batch["full"] is not padded
    ours = objective(encoder, batch)[0]["mlm"] / batch["counts"]["predicted"]
    checkpoint.save(encoder, objective.heads["mlm"], tmp_path)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    labels = np.full_like(packed["ids_BL"], -100)
    labels.reshape(-1)[packed["slot_P"]] = packed["target_P"]
    mask = torch.from_numpy((np.arange(24) < packed["length_B"][:, None]).astype(np.int64))
    output = theirs(
        input_ids=batch["ids_BL"], attention_mask=mask, token_type_ids=batch["part_BL"], labels=torch.from_numpy(labels)
    )
    assert ours.item() == pytest.approx(float(output.loss), abs=1e-5)


def pairs(rows: int) -> dict[str, Any]:
    """`arrays` with a second segment and labels."""
    packed = arrays(rows)
    packed["part_BL"] = (np.arange(24) >= 6).astype(np.int64) * (packed["ids_BL"] != 0)
    packed["label_N"] = np.arange(rows) % 3 % 2
    packed["counts"]["pairs"] = rows
    return packed


def labels_of(packed: dict[str, Any]) -> torch.Tensor:
    labels = np.full_like(packed["ids_BL"], -100)
    labels.reshape(-1)[packed["slot_P"]] = packed["target_P"]
    return torch.from_numpy(labels)


def total(sums: dict[str, torch.Tensor], objective: Objective, counts: dict[str, int]) -> float:
    """The loss of a step as the learner forms it."""
    per = objective.denominators()
    return sum(objective.weights[name] * float(value) / counts[per[name]] for name, value in sums.items())


@pytest.mark.parametrize(("input_format", "name"), [(MaskedLMWithNSP, "nsp"), (MaskedLMWithSOP, "sop")])
def test_pair_losses_equal_those_of_transformers(input_format: Any, name: str, tmp_path: Path) -> None:
    encoder, objective = parts("post", input_format=input_format)
    packed = pairs(7)
    batch = as_batch(packed)
    sums = objective(encoder, batch)[0]
    assert set(sums) == {"mlm", name}
    checkpoint.save(encoder, objective.heads["mlm"], tmp_path, objective.heads[name])
    theirs, told = BertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    output = theirs.eval()(
        input_ids=batch["ids_BL"],
        attention_mask=torch.from_numpy((np.arange(24) < packed["length_B"][:, None]).astype(np.int64)),
        token_type_ids=batch["part_BL"],
        labels=labels_of(packed),
        next_sentence_label=batch["label_N"],
    )
    assert total(sums, objective, batch["counts"]) == pytest.approx(float(output.loss), abs=1e-5)
    assert float(sums[name].detach()) > 0.1


def test_the_head_on_pairs_is_that_of_albert() -> None:
    """On ALBERT's own hidden states, since its encoder is another one."""
    torch.manual_seed(0)
    theirs = AlbertForPreTraining(
        AlbertConfig(
            vocab_size=97,
            embedding_size=16,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            initializer_range=0.2,
            pad_token_id=0,
        )
    ).eval()
    head = PairHead(parts("post")[0].width)
    head.pooler.load_state_dict(theirs.albert.pooler.state_dict())
    head.classifier.load_state_dict(theirs.sop_classifier.classifier.state_dict())
    packed = pairs(7)
    batch = as_batch(packed)
    given = {
        "input_ids": batch["ids_BL"],
        "attention_mask": torch.from_numpy((np.arange(24) < packed["length_B"][:, None]).astype(np.int64)),
        "token_type_ids": batch["part_BL"],
    }
    output = theirs(**given, labels=labels_of(packed), sentence_order_label=batch["label_N"])
    read = Outputs(theirs.albert(**given).last_hidden_state)
    mlm = torch.nn.functional.cross_entropy(output.prediction_logits.flatten(0, 1), labels_of(packed).flatten())
    assert float(mlm + head(read, batch) / 7) == pytest.approx(float(output.loss), abs=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_encoder_with_a_head_on_pairs_is_saved_and_loaded(norm: str, tmp_path: Path) -> None:
    encoder, objective = parts(norm, input_format=MaskedLMWithNSP)
    checkpoint.save(encoder, objective.heads["mlm"], tmp_path, objective.heads["nsp"])
    other = Bert(2, 32, 2, 64, positions=40, norm=norm).build(VOCABULARY, seed=9)
    checkpoint.load(other, tmp_path)
    assert all(
        torch.equal(a, b) for a, b in zip(encoder.state_dict().values(), other.state_dict().values(), strict=True)
    )
    assert AutoModelForMaskedLM.from_pretrained(tmp_path).config.hidden_size == 32


def test_arms_with_and_without_pairs_start_alike() -> None:
    (encoder, objective), (other, pair) = parts("post"), parts("post", input_format=MaskedLMWithNSP)
    both = zip(
        [*encoder.parameters(), *objective.parameters()], [*other.parameters(), *pair.parameters()], strict=False
    )
    assert all(torch.equal(a, b) for a, b in both)


class Descent(OptimizerSpec):
    """Plain gradient descent: unlike Adam it does not blow rounding errors of vanishing gradients up to a full step."""

    lr = 0.5

    def build(self, named: Any, rates: Any = None) -> torch.optim.Optimizer:
        return torch.optim.SGD([parameter for _, parameter in named], lr=self.lr)


def trained(microbatches: list[list[dict[str, Any]]], dropout: float = 0.0) -> dict[str, torch.Tensor]:
    encoder, objective = parts("post", dropout)
    steps = [[as_batch(packed) for packed in step] for step in microbatches]
    learner = Pretraining(
        encoder, objective, Descent(), Schedule("constant"), total_steps=len(steps), total_tokens=0, clip=1.0, seed=1
    )
    profile = ResolvedProfile("cpu", "32-true", 1, 0, None, False)
    trainer(profile, len(steps), []).fit(learner, torch.utils.data.DataLoader(steps, batch_size=None))
    return dict(encoder.state_dict())


def split(packed: dict[str, Any], at: int) -> list[dict[str, Any]]:
    """The same rows as two microbatches with different numbers of predictions."""
    pieces = []
    for rows in (slice(0, at), slice(at, None)):
        width = packed["ids_BL"].shape[1]
        first = (rows.start or 0) * width
        stop = (rows.stop or len(packed["length_B"])) * width
        inside = (packed["slot_P"] >= first) & (packed["slot_P"] < stop)
        pieces.append(
            {
                **{name: packed[name][rows] for name in ("ids_BL", "length_B", "part_BL")},
                "slot_P": packed["slot_P"][inside] - first,
                "target_P": packed["target_P"][inside],
                "counts": {"predicted": int(inside.sum()), "input_tokens": int(packed["length_B"][rows].sum())},
            }
        )
    return pieces


def test_accumulation_is_the_large_batch() -> None:
    large = [[arrays(6, seed)] for seed in range(3)]
    small = [split(packed, 2) for (packed,) in large]
    assert len({piece["counts"]["predicted"] for piece in small[0]}) == 2
    start = dict(parts("post")[0].state_dict())
    whole, pieces = trained(large), trained(small)
    moved = max(float((whole[name] - start[name]).abs().max()) for name in whole)
    assert moved > 0.01
    assert max(float((whole[name] - pieces[name]).abs().max()) for name in whole) < 1e-5 * moved


def test_dropout_has_equal_bits_in_every_run() -> None:
    data = [[arrays(4, seed)] for seed in range(2)]
    first, second = trained(data, 0.1), trained(data, 0.1)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], value) for name, value in trained(data, 0.0).items())
