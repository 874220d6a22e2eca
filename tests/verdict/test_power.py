"""How many seeds: the same rules as the verdicts, as a simulation of whole tables shows."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from paribus.commands.cli import main
from paribus.core.errors import UserError
from paribus.verdict.claims import Pair
from paribus.verdict.contrast import Contrast
from paribus.verdict.power import plan_seeds
from paribus.verdict.rules import Relation, find_word
from paribus.verdict.ruling import rule
from paribus.verdict.statistics import average

TABLES = 400


def contrast(relation: Relation, margin: float, differences: list[float], arm: str) -> Contrast:
    return Contrast("bleu", Pair(arm, relation, "base"), margin, average(differences))


def simulate(relation: Relation, sd: float, effect: float, margin: float, n: int, arms: int) -> float:
    """The share of tables in which the first claim is decided; the other arms are like the baseline."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(TABLES):
        drawn = rng.normal(0.0, sd, (arms - 1, n))
        drawn[0] += effect
        claims = [[contrast(relation, margin, row.tolist(), f"arm{at}")] for at, row in enumerate(drawn)]
        hits += find_word(rule(claims, count_seeds=False)[0].verdict).decides
    return hits / TABLES


@pytest.mark.parametrize(
    ("relation", "sd", "effect", "margin", "arms"),
    [
        (">", 0.8, 1.0, 0.0, 2),
        (">", 0.8, 1.0, 0.0, 4),
        (">", 0.5, 0.4, 0.5, 2),
        (">=", 0.8, 0.2, 0.5, 3),
        ("~", 0.6, 0.0, 0.5, 2),
    ],
)
def test_four_of_five_tables_of_that_many_seeds_are_decided(
    relation: Relation, sd: float, effect: float, margin: float, arms: int
) -> None:
    need = next(need for need in plan_seeds(sd, effect, margin, arms).needs if need.relation == relation)
    assert need.seeds is not None
    found = simulate(relation, sd, effect, margin, need.seeds, arms)
    assert 0.74 < found < 0.92
    fewer = simulate(relation, sd, effect, margin, max(2, need.seeds // 2), arms)
    assert fewer < 0.74


def test_the_answer_says_seeds_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--sd", "0.8", "--effect", "1"]) == 0
    assert (
        f"A > B: {plan_seeds(0.8, 1.0).seeds} seeds per arm (16 runs), most likely reproduced"
        in capsys.readouterr().out
    )
    assert main(["power", "--sd", "0.8", "--effect", "-1", "--margin", "0.5", "--arms", "3"]) == 0
    shown = capsys.readouterr().out
    assert "most likely contradicted" in shown
    assert "(2 claims, 2.5% of the error rate of 5% for each):" in shown


def test_a_small_difference_needs_more_than_can_be_run() -> None:
    found = plan_seeds(10.0, 0.01)
    assert found.seeds is None
    assert "more than 1000 seeds" in str(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0.0, 1.0), "sd=0, effect=1, margin=0 and 2 arms are not possible: give a finite effect, sd above 0"),
        ((0.8, 0.0), "there is no difference to detect"),
        ((0.8, 1.0, -1.0), "margin=-1"),
        ((0.8, 1.0, 0.0, 1), "1 arms are not possible"),
        ((0.8, 1.0, 0.0, 10**6), "a margin of 0 or more, and 2 to 1000 arms"),
        ((float("nan"), 1.0), "sd=nan"),
        ((0.8, float("nan")), "effect=nan"),
        ((0.8, float("-inf")), "effect=-inf"),
    ],
)
def test_impossible_experiments_are_refused(given: tuple[float, ...], words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        plan_seeds(*given)  # type: ignore[arg-type]


def test_the_spread_must_be_given(refusal: Callable[..., str]) -> None:
    assert "power needs --sd" in refusal("power", "--effect", "1")
