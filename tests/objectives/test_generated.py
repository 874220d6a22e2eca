"""Noise on the device: the bits of numpy's hash, and samples that do not depend on how a batch is cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fake_store import FakeVocabulary, examples_of, random_store
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import BoundaryCollator, CausalCollator, EncoderCollator
from paribus.corruption.examples import Examples
from paribus.models.network import as_batch
from paribus.objectives.generated import KEY, draw_bits, draw_uniform


def keys_of(noise: Noise) -> Tensor:
    return torch.from_numpy(noise.row_B.view(np.int64))


def all_bits(key_B: Tensor, stream: str, n: int) -> list[list[int]]:
    row_P = torch.arange(len(key_B), device=key_B.device).repeat_interleave(n)
    position_P = torch.arange(n, device=key_B.device).repeat(len(key_B))
    drawn: list[list[int]] = draw_bits(key_B, stream, row_P, position_P).view(-1, n).tolist()
    return drawn


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), st.text(max_size=8), st.integers(1, 33))
@settings(max_examples=50, deadline=None)
def test_bits_equal_those_of_numpy(keys: list[int], stream: str, n: int) -> None:
    noise = Noise(np.array(keys, np.uint64))
    assert all_bits(keys_of(noise), stream, n) == noise.bits(stream, n).tolist()


def test_single_draws_equal_those_of_numpy() -> None:
    noise, random = Noise.of(1, (2, 3), np.arange(5)), np.random.default_rng(0)
    row_P, position_P = random.integers(0, 5, 200), random.integers(0, 10**6, 200)
    places = torch.from_numpy(row_P), torch.from_numpy(position_P)
    drawn_P = draw_bits(keys_of(noise), "sample", *places)
    assert drawn_P.tolist() == noise.at("sample", row_P, position_P).tolist()
    uniform_P = draw_uniform({KEY: keys_of(noise)}, "sample", *places)
    assert 0 < uniform_P.min() < uniform_P.max() < 1


@pytest.mark.gpu
def test_bits_on_a_gpu_equal_those_of_numpy() -> None:
    noise = Noise.of(1, (2, 3), np.arange(50))
    assert all_bits(keys_of(noise).cuda(), "sample", 65) == noise.bits("sample", 65).tolist()


def keyed_examples() -> Examples:
    examples = examples_of(random_store(3000), 64)
    object.__setattr__(examples, "collator", EncoderCollator(row_keys=True))
    return examples


class ToyGenerator:
    """Replaces each predicted token by a draw from a distribution, as ELECTRA's generator does."""

    def sample(self, logits_PV: Tensor, batch: dict[str, Tensor]) -> Tensor:
        row_P, position_P = (
            torch.div(batch["slot_P"], batch["ids_BL"].shape[1], rounding_mode="floor"),
            batch["slot_P"] % batch["ids_BL"].shape[1],
        )
        uniform_P1 = draw_uniform(batch, "generator", row_P, position_P)[:, None]
        bound_PV = logits_PV.double().softmax(1).cumsum(1)
        return torch.searchsorted(bound_PV, uniform_P1)[:, 0].clamp(max=logits_PV.shape[1] - 1)

    def replaced(self, batch: dict[str, Tensor], table_VV: Tensor) -> Tensor:
        ids_BL = batch["ids_BL"].clone()
        ids_BL.view(-1)[batch["slot_P"]] = self.sample(table_VV[batch["target_P"]], batch)
        return ids_BL


def test_a_sample_does_not_depend_on_microbatches_or_the_order_of_rows() -> None:
    examples, table_VV = keyed_examples(), torch.randn(1000, 1000, generator=torch.Generator().manual_seed(0))
    rows = np.arange(12)

    def sampled(chosen: np.ndarray) -> dict[int, list[int]]:
        batch = as_batch(examples.batch(3, chosen))
        ids_BL = ToyGenerator().replaced(batch, table_VV)
        lengths = batch["length_B"].tolist()
        return {int(row): ids[:n] for row, ids, n in zip(chosen, ids_BL.tolist(), lengths, strict=True)}

    whole = sampled(rows)
    parts = sampled(rows[::-1][:5]) | sampled(rows[::-1][5:])
    assert whole == parts
    assert whole != {
        row: ids[: len(whole[row])] for row, ids in enumerate(as_batch(examples.batch(3, rows))["ids_BL"].tolist())
    }


def test_row_keys_are_in_a_batch_only_if_wanted() -> None:
    examples = keyed_examples()
    views = examples.views(0, np.arange(4))
    for kind in (EncoderCollator, CausalCollator, BoundaryCollator):
        assert "row_key_B" not in kind().pack(views, FakeVocabulary())
        keyed = kind(row_keys=True).pack(views, FakeVocabulary())
        assert keyed["row_key_B"].view(np.uint64).tolist() == Noise.of(0, (0, 0), np.arange(4)).row_B.tolist()
