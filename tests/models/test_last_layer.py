"""The last layer at the places that heads read gives the losses and gradients of the whole layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import last_layer
from paribus.models.bert import Bert
from paribus.models.heads.head import Head, name_places
from paribus.models.heads.rows import ClassificationHead, PairHead
from paribus.models.heads.tokens import TaggingHead
from paribus.models.heads.vocabulary import MaskedLMHead, SpanBoundaryHead, WordOrderHead
from paribus.objectives.objective import Objective

B, L, V = 4, 24, 50
TINY = Bert(2, 16, 2, 32, dropout=0.0, attention_dropout=0.0)
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))


def batch_of(ranked: bool = False) -> dict[str, Any]:
    """Rows of several lengths; the last has nothing to predict."""
    draw = torch.Generator().manual_seed(0)
    slots = [torch.tensor([3, 4, 9]), torch.tensor([1]) + L, torch.tensor([2, 5]) + 2 * L]
    batch: dict[str, Any] = {
        "ids_BL": torch.randint(5, V, (B, L), generator=draw),
        "length_B": torch.tensor([L, 10, 17, L]),
        "part_BL": torch.zeros(B, L, dtype=torch.int64),
        "slot_P": torch.cat(slots),
        "target_P": torch.randint(5, V, (6,), generator=draw),
        "moved_P": torch.tensor([7, 8, 2 * L + 3]),
        "moved_target_P": torch.tensor([6, 7, 8]),
        "left_S": torch.tensor([2, 2]),
        "right_S": torch.tensor([5, 5]),
        "place_S": torch.tensor([0, 1]),
        "inside_S": torch.tensor([9, 10]),
        "label_N": torch.tensor([0, 1, 1, 0]),
        "full": False,
    }
    if ranked:
        batch["rank_BL"] = torch.randint(0, 5, (B, L), generator=draw, dtype=torch.int32)
    return batch


def losses_and_gradients(spec: Bert, batch: dict[str, Any], monkeypatch: Any, most: float) -> list[Any]:
    monkeypatch.setattr(last_layer, "MOST", most)
    torch.manual_seed(0)
    encoder = spec.build(VOCABULARY, 0)
    head = MaskedLMHead(encoder)
    heads = {"mlm": head, "wop": WordOrderHead(head), "sbo": SpanBoundaryHead(encoder, 4, 8), "nsp": PairHead(16)}
    objective = Objective(heads)
    terms, _ = objective(encoder, batch)
    torch.stack(list(terms.values())).sum().backward()
    named = [*encoder.named_parameters(), *objective.named_parameters()]
    return [*(term.detach() for term in terms.values()), *(p.grad for _, p in named if p.grad is not None)]


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("spec", [TINY, replace(TINY, norm="pre"), replace(TINY, sharing="all", embedding=8)])
def test_as_the_whole_layer(spec: Bert, ranked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(ranked)
    few, whole = (losses_and_gradients(spec, batch, monkeypatch, most) for most in (1.0, 0.0))
    assert len(few) == len(whole)
    for own, other in zip(few, whole, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-5)


def test_only_what_is_read_is_computed() -> None:
    encoder, batch = TINY.build(VOCABULARY, 0), batch_of()
    head = MaskedLMHead(encoder)
    read = name_places([head, PairHead(16), ClassificationHead(16, 2, 0.0)], batch)
    outputs = encoder(read)
    assert outputs.hidden_BLD.shape == (B, 4, 16)  # the first token and at most three predicted ones
    torch.testing.assert_close(outputs.row_BD, encoder(batch).row_BD, rtol=1e-5, atol=1e-5)
    assert encoder(batch).hidden_BLD.shape == (B, L, 16)
    assert encoder(name_places([PairHead(16)], batch)).hidden_BLD.shape == (B, 1, 16)


@pytest.mark.parametrize("head", [TaggingHead(16, 3, 0.0)])
def test_a_head_that_reads_everything_gets_everything(head: Head) -> None:
    encoder, batch = TINY.build(VOCABULARY, 0), batch_of()
    assert encoder(name_places([head, PairHead(16)], batch)).hidden_BLD.shape == (B, L, 16)


def test_left_to_right_and_compiled_forward_passes_are_whole() -> None:
    batch = name_places([PairHead(16)], batch_of())
    assert replace(TINY, attention="left").build(VOCABULARY, 0)(batch).hidden_BLD.shape == (B, L, 16)
    encoder = TINY.build(VOCABULARY, 0)
    encoder.compile()
    assert encoder.compiled
    assert encoder._read_positions(batch) is None
