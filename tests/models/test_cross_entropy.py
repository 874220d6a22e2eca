"""The cross-entropy by rows is torch's own: to the bit without a gradient, to rounding with one."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from paribus.models.heads import head as by_rows


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("cached", [1, 3 * 211, 1 << 19])  # one row at a time, three, all
@pytest.mark.parametrize("rows", [0, 1, 100])
def test_loss_and_gradient(rows: int, cached: int, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_rows, "CACHED", cached)
    torch.manual_seed(rows)
    logits_PV, target_P = (3 * torch.randn(rows, 211)).to(kind), torch.randint(211, (rows,))
    ours_PV, torchs_PV = (logits_PV.clone().requires_grad_() for _ in range(2))
    ours = by_rows.summed_cross_entropy(ours_PV, target_P)
    torchs = cross_entropy(torchs_PV.float(), target_P, reduction="sum")
    torch.testing.assert_close(ours, torchs, rtol=1e-6, atol=1e-6)
    assert ours.dtype == torch.float32
    (ours / 7).backward()  # type: ignore[no-untyped-call]
    (torchs / 7).backward()  # type: ignore[no-untyped-call]
    assert ours_PV.grad is not None
    assert ours_PV.grad.dtype == kind
    rounding = 3 * torch.finfo(kind).eps
    torch.testing.assert_close(ours_PV.grad, torchs_PV.grad, rtol=rounding, atol=rounding / 7)
    with torch.inference_mode():
        assert torch.equal(by_rows.summed_cross_entropy(logits_PV, target_P), torchs)


def test_a_target_beyond_the_vocabulary() -> None:
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        by_rows.summed_cross_entropy(torch.zeros(2, 5), torch.tensor([4, 5]))
