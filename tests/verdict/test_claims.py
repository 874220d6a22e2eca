"""The language of claims."""

from __future__ import annotations

import pytest

from paribus.core.errors import UserError
from paribus.verdict.claims import Pair, parse
from paribus.verdict.statistics import ALPHA

ARMS = ("static", "static_x10", "dynamic")
COLUMNS = ("mlm_loss", "sst2/accuracy", "squad/f1")


def test_margins_in_points_and_on_a_column() -> None:
    claim = parse("dynamic >= static_x10 on all, margin 0.5 points, margin 0.02 on mlm_loss", ARMS, COLUMNS)
    assert claim.pairs == (Pair("dynamic", ">=", "static_x10"),)
    assert claim.columns is None
    assert [claim.margin(column) for column in COLUMNS] == [0.02, 0.005, 0.005]


def test_a_margin_that_names_a_column_wins() -> None:
    claim = parse("dynamic ~ static, margin 1 points on squad/f1, margin 0.5 points, margin 0.1 nats", ARMS, COLUMNS)
    assert [claim.margin(column) for column in COLUMNS] == [0.1, 0.005, 0.01]


def test_a_claim_without_on_is_about_the_columns_that_its_margins_fit() -> None:
    claim = parse("dynamic ~ static, margin 0.5 points", ARMS, COLUMNS)
    assert (claim.columns, claim.left) == (COLUMNS[1:], ("mlm_loss",))
    assert parse("dynamic > static, margin 0.02 nats", ARMS, COLUMNS).columns == ("mlm_loss",)
    whole = parse("dynamic > static, margin 0.5 points, margin 0.02 on mlm_loss", ARMS, COLUMNS)
    assert (whole.columns, whole.left) == (None, ())
    assert parse("dynamic > static on all, margin 0.5 points", ARMS, COLUMNS).margin("mlm_loss") == 0.0


def test_columns_are_a_list() -> None:
    claim = parse("dynamic > static on sst2/accuracy, squad/f1, margin 0.5 points", ARMS, COLUMNS)
    assert claim.columns == ("sst2/accuracy", "squad/f1")
    assert parse("dynamic > static on mlm_loss, margin 0.01", ARMS, COLUMNS).margin("mlm_loss") == 0.01
    assert parse("dynamic > static", ARMS, COLUMNS).columns is None
    assert parse("dynamic ≥ static", ARMS, COLUMNS).pairs[0].relation == ">="


def test_orders_and_best() -> None:
    chain = parse("monotone(static, static_x10, dynamic)", ARMS, COLUMNS).pairs
    assert chain == (
        Pair("static_x10", ">=", "static"),
        Pair("dynamic", ">=", "static_x10"),
        Pair("dynamic", ">", "static"),
    )
    best = parse("best is dynamic on mlm_loss", ARMS, COLUMNS)
    assert best.pairs == (Pair("dynamic", ">", "static"), Pair("dynamic", ">", "static_x10"))
    assert parse("best is dynamic of (dynamic, static_x10)", ARMS, COLUMNS).pairs == (
        Pair("dynamic", ">", "static_x10"),
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("dynamic beats static", "not understood"),
        ("dynamic > static by .5%", r"'by .5%', which cannot be read: write by 0.5 points$"),
        ("dynamic > static by 0.5 percent on squad/f1", "write by 0.5 points$"),
        ("dynamic > static, margin 0.5pp on squad/f1", "write margin 0.5 points on squad/f1$"),
        ("dynamic > static by 0.5 on squad/f1", "write `by 0.5 points`"),
        ("dynamic > dynamic", "with itself"),
        ("best is dynamic of (dynamic)", "with itself"),
        ("best is dynamic of (static, static)", "names static twice: name it once"),
        ("monotone(static, dynamic, static)", "names static twice: name it once"),
        ("dynamic > static on squad/f1, squad/f1", "names squad/f1 twice: name it once"),
        ("dynamic > static, margin 1 points on squad/f1, squad/f1", "names squad/f1 twice: name it once"),
        ("dynamic > static, margin 0.5 points, margin 1 points", "two margins on sst2/accuracy: keep one of them"),
        ("dynamic > static on squad/f1, margin 0.5 points, margin 0.01", "two margins on squad/f1"),
        ("dynamic > static, margin 1 points on squad/f1, margin 0.02 on squad/f1", "two margins on squad/f1"),
        ("dynamic > dynamc", r"the unknown arm 'dynamc': did you mean dynamic\?"),
        ("dynamic > other", "the unknown arm 'other': known: static, static_x10, dynamic"),
        ("static x10 > static", r"the unknown arm 'static x10': did you mean static_x10\?"),
        ("dynamic < static", "has '<': write the better arm first, as in static > dynamic"),
        ("dynamic ≤ static", "write the better arm first, as in static >= dynamic"),
        ("dynamic > static margin 0.5 points", "put a comma before margin"),
        ("dynamic > static on squad/f1 margin 0.5 points", "put a comma before margin"),
        ("dynamic > static, margin 1 points margin 0.02 nats", "put a comma before margin"),
        ("best is span", "span"),
        ("dynamic > static on sst2", "sst2.*sst2/accuracy"),
        ("dynamic > static, margin half a point", "margin half a point"),
        ("dynamic > static, margin 1e200 nats", "'margin 1e200 nats', which cannot be read"),
        ("dynamic > static, margin -1 points", "'margin -1 points', which is not positive"),
        ("dynamic > static, margin 0 points", "'margin 0 points', which is not positive"),
        ("dynamic > static, margin 0.1", "without unit"),
        ("dynamic > static, margin 0.1 points on mlm_loss", "points for mlm_loss"),
        ("dynamic > static, margin 0.1 nats on squad/f1", "nats for squad/f1: squad/f1 is in points: write margin 0.5"),
        ("dynamic > static on sst2/accuracy, margin 0.1 nats", "fits none of its columns: sst2/accuracy is in points"),
        ("dynamic > static on mlm_loss, margin 1 points", "in points that fits none of its columns"),
        ("dynamic > static on squad/f1, margin 0.5", r"0\.5 on squad/f1.* is 50 points: write `margin 0\.5 points`"),
        ("dynamic > static, margin 0.1 on squad/f1, margin 9 on mlm_loss", "is 10 points: write"),
        ("dynamic ~ static", "no margin on mlm_loss"),
        ("dynamic ~ static on all, margin 0.5 points", "no margin on mlm_loss"),
    ],
)
def test_unclear_claims_are_refused_by_name(text: str, names: str) -> None:
    with pytest.raises(UserError, match=names):
        parse(text, ARMS, COLUMNS)


def test_equivalence_needs_no_margin_on_a_column_that_carries_no_claim() -> None:
    claim = parse("dynamic ~ static, margin 0.5 points", ARMS, COLUMNS, COLUMNS[1:])
    assert claim.margin("squad/f1") == 0.005


def test_better_by_a_size_and_at_a_level() -> None:
    claim = parse("a > b by 0.5 points on t/accuracy, p < 0.001", ["a", "b"], ["t/accuracy", "u/accuracy"])
    assert claim.pairs == (Pair("a", "> by", "b"),)
    assert (claim.columns, claim.margin("t/accuracy"), claim.level) == (("t/accuracy",), 0.005, 0.001)
    assert parse("a > b", ["a", "b"], ["t/accuracy"]).level == ALPHA
    for wrong in ("a >= b by 1 points", "a > b on t/accuracy by 1 points", "a > b by 1 points, margin 1 points",
                  "a > b by much", "a > b, p < 0.2",
                  "a > b, p < 0.01, p < 0.02", "a > b, p < x"):  # fmt: skip
        with pytest.raises(UserError):
            parse(wrong, ["a", "b"], ["t/accuracy"])
