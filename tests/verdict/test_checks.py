"""Each of the six checks passes, fails, is not known and does not apply; and what a verdict makes of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from paribus.verdict.checks import (
    CHECKS,
    FAILS,
    NOT_APPLICABLE,
    NOT_KNOWN,
    PASSES,
    ArmEvidence,
    Check,
    Contrasted,
    Exit,
    State,
    explain,
    join_checks,
    rate,
    run_checks,
)
from paribus.verdict.statistics import average

LATE = "new left the plateau at 75% of its tokens in seed 3"
TASK = "docs_package/accuracy"
GAIN = average([0.10, 0.12, 0.11])
SOUND = ArmEvidence(
    name="base",
    exits={0: Exit(0.3), 1: Exit(0.4)},
    gain=GAIN,
    above_chance={TASK: [0.2, 0.3]},
    checkpoints=2,
    texts=1,
)


def check(name: str, column: str = TASK, tuned: bool = False, second: ArmEvidence = SOUND, **changes: Any) -> Check:
    """The named check of an arm with these changes against a sound one."""
    arms = (replace(SOUND, name="new", **changes), second)
    checks = run_checks(column, arms, controlled=column == TASK, tuned=tuned)
    assert [one.name for one in checks] == list(CHECKS)
    return next(one for one in checks if one.name == name)


def test_sound_arms_pass_what_applies() -> None:
    arms = (SOUND, replace(SOUND, name="new"))
    assert [one.state for one in run_checks(TASK, arms, controlled=True, tuned=True)] == [PASSES] * 6
    states = [
        one.state
        for one in run_checks("mlm_loss", (replace(SOUND, above_chance={}),) * 2, controlled=False, tuned=False)
    ]
    assert states == [PASSES, PASSES, NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE, PASSES]
    costs = run_checks("microseconds_per_token", arms, controlled=False, tuned=True)
    assert [one.state for one in costs] == [NOT_APPLICABLE] * 4 + [PASSES] * 2


@pytest.mark.parametrize(
    ("exits", "state", "reason"),
    [
        ({0: Exit(0.5), 1: Exit(0.2)}, PASSES, "new left the plateau at 50% of its tokens in seed 0"),
        ({0: Exit(0.51), 1: Exit(0.2)}, FAILS, "new left the plateau at 51% of its tokens in seed 0"),
        ({0: Exit(0.6), 3: Exit(0.75)}, FAILS, f"{LATE} (2 of 4 runs had not left it by half)"),
        ({0: Exit(math.inf)}, FAILS, "new never left the plateau in seed 0"),
        ({0: Exit(math.inf, memorized=True)}, FAILS, "new memorized its text in seed 0 and never left the plateau"),
        ({0: Exit(None), 1: Exit(0.2)}, NOT_KNOWN, "not recorded when runs left the plateau"),
        ({0: Exit(0.9, bound=True)}, NOT_KNOWN, "new left the plateau in an earlier stage, whose exit is not recorded"),
        ({0: Exit(0.45, bound=True)}, PASSES, "new left the plateau at 45% of its tokens in seed 0"),
    ],
)  # fmt: skip
def test_every_run_left_the_plateau_by_half(exits: dict[int, Exit], state: State, reason: str) -> None:
    assert check("left_early", exits=exits) == Check("left_early", state, reason)


def test_arms_from_a_checkpoint_have_no_plateau_to_leave() -> None:
    fine_tuned = replace(SOUND, exits={})
    assert check("left_early", second=fine_tuned, exits={}).state == NOT_APPLICABLE
    assert check("left_early", second=fine_tuned, exits={0: Exit(0.7)}).state == FAILS
    assert check("exits_alike", second=fine_tuned, exits={0: Exit(0.7)}).state == NOT_APPLICABLE


@pytest.mark.parametrize(
    ("exits", "state", "reason"),
    [
        ({0: Exit(0.4), 1: Exit(0.5)}, PASSES, "exits at 45% (new) and 35% (base) of the tokens"),
        ({0: Exit(0.3), 1: Exit(0.2)}, PASSES, "exits at 25% (new) and 35% (base) of the tokens"),
        ({0: Exit(0.42), 1: Exit(0.5)}, FAILS, "exits at 46% (new) and 35% (base) of the tokens"),
        ({0: Exit(0.3), 1: Exit(math.inf)}, FAILS, "new has no exit in seed 1"),
        ({0: Exit(0.3), 1: Exit(None)}, NOT_KNOWN, "not recorded when runs left the plateau"),
        ({7: Exit(0.3)}, NOT_KNOWN, "not recorded when runs left the plateau"),  # no seed that both have
        ({0: Exit(0.3, bound=True)}, NOT_KNOWN, "new left the plateau in an earlier stage, whose exit is not recorded"),
    ],
)
def test_exits_differ_by_a_tenth_at_most(exits: dict[int, Exit], state: State, reason: str) -> None:
    assert check("exits_alike", exits=exits) == Check("exits_alike", state, reason)


def test_both_arms_are_above_from_scratch() -> None:
    name = "above_scratch"
    weak = check(name, gain=average([0.05, -0.01, 0.02]))
    assert weak == Check(name, FAILS, "new gains 2.0 [-5.5, 9.5] over the model from scratch")
    assert check(name).reason == "base gains 11.0 [8.5, 13.5] over the model from scratch"
    one_seed = check(name, gain=average([0.05]))
    assert one_seed == Check(name, NOT_KNOWN, "no interval of new over the model from scratch")
    assert check(name, gain=None).state == NOT_KNOWN
    assert check(name, gain=None, scratch=True).state == PASSES  # of the other arm
    assert check(name, second=replace(SOUND, scratch=True), scratch=True).state == NOT_APPLICABLE
    assert check(name, column="mlm_loss").state == NOT_APPLICABLE


def test_a_loss_is_above_from_scratch_if_it_is_lower() -> None:
    column = "docs_text/perplexity"
    arms = (replace(SOUND, gain=average([-3.0, -3.2, -3.1])),) * 2
    assert run_checks(column, arms, controlled=True, tuned=False)[2].state == PASSES


@pytest.mark.parametrize(
    ("gains", "state", "reason"),
    [
        ([0.0, 0.3], FAILS, f"fine-tunings at chance on {TASK}: 1 of 2 of new"),
        ([-0.02, 0.01], FAILS, f"fine-tunings at chance on {TASK}: 2 of 2 of new"),
        ([0.011, 0.3], PASSES, "none of 4 fine-tunings at chance beside others that learned"),
        (None, NOT_KNOWN, f"the score of a constant answer is not recorded for {TASK}"),
    ],
)
def test_no_fine_tuning_is_at_chance_while_others_are_not(gains: list[float] | None, state: State, reason: str) -> None:
    assert check("no_collapse", above_chance={TASK: gains}) == Check("no_collapse", state, reason)


def test_a_task_that_nobody_learned_has_no_collapse() -> None:
    flat = {TASK: [0.0, 0.005]}
    assert check("no_collapse", second=replace(SOUND, above_chance=flat), above_chance=flat).state == PASSES


def test_a_column_without_fine_tunings_cannot_collapse() -> None:
    empty: dict[str, list[float] | None] = {TASK: []}
    assert check("no_collapse", second=replace(SOUND, above_chance=empty), above_chance=empty).state == NOT_APPLICABLE


def test_no_tuned_value_is_at_the_edge_of_its_grid() -> None:
    edge = {"optimizer.lr": "0.01"}
    both = check("inside_grid", tuned=True, second=replace(SOUND, at_edge=edge), at_edge=edge)
    assert both == Check("inside_grid", FAILS, "tuned to the edge of the grid: optimizer.lr=0.01 in new and base")
    assert check("inside_grid", tuned=True).state == PASSES
    assert check("inside_grid", tuned=True, at_edge=None).state == NOT_KNOWN
    assert check("inside_grid", tuned=False, at_edge=None).state == NOT_APPLICABLE


def test_one_checkpoint_of_one_text_is_not_enough() -> None:
    alone = check("replicated", checkpoints=1)
    assert alone == Check("replicated", FAILS, "all runs start from one checkpoint of one text")
    assert check("replicated").reason == "2 checkpoints, 1 text"
    texts = check("replicated", second=replace(SOUND, checkpoints=1, texts=2), checkpoints=1, texts=2)
    assert texts == Check("replicated", PASSES, "1 checkpoint, 2 texts")
    assert check("replicated", checkpoints=0).state == PASSES  # the other arm alone was pre-trained
    assert check("replicated", second=replace(SOUND, checkpoints=0), checkpoints=0).state == NOT_APPLICABLE


def of(*states: State) -> tuple[Check, ...]:
    return tuple(Check(name, state, f"{name} {state}") for name, state in zip(CHECKS, states, strict=False))


def test_the_strength_of_a_verdict() -> None:
    assert rate("reproduced", of(PASSES, NOT_APPLICABLE)) == "solid"
    assert rate("equivalent", of(PASSES, FAILS, NOT_KNOWN)) == "weak"
    assert rate("contradicted", of(PASSES, NOT_KNOWN)) == "unchecked"
    assert rate("undecided", of(PASSES, FAILS)) is None
    assert rate("reproduced", ()) is None  # of runs that were made elsewhere
    assert explain(of(FAILS, NOT_KNOWN)) == "left_early fails"
    assert explain(of(PASSES, NOT_KNOWN)) == "exits_alike not known"
    assert explain(of(PASSES, NOT_APPLICABLE)) == ""


def test_a_claim_is_as_strong_as_what_its_verdict_rests_on() -> None:
    good, bad = of(PASSES, PASSES), of(FAILS, NOT_KNOWN)
    for word in ("reproduced", "equivalent", "undecided"):
        assert join_checks(word, [Contrasted(word, good), Contrasted(word, bad), Contrasted("not run", ())]) == bad
    contradicted = [Contrasted("contradicted", bad), Contrasted("contradicted", good), Contrasted("reproduced", bad)]
    assert join_checks("contradicted", contradicted) == good
    mixed = [Contrasted("reproduced", of(FAILS, PASSES)), Contrasted("reproduced", of(PASSES, NOT_KNOWN))]
    assert [one.state for one in join_checks("reproduced", mixed)] == [FAILS, NOT_KNOWN]
