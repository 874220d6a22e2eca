"""The maskings of text-to-text objectives against their papers' rules, and T5's length calculator."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pytest
from fake_text import noise, spans_of, words_of
from fake_windows import INPUTS, MASKINGS, TARGETS, VOCABULARY, windows
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.infilling import Infilling, poisson_bounds
from paribus.corruption.masking.one_span import Fragment, Prefix
from paribus.corruption.masking.random_spans import RandomSpans
from paribus.corruption.masking.single_tokens import Deletion, Iid
from paribus.corruption.masking.whole_row import Everything, Rotation, SentencePermutation

LENGTHS = st.lists(st.integers(2, 90), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("budget", "rate", "mean", "raw", "written", "spans"),
    [
        (512, 0.15, 2, 552, 126, 42),
        (512, 0.15, 3, 568, 114, 28),
        (512, 0.15, 5, 581, 105, 17),
        (512, 0.15, 10, 591, 99, 9),
        (512, 0.10, 3, 548, 74, 18),
        (512, 0.25, 3, 614, 206, 51),
        (512, 0.50, 3, 766, 512, 128),
        (128, 0.15, 3, 141, 29, 7),
        (64, 0.20, 2, 70, 22, 7),
        (64, 0.20, 1, 63, 27, 13),
    ],
)
def test_windows_are_as_long_as_t5_s_calculator_says(
    budget: int, rate: float, mean: float, raw: int, written: int, spans: int
) -> None:
    made = Corruption(RandomSpans(rate, mean), INPUTS["unique"], TARGETS["unique"])
    found = made.raw_length(budget)
    assert (found, made.lengths(found), RandomSpans(rate, mean).counts(found).spans) == (raw, (budget, written), spans)


@given(
    lengths=LENGTHS, rate=st.floats(0.05, 0.9), mean=st.floats(1, 6), seed=st.integers(0, 99), epoch=st.integers(0, 3)
)
@settings(max_examples=60, deadline=None)
def test_random_spans_keep_t5_s_promises(lengths: list[int], rate: float, mean: float, seed: int, epoch: int) -> None:
    text, masking = windows(lengths), RandomSpans(rate, mean)
    span_BL = masking(text, noise(len(lengths), seed, epoch)).span_BL
    for row, length in enumerate(lengths):
        wanted = min(max(round(length * rate), 1), length - 1)
        noisy = np.flatnonzero(span_BL[row])
        spans = spans_of(span_BL[row])
        assert len(noisy) == wanted
        assert len(spans) == max(1, min(round(wanted / mean), wanted, length - wanted))
        assert noisy[0] > 0
        assert noisy[-1] == length - 1
        assert all(span == list(range(span[0], span[-1] + 1)) for span in spans)
        assert all(left[-1] + 1 < right[0] for left, right in pairwise(spans))


def test_every_composition_is_as_likely() -> None:
    text, rows = windows([12] * 8), 0
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(1500):
        span_BL = RandomSpans(0.5, 2)(text, noise(8, seed)).span_BL
        for row in span_BL:
            edges = np.flatnonzero(np.diff(row > 0, prepend=False, append=False))
            seen[tuple(edges.tolist())] += 1
            rows += 1
    cells = comb(5, 2) ** 2  # 6 noise tokens in 3 spans, 6 others in 3 parts
    assert len(seen) == cells
    expected = rows / cells
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 99 + 5 * (2 * 99) ** 0.5


def test_span_lengths_follow_the_uniform_composition_and_not_the_geometric() -> None:
    """P(first part = k) for n tokens in s parts is C(n - k - 1, s - 2) / C(n - 1, s - 1)."""
    span_BL = RandomSpans(0.15, 3)(windows([141] * 4000), noise(4000)).span_BL
    first_B = (span_BL == 1).sum(axis=1)
    for size in range(1, 8):
        expected = comb(21 - size - 1, 5) / comb(20, 6)
        assert abs((first_B == size).mean() - expected) < 4 * (expected / 4000) ** 0.5


def test_rows_without_room_stay_text() -> None:
    text = windows([1, 6, 1, 5])
    span_BL = RandomSpans(0.5, 1)(text, noise(4)).span_BL
    assert (span_BL[[0, 2]] == 0).all()
    assert [(row > 0).sum() for row in span_BL] == [0, 3, 0, 2]


def test_iid_draws_each_token_and_joins_neighbors() -> None:
    span_BL = Iid(0.15)(windows([200] * 500), noise(500)).span_BL
    assert abs((span_BL > 0).mean() - 0.15) < 0.005
    spans = [span for row in span_BL[:100] for span in spans_of(row)]
    assert abs(np.mean([len(span) for span in spans]) - 1 / 0.85) < 0.05
    assert len({int((row > 0).sum()) for row in span_BL}) > 10


def test_prefixes_have_every_length_alike() -> None:
    span_BL = Prefix()(windows([5] * 4000), noise(4000)).span_BL
    assert all(row == sorted(row) for row in span_BL.tolist())
    shares = np.bincount((span_BL == 0).sum(axis=1), minlength=5) / 4000
    assert shares[0] == 0
    assert np.abs(shares[1:] - 0.25).max() < 0.03


def test_fragments_start_as_mass_says() -> None:
    span_BL = Fragment()(windows([21] * 5000), noise(5000)).span_BL
    assert ((span_BL > 0).sum(axis=1) == 10).all()
    first_B = span_BL.argmax(axis=1)
    assert all(len(spans_of(row)) == 1 for row in span_BL[:50])
    assert abs((first_B == 0).mean() - (0.2 + 0.6 / 12)) < 0.02
    assert abs((first_B == 11).mean() - (0.2 + 0.6 / 12)) < 0.02
    assert np.abs(np.bincount(first_B)[1:11] / 5000 - 0.6 / 12).max() < 0.015


def test_deletion_is_exact_and_even() -> None:
    span_BL = Deletion(0.15)(windows([50] * 2000), noise(2000)).span_BL
    assert ((span_BL > 0).sum(axis=1) == 8).all()
    assert np.abs((span_BL > 0).mean(axis=0) - 0.16).max() < 0.04


def test_infilling_of_the_published_run_hides_less_than_it_says() -> None:
    text = windows([510] * 200)
    text.start_BL[:] = True
    marks = Infilling(0.3, 3.5)(text, noise(200))
    assert abs((marks.span_BL > 0).mean() - 0.266) < 0.006
    exact = Infilling(0.3, 3.5, exact=True)(text, noise(200))
    assert ((exact.span_BL > 0).sum(axis=1) == 153).all()
    assert exact.insert_BL is not None
    drawn = 153 / 3.5  # lengths that reach the budget
    assert abs(exact.insert_BL.sum(axis=1).mean() - drawn * np.exp(-3.5)) < 0.3


@given(lengths=LENGTHS, seed=st.integers(0, 99), exact=st.booleans(), sentences=st.booleans())
@settings(max_examples=60, deadline=None)
def test_infilling_takes_whole_words(lengths: list[int], seed: int, exact: bool, sentences: bool) -> None:
    text = windows(lengths, seed)
    marks = Infilling(0.3, 2, exact=exact, permute_sentences=float(sentences))(text, noise(len(lengths), seed))
    for row in range(len(lengths)):
        words = words_of(text, row)
        noisy = [{bool(marks.span_BL[row, column]) for column in word} for word in words]
        if not sentences:
            assert all(len(kinds) == 1 for kinds in noisy)
            hidden = sum(kinds == {True} for kinds in noisy)
            budget = int(np.ceil(0.3 * len(words)))
            assert hidden == budget if exact else hidden <= budget
        assert sorted(spans_of(marks.span_BL[row])) == sorted(spans_of(marks.span_BL[row]), key=lambda span: span[0])


def test_poisson_lengths() -> None:
    shares = np.diff(poisson_bounds(3.0)[:6], prepend=0) / 2**32
    assert np.abs(shares - [0.0498, 0.1494, 0.2240, 0.2240, 0.1680, 0.1008]).max() < 1e-4
    assert poisson_bounds(3.0)[-1] == 2**32


@pytest.mark.parametrize("name", ["permute", "rotation", "sentence_permutation", "infilling_sentences"])
def test_orders_are_bijections_that_leave_padding(name: str) -> None:
    text = windows([40, 7, 1, 33])
    order_BL = MASKINGS[name](text, noise(4)).order_BL
    for row, length in enumerate(text.length_B.tolist()):
        assert sorted(order_BL[row].tolist()) == list(range(40))
        assert order_BL[row, length:].tolist() == list(range(length, 40))
        assert name == "infilling_sentences" or length < 8 or order_BL[row].tolist() != list(range(40))


def test_rotation_offsets_are_even() -> None:
    order_BL = Rotation()(windows([6] * 3000), noise(3000)).order_BL
    assert order_BL is not None
    assert ((np.diff(order_BL, axis=1) % 6) == 1).all()
    shares = np.bincount(order_BL[:, 0], minlength=6) / 3000
    assert shares[0] == 0
    assert np.abs(shares[1:] - 0.2).max() < 0.03


def test_sentences_move_as_wholes_and_a_share_of_them() -> None:
    text = windows([120] * 60)
    for share in (1.0, 0.5):
        order_BL = SentencePermutation(share=share)(text, noise(60)).order_BL
        assert order_BL is not None
        for row in range(60):
            read = text.sentence_BL[row][order_BL[row]]
            runs = [int(number) for number in read[np.flatnonzero(np.diff(read, prepend=-9))]]
            count = int(text.sentence_BL[row].max()) - int(text.sentence_BL[row].min()) + 1
            assert len(runs) == len(set(runs)) == count
            still = sum(found == number for found, number in zip(runs, sorted(runs), strict=True))
            assert still >= count - int(np.ceil(share * count))
            inside = [np.diff(order_BL[row][read == number]) for number in runs]
            assert all((steps == 1).all() for steps in inside)


BAD: dict[str, Any] = {
    r"masking\.rate=0": lambda: RandomSpans(0),
    r"masking\.rate=1": lambda: Iid(1),
    r"masking\.rate=1\.5": lambda: Fragment(1.5),
    r"masking\.rate=0\.0": lambda: Fragment(0.0),
    r"masking\.mean_length=0\.5": lambda: RandomSpans(0.15, 0.5),
    r"masking\.mean_length=9 is longer than the noise, 5 of 32": lambda: RandomSpans(0.15, 9).check(32),
    r"masking\.mean_length=12 is longer": lambda: Infilling(0.3, 12).check(32),
    r"masking\.mean_length=0": lambda: Infilling(0.3, 0),
    r"masking\.unit=page": lambda: Infilling(0.3, unit="page"),
    r"masking\.permute_sentences=2": lambda: Infilling(0.3, permute_sentences=2),
    r"masking\.share=-1": lambda: SentencePermutation(share=-1),
    "no prefix": lambda: Prefix().check(1),
    "rounds to no prediction": lambda: Iid(0.01).check(20),
}


@pytest.mark.parametrize("said", BAD)
def test_bad_settings_are_refused(said: str) -> None:
    with pytest.raises(UserError, match=said):
        BAD[said]()


def test_sentinels_never_run_out() -> None:
    with pytest.raises(UserError, match=r"tokenizer\.sentinels=100: set tokenizer\.sentinels=128 or more"):
        Corruption(RandomSpans(0.5, 3), INPUTS["unique"], TARGETS["unique"]).check(766, VOCABULARY)
    with pytest.raises(UserError, match=r"tokenizer\.sentinels=100"):
        Corruption(Iid(0.5), INPUTS["unique"], TARGETS["unique"]).check(511, VOCABULARY)
    Corruption(Iid(0.15), INPUTS["unique"], TARGETS["unique"]).check(511, VOCABULARY)
    made = Corruption(Iid(0.4), INPUTS["unique"], TARGETS["unique"])
    views = made(windows([511] * 8), noise(8), VOCABULARY)
    assert views.marks.span_BL.max() == 99
    assert views.inputs.ids_BL.min() >= 0
    assert Everything().counts(9) == (9, 1)
