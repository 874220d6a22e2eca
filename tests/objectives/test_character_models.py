"""Models of characters without a network, against the same definition written out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest
from stories import story

from paribus.objectives.character_models import CODE_POINTS, count_ngram_bits, count_xz_bits


def spell_out(train: str, held_out: str, longest: int) -> float:
    """Witten-Bell interpolation, character by character."""
    followers: dict[str, Counter[str]] = defaultdict(Counter)
    padded = "\0" * (longest - 1) + train
    for at in range(longest - 1, len(padded)):
        for length in range(longest):
            followers[padded[at - length : at]][padded[at]] += 1
    bits, padded = 0.0, "\0" * (longest - 1) + held_out
    for at in range(longest - 1, len(padded)):
        p = 1 / (len(set(train)) + 1)
        for length in range(longest):
            if seen := followers.get(padded[at - length : at]):
                p = (seen[padded[at]] + len(seen) * p) / (seen.total() + len(seen))
        bits -= math.log2(p)
        bits += math.log2(CODE_POINTS) if padded[at] not in train else 0
    return bits


@pytest.mark.parametrize("longest", [1, 2, 5])
def test_n_grams_are_interpolated_as_defined(longest: int) -> None:
    train, held_out = story(1) + story(2), story(3) + " ünknown 他"
    assert count_ngram_bits(train, held_out, longest) == pytest.approx(spell_out(train, held_out, longest))


def test_probabilities_of_all_next_characters_add_up_to_one() -> None:
    train = "abracadabra"
    before = count_ngram_bits(train, "abra", 3)
    after = [count_ngram_bits(train, f"abra{character}", 3) - before for character in "abrcd"]
    other = count_ngram_bits(train, "abraz", 3) - before - math.log2(CODE_POINTS)
    assert sum(2.0**-bits for bits in [*after, other]) == pytest.approx(1.0)


def test_a_large_alphabet_has_shorter_n_grams() -> None:
    train = "".join(chr(0x4E00 + 7 * at % 3000) for at in range(9000))
    assert count_ngram_bits(train, train[:500]) == pytest.approx(count_ngram_bits(train, train[:500], 5))


def test_xz_pays_little_for_what_it_has_read() -> None:
    train = "".join(story(number) for number in range(30))
    again, other = count_xz_bits(train, train[:4000]), count_xz_bits(train, story(99))
    assert again < 2000
    assert 0.2 < other / len(story(99)) < 8
