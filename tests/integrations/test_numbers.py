"""Cells as numbers: decimal marks, thousands, percents, and what is refused instead of guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pytest

from paribus.core.errors import UserError
from paribus.integrations.numbers import fill, read_columns
from paribus.integrations.source import ForeignRow, ForeignSource


def read(
    column: Sequence[object], *, others: Mapping[str, Sequence[str]] = {}, default: str | None = None,
    decimal: str | None = None,
) -> tuple[list[float | None], list[str]]:  # fmt: skip
    """The numbers of a column `x`, and the notes."""
    columns: dict[str, Sequence[object]] = {"x": column, **others}
    rows = [ForeignRow(f"line {at}", dict(zip(columns, cells, strict=True)))
            for at, cells in enumerate(zip(*columns.values(), strict=True), 2)]  # fmt: skip
    notes: list[str] = []
    known = read_columns(rows, ["x"], ForeignSource("runs", rows, decimal=default), decimal, notes)
    return [fill(row, known).values["x"] for row in rows], notes


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["0.812", ".5", "5.", "-1e-3", "+2"], [0.812, 0.5, 5.0, -0.001, 2.0]),
        (["0,812", ",5", "5,", "12,34"], [0.812, 0.5, 5.0, 12.34]),
        (["8,123e-04", "7,5E+1"], [8.123e-4, 75.0]),
        (["1,167.5", "987", "1,234,567"], [1167.5, 987.0, 1234567.0]),
        (["1.167.000", "987,5"], [1167000.0, 987.5]),
        (["1.167.000", "987.000", "500"], [1167000.0, 987000.0, 500.0]),
        (["1 167", "1\u00a0167", "1\u2009167", "1\u202f167", "1'167", "1\u2019167,5"], [1167.0] * 5 + [1167.5]),
        (["\u22120.5", "\u22121.25e\u22122"], [-0.5, -0.0125]),
        (["81.2%", "82.1 %"], [0.812, 0.821]),
        (["81,2%", "82,1\u00a0%"], [0.812, 0.821]),
        (["True", "false", True, 1, 0.5], [1.0, 0.0, 1.0, 1.0, 0.5]),
        (["", " ", None], [None] * 3),
        (["NA", "-", "OOM", "1.2.3", "0x1F", "1_000", "٣"], ["NA", "-", "OOM", "1.2.3", "0x1F", "1_000", "٣"]),
    ],
)  # fmt: skip
def test_a_column_is_read_by_its_own_cells(cells: list[object], numbers: list[float | str | None]) -> None:
    found, notes = read(cells)
    assert found == pytest.approx(numbers)
    assert notes == []


def test_runs_that_diverged_are_numbers() -> None:
    found, _ = read(["nan", "NaN", "inf", "-Infinity", "\u2212inf", math.nan])
    assert [repr(number) for number in found] == ["nan", "nan", "inf", "-inf", "-inf", "nan"]


@pytest.mark.parametrize(
    ("acc", "expected", "why"),
    [
        (["0.812", "0.798"], [1167.0, 1013.0], "x: 1,167 is read as 1167, as in acc (--decimal , changes it)."),
        (["0,812", "0,798"], [1.167, 1.013], "x: 1,167 is read as 1.167, as in acc (--decimal . changes it)."),
    ],
)  # fmt: skip
def test_other_columns_tell_what_a_mark_means(acc: list[str], expected: list[float], why: str) -> None:
    assert read(["1,167", "1,013"], others={"acc": acc}) == (expected, [why])


def test_whole_hundreds_beside_it_tell_what_a_mark_means() -> None:
    assert read(["1,167", "987", "914"])[0] == [1167.0, 987.0, 914.0]
    assert read(["500", "1.000", "2.000"])[0] == [500.0, 1000.0, 2000.0]
    found, notes = read(["500", "1,000"], default=".")
    assert (found, len(notes)) == ([500.0, 1000.0], 1)


def test_the_points_of_a_file_with_commas_need_no_note() -> None:
    assert read(["2.310", "2.290"], default=".") == ([2.31, 2.29], [])
    found, notes = read(["1,167", "1,013"], default=".")
    assert (found, len(notes)) == ([1167.0, 1013.0], 1)


@pytest.mark.parametrize(
    ("cells", "others", "message"),
    [
        (["1,167", "1,013"], {}, "x of runs can be read in two ways: 1,167 is 1167 (--decimal .) or 1.167 (--decimal"),
        (["2.310", "2.290"], {}, "2.310 is 2.31 (--decimal .) or 2310 (--decimal ,)"),
        (["500", "1,000"], {"acc": ["0,81", "0,82"]}, "can be read in two ways"),
        (["1,167", "1,013"], {"a": ["0,81", "0,82"], "b": ["0.81", "0.82"]}, "can be read in two ways"),
        (["0.812", "0,798"], {}, "x of runs has numbers of two kinds: 0.812 and 0,798: write all with one decimal"),
        (["1.122", "0,812"], {}, "numbers of two kinds: 1.122 and 0,812"),
        (["80.6%", "82.2"], {}, "x is written as 80.6% (line 2) and as 82.2 (line 3): write % at all its numbers"),
        (["80.6%", "0.822"], {}, "x is written as 80.6% (line 2) and as 0.822 (line 3)"),
    ],
)  # fmt: skip
def test_a_column_with_two_readings_is_refused(cells: list[str], others: dict[str, list[str]], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        read(cells, others=others)


def test_the_decimal_mark_can_be_given() -> None:
    assert read(["1,167", "1,013"], decimal=".") == ([1167.0, 1013.0], [])
    assert read(["1,167", "1,013"], decimal=",") == ([1.167, 1.013], [])
    assert read(["1.122", "0,812"], decimal=",") == ([1122.0, 0.812], [])
    with pytest.raises(UserError, match=re.escape("0.812 in x of runs is not a number with --decimal ,")):
        read(["0.812", "1.013"], decimal=",")
