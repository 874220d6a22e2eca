"""A drawing, a metric, a verdict word and an anchor row are each added from the outside, by one file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_records import LOSS, TASK, design, make_table, study

from paribus.core.errors import UserError
from paribus.core.registry import Registry
from paribus.reports import plots
from paribus.reports.plots.panel import DRAWINGS
from paribus.reports.site.overview import render_index
from paribus.reports.tables.files import render_texts
from paribus.sweeps.columns import check_columns
from paribus.verdict import metrics, rules
from paribus.verdict.metrics import METRICS, Metric, find_incomparable, held_out_loss
from paribus.verdict.rules import WORDS, judge
from paribus.verdict.ruling import Ruling, combine

Add = Callable[[object, str, str], None]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Put one file into a package, as its only change."""

    def write(package: object, name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])  # type: ignore[attr-defined]

    for registry in (DRAWINGS, METRICS, WORDS):
        registry.all()
        monkeypatch.setattr(registry, "_items", dict(registry._items))  # type: ignore[attr-defined]
    yield write
    for path in tmp_path.glob("*.py"):
        for name in [name for name in sys.modules if name.endswith(f".{path.stem}")]:
            del sys.modules[name]


def test_a_drawing_is_one_file(add: Add) -> None:
    add(plots, "seeds_plot", """
from paribus.reports.plots.panel import DRAWINGS, Drawing
from paribus.reports.plots.panel import Panel

def draw(axes):
    axes.plot([1, 2], [3, 4])

DRAWINGS.add(Drawing("seeds", "number of seeds", lambda view: [Panel("seeds", "seeds!", 1.5, draw)]))
""")  # fmt: skip
    texts = render_texts(make_table(design(), study()))
    assert "seeds!" in texts["seeds.svg"]
    assert "<h2>Number of seeds</h2>" in texts["table.html"]
    assert texts["table.html"].index("Effect sizes") < texts["table.html"].index("Number of seeds")


def test_a_column_is_one_file(add: Add) -> None:
    add(metrics, "giga_flops", """
from paribus.verdict.metrics import METRICS, Metric

METRICS.add(Metric("giga_flops", lower_is_better=True, decimals=1, read=lambda run: run.budget["flops"] / 1e9))
""")  # fmt: skip
    asked = design(columns=(LOSS, "giga_flops"), claims=("dynamic > static_x10 on giga_flops",), published={})
    table = make_table(asked, study())
    text = render_texts(table)["table.md"]
    assert "giga_flops ↓" in text
    assert "1000.0 (0.0) [1000.0, 1000.0]" in text
    assert table.claims[0].contrasts[0].difference == 0.0


def test_a_held_out_loss_is_one_file(add: Add, tmp_path: Path) -> None:
    """It is a column with its accuracy, decides nothing above the unigram model, and is what a search minimizes."""
    add(metrics, "plm_loss", """
from paribus.verdict.metrics import METRICS, Metric

METRICS.add(Metric("plm_loss", held_out_loss=True))
""")  # fmt: skip
    check_columns(tmp_path / "sweep.yaml", ["plm_loss", "plm_perplexity", "plm_accuracy"], [])
    assert held_out_loss({"train_loss": 1.0, "plm_loss": 2.0}) == 2.0
    records = [
        {**record, "metrics": {"plm_loss": record["metrics"][LOSS]}, "baselines": {"plm_loss": {"unigram": 5.0}}}
        for record in study()
    ]
    asked = design(columns=("plm_loss",), claims=("dynamic > static_x10 on plm_loss",), published={})
    table = make_table(asked, records)
    assert "plm_loss ↓ †" in render_texts(table)["table.md"]
    assert "the arms only compare word frequencies" in (table.about["plm_loss"].reason or "")
    assert find_incomparable("plm_loss", ("masking.rate",)) == find_incomparable(LOSS, ("masking.rate",))


def test_a_held_out_loss_has_a_name_that_its_accuracy_can_share() -> None:
    with pytest.raises(ValueError, match="has to end with _loss"):
        Metric("perplexity", held_out_loss=True)


def test_a_column_that_an_objective_measures_is_one_file(add: Add, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'memory_gain' is unknown"):
        check_columns(tmp_path / "sweep.yaml", ["memory_gain"], [])
    add(metrics, "memory_gain", """
from paribus.verdict.metrics import METRICS, Metric

METRICS.add(Metric("memory_gain", whole=True))
""")  # fmt: skip
    check_columns(tmp_path / "sweep.yaml", ["memory_gain"], [])


def test_a_metric_may_stand_in_the_users_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [own_metrics, absent_here]\n")
    (tmp_path / "own_metrics.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"METRICS.add\(Metric\('bilm_loss', held_out_loss=True\)\)"):
        check_columns(tmp_path / "sweep.yaml", ["bilm_loss"], [])
    monkeypatch.delitem(sys.modules, "own_metrics")
    register = (
        "from paribus.verdict.metrics import METRICS, Metric\nMETRICS.add(Metric('bilm_loss', held_out_loss=True))\n"
    )
    (tmp_path / "own_metrics.py").write_text(register)
    try:
        check_columns(tmp_path / "sweep.yaml", ["bilm_loss", "bilm_accuracy"], [])
    finally:
        metrics.METRICS.remove("bilm_loss")
    monkeypatch.delitem(sys.modules, "own_metrics")
    (tmp_path / "own_metrics.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(UserError, match="install what it needs"):
        check_columns(tmp_path / "sweep.yaml", ["mlm_loss"], [])


def test_a_verdict_word_is_one_file(add: Add) -> None:
    add(rules, "reversed_word", """
from paribus.verdict.rules import WORDS, Word

WORDS.add(Word("reversed", 5, lambda relation, low, high, margin: high < -1.0, "down", "purple"))
""")  # fmt: skip
    assert (judge(">", -3.0, -2.0, 0.0), judge(">", -0.5, -0.2, 0.0)) == ("reversed", "contradicted")
    assert combine([Ruling("contradicted"), Ruling("reversed")]).verdict == "reversed"
    table = make_table(design(), study())
    contrast = replace(table.claims[0].contrasts[0], verdict="reversed")
    claim = replace(table.claims[0], verdict="reversed", contrasts=(contrast,))
    texts = render_texts(replace(table, claims=(claim,)))
    assert "▼ reversed" in texts["effects.svg"]
    assert ".v-reversed { color: purple; }" in texts["table.html"]
    assert '<option value="reversed">' in render_index([], {}, []).decode()


def test_an_anchor_row_needs_no_file() -> None:
    records = [r | {"baselines": {TASK: {"coin_toss": 0.5}}} for r in study()]
    (row,) = (row for row in make_table(design(), records).anchors if row.n is None)
    assert row.name == "coin toss"


def test_a_registry_replaces_by_name_and_sorts_by_rank() -> None:
    registry: Registry[rules.Word] = Registry("paribus.verdict.rules")
    for word in (rules.Word("b", 1, rank=1), rules.Word("a", 1, rank=1), rules.Word("c", 1), rules.Word("c", 2)):
        registry.add(word)
    assert [word.name for word in registry.all()] == ["c", "a", "b"]
    assert registry.get("c") == rules.Word("c", 2)
    assert registry.get("d") is None
