"""Whether a pre-training is still on its plateau, has left it, or has memorized its text."""

from __future__ import annotations

import numpy as np
import pytest

from paribus.verdict.controls import FALLING, LEFT, Course, Point, follow, read_course

FLOOR = 6.0
BELOW, ABOVE = FLOOR * (1 - LEFT) - 0.01, FLOOR * (1 - LEFT) + 0.01


def course(*losses: float) -> Course:
    return follow([Point(10 * at, 1000 * at, loss) for at, loss in enumerate(losses, 1)], FLOOR)


def test_a_run_leaves_its_plateau_at_the_first_point_below() -> None:
    found = course(6.5, ABOVE, BELOW, BELOW)
    assert found.left == Point(30, 3000, BELOW)
    assert found.share == 0.75
    assert not found.stuck
    assert course(6.5, 6.0, ABOVE).left is None
    assert course(6.5, 6.0, ABOVE).share is None
    assert course(6.5, 6.0, ABOVE).stuck
    assert course(BELOW) == Course(Point(10, 1000, BELOW), 1.0, False, None)


def test_a_run_that_left_and_then_memorizes_is_not_on_the_plateau_again() -> None:
    assert course(6.5, BELOW, ABOVE, 7.0).left == Point(20, 2000, BELOW)
    assert not course(6.5, BELOW, ABOVE, 7.0).memorized


def test_a_run_that_memorizes_without_learning_is_not_on_the_plateau_either() -> None:
    found = course(6.5, 6.4, 7.7, 14.5)
    assert found.memorized
    assert not found.stuck
    assert course(6.5, 6.4, 6.4 + LEFT * FLOOR - 0.01).stuck  # a little worse than at its best
    assert course(9.0, 7.0, 6.4).stuck


def test_a_run_that_diverges_on_the_plateau_has_memorized_nothing() -> None:
    assert course(9.0, 6.4, 6.4 + 2 * LEFT * FLOOR).stuck


def test_a_loss_on_text_that_the_model_writes_is_judged_where_it_stays() -> None:
    """An untrained generator's tokens are found with ease, far below the floor of what it writes at the end."""

    def written(*losses: float) -> Course:
        curve = [[10 * at, 1000 * at, loss] for at, loss in enumerate(losses, 1)]
        return read_course({"head": "replaced", "curve": curve, "floor": FLOOR})

    easy = 0.2 * FLOOR
    assert written(easy, 5.0, ABOVE, ABOVE).stuck
    assert written(easy, ABOVE, BELOW, BELOW).left == Point(30, 3000, BELOW)
    assert written(BELOW, BELOW).left == Point(10, 1000, BELOW)
    assert written(easy, BELOW, ABOVE).left is None


def test_the_end_of_a_curve_says_whether_it_was_falling() -> None:
    falling = course(*(6.0 - 0.1 * at for at in range(16)))
    assert falling.fall == pytest.approx(0.4)
    assert falling.falling
    steady = course(*np.linspace(6.0, 4.0, 12).tolist(), 4.0, 4.0, 4.0 - FALLING / 4, 4.0)
    assert steady.fall is not None
    assert steady.fall < FALLING
    assert not steady.falling
