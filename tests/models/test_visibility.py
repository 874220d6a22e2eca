"""Who sees whom: the reference's pairs, and attention in blocks beside that of all pairs and of `transformers`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel, ModernBertConfig

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import attention_by_parts, last_layer
from paribus.models.attention import CHANGED, PLAIN
from paribus.models.attention_part import AttentionPart, Rows
from paribus.models.bert import Bert
from paribus.models.change import Change, Rotary
from paribus.models.changes import window
from paribus.models.changes.alternating import Alternating
from paribus.models.changes.blocks import Blocks, count_keys, plan_published
from paribus.models.changes.hashed import Hashed
from paribus.models.changes.longformer import Longformer
from paribus.models.changes.prefix import Prefix
from paribus.models.changes.shared_key import SharedKey
from paribus.models.changes.window import Window
from paribus.models.encoder import Encoder

B, L, V = 3, 45, 40
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
SHAPE = Bert(2, 16, 2, 32, positions=64, dropout=0.0, attention_dropout=0.0, initializer_range=0.2)


def batch_of(full: bool = False) -> dict[str, Any]:
    """Rows of several lengths; the second has one segment."""
    return {
        "ids_BL": torch.randint(5, V, (B, L), generator=torch.Generator().manual_seed(1)),
        "length_B": torch.full((B,), L) if full else torch.tensor([L, 29, 41]),
        "part_BL": (torch.arange(L) >= torch.tensor([3, L, 5])[:, None]).long(),
        "full": full,
    }


def changed(changes: dict[str, Change], **shape: Any) -> Bert:
    return replace(SHAPE, changes=changes, **shape)


def see(part: AttentionPart, length: int, first: int = 0) -> Tensor:
    """int [H or 1, L, L]: who (row) sees whom."""
    state = torch.zeros(1, 1, length, 1)
    place_1L = torch.arange(length)[None]
    shown = part.visible_in(Rows(state, state, torch.tensor([first])), place_1L, place_1L)
    assert shown is not None
    return shown[0].int()


def pairs(spec: Bert, length: int) -> float:
    """Those that the costs count in a layer."""
    bare = 2.0 * spec.matmul_parameters() * length
    further = sum(change.forward_flops(spec, length, length) for change in spec.changes.values())
    return (spec.forward_flops(length, length) - bare - further) / (4 * spec.layers * spec.hidden)


def test_the_pairs_of_the_reference() -> None:
    one = see(Longformer(1).attention(SHAPE, 0), 6)[0]
    assert ["".join(map(str, row)) for row in one.tolist()] == [
        "111111", "111000", "111100", "101110", "100111", "100011",
    ]  # fmt: skip
    assert int(one.sum()) == 24
    assert 4096 * Window(256).seen(SHAPE, 4096) == 2_035_456
    assert 4096 * Window(512, counted="total").seen(SHAPE, 4096) == 2_035_456
    assert 4096 * Longformer(256).seen(SHAPE, 4096) == 2_043_134
    assert 4096 * Blocks().seen(SHAPE, 4096) == 2_547_712
    assert 1024 * Blocks().seen(SHAPE, 1024) == 581_632
    keys_HN = (count_keys(Blocks(), 64, 2, 0) > 0).sum(2)
    assert keys_HN[:, [0, 1, 5, 62, 63]].tolist() == [[64, 7, 8, 7, 64]] * 2


@pytest.mark.parametrize("length", [1, 3, 12, 40])
@pytest.mark.parametrize(
    "change",
    [Window(3, dilation=3), Window(4, counted="total"), Longformer(2), Longformer(2, tokens=5), Prefix(length=4)]
    + [Longformer(2, dilation=2, tokens=3), Prefix(), Blocks(size=2, random=1), Alternating(width=3, every=2)],
)
def test_costs_are_those_of_the_pairs(change: Change, length: int) -> None:
    parts = [change.attention(SHAPE, layer) for layer in range(SHAPE.layers)]
    seen = [length**2 if part is None else float(see(part, length).float().mean(0).sum()) for part in parts]
    if isinstance(change, Blocks) and length % 2:
        return
    assert pairs(changed({"seen": change}), length) == pytest.approx(sum(seen) / len(seen), rel=1e-6)


def test_the_costs_of_blocks_are_those_of_a_count() -> None:
    """The products of attention, beside those of blocks that are computed without need."""
    spec = replace(SHAPE, layers=1, hidden=32, changes={"seen": Blocks(size=8, random=3)})
    length, query = 512, torch.empty(1, 2, 512, 16, device="meta")
    plain = FlopCounterMode(display=False)
    with plain:
        attention_by_parts_of(spec, query)
    assert plain.get_total_flops() == pytest.approx(4 * 32 * pairs(spec, length), rel=0.05)


def attention_by_parts_of(spec: Bert, query: Tensor) -> None:
    encoder = spec.build_one(VOCABULARY, 0)
    layer = encoder.backbone.encoder.layer[0].attention.self
    layer(torch.zeros(1, query.shape[2], spec.hidden))


SEEN: dict[str, dict[str, Change]] = {
    "window": {"seen": Window(3)},
    "window_left": {"seen": Window(3, "left")},
    "window_rotary": {"seen": Window(2), "position": Rotary(), "scores": SharedKey()},
    "global": {"seen": Longformer(2, tokens=2)},
    "global_segment": {"seen": Longformer(2, tokens="segment"), "position": Rotary()},
    "global_shared": {"seen": Longformer(2, own_projections=False), "scores": SharedKey()},
    "blocks": {"seen": Blocks(size=3, random=2), "position": Rotary()},
    "blocks_without_ends": {"seen": Blocks(size=3, random=2, ends=False)},
    "alternating": {"seen": Alternating(3)},
}


@pytest.mark.parametrize("shape", ["post", "pre", "left", "shared", "places"])
@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("kernel", [PLAIN, CHANGED])
def test_blocks_are_all_pairs(name: str, shape: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, dict[str, Any]] = {
        "pre": {"norm": "pre"}, "left": {"attention": "left"}, "shared": {"sharing": "all"},
    }  # fmt: skip
    if (shape == "left" and ("global" in name or "blocks" in name)) or (shape, name) == ("shared", "alternating"):
        pytest.skip("refused")
    spec, batch = changed(SEEN[name], **settings.get(shape, {})), batch_of()
    monkeypatch.setattr(window, "SMALLEST", 2)
    monkeypatch.setattr(last_layer, "MOST", 1.0 if shape == "places" else 0.0)
    calls: list[int] = []
    blocked = attention_by_parts._attend_in_blocks

    def counted(*arguments: Any) -> Tensor:
        calls.append(1)
        return blocked(*arguments)

    monkeypatch.setattr(attention_by_parts, "_attend_in_blocks", counted)
    real_BL = torch.arange(L)[None] < batch["length_B"][:, None]
    if shape == "places":
        batch["read_P"] = torch.tensor([2, 5, 7, L + 3, 2 * L + 1, 2 * L + 30])
    found = []
    for most in (1.0, 0.0):
        monkeypatch.setattr(attention_by_parts, "MOST", most)
        encoder = spec.build_one(VOCABULARY, 0)
        encoder.backbone.config._attn_implementation = kernel
        outputs = encoder(batch)
        assert outputs.hidden_BLD.isfinite().all()
        read_PD = outputs.at(batch["read_P"]) if shape == "places" else outputs.hidden_BLD[real_BL]
        draw = torch.Generator().manual_seed(2)
        (read_PD * torch.randn(read_PD.shape, generator=draw)).sum().backward()
        found.append([read_PD.detach(), *(weight.grad for weight in encoder.parameters() if weight.grad is not None)])
        assert len(calls) == (1 if name == "alternating" else 2), "and none without blocks"
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5 * float(other.abs().max().clamp(min=1)), rtol=1e-5)


def test_blocks_that_count_twice_are_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows of 1024 tokens the published plan draws the last block, which all see anyway."""
    part = Blocks(size=64, draw="published").attention(replace(SHAPE, heads=4), 1)
    assert part.count(1024)[:, 1:-1].max() == 2
    states = torch.randn(3, 1, 4, 1024, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
    found = []
    for most in (0.0, 1.0):
        monkeypatch.setattr(attention_by_parts, "MOST", most)
        found.append(attend_alone(part, *states))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


def attend_alone(part: AttentionPart, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    from types import SimpleNamespace

    from paribus.models.attention import attend

    caller = SimpleNamespace(is_causal=False, parts={"one": part})
    return attend(caller, query, key, value, None, scaling=query.shape[-1] ** -0.5)[0]


def test_masks_hold_in_half_precision() -> None:
    """A hidden key gets no weight, whatever the scores: -10000 of a bfloat16 score of 9984 is not hidden."""
    part = Window(1).attention(SHAPE, 0)
    query, key = (torch.full((1, 1, 4, 4), 120.0, dtype=torch.float16) for _ in range(2))
    value = torch.tensor([1.0, 2.0, 4.0, 8.0]).half()[None, None, :, None].expand(1, 1, 4, 4)
    key = key * torch.tensor([-1.0, 1.0, 1.0, 1.0]).half()[:, None]
    read = attend_alone(part, query, key, value)
    assert read[0, :, 0, 0].tolist() == [2.0, 3.0, pytest.approx(14 / 3, rel=1e-3), 6.0]
