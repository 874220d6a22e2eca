"""The atlas is whole, agrees with its source cell by cell, and says where each number comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.commands.published import published
from paribus.core.errors import UserError
from paribus.verdict.published import FOLDER, ids, table, value

SHARED = Path(__file__).parents[3] / "shared" / "published"


def test_every_file_is_a_whole_table() -> None:
    assert len(ids()) == 232
    cells = 0
    for name in ids():
        entry = table(name)
        assert entry.id == name
        assert entry.paper
        assert entry.arxiv
        assert entry.table
        assert entry.claim
        assert entry.setting
        assert entry.verified
        metrics = [metric.name for metric in entry.metrics]
        assert len(set(metrics)) == len(metrics)
        assert len({row.arm for row in entry.rows}) == len(entry.rows)
        for row in entry.rows:
            assert set(row.values) == set(metrics), f"{name}: {row.arm}"
            assert all(number is None or isinstance(number, int | float) for number in row.values.values())
            cells += sum(number is not None for number in row.values.values())
    assert cells == 8544
    assert [name for name in ids() if not table(name).metrics] == ["electra_hyperparameters"]
    without = ["liu2019_transferability", "mass_fragment_length", "mccandlish_noise_scale"]
    assert [name for name in ids() if not table(name).rows] == without


@pytest.mark.skipif(not SHARED.is_dir(), reason="the source of the atlas is not on this machine")
def test_the_numbers_are_those_of_the_source() -> None:
    source: dict[str, Any] = {}
    for path in SHARED.glob("*.yaml"):
        loaded = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        source |= {entry["id"]: entry for entry in loaded}
    source.pop("not_confirmed", None)  # numbers that nobody could confirm are never shipped
    assert source.keys() >= set(ids())
    for name in ids():
        ours, entry = table(name), source[name]
        assert [dict(row.values) for row in ours.rows] == [row["values"] for row in entry["rows"]]
        assert [row.arm for row in ours.rows] == [row["arm"] for row in entry["rows"]]
        assert [metric._asdict() for metric in ours.metrics] == entry["metrics"]
        assert (ours.paper, ours.arxiv, ours.table) == (entry["paper"], entry["arxiv"], entry["table"])


def test_numbers_keep_the_zeros_that_their_papers_print() -> None:
    whole_paper = [name for name in ids() if name.startswith(("t5_table", "sun_table")) and table(name).rows]
    for name in whole_paper:
        for metric in table(name).metrics:
            scores = [row.values[metric.name] for row in table(name).rows if "deviation" not in row.arm]
            digits = {len(str(score).partition(".")[2]) for score in scores if score is not None}
            assert len(digits) <= 1, f"{name}: {metric.name} has {digits} digits"
    assert str(value("sun_table4_layerwise_decay", "lr 2.0e-5, decay 0.95", "IMDb_error")[0]) == "5.40"
    assert str(value("t5_table6", "10%", "CNNDM")[0]) == "19.00"


def test_a_paper_that_is_not_on_arxiv_names_its_place() -> None:
    assert table("gpt1_table5").source == "Radford et al. 2018, OpenAI report, 2018, Table 5"


def test_numbers_from_memory_misprints_and_single_sources_are_flagged() -> None:
    for name in ids():
        entry = table(name)
        remembered = [row for row in entry.rows if any(flag.startswith("from memory") for flag in row.flags)]
        if remembered or entry.verified == ("memory",):
            assert any(flag.startswith("from memory") for flag in entry.flags), name
    assert "misprint, not to be used" in table("t5_table10").row("Adapter layers, d=2048 (as printed").flags
    assert any(flag.startswith("misprint") for flag in table("t5_table10").flags)
    assert any(flag.startswith("likely misprint") for flag in table("xiong_bert").flags)
    assert any(flag.startswith("single source") for flag in table("bert_table7").flags)
    assert table("roberta_table1").flags == ()


def test_a_value_comes_with_its_source() -> None:
    number, source = value("roberta_table1", "static masking", "sst2_acc")
    assert number == 92.5
    assert source == "Liu et al. 2019, arXiv 1907.11692, Table 1"
    assert value("bert_table7", "CVT (Clark et al. 2018)", "ner_f1_dev")[0] is None


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("roberta_tabel1", "x", "y"), "roberta_table1"),
        (("roberta_table1", "masking", "sst2_acc"), "its rows"),
        (("roberta_table1", "static masking", "sst2"), "sst2_acc"),
        (("t5_table10", "Adapter layers", "GLUE"), "several rows"),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(arguments: tuple[str, str, str], names: str) -> None:
    with pytest.raises(UserError, match=names):
        value(*arguments)


def test_the_verb_prints_the_list_or_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert published([]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n| {name} " in listed for name in ids())
    assert published(["ernie1_table2"]) == 0
    text = capsys.readouterr().out
    assert "from memory: 3 of 4 rows" in text
    assert "78.4" in text
    assert "arXiv 1904.09223" in text
    with pytest.raises(UserError, match="unexpected extra argument"):
        published(["a", "b"])


def test_files_are_found_inside_the_package() -> None:
    assert FOLDER.name == "published"
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(ids())
