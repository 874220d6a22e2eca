"""The truth table of verdicts, cell by cell, and how contrasts make a claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paribus.reports.tables.schema import qualify
from paribus.verdict.claims import Pair
from paribus.verdict.contrast import Contrast
from paribus.verdict.controls import describe_left, find_plateau, find_stuck, find_unmatched
from paribus.verdict.metrics import find_incomparable, find_metric, lower_is_better
from paribus.verdict.power import Range
from paribus.verdict.rules import judge
from paribus.verdict.ruling import NO_SEED, Ruling, combine, rule
from paribus.verdict.statistics import average, pair_seeds

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


def judge_alone(one: Contrast) -> Ruling:
    """The verdict of a contrast that is its table's only claim."""
    return rule([[one]])[0].rulings[0]


CLEAR = [1.0, 1.1, 0.9, 1.05, 0.95]


def test_a_lower_loss_is_better() -> None:
    assert judge_alone(contrast(CLEAR, column="mlm_loss")).verdict == "contradicted"
    assert judge_alone(contrast([-x for x in CLEAR], column="mlm_loss")).verdict == "reproduced"
    assert judge_alone(contrast(CLEAR)).verdict == "reproduced"
    assert [lower_is_better(c) for c in ("mlm_loss", "mlm_perplexity", "mlm_accuracy", "squad/f1")] == [1, 1, 0, 0]


def test_a_margin_on_a_loss_is_turned_with_it() -> None:
    slightly_worse = [0.010, 0.012, 0.008, 0.011, 0.009]
    assert judge_alone(contrast(slightly_worse, ">=", 0.02, column="mlm_loss")).verdict == "reproduced"
    assert judge_alone(contrast(slightly_worse, ">=", 0.002, column="mlm_loss")).verdict == "contradicted"


def test_what_cannot_be_judged() -> None:
    odd = [contrast([1.0]), contrast([]), contrast([0.1, 0.1, 0.1]), contrast(CLEAR, barred="on the plateau")]
    one, none, same, barred = map(judge_alone, odd)
    assert (one.verdict, one.reason) == ("undecided", "one seed has no interval")
    assert none.verdict == "not run"
    assert (same.verdict, same.p_claim, same.more) == ("undecided", None, False)
    assert (barred.verdict, barred.reason, barred.more) == ("undecided", "on the plateau", False)


@pytest.mark.parametrize("relation", [">", ">=", "~"])
def test_equal_numbers_are_no_evidence(relation: str) -> None:
    """Collapsed runs and small evaluation sets give ties by chance."""
    found = judge_alone(contrast([0.0, 0.0, 0.0], relation, 0.1))
    assert found.verdict == "undecided"
    assert found.reason == "all seeds give the same number in both arms: no spread to judge by"


BORDERLINE = [0.3, 1.5, 0.9, 1.8, 0.2]  # p = 0.04 alone
NOISE = [0.5, -0.6, 0.1, -0.3, 0.4]


def other(number: int, relation: str = ">", margin: float = 0.0, **more: object) -> Contrast:
    return contrast(NOISE, relation, margin, column=f"t{number}/accuracy", **more)


def test_holm_over_the_claims_can_leave_one_open() -> None:
    assert judge_alone(contrast(BORDERLINE)).verdict == "reproduced"
    (among,) = rule([[contrast(BORDERLINE)], *([other(at)] for at in range(3))])[0].rulings
    assert among.verdict == "undecided"
    assert among.range is not None
    assert among.range.least > 5
    assert among.reason.startswith("needs ")


def test_a_barred_column_keeps_its_place_in_the_family_and_its_claim_open() -> None:
    barred = [[other(at, barred="on the plateau")] for at in range(3)]
    assert rule([[contrast(BORDERLINE)], *barred])[0].verdict == "undecided"
    both = rule([[contrast(CLEAR), other(1, barred="on the plateau")]])[0]
    assert [ruling.verdict for ruling in both.rulings] == ["reproduced", "undecided"]
    assert (both.verdict, both.reason) == ("undecided", "on the plateau")


def gains(first: list[float] | None, second: list[float] | None) -> object:
    """None: an arm that is itself a model from scratch."""
    scratch = dict.fromkeys(range(9), 0.0)
    return tuple(None if values is None else pair_seeds(dict(enumerate(values)), scratch) for values in (first, second))


NONE, HIGH = [0.1, -0.1, 0.2, -0.2, 0.05], [3.1, 2.9, 3.2, 2.8, 3.0]  # gains over the model from scratch
BELOW = [-3.1, -2.9, -3.2, -2.8, -3.0]


@pytest.mark.parametrize(
    ("differences", "relation", "first", "second", "verdict"),
    [
        (CLEAR, ">", HIGH, NONE, "reproduced"),  # apart: the better arm is above from scratch
        (CLEAR, ">", NONE, BELOW, "undecided"),
        (CLEAR, "~", HIGH, BELOW, "contradicted"),
        (CLEAR, "~", NONE, BELOW, "undecided"),
        ([-x for x in CLEAR], ">", NONE, HIGH, "contradicted"),  # whichever of them is called the baseline
        ([-x for x in CLEAR], ">", BELOW, NONE, "undecided"),
        ([-x for x in CLEAR], ">=", BELOW, HIGH, "contradicted"),
        ([-x for x in CLEAR], ">=", BELOW, NONE, "undecided"),
        (NONE, "~", HIGH, HIGH, "reproduced"),  # alike: an arm gains more than the margin
        (NONE, "~", NONE, HIGH, "reproduced"),
        (NONE, "~", NONE, NONE, "undecided"),
        (NONE, ">", HIGH, NONE, "equivalent"),
        (NONE, ">", NONE, NONE, "undecided"),
        (NONE, ">=", NONE, HIGH, "reproduced"),  # the arm compared with
        (NONE, ">=", HIGH, NONE, "undecided"),
        ([-x for x in CLEAR], ">=", BELOW, None, "contradicted"),  # from scratch itself: it has nothing to prove
        (CLEAR, ">", NONE, None, "undecided"),
        (NONE, "~", NONE, None, "undecided"),  # but it gains nothing
        (NONE, ">=", HIGH, None, "undecided"),
    ],
)
def test_a_difference_proves_its_sensitivity_and_sameness_does_not(
    differences: list[float], relation: str, first: list[float], second: list[float] | None, verdict: str
) -> None:
    found = judge_alone(contrast(differences, relation, M, gains=gains(first, second)))
    assert found.verdict == verdict
    assert (found.p_holm is not None and found.p_holm <= 0.05) == (verdict != "undecided")
    if verdict == "undecided":
        assert "not sensitive: " in found.reason
        assert "above the model from scratch" in found.reason
        assert found.more


def test_a_claim_is_never_reproduced_by_an_interval_within_its_margin() -> None:
    """Two columns: the interval at 95% lies within the margin, the one at 97.5% does not."""
    edge, clear = contrast(CLEAR, margin=1.12, column="t/a"), contrast(CLEAR, margin=0.5, column="t/b")
    found = rule([[edge, clear]])[0]
    row = found.rulings[0]
    assert row.ends is not None
    assert (row.verdict, found.verdict) == ("reproduced", "reproduced")
    assert row.ends.level == 0.975
    assert row.ends.high > 1.12


def test_an_undecided_claim_has_no_p_that_decides() -> None:
    same = contrast([0.1, 0.11, 0.1, 0.09, 0.1], margin=0.5, column="t/same")
    open_one = contrast(BORDERLINE, column="t/open")
    found = rule([[same, open_one]])[0]
    assert found.verdict == "undecided"
    assert found.p is None or found.p > 0.05


@pytest.mark.parametrize("split", ["", "_test", "_mm"])
def test_a_metric_on_a_further_split_is_the_same_metric(split: str) -> None:
    assert find_metric(f"wikitext2/perplexity{split}").name == "perplexity"
    assert find_metric(f"wikitext2/bits_per_byte{split}").lower_is_better
    assert find_metric(f"mnli/accuracy{split}").points


def test_what_the_control_lacks_is_said() -> None:
    assert "no run from scratch" in judge_alone(contrast(CLEAR, gains=gains([], []))).reason
    assert "one seed cannot show" in judge_alone(contrast(CLEAR, gains=gains([3.0], [2.0]))).reason
    turned = contrast(CLEAR, column="t/perplexity", gains=gains(BELOW, BELOW))
    assert judge_alone(turned).verdict == "contradicted", "a lower perplexity than from scratch is a gain"


def test_a_claim_is_one_conjunction() -> None:
    """Reproduced on two columns at the claim's own level; contradicted by one of them at half of it."""
    pair = [contrast(BORDERLINE), contrast(BORDERLINE, column="t/accuracy")]
    found, own = rule([pair])[0], pair[0].difference.p
    assert (found.verdict, found.p) == ("reproduced", pytest.approx(own))
    turned = rule([[contrast([-x for x in BORDERLINE]), other(1)]])[0]
    assert (turned.verdict, turned.p) == ("undecided", pytest.approx(2.0 * (own or 0.0)))
    clear = rule([[contrast([-x for x in CLEAR]), other(1)]])[0]
    assert [ruling.verdict for ruling in clear.rulings] == ["contradicted", "undecided"]
    assert clear.verdict == "contradicted"


def test_one_interval_counts_once() -> None:
    """Claims on the same pair and column share one interval, and `a > b` is `b > a` turned."""
    back = replace(contrast([-x for x in BORDERLINE]), pair=Pair("b", ">", "a"))
    found = rule([[contrast(BORDERLINE)], [back], [contrast(BORDERLINE, "~", 3.0)]])
    assert [outcome.verdict for outcome in found] == ["reproduced", "contradicted", "reproduced"]
    assert {outcome.rulings[0].ends.level for outcome in found if outcome.rulings[0].ends} == {0.95}
    chain = rule([[contrast(BORDERLINE, ">="), contrast(BORDERLINE)]])[0]
    assert chain.verdict == "reproduced"


def test_the_printed_interval_is_the_one_that_the_verdict_was_read_off() -> None:
    within = [0.2, 0.9, -0.3, 0.6, 0.2]  # inside one point at 95%, not at 97.5%
    alone = judge_alone(contrast(within, "~", 1.0))
    assert alone.ends is not None
    assert (alone.verdict, alone.ends.level) == ("reproduced", 0.95)
    among = rule([[contrast(within, "~", 1.0)], [other(1, "~", 0.01)]])[0].rulings[0]
    assert among.ends is not None
    assert (among.verdict, among.ends.level) == ("undecided", 0.975)
    assert among.ends.high > 1.0 > alone.ends.high


R = {v: Ruling(v) for v in ("reproduced", "equivalent", "undecided", "contradicted", "not run")}


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
    ],
)
def test_a_claim_is_its_weakest_contrast(rulings: list[Ruling], verdict: str) -> None:
    assert combine(rulings).verdict == verdict


def test_a_verdict_says_its_scale_its_columns_and_the_seeds_it_needs() -> None:
    open_ones = [Ruling("undecided", seeds=9, range=Range(6, 20)), Ruling("undecided", seeds=14, range=Range(8, 98))]
    assert combine(open_ones).describe("smoke", "undecided") == "undecided at smoke scale (needs 8 to 98 seeds)"
    endless = combine([*open_ones, Ruling("undecided", seeds=40, range=Range(7, None))])
    assert (
        endless.describe("smoke", qualify("undecided", 3, 6, ()))
        == "undecided (3 of 6 columns) at smoke scale (needs 8 seeds or more)"
    )
    assert combine([*open_ones, Ruling("undecided", reason="not sensitive")]).reason == "not sensitive"
    assert combine([]).describe("cpu", "not run") == "not run at cpu scale (none of its columns was run)"
    unseen, absent = Ruling("not run", reason=NO_SEED), Ruling("not run", reason="x: spaCy is not installed")
    assert combine([unseen, unseen]).reason == "no seed is done in both arms"
    assert combine([unseen, absent]).reason == "x: spaCy is not installed"
    assert (
        combine([R["contradicted"]]).describe("cpu", qualify("contradicted", 1, 6, ()))
        == "contradicted (1 of 6 columns) at cpu scale"
    )
    assert qualify("not run", 0, 6, ()) == "not run"
    assert qualify("undecided", 6, 6, ("a",)) == "undecided (every arm is below the bag of words on a)"


def test_where_runs_left_the_plateau_is_said_in_shares_of_their_tokens() -> None:
    said = describe_left({"a": [0.3, 0.254, 0.4], "b": [], "c": [0.5, 0.501]})
    assert said == "left the plateau of a trivial model: a after 25% to 40% of its tokens, c after 50% of its tokens"
    assert describe_left({"a": []}) is None


def test_the_plateau_is_said_plainly() -> None:
    assert find_plateau({"a": [5.0, 5.01]}, {"a": 6.0}) is None
    for losses in ([5.95, 5.96], [5.0, 6.4], [6.5, 6.6]):
        assert "only compare word frequencies" in str(find_plateau({"a": losses}, {"a": 6.0}))
    assert "not recorded" in str(find_plateau({"a": [5.0, 5.0]}, {}))
    assert find_plateau({"a": [], "b": []}, {"a": 6.0}) == "no arm has a loss"


def test_a_loss_decides_between_two_arms_if_the_better_one_has_learned() -> None:
    assert find_plateau({"a": [5.95, 5.96], "b": [5.0, 5.01]}, {"a": 6.0, "b": 6.0}) is None
    found = find_plateau({"a": [5.95, 5.97], "b": [5.99, 6.01], "c": []}, {"a": 6.0, "b": 6.0})
    assert str(found).endswith("(loss of a 5.96, unigram 6.00 nats)")


def test_more_seeds_show_a_modest_gain_over_the_unigram_model() -> None:
    few = [5.5, 5.7, 5.9]
    assert "only compare word frequencies" in str(find_plateau({"a": few}, {"a": 6.0}))
    assert find_plateau({"a": few * 4}, {"a": 6.0}) is None


def test_each_loss_is_compared_with_the_unigram_model_of_its_own_text() -> None:
    assert find_plateau({"a": [5.95, 5.96], "b": [6.2, 6.21]}, {"a": 6.0, "b": 7.0}) is None, "b has learned"
    found = find_plateau({"a": [4.95, 4.96], "b": [6.95, 6.96]}, {"a": 5.0, "b": 7.0})
    assert str(found).endswith("(loss of a 4.96, unigram 5.00 nats)")


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


def test_a_pair_decides_nothing_while_a_run_of_it_is_on_its_plateau() -> None:
    assert find_stuck({"iid": [False, False], "span3": [False]}) is None
    assert find_stuck({"iid": [], "span3": []}) is None  # not recorded, or not pre-trained
    assert str(find_stuck({"iid": [False, True], "span3": [False]})).endswith("trivial model: iid (1 of 2)")
    assert str(find_stuck({"iid": [True], "span3": [True]})).endswith("iid (1 of 1), span3 (1 of 1)")


@pytest.mark.parametrize(
    ("size", "level", "verdict"),
    [(0.01, 0.05, "reproduced"), (0.05, 0.05, "undecided"), (0.09, 0.05, "contradicted"), (0.01, 1e-9, "undecided")],
)
def test_better_by_a_size_at_a_level(size: float, level: float, verdict: str) -> None:
    """The mean difference is 0.05, with an interval from 0.047 to 0.053."""
    difference = average([0.048, 0.05, 0.052, 0.049, 0.051])
    found = rule([[Contrast("t/accuracy", Pair("a", "> by", "b"), size, difference, level=level)]])[0]
    assert found.verdict == verdict
    assert found.more == (verdict == "undecided")
