"""What is measured of attention: on random scores, whose numbers are known, and in every layer of an encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.bert import Bert
from paribus.models.changes.shared_key import SharedKey
from paribus.models.changes.sigmoid import Sigmoid
from paribus.objectives.attention_scores import AttentionScores, sum_attention
from paribus.verdict.metrics import find_metric
from paribus.verdict.metrics.attention import MEASURED

VOCABULARY = Vocabulary(size=40, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
SHAPE = Bert(2, 16, 2, 32, positions=64, initializer_range=0.5)


def measure(query: Tensor, key: Tensor, scale: float) -> dict[str, float]:
    """Of many draws of queries and keys, [N, 1, L, E]."""
    score = query @ key.transpose(2, 3) * scale
    return sum_attention(score, score.softmax(-1), torch.full((len(key),), key.shape[2])).averages()


@pytest.mark.parametrize(
    ("width", "variance", "unscaled", "scaled", "largest"),
    [(8, 6.6, 1.824, 3.093, 0.45), (64, 65, 0.493, 3.012, 0.82), (512, 510, 0.165, 3.011, 0.93)],
)
def test_scores_without_a_scale_have_the_reference_s_variance_and_entropy(
    width: int, variance: float, unscaled: float, scaled: float, largest: float
) -> None:
    draw = torch.Generator().manual_seed(0)
    query, key = (torch.randn(300, 1, 32, width, generator=draw) for _ in range(2))
    plain, divided = measure(query, key, 1.0), measure(query, key, width**-0.5)
    assert plain["attention_variance"] == pytest.approx(variance, rel=0.25)  # the reference's is of one draw
    assert plain["attention_variance"] == pytest.approx(width, rel=0.03)
    assert plain["attention_entropy"] == pytest.approx(unscaled, abs=0.2)
    assert divided["attention_entropy"] == pytest.approx(scaled, abs=0.08)
    assert plain["attention_largest"] == pytest.approx(largest, abs=0.06)


def test_one_projection_makes_scores_symmetric_and_the_diagonal_large() -> None:
    draw = torch.Generator().manual_seed(0)
    state = torch.randn(200, 1, 16, 64, generator=draw)
    key, query = (torch.einsum("nhle,nef->nhlf", state, torch.randn(200, 64, 64, generator=draw) / 8) for _ in range(2))
    separate, shared = measure(query, key, 1 / 8), measure(key, key, 1 / 8)
    assert separate["attention_symmetry"] == pytest.approx(0.0, abs=0.04)
    assert shared["attention_symmetry"] == pytest.approx(1.0)
    assert shared["attention_diagonal"] == pytest.approx(0.96, abs=0.01)
    assert separate["attention_diagonal"] == pytest.approx(0.071, abs=0.01)


def test_padding_counts_for_nothing() -> None:
    draw = torch.Generator().manual_seed(0)
    score = torch.randn(2, 3, 6, 6, generator=draw)
    share = score[..., :4].softmax(-1)
    wide = torch.cat([share, torch.full((2, 3, 6, 2), 0.5)], -1)
    alone = sum_attention(score[:, :, :4, :4], share[:, :, :4], torch.tensor([4, 4]))
    padded = sum_attention(score, wide, torch.tensor([4, 4]))
    assert alone.averages() == pytest.approx(padded.averages())


def arrays_of(lengths: list[int]) -> dict[str, Any]:
    ids_BL = torch.randint(5, 40, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(1))
    return {"ids_BL": ids_BL.numpy(), "length_B": torch.tensor(lengths).numpy(),
            "part_BL": torch.zeros_like(ids_BL).numpy(), "counts": {}}  # fmt: skip


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"norm": "pre", "attention": "left"},
        {"sharing": "all", "embedding": 8},
        {"changes": {"scores": SharedKey(normalize=False, diagonal=True)}},
        {"changes": {"scores": SharedKey(), "weights": Sigmoid()}},
    ],
)
def test_every_layer_of_an_encoder_is_measured(shape: dict[str, Any]) -> None:
    encoder = replace(SHAPE, **shape).build_one(VOCABULARY, 0)
    arrays = [arrays_of([12, 9]), arrays_of([7])]
    evaluation: Any = AttentionScores(encoder, arrays)
    batch = {"ids_BL": torch.from_numpy(arrays[0]["ids_BL"]), "length_B": torch.tensor([12, 9]), "full": False,
             "part_BL": torch.zeros(2, 12, dtype=torch.int64)}  # fmt: skip
    encoder.eval()
    before = encoder(batch).hidden_BLD
    found = evaluation.measure(encoder, None)
    assert torch.equal(encoder(batch).hidden_BLD, before), "the network is as it was"
    assert list(found) == list(evaluation.metrics)
    for name in MEASURED:
        assert found[name] == pytest.approx((found[f"{name}_layer1"] + found[f"{name}_layer2"]) / 2)
        assert find_metric(f"{name}_layer2") == find_metric(name)
    changes = shape.get("changes", {})
    assert (found["attention_symmetry"] == pytest.approx(1.0)) == ("scores" in changes and "weights" not in changes)
    assert (found["attention_diagonal"] == 0.0) == ("weights" in changes)


def test_weights_are_those_that_transformers_returns() -> None:
    encoder = SHAPE.build_one(VOCABULARY, 0).eval()
    arrays, kept = arrays_of([12, 12]), list[Tensor]()
    batch = {"ids_BL": torch.from_numpy(arrays["ids_BL"]), "length_B": torch.tensor([12, 12]), "full": True,
             "part_BL": torch.zeros(2, 12, dtype=torch.int64)}  # fmt: skip
    with encoder.watching_attention(lambda score, share: kept.append(share)):
        encoder(batch)
    encoder.backbone.set_attn_implementation("eager")
    theirs = encoder.backbone(input_ids=batch["ids_BL"], output_attentions=True).attentions
    torch.testing.assert_close(kept, list(theirs), atol=1e-5, rtol=1e-5)


def test_a_network_that_does_not_give_its_attention_is_refused() -> None:
    with pytest.raises(UserError, match="TwoWay does not give its attention"):
        AttentionScores(replace(SHAPE, attention="two_way").build(VOCABULARY, 0), [])
