"""Designs of several factors: their arms, what is aliased with what, and what is refused."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from paribus.core.errors import UserError
from paribus.verdict.claims import parse
from paribus.verdict.factorial import Factorial, lenth_error, make_factorial, plan_power

TWO = ("low", "high")


def make(kind: str, names: str, **more: Any) -> Factorial:
    """A design whose factors are single letters, of the levels a0 and a1."""
    levels = {name: (f"{name}0", f"{name}1") for name in names}
    return make_factorial(kind, levels, **more)


def test_a_full_design_has_every_combination_named_by_its_levels() -> None:
    design = make_factorial("full", {"extractor": ("lstm", "transformer"), "size": ("s", "m", "l")})
    assert list(design.arms)[:4] == ["lstm-s", "lstm-m", "lstm-l", "transformer-s"]
    assert list(design.estimated) == ["extractor", "size.m", "size.l", "extractor x size.m", "extractor x size.l"]
    large, small = design.find_sides("size.l")
    assert (large.name, small.name) == ("l", "s")
    assert large.weights == {"lstm-l": 0.5, "transformer-l": 0.5}
    plus, minus = design.find_sides("extractor x size.m")
    assert plus.weights == {"lstm-s": 0.5, "transformer-m": 0.5}
    assert minus.weights == {"lstm-m": 0.5, "transformer-s": 0.5}


def test_a_half_fraction_aliases_each_main_effect_with_the_other_two() -> None:
    design = make("fractional", "abc", generators={"c": ("a", "b")})
    assert list(design.arms) == ["a0-b0-c1", "a0-b1-c0", "a1-b0-c0", "a1-b1-c1"]  # c = ab, Box, Hunter and Hunter
    assert design.find_aliases("a") == {"b x c": 1.0}
    assert design.estimated == {"a": ("b x c",), "b": ("a x c",), "c": ("a x b",)}
    assert "a is aliased with b x c: the design cannot tell them apart." in design.describe_aliases()
    assert design == make("fractional", "abc")  # the default


def test_in_a_half_fraction_of_four_factors_interactions_are_aliased_in_pairs() -> None:
    design = make("fractional", "abcd")
    assert all(design.find_aliases(main) == {} for main in "abcd")
    assert design.estimated["a x b"] == ("c x d",)
    with pytest.raises(UserError, match="cannot tell 'a x b' from c x d"):
        design.require_clear("a x b")
    design.require_clear("a")


@pytest.mark.parametrize(("factors", "arms"), [(5, 12), (11, 12), (12, 20), (19, 20), (20, 24), (23, 24)])
def test_the_columns_of_plackett_and_burman_are_orthogonal_and_balanced(factors: int, arms: int) -> None:
    design = make("plackett_burman", "abcdefghijklmnopqrstuvwyz"[:factors])
    assert len(design.arms) == arms
    columns = [design.columns[main] for main in design.mains]
    assert len(columns) == factors
    assert all(sum(column) == 0 for column in columns)
    assert all(sum(x * y for x, y in zip(*pair, strict=True)) == 0 for pair in combinations(columns, 2))
    assert next(iter(design.arms.values())) == {name: f"{name}0" for name in design.levels}


def test_a_fold_over_clears_main_effects_of_interactions() -> None:
    plain, folded = make("plackett_burman", "abcdefgh"), make("plackett_burman", "abcdefgh", folded=True)
    aliases = plain.find_aliases("a")
    assert {abs(bias) for bias in aliases.values()} == {1 / 3}
    assert len(aliases) == 21  # the interactions of the seven others
    assert len(folded.arms) == 24
    assert all(folded.find_aliases(main) == {} for main in folded.mains)
    half = make("fractional", "abc", folded=True)
    assert set(half.arms) == set(make("full", "abc").arms)
    assert half.find_aliases("a") == {}


@pytest.mark.parametrize(
    ("kind", "levels", "more", "said"),
    [
        ("half", {"a": TWO, "b": TWO}, {}, "design 'half' is unknown: use full, fractional, plackett_burman"),
        ("full", {"a": TWO}, {}, "two factors or more"),
        ("full", {"a": TWO, "b": ("one",)}, {}, "the factor 'b' has one level"),
        ("plackett_burman", {"a": TWO, "b": ("x", "y", "z")}, {}, "the factor 'b' has 3 levels"),
        ("full", {"a": TWO, "b": TWO}, {"folded": True}, "'folded' adds nothing"),
        ("full", {"a": TWO, "b": TWO}, {"generators": {"b": ("a",)}}, "'generators' belong to design: fractional"),
        ("fractional", {"a": TWO, "b": TWO}, {}, "the main effects of a and b are aliased"),
        (
            "fractional",
            dict.fromkeys("abcd", TWO),
            {"generators": {"d": ("a",)}},
            "effects of a and d are aliased",
        ),
        (
            "fractional",
            dict.fromkeys("abcde", TWO),
            {"generators": {"d": ("a", "b"), "e": ("a", "b")}},
            "main effects of d and e are aliased",
        ),
        ("fractional", dict.fromkeys("abcd", TWO), {"generators": {"d": ("a", "z")}}, "the unknown factor 'z'"),
        (
            "fractional",
            dict.fromkeys("abcd", TWO),
            {"generators": {"d": ("a", "a")}},
            "no product of different",
        ),
        (
            "fractional",
            dict.fromkeys("abcde", TWO),
            {"generators": {"d": ("a", "b"), "e": ("a", "d")}},
            "'d', which has a generator itself",
        ),
        ("full", dict.fromkeys("abcdefghi", TWO), {}, "512 arms, more than 256"),
        ("plackett_burman", dict.fromkeys("abcdefghijklmnopqrstuvwx", TWO), {}, "for 24 factors"),
        ("plackett_burman", dict.fromkeys("abcd", TWO), {}, "has arms twice for 4 factors: write design: fractional"),
    ],
)
def test_designs_that_are_refused(kind: str, levels: Any, more: dict[str, Any], said: str) -> None:
    named = {factor: [f"{factor}{level}" for level in of_factor] for factor, of_factor in levels.items()}
    with pytest.raises(UserError) as raised:
        make_factorial(kind, named, **more)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_fold_over_that_adds_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="the same arms as the design itself"):
        make("fractional", "abcd", folded=True)


def test_claims_name_effects_and_zero() -> None:
    arms, effects = ("a0-b0", "a1-b0"), ("a", "b", "a x b")
    claim = parse("a x b ~ 0 on mlm_loss, margin 0.02 nats", arms, ["mlm_loss"], effects=effects)
    assert claim.pairs == (("a x b", "~", "0"),)
    assert parse("0 >= b", arms, ["mlm_loss"], effects=effects).pairs == (("0", ">=", "b"),)
    assert parse("a1-b0 > a0-b0", arms, ["mlm_loss"], effects=effects).pairs == (("a1-b0", ">", "a0-b0"),)
    for text, said in (
        ("b x a > 0", "unknown effect 'b x a'"),
        ("a > a0-b0", "compares the effect 'a' with an arm: write a > 0"),
        ("a > b", "compares the effect 'a' with an arm"),
        ("0 > 0", "compares an arm with itself"),
    ):
        with pytest.raises(UserError) as raised:
            parse(text, arms, ["mlm_loss"], effects=effects)
        assert said in str(raised.value)
    with pytest.raises(UserError, match="unknown arm '0'"):
        parse("a1-b0 > 0", arms, ["mlm_loss"])


def test_all_arms_see_an_effect_that_one_factor_at_a_time_does_not() -> None:
    found = plan_power(make("plackett_burman", "abcdefgh"), seeds=6, claims=1, alpha=0.05)
    assert found is not None
    # an effect of 6 arms against 6 has the standard error of a difference of two arms over sqrt(6 x 6) seeds; one at a
    # time, 72 runs are 8 seeds of 9 arms. By the noncentral t with 5 and 7 degrees of freedom.
    assert found.runs == 72
    assert found.together == pytest.approx(3.49 / 6, rel=0.02)
    assert found.one_at_a_time == pytest.approx(3.25 / 8**0.5, rel=0.02)
    assert plan_power(make("full", "ab"), seeds=1, claims=1, alpha=0.05) is None


def test_lenths_error_ignores_the_effects_that_stand_out() -> None:
    # sizes 1, 2, 3, 4, 30: median 3, first 4.5; of those below 11.25 the median is 2.5
    assert lenth_error([1.0, -2.0, 3.0, -4.0, 30.0]) == pytest.approx(1.5 * 2.5)
    assert lenth_error([1.0, 2.0]) is None
