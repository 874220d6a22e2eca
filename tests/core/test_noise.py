"""The counter hash: pure, and random enough in every direction that is used."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paribus.core.noise import Noise, below, integers, mix64, stream_number

ROWS, WIDTH = 512, 512


def noise(seed: int = 0, keys: tuple[int, ...] = (0, 0), rows: int = ROWS) -> Noise:
    return Noise.of(seed, keys, np.arange(rows))


def test_the_bits_are_these() -> None:
    """Golden: who changes them raises `SEMANTICS`, since every mask changes."""
    bits = Noise.of(7, (0, 3), np.array([0, 41])).bits("masking", 3)
    assert bits.tolist() == [[1280272616, 1775168908, 3288220164], [3657605339, 2860068124, 369977933]]
    assert int(stream_number("masking")) == 3606083165681604603


def test_the_generator_is_splitmix64() -> None:
    """The published first outputs for the seed 1234567."""
    golden = 0x9E3779B97F4A7C15
    states = np.array([(1234567 + step * golden) % 2**64 for step in (1, 2, 3)], np.uint64)
    assert mix64(states).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(
    st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**40), min_size=1, max_size=9), st.integers(1, 70), st.text()
)
@settings(max_examples=60, deadline=None)
def test_at_draws_what_bits_holds(seed: int, examples: list[int], width: int, stream: str) -> None:
    drawn = Noise.of(seed, (1, 2), np.array(examples))
    bits = drawn.bits(stream, width)
    row, position = (part.reshape(-1) for part in np.indices(bits.shape))
    assert np.array_equal(drawn.at(stream, row, position), bits.reshape(-1))
    assert np.array_equal(drawn.bits(stream, width + 5)[:, :width], bits)


def test_a_row_does_not_depend_on_its_company() -> None:
    whole = noise(3).bits("masking", 33)
    chosen = np.array([17, 400, 2])
    assert np.array_equal(Noise.of(3, (0, 0), chosen).bits("masking", 33), whole[chosen])


def test_seed_keys_example_and_stream_all_count() -> None:
    base = noise(1, (2, 3), 4).bits("masking", 64)
    others = [
        noise(2, (2, 3), 4).bits("masking", 64),
        noise(1, (3, 2), 4).bits("masking", 64),
        noise(1, (2, 3, 0), 4).bits("masking", 64),
        noise(1, (2, 3), 4).bits("replace", 64),
        Noise.of(1, (2, 3), np.arange(4) + 4).bits("masking", 64),
    ]
    for other in others:
        assert (other == base).mean() < 0.01
    assert np.array_equal(noise(-1, (2, 3), 4).row_B, noise(2**64 - 1, (2, 3), 4).row_B)


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
@pytest.mark.parametrize("stream", ["masking", "random token"])
def test_every_byte_is_uniform(shift: int, stream: str) -> None:
    counts = np.bincount((noise(5).bits(stream, WIDTH).reshape(-1) >> shift) & 255, minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """In standard deviations of the correlation of independent draws."""
    return float(np.corrcoef(one.reshape(-1), other.reshape(-1))[0, 1] * one.size**0.5)


NEIGHBORS = {
    "streams": lambda: (noise().bits("masking", WIDTH), noise().bits("replace", WIDTH)),
    "seeds": lambda: (noise(0).bits("masking", WIDTH), noise(1).bits("masking", WIDTH)),
    "epochs": lambda: (noise(0, (0, 4)).bits("masking", WIDTH), noise(0, (0, 5)).bits("masking", WIDTH)),
    "rows": lambda: (noise().bits("masking", WIDTH)[1:], noise().bits("masking", WIDTH)[:-1]),
    "positions": lambda: (noise().bits("masking", WIDTH)[:, 1:], noise().bits("masking", WIDTH)[:, :-1]),
    "words": lambda: (noise().bits("masking", WIDTH)[:, 2:], noise().bits("masking", WIDTH)[:, :-2]),
}


@pytest.mark.parametrize("name", NEIGHBORS)
def test_neighbors_are_independent(name: str) -> None:
    one, other = NEIGHBORS[name]()
    assert abs(correlation(one.astype(float), other.astype(float))) < 5
    for bit in (0, 15, 31):
        assert abs(correlation((one >> bit & 1).astype(float), (other >> bit & 1).astype(float))) < 5


def test_one_bit_of_the_example_flips_half_of_the_output() -> None:
    base = noise(0, rows=4096)
    for bit in (0, 7, 31, 62):
        flipped = Noise.of(0, (0, 0), np.arange(4096, dtype=np.uint64) ^ np.uint64(1 << bit))
        changed = np.bitwise_count(base.bits("masking", 1) ^ flipped.bits("masking", 1)).mean()
        assert abs(changed - 16) < 0.3


def test_no_two_rows_meet() -> None:
    assert len(np.unique(noise(rows=200_000).row_B)) == 200_000


def test_integers_are_uniform_and_in_range() -> None:
    drawn = integers(noise(9).bits("random token", WIDTH).reshape(-1), 37)
    assert stats.chisquare(np.bincount(drawn, minlength=37)).pvalue > 1e-6
    edges = integers(np.array([0, 2**32 - 1], np.uint32), 30517)
    assert edges.tolist() == [0, 30516]


def test_below_is_a_share_of_all_draws() -> None:
    assert [int(below(share)) for share in (0.0, 0.5, 1.0)] == [0, 2**31, 2**32]


def test_noise_pickles() -> None:
    drawn = noise(4, rows=3)
    assert np.array_equal(pickle.loads(pickle.dumps(drawn)).bits("masking", 9), drawn.bits("masking", 9))
