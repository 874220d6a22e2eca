"""Plain attention is `scaled_dot_product_attention`, forward and backward, with every mask and bias; T5's lean parts
are the library's.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import T5Config
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.t5.modeling_t5 import T5DenseActDense, T5DenseGatedActDense, T5LayerNorm

from paribus.models.attention import attend
from paribus.models.text_to_text import LEAN, use_lean_modules

B, H, L, S, E = 2, 3, 5, 7, 4


class Caller(nn.Module):
    """What an attention function reads of the module that calls it."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.is_causal = causal


def parts(seen: int, seed: int = 0) -> list[Tensor]:
    """Query, key and value as a model gives them: [B, H, L, E], transposed."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(B, n, H, E, generator=draw).transpose(1, 2).requires_grad_() for n in (L, seen, seen)]


def both(
    causal: bool, mask: Tensor | None, bias: Tensor | None, seen: int, other: Any = sdpa_attention_forward
) -> list[list[Tensor]]:
    """Outputs and gradients of both forms."""
    found = []
    for form in (attend, other):
        given, own = parts(seen), None if bias is None else bias.clone().requires_grad_()
        read, _ = form(Caller(causal), *given, mask, scaling=0.3, dropout=0.0, position_bias=own)
        read.pow(2).sum().backward()
        leaves = [*given, *([] if own is None else [own])]
        found.append([read.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)])
    return found


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("masked", ["none", "bool", "added"])
@pytest.mark.parametrize("causal", [False, True])
def test_equal_to_the_library(causal: bool, masked: str, biased: bool) -> None:
    seen = L if causal else S
    draw = torch.Generator().manual_seed(1)
    mask = None
    if masked != "none":
        mask = torch.rand(B, 1, L, seen, generator=draw) < 0.7
        mask[..., 0] = True
        if masked == "added":
            mask = torch.zeros(mask.shape).masked_fill_(~mask, -1e4)
    bias = torch.randn(1, H, L, seen, generator=draw) if biased else None
    ours, theirs = both(causal, mask, bias, seen)
    assert len(ours) == len(theirs) == 4 + biased
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("biased", [False, True])
def test_compiled_it_is_the_same(biased: bool) -> None:
    """With the compiler that `profile.compile=true` uses."""
    mask = torch.rand(B, 1, L, S, generator=torch.Generator().manual_seed(1)) < 0.7
    mask[..., 0] = True
    bias = torch.randn(1, H, L, S, generator=torch.Generator().manual_seed(2)) if biased else None
    plain, compiled = both(False, mask, bias, S, torch.compile(attend, fullgraph=True))
    for own, other in zip(plain, compiled, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-5)


def test_dropout_scales_what_it_keeps() -> None:
    torch.manual_seed(0)
    query, key = torch.zeros(1, 1, 400, 2), torch.zeros(1, 1, 300, 2)
    read, _ = attend(Caller(False), query, key, torch.ones(1, 1, 300, 2), None, scaling=1.0, dropout=0.25)
    assert read.mean().item() == pytest.approx(1, abs=5e-3)
    kept = (read[0, :, 0, 0] * 300 * 0.75).round() / 300  # the share of the 300 places that a row keeps
    assert kept.std().item() == pytest.approx((0.75 * 0.25 / 300) ** 0.5, rel=0.1)


def test_gradients_with_dropout_are_those_of_the_mask_that_was_drawn() -> None:
    given = [part.detach().double().requires_grad_() for part in parts(S)]

    def read(*parts: Tensor) -> Tensor:
        torch.manual_seed(3)
        return attend(Caller(False), *parts, None, scaling=0.3, dropout=0.5)[0]

    assert torch.autograd.gradcheck(read, given)


@pytest.mark.parametrize("kind", [T5LayerNorm, T5DenseActDense, T5DenseGatedActDense])
def test_lean_parts_are_the_librarys(kind: Any) -> None:
    torch.manual_seed(0)
    theirs = kind(8) if kind is T5LayerNorm else kind(T5Config(d_model=8, d_ff=16, dropout_rate=0.0))
    nn.init.normal_(next(theirs.parameters()))
    given = [torch.randn(2, 3, 8, requires_grad=True) for _ in range(2)]
    given[1].data.copy_(given[0].data)
    expected = theirs(given[0])
    expected.pow(2).sum().backward()
    weights = [weight.grad.clone() for weight in theirs.parameters()]
    theirs.zero_grad()
    use_lean_modules(theirs)
    assert type(theirs) is LEAN[kind]
    written = theirs(given[1])
    written.pow(2).sum().backward()
    torch.testing.assert_close(written, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(given[1].grad, given[0].grad, rtol=1e-5, atol=1e-5)
    for own, other in zip(theirs.parameters(), weights, strict=True):
        torch.testing.assert_close(own.grad, other, rtol=1e-5, atol=1e-5)


def test_under_autocast_a_norm_has_the_type_of_what_reads_it() -> None:
    norm = T5LayerNorm(8)
    use_lean_modules(norm)
    with torch.autocast("cpu", torch.bfloat16):
        assert norm(torch.randn(2, 8)).dtype == torch.bfloat16
    assert norm(torch.randn(2, 8)).dtype == torch.float32
