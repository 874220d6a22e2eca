"""The truth table of verdicts, cell by cell, and how contrasts make a claim."""

from __future__ import annotations

import pytest

from paribus.verdict.claims import Pair
from paribus.verdict.controls import find_insensitive, find_plateau, find_unmatched
from paribus.verdict.metrics import find_incomparable, lower_is_better
from paribus.verdict.ruling import Contrast, Ruling, combine, rule
from paribus.verdict.statistics import pair_seeds
from paribus.verdict.words import judge

M = 0.5


@pytest.mark.parametrize(
    ("low", "high", "superior", "not_inferior", "equivalent"),
    [
        (-2.0, -1.0, "contradicted", "contradicted", "contradicted"),  # worse by more than the margin
        (-1.0, -0.2, "contradicted", "undecided", "undecided"),  # worse, across the lower margin
        (-1.0, 0.2, "undecided", "undecided", "undecided"),  # across the lower margin and zero
        (-1.0, 1.0, "undecided", "undecided", "undecided"),  # across everything
        (-0.4, -0.1, "equivalent", "reproduced", "reproduced"),  # worse, inside
        (-0.4, 0.4, "equivalent", "reproduced", "reproduced"),  # inside, across zero
        (-0.4, 1.0, "undecided", "reproduced", "undecided"),  # across zero and the upper margin
        (0.1, 0.4, "equivalent", "reproduced", "reproduced"),  # better, inside
        (0.2, 1.0, "reproduced", "reproduced", "undecided"),  # better, across the upper margin
        (1.0, 2.0, "reproduced", "reproduced", "contradicted"),  # better by more than the margin
        (-0.5, 0.4, "undecided", "undecided", "undecided"),  # touching the lower margin
        (-0.4, 0.5, "undecided", "reproduced", "undecided"),  # touching the upper margin
        (0.0, 1.0, "undecided", "reproduced", "undecided"),  # touching zero
    ],
)
def test_every_cell(low: float, high: float, superior: str, not_inferior: str, equivalent: str) -> None:
    assert judge(">", low, high, M) == superior
    assert judge(">=", low, high, M) == not_inferior
    assert judge("~", low, high, M) == equivalent


@pytest.mark.parametrize(
    ("low", "high", "superior", "not_inferior"),
    [
        (0.1, 0.2, "reproduced", "reproduced"),
        (-0.2, -0.1, "contradicted", "contradicted"),
        (-0.1, 0.1, "undecided", "undecided"),
        (0.0, 0.0, "undecided", "undecided"),
    ],
)
def test_without_a_margin_nothing_is_equivalent(low: float, high: float, superior: str, not_inferior: str) -> None:
    assert judge(">", low, high, 0.0) == superior
    assert judge(">=", low, high, 0.0) == not_inferior


def contrast(differences: list[float], relation: str = ">", margin: float = 0.0, **more: object) -> Contrast:
    pair = pair_seeds(dict(enumerate(differences)), dict.fromkeys(range(len(differences)), 0.0))
    column = str(more.pop("column", "sst2/accuracy"))
    return Contrast(column, Pair("a", relation, "b"), margin, pair, **more)  # type: ignore[arg-type]


CLEAR = [1.0, 1.1, 0.9, 1.05, 0.95]


def test_a_lower_loss_is_better() -> None:
    assert rule([contrast(CLEAR, column="mlm_loss")])[0].verdict == "contradicted"
    assert rule([contrast([-x for x in CLEAR], column="mlm_loss")])[0].verdict == "reproduced"
    assert rule([contrast(CLEAR)])[0].verdict == "reproduced"
    assert [lower_is_better(c) for c in ("mlm_loss", "mlm_perplexity", "mlm_accuracy", "squad/f1")] == [1, 1, 0, 0]


def test_a_margin_on_a_loss_is_turned_with_it() -> None:
    slightly_worse = [0.010, 0.012, 0.008, 0.011, 0.009]
    assert rule([contrast(slightly_worse, ">=", 0.02, column="mlm_loss")])[0].verdict == "reproduced"
    assert rule([contrast(slightly_worse, ">=", 0.002, column="mlm_loss")])[0].verdict == "contradicted"


def test_what_cannot_be_judged() -> None:
    one, none, same, barred = rule(
        [contrast([1.0]), contrast([]), contrast([0.1, 0.1, 0.1]), contrast(CLEAR, barred="not sensitive")]
    )
    assert (one.verdict, one.reason) == ("undecided", "one seed has no interval")
    assert none.verdict == "not run"
    assert (same.verdict, same.p_claim, same.more) == ("undecided", None, False)
    assert (barred.verdict, barred.reason, barred.barred) == ("undecided", "not sensitive", True)


def test_identical_runs_are_the_same_but_not_better() -> None:
    zeros = [0.0, 0.0, 0.0]
    verdicts = [
        ruling.verdict for ruling in rule([contrast(zeros, r, m) for r, m in ((">=", 0.1), ("~", 0.1), (">", 0))])
    ]
    assert verdicts == ["reproduced", "reproduced", "undecided"]


def test_holm_over_the_table_can_leave_a_contrast_open() -> None:
    borderline = [0.3, 1.5, 0.9, 1.8, 0.2]  # p = 0.04 alone
    alone = rule([contrast(borderline)])[0]
    assert alone.verdict == "reproduced"
    among = rule([contrast(borderline), *[contrast([0.5, -0.6, 0.1, -0.3, 0.4])] * 3])[0]
    assert among.verdict == "undecided"
    assert among.seeds is not None
    assert among.seeds > 5
    assert "needs about" in among.reason


def test_barred_columns_are_no_part_of_holms_family() -> None:
    borderline = [0.3, 1.5, 0.9, 1.8, 0.2]
    noise = [contrast([0.5, -0.6, 0.1, -0.3, 0.4], barred="not sensitive")] * 3
    assert rule([contrast(borderline), *noise])[0].verdict == "reproduced"


R = {v: Ruling(v) for v in ("reproduced", "equivalent", "undecided", "contradicted", "not run")}
BARRED = Ruling("undecided", reason="not sensitive", barred=True)


@pytest.mark.parametrize(
    ("rulings", "verdict"),
    [
        ([R["reproduced"], R["reproduced"]], "reproduced"),
        ([R["reproduced"], R["equivalent"]], "equivalent"),
        ([R["reproduced"], R["undecided"]], "undecided"),
        ([R["equivalent"], R["undecided"]], "undecided"),
        ([R["undecided"], R["contradicted"]], "contradicted"),
        ([R["reproduced"], R["not run"]], "undecided"),
        ([R["not run"], R["contradicted"]], "contradicted"),
        ([R["not run"], R["not run"]], "not run"),
        ([], "not run"),
        ([BARRED, R["reproduced"]], "reproduced"),
        ([BARRED, R["not run"]], "undecided"),
        ([BARRED], "undecided"),
    ],
)
def test_a_claim_is_its_weakest_contrast(rulings: list[Ruling], verdict: str) -> None:
    assert combine(rulings).verdict == verdict


def test_a_verdict_says_its_scale_and_the_seeds_it_needs() -> None:
    open_ones = [Ruling("undecided", seeds=9, reason="needs about 9 seeds"), Ruling("undecided", seeds=14, reason="x")]
    assert combine(open_ones).describe("smoke") == "undecided at smoke scale (needs about 14 seeds)"
    assert combine([BARRED]).describe("cpu") == "undecided at cpu scale (not sensitive)"
    assert combine([R["contradicted"]]).describe("cpu", ["sst2/accuracy"]).endswith("(no evidence from sst2/accuracy)")


def test_sensitivity_needs_two_standard_deviations_over_scratch() -> None:
    scratch = [0.20, 0.22, 0.18]
    assert find_insensitive("t/accuracy", [0.60, 0.61, 0.59], scratch) is None
    assert "not sensitive" in str(find_insensitive("t/accuracy", [0.22, 0.24, 0.20], scratch))
    assert "not sensitive" in str(find_insensitive("t/accuracy", [0.1, 0.1, 0.1], [0.1, 0.1, 0.1]))
    assert "not sensitive" in str(find_insensitive("t/accuracy", [0.1, 0.12, 0.11], scratch))
    assert "no run from scratch" in str(find_insensitive("t/accuracy", [0.6, 0.6], []))
    assert "one seed" in str(find_insensitive("t/accuracy", [0.6], [0.2]))
    assert find_insensitive("t/perplexity", [5.0, 5.1], [9.0, 9.1]) is None


def test_the_plateau_is_said_plainly() -> None:
    assert find_plateau([5.0, 5.01], 6.0) is None
    assert "only compare word frequencies" in str(find_plateau([5.95, 5.96], 6.0))
    assert "only compare word frequencies" in str(find_plateau([5.0, 6.4], 6.0))
    assert "only compare word frequencies" in str(find_plateau([6.5, 6.6], 6.0))
    assert "not recorded" in str(find_plateau([5.0, 5.0], None))


def test_budgets_match_within_one_percent() -> None:
    assert find_unmatched({}) is None
    assert find_unmatched({"a": 1000.0, "b": 1010.0}) is None
    assert find_unmatched({"a": 1000.0, "b": 1011.0}) == "a used 1000 and b used 1011"
    assert find_unmatched({"a": 0.0, "b": 0.0}) is None


def test_the_common_loss_carries_a_claim_only_on_equal_masks_and_inputs() -> None:
    assert find_incomparable("mlm_loss", ("masking.schedule", "model.norm")) is None
    assert find_incomparable("sst2/accuracy", ("input", "masking.rate")) is None
    for key in ("input", "input.length", "masking.rate", "masking", "mixture", "objective/view", "tokenizer"):
        assert "no verdict" in str(find_incomparable("mlm_loss", (key,)))


def test_accuracies_on_pairs_carry_claims_where_inputs_and_objectives_differ() -> None:
    table5 = ("objective", "input.pairs")
    for column in ("nsp_accuracy", "sop_accuracy", "sentence_accuracy", "nsp_probe_accuracy", "sop_probe_accuracy"):
        assert find_incomparable(column, table5) is None
        assert find_incomparable(column, ("input", "masking.schedule", "model")) is None
        for key in ("input.length", "corpus", "tokenizer.vocab_size", "evaluation.rate"):
            assert "not asked about the same pairs" in str(find_incomparable(column, (key,)))
    assert "no verdict" in str(find_incomparable("mlm_accuracy", table5))


@pytest.mark.parametrize("key", ["masking.rate", "masking", "objective/view", "objective.view.mask"])
def test_a_models_own_head_reads_masks_and_a_trained_probe_does_not(key: str) -> None:
    assert "no verdict" in str(find_incomparable("nsp_accuracy", (key,)))
    assert find_incomparable("nsp_probe_accuracy", (key,)) is None
