"""Claims of the packaged sweeps against the numbers of their papers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paribus.sweeps.sweep import Sweep
from paribus.sweeps.sweep_file import load, names
from paribus.verdict.claims import OWNERS, TWINS, Claim, Pair
from paribus.verdict.metrics import POINT, find_incomparable, in_points
from paribus.verdict.published import PublishedRow, PublishedTable, table

PART = 0.75  # of a margin that a published difference may use up, and of a difference that a margin may be
IMDB, AG = {"imdb/accuracy": "IMDb_error"}, {"ag_news/accuracy": "AG_error"}
# Published columns that say as much as ours, though in another unit or on another text: errors, perplexities.
ALIKE = {
    "albert_table5": {"nsp_probe_accuracy": "nsp_acc", "sop_probe_accuracy": "sop_acc"},
    "bert_table6": {"mlm_loss": "lm_ppl"},
    "bert_table7": {"wnut_17/f1": "ner_f1_dev"},
    "pretraining_helps": IMDB | AG,
    "roberta_iclr_batch": {"mlm_loss": "ppl"},
    "roberta_table3": {"mlm_loss": "ppl"},
    "sbert_table6": {"stsb/spearman": "nli_trained_stsb_spearman_x100"},
    **dict.fromkeys(("sun_figure2", "sun_table2", "sun_table3", "sun_table4", "sun_table5", "sun_table6"), IMDB),
    **dict.fromkeys(("ulmfit_table4", "ulmfit_table5", "ulmfit_table6", "ulmfit_table7"), IMDB | AG),
}
# T5 prints the tasks of its ablations, tables 2 to 14, in table 16: their metrics, and rows under another table there.
T5_TASKS = {"sst2/accuracy": "SST2_acc", "mnli/accuracy": "MNLIm_acc", "squad_v1/em": "SQuAD_EM"}
T5_ROWS = {"T12: Multi-task training": "T11: Examples-proportional, K=2^19", "T5: BERT-style": "T4: BERT-style"}


def claims(sweep: Sweep) -> Iterator[tuple[Claim, Pair, str]]:
    """Every pair of every claim on every column."""
    carrying = tuple(column for column in sweep.columns if find_incomparable(column, sweep.varies) is None)
    for text in sweep.claims:
        claim = sweep.parse_claim(text)
        for column in carrying if claim.columns is None else claim.columns:
            yield from ((claim, pair, column) for pair in claim.pairs)


def find_benefit(sweep: Sweep, pair: Pair, column: str) -> float | None:
    """By how much the paper's number of an arm is better than that of the other, as printed; None without numbers."""
    rows = sweep.published.get("rows", {})
    if pair.arm not in rows or pair.versus not in rows:
        return None
    paper = table(sweep.published["table"])
    first, second = paper.row(rows[pair.arm]), paper.row(rows[pair.versus])
    name = {**sweep.published.get("metrics", {}), **ALIKE.get(sweep.study, {})}.get(column)
    if name is None and paper.id.startswith("t5_table") and paper.id != "t5_table15" and column in T5_TASKS:
        first, second, name = find_tasks(paper, first), find_tasks(paper, second), T5_TASKS[column]
        paper = table("t5_table16")
    if name is None or first.values[name] is None or second.values[name] is None:
        return None
    up = next(metric.higher_is_better for metric in paper.metrics if metric.name == name)
    return (first.values[name] - second.values[name]) * (1 if up else -1)  # type: ignore[operator]


def find_tasks(paper: PublishedTable, row: PublishedRow) -> PublishedRow:
    """The row of T5's table 16."""
    if row.baseline:
        return table("t5_table16").row("Baseline average")
    name = f"T{paper.id.removeprefix('t5_table')}: {row.arm.partition(' (')[0]}"
    name = T5_ROWS.get(name, name)
    exact = [one for one in table("t5_table16").rows if one.arm == name]
    return exact[0] if exact else table("t5_table16").row(name)


def is_borne(relation: str, benefit: float, margin: float) -> bool:
    """Whether a replication that measures just the published difference comes out as claimed, with room to spare."""
    if relation == ">":
        return benefit > 0.0 and margin <= PART * benefit + 1e-9
    return (abs(benefit) if relation == "~" else -benefit) <= PART * margin + 1e-9


@pytest.mark.parametrize("name", names())
def test_a_perfect_replication_comes_out_as_claimed(name: str) -> None:
    sweep = load(name)
    for claim, pair, column in claims(sweep):
        benefit = find_benefit(sweep, pair, column)
        margin = claim.margin(column) / (POINT if in_points(column) else 1.0)
        said = f"{pair.arm} {pair.relation} {pair.versus} on {column}: the paper has {benefit}, the margin is {margin}"
        assert benefit is None or is_borne(pair.relation, benefit, margin), said


def test_most_sweeps_can_be_held_against_printed_numbers() -> None:
    sweeps = {name: load(name) for name in names()}
    found = {
        name: sum(find_benefit(sweep, *one[1:]) is not None for one in claims(sweep)) for name, sweep in sweeps.items()
    }
    assert sum(found.values()) > 250
    assert sum(count > 0 for count in found.values()) >= 34


@pytest.mark.parametrize("name", names())
def test_every_claim_says_in_words_what_it_is_and_whose(name: str) -> None:
    sweep = load(name)
    assert set(sweep.sentences) == set(sweep.claims)
    for sentence in sweep.sentences.values():
        assert sentence.says[0].isupper()
        assert not sentence.says.endswith(".")
        assert sentence.whose in OWNERS
        assert 12 <= len(sentence.says) <= 100
        assert "_" not in sentence.says, "no names of arms"
        assert sentence.says.split()[0] not in ("It", "They", "So", "This"), "each stands alone on the front page"
        assert (sentence.whose == TWINS) == (sweep.varies == ("replicate",))
    assert len({sentence.says for sentence in sweep.sentences.values()}) == len(sweep.claims)


@pytest.mark.parametrize("name", names())
def test_a_claim_of_the_paper_compares_arms_of_the_paper(name: str) -> None:
    sweep = load(name)
    rows = sweep.published.get("rows", {})
    lent = {"houlsby_table1", "t5_table12", "xiong_warmup"}  # these quote the paper's text or rows left out one by one
    for claim, pair, _ in claims(sweep):
        if rows and name not in lent and sweep.sentences[claim.text].whose == "paper":
            assert {pair.arm, pair.versus} <= set(rows), claim.text
