"""Drawings: what the panels of a table show, and the files that are made of them."""

from __future__ import annotations

import io
import itertools
import locale
import math
import os
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fake_records import LOSS, TASK, design, make_table, study
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from paribus.reports.effects import build_ladders
from paribus.reports.plots import arms, curves, effects, pareto, scales, segment
from paribus.reports.plots.figure import make_figure, render_inline, render_pdf, render_png, render_svg
from paribus.reports.plots.panel import Panel, TableView, draw_all, fit_text, set_limits, shorten
from paribus.reports.plots.style import COLORS, DASHES, MARKS, SERIES, SHAPES, get_style, render_mark
from paribus.reports.site import searches
from paribus.reports.tables.curves import Curve, average, average_effects, interpolate, subtract, thin
from paribus.reports.tables.files import render_files
from paribus.reports.tables.schema import AnchorRow, Band, Cell, Level, Printed, Table


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(design(), study())


def draw(panel: Panel) -> Axes:
    """The axes of a panel."""
    return make_figure([panel]).subfigs[0].axes[0]


def list_texts(panel: Panel) -> list[Text]:
    """Every text that is shown; ticks outside the axes are not."""
    figure = make_figure([panel])
    figure.canvas.draw()
    found: list[Any] = figure.findobj(Text)
    ticks = {
        text
        for axis in (axis for axes in figure.subfigs[0].axes for axis in (axes.xaxis, axes.yaxis))
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for text in (tick.label1, tick.label2)
        if not axis.get_view_interval().min() <= tick.get_loc() <= axis.get_view_interval().max() or tick.label2 is text
    }
    return [text for text in found if text.get_visible() and text.get_text() and text not in ticks]


def texts(panel: Panel) -> list[str]:
    return [text.get_text() for text in list_texts(panel)]


def read_lines(panel: Panel) -> list[str]:
    return "\n".join(texts(panel)).split("\n")


def marks(axes: Axes, color: str, marker: str | None = None) -> list[Line2D]:
    """Points of a color, without the caps of intervals."""
    points = [
        line for line in axes.lines if line.get_marker() not in ("", "None", "_", "|") and line.get_color() == color
    ]
    return [line for line in points if marker is None or line.get_marker() == marker]


def place(line: Line2D) -> tuple[float, float]:
    """The first point of a line in pixels, as it is drawn."""
    x, y = line.get_transform().transform(line.get_xydata())[0]
    return float(x), float(y)


def make_panel(draw: Callable[[Axes], object] = lambda axes: None, **parts: Any) -> Panel:
    return Panel(**{"title": "t", "heading": "h", "size": 1.0, "draw": draw, **parts})


def test_limits_have_room_and_round_ticks_that_are_told_apart() -> None:
    axes = Figure().add_subplot()
    for low, high in (
        (0.0, 1.0),
        (4.4, 7.7),
        (-3.1, 0.2),
        (18.2e12, 18.3e12),
        (0.4012, 0.4019),
        (5.0, 5.0),
        (0.0, 1e-17),
    ):
        set_limits(axes, "x", [low, high])
        left, right = axes.get_xlim()
        assert left < low <= high < right
        ticks = [tick for tick in axes.get_xticks() if left <= tick <= right]
        assert 2 <= len(ticks) <= 7
        assert len(set(axes.xaxis.get_major_formatter().format_ticks(ticks))) == len(ticks)
    set_limits(axes, "y", [1.0, 1e6], log=True)
    low, high = axes.get_ylim()
    shown = [tick for tick in axes.get_yticks() if low <= tick <= high]
    assert axes.yaxis.get_major_formatter().format_ticks(shown) == ["1", "10", "100", "1k", "10k", "100k", "1M"]


def test_numbers_are_short() -> None:
    assert [shorten(x, 3) for x in (0.0, 0.5, 1500.0, 2.5e6, 18.25e12)] == ["0", "0.5", "1.5k", "2.5M", "18.2T"]
    assert [shorten(x, 2) for x in (2.9e11, 12.3e6)] == ["290G", "12M"]


def test_series_differ_without_their_colors() -> None:
    styles = [get_style(number) for number in range(8)]
    assert len({(str(style["marker"]), str(style["linestyle"])) for style in styles}) == 8
    assert len(set(SERIES)) == len(SERIES) == len(SHAPES) == len(DASHES)
    for color in COLORS.values():
        assert re.fullmatch("#[0-9a-f]{6}", color)


def test_every_mark_is_drawn_in_pictures_and_in_html() -> None:
    def draw_marks(axes: Axes) -> None:
        for at, mark in enumerate(MARKS.values()):
            axes.plot(at, 0, marker=mark.marker, color=SERIES[1])

    root = ET.fromstring(render_svg(make_figure([make_panel(draw_marks)])))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}use"))) >= len(MARKS)
    for shape in MARKS:
        assert len(list(ET.fromstring(render_mark(shape)))) == 1
    assert 'fill="none"' in render_mark("square", filled=False)
    assert "<path" in render_mark("circle")


def test_names_are_escaped_and_a_dollar_is_no_formula() -> None:
    panel = make_panel(heading="<a & b> $x$", caption=["costs 5$ or 6$"])
    for svg in (render_svg(make_figure([panel])), render_inline(panel)):
        ET.fromstring(svg)
        assert "&lt;a &amp; b&gt; $x$" in svg
        assert "costs 5$ or 6$" in svg


def test_a_page_decides_on_the_colors_and_the_font(table: Table) -> None:
    for _, panels in draw_all(TableView(table)):
        for panel in panels:
            svg = render_inline(panel)
            assert svg.startswith("<svg ")
            assert re.findall("#[0-9a-f]{6}(?![0-9a-f])", re.sub(r'"#\w+"|url\(#\w+\)', "", svg)) == []
            assert set(re.findall(r"var\(--([\w-]+)\)", svg)) <= COLORS.keys()
            assert "DejaVu" not in svg
            assert "<style" not in svg
            assert f"<title>{panel.title}</title>" in svg
            names = re.findall(r' id="([^"]+)"', svg)
            assert all(f"#{name}" in svg for name in names), "no name but those that the drawing itself refers to"


DRAW = """
from hashlib import sha256
from fake_records import design, make_table, study
from paribus.reports.tables.files import render_files
for name, content in sorted(render_files(make_table(design(), study()), pdf=True).items()):
    print(name, sha256(content).hexdigest())
"""


def test_files_are_the_same_whatever_the_settings_the_language_and_the_time(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 20\naxes.grid: True\nlines.linewidth: 9\nsvg.fonttype: path\n")
    spoken = next((name for name in ("de_DE.UTF-8", "fr_FR.UTF-8") if _speaks(name)), "C.UTF-8")
    other = {"MATPLOTLIBRC": str(tmp_path), "LC_ALL": spoken, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "5"}
    path = os.pathsep.join([str(Path(__file__).parents[1] / "support"), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "SOURCE_DATE_EPOCH": "86400", **other}
    done = subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, check=True)
    here = render_files(make_table(design(), study()), pdf=True)
    assert {"plot.png", "plot.svg", "plot.pdf", "effects.png"} <= here.keys()
    assert dict(line.split() for line in done.stdout.splitlines()) == {
        name: sha256(content).hexdigest() for name, content in here.items()
    }


def _speaks(name: str) -> bool:
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return False
    locale.setlocale(locale.LC_ALL, before)
    return True


def test_tables_are_imported_without_matplotlib() -> None:
    code = "import sys, paribus.reports.tables.files, paribus.reports.site.pages; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_band_keeps_its_color_in_a_png() -> None:
    from PIL import Image

    def draw_bands(axes: Axes) -> None:
        for at, color in enumerate(SERIES):
            axes.axvspan(at, at + 0.6, color=color, alpha=0.18, linewidth=0)
        for at in range(140):
            axes.axvspan(9 + at / 100, 9.01 + at / 100, color=SERIES[at % 8], alpha=0.02 + at / 200, linewidth=0)
        axes.set(xlim=(0, 12), ylim=(0, 1))
        axes.set_axis_off()

    panel = make_panel(draw_bands, heading="")
    picture = Image.open(io.BytesIO(render_png(make_figure([panel])))).convert("RGB")
    left, wide = panel.left * 200, (3.6 - panel.left - 0.14) * 200
    seen = [picture.getpixel((round(left + wide * (at + 0.3) / 12), round(0.92 * 200))) for at in range(8)]
    colors = [[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in SERIES]
    painted = [[255 - 0.18 * (255 - part) for part in color] for color in colors]
    assert max(map(math.dist, seen, painted)) < 3
    assert picture.getpixel((2, 2)) == (255, 255, 255)


def test_a_name_that_the_font_lacks_is_drawn_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = make_figure([make_panel(heading="动态")])
        assert render_png(figure).startswith(b"\x89PNG\r\n\x1a\n")
        assert render_pdf(figure).startswith(b"%PDF")


def test_every_name_is_in_the_legend() -> None:
    names = ["_hidden", "b" * 60, "c$1$"]
    band = Band((1.0, 2.0, 3.0), (5.0, 4.0, 3.0), (4.0, 3.0, 2.0), (6.0, 5.0, 4.0))
    panel = curves.draw_panel("loss", names, dict.fromkeys(names, band), "")
    shown = texts(panel)
    assert {"_hidden", "c$1$"} <= {*shown}
    assert any(re.fullmatch("b+…?", text) for text in shown)


def test_panels_flow_into_rows() -> None:
    panels = [make_panel(), make_panel(size=2.0), make_panel(), make_panel()]
    figure = make_figure(panels)
    tall, low = panels[1].height, panels[0].height
    assert figure.get_size_inches() == pytest.approx((3 * 3.6, tall + low), abs=1e-4)
    assert make_figure(panels[:1]).get_size_inches() == pytest.approx((3.6, low), abs=1e-4)
    tops = [round(part.axes[0].get_window_extent().y1 / 200, 2) for part in figure.subfigs]
    assert tops[0] == tops[1] == tops[2] > tops[3]
    sizes = [round(part.axes[0].get_window_extent().height / 200, 2) for part in figure.subfigs]
    assert sizes == [1.0, 2.0, 1.0, 1.0]


def test_arms_show_means_seeds_intervals_and_anchors(table: Table) -> None:
    loss, task = arms.draw_arms(TableView(table))
    means = marks(draw(loss), SERIES[0], "s")
    assert [mark.get_xdata()[0] for mark in means] == [arm.metrics[LOSS].mean for arm in table.arms]
    assert [mark.get_ydata()[0] for mark in means] == [0, 1, 2]
    seeds = marks(draw(loss), COLORS["soft-ink"], "o")
    assert [tuple(mark.get_xdata()) for mark in seeds] == [arm.metrics[LOSS].values for arm in table.arms]
    intervals = [tuple(line.get_xdata()) for line in draw(loss).lines if line.get_marker() == "|"]
    assert intervals == [(arm.metrics[LOSS].ci_low, arm.metrics[LOSS].ci_high) for arm in table.arms]
    assert any("unigram 6.500" in text for text in texts(loss))
    assert any("bag of words 58.0" in text for text in texts(task))


def test_the_paper_stands_beside_the_arm_it_is_about() -> None:
    mapped = {"table": "roberta_table1", "rows": {"dynamic": "dynamic masking"}, "metrics": {TASK: "sst2_acc"}}
    shown = make_table(design(published=mapped), study())
    printed = {"sst2_acc": Printed(60.4, "x", "60.40")}
    rows = [replace(arm, published=printed if arm.name == "dynamic" else {}) for arm in shown.arms]
    panel = arms.draw_arms(TableView(replace(shown, arms=tuple(rows))))[1]
    (mark,) = marks(draw(panel), COLORS["ink"], "D")
    assert mark.get_markerfacecolor() == "none"
    assert mark.get_xdata()[0] == 60.4
    assert round(mark.get_ydata()[0]) == [arm.name for arm in rows].index("dynamic")
    assert any("paper: 60.40" in text for text in texts(panel))


def test_effects_are_turned_and_each_pair_is_shown_once_with_the_published_effect(table: Table) -> None:
    loss, task = effects.draw_effects(TableView(table))
    assert sum("dynamic against static_x10" in text for text in texts(loss)) == 1
    (mark,) = marks(draw(loss), COLORS["good"])
    assert mark.get_marker() == "o"
    assert mark.get_xdata()[0] > 0, "the lower loss lies right"
    contrast = replace(table.claims[0].contrasts[0], published=0.04)
    claim = replace(table.claims[0], contrasts=(contrast,))
    (panel,) = effects.draw_effects(TableView(replace(table, claims=(claim,))))
    (diamond,) = marks(draw(panel), COLORS["ink"], "D")
    assert diamond.get_xdata()[0] == -0.04
    assert marks(draw(task), COLORS["ink"], "D") == []


def test_curves_show_bands_and_lines(table: Table) -> None:
    band = Band((0, 10, 20), (9.0, 5.0, 4.0), (8.0, 4.8, 3.9), (10.0, 5.2, 4.1), 5)
    shown = replace(table, curves={"train/mlm_loss": {"dynamic": band}})
    (panel,) = curves.draw_curves(TableView(shown))
    axes = draw(panel)
    (area,) = axes.collections
    assert {(x, y) for x, y in area.get_paths()[0].vertices} >= {(0, 8), (10, 4.8), (20, 3.9), (0, 10), (20, 4.1)}
    (line,) = axes.lines
    assert [*zip(*line.get_data(), strict=True)] == [(0, 9), (10, 5), (20, 4)]
    assert "dynamic (n=5)" in texts(panel)
    assert "input tokens" in texts(panel)


def test_a_panel_is_in_the_unit_of_its_column_and_names_the_arms_that_it_draws(table: Table) -> None:
    band = Band((10.0, 20.0, 30.0), (0.5, 0.6, 0.7), (0.4, 0.5, 0.6), (0.6, 0.7, 0.8))
    for metric in ("docs/accuracy after pre-training", "docs/accuracy: difference from dynamic", "validation/mlm_loss"):
        (panel,) = curves.draw_curves(TableView(replace(table, curves={metric: {"dynamic": band}})))
        words = texts(panel)
        assert ("60" in words) == any(word.startswith("points; ") for word in words) == ("docs/" in metric)
        assert [word for word in words if word.startswith(tuple(arm.name for arm in table.arms))] == ["dynamic (n=1)"]


def test_arms_that_share_their_pretraining_are_one_curve_without_a_difference(table: Table) -> None:
    band = Band((10.0, 20.0), (5.0, 4.0), (4.8, 3.9), (5.2, 4.1), 5)
    shared = dict.fromkeys((arm.name for arm in table.arms), band)
    (panel,) = curves.draw_curves(TableView(replace(table, curves={"train/mlm_loss": shared})))
    assert len(draw(panel).collections) == 1
    assert "all arms (n=5)" in texts(panel)
    part = {arm.name: band for arm in table.arms[:2]}
    (panel,) = curves.draw_curves(TableView(replace(table, curves={"train/mlm_loss": part})))
    assert f"{table.arms[0].name}, {table.arms[1].name} (n=5)" in texts(panel)
    same, other = Curve([10.0, 20.0], [5.0, 4.0]), Curve([10.0, 20.0], [5.5, 4.0])
    runs = {"validation/mlm_loss": {"a": {0: same}, "b": {0: same}, "c": {0: other}}}
    assert {name: list(found) for name, found in average_effects(runs, "abc", "a").items()} == {
        "validation/mlm_loss: difference from a": ["c"]
    }


def test_a_long_label_is_smaller_before_it_is_cut() -> None:
    words = "all_parameters against adapters_2048: +1.83, n=5, undecided"
    figure = make_figure([make_panel()])
    for width, whole in ((4.0, True), (3.3, True), (2.7, True), (1.0, False)):
        text = figure.text(0, 0, words, fontsize=7.6)
        fit_text(text, width)
        assert text.get_window_extent().width <= 1.01 * width * 200
        assert (text.get_text() == words) == whole
        assert whole or text.get_text().endswith("…")
        assert 0.75 * 7.6 <= text.get_fontsize() <= 7.6


def test_long_lines_are_wrapped_into_the_panel(table: Table) -> None:
    anchors = tuple(
        AnchorRow(f"{name} model", None, {TASK: Level(0.6)}) for name in ("MOMENTUM", "bag", "small", "MASS")
    )
    long = " ".join(f"albert_base_{at}" for at in range(9))
    heading, below = "label_efficiency at cpu scale: arms with their intervals", f"{long}; AMD EPYC; 40M MMLU tokens"
    for width in (1, 2, 3):
        panels = arms.draw_arms(TableView(replace(table, anchors=anchors)))[1:] * width
        figure = make_figure(panels, heading, below)
        shown = [text for text in figure.findobj(Text) if text.get_text() and not text.axes]  # type: ignore[attr-defined]
        assert len([text for text in shown if "model" in text.get_text()]) >= 2 * width
        assert heading in " ".join(shown_text.get_text().replace("\n", " ") for shown_text in shown)
        for text in shown:
            box = text.get_window_extent()
            assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
            assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_the_frontier_is_what_nothing_cheaper_beats() -> None:
    means = {"a": (1.0, 0.5), "b": (2.0, 0.4), "c": (3.0, 0.7), "d": (3.0, 0.6)}
    points = {arm: (flops, Cell(mean, None, None, None, (mean,))) for arm, (flops, mean) in means.items()}
    assert pareto.find_frontier(points, higher=True) == ["a", "c"]
    assert pareto.find_frontier(points, higher=False) == ["a", "b"]


def cost(table: Table, **factors: float) -> Table:
    """The table with the FLOPs of these arms times a factor."""
    spent = {arm: {**used, "flops": used["flops"] * factors.get(arm, 1.0)} for arm, used in table.budget.arms.items()}
    return replace(table, budget=replace(table.budget, arms=spent))


def test_quality_stands_against_compute_only_if_costs_differ_by_a_tenth(table: Table) -> None:
    assert pareto.draw_pareto(TableView(table)) == []
    assert pareto.draw_pareto(TableView(cost(table, dynamic=1.09))) == []
    assert len(pareto.draw_pareto(TableView(cost(table, dynamic=1.1)))) == 2


def test_arms_of_one_cost_stand_beside_each_other(table: Table) -> None:
    loss = pareto.draw_pareto(TableView(cost(table, static=1.5)))[0]
    axes = draw(loss)
    found = [place(mark)[0] for at in range(3) for mark in marks(axes, SERIES[at])]
    assert len(found) == 3
    assert all(abs(one - other) > 15 for one, other in itertools.combinations(found, 2))


def test_the_loss_by_place_is_a_line_of_quarters_for_each_arm(table: Table) -> None:
    quarters = [f"quarter{number}_loss" for number in (1, 2, 3, 4)]
    means = {arm.name: [5.0 + at, 4.5 + at, 4.2 + at, 4.1 + at] for at, arm in enumerate(table.arms)}
    cells = {
        arm: {q: Cell(mean, None, None, None, (mean,)) for q, mean in zip(quarters, row, strict=True)}
        for arm, row in means.items()
    }
    given = replace(table, columns=quarters, arms=[replace(arm, metrics=cells[arm.name]) for arm in table.arms])
    (panel,) = segment.draw_segment(TableView(given))
    assert {line.get_label(): list(line.get_ydata()) for line in draw(panel).lines} == means
    assert segment.draw_segment(TableView(table)) == []


def test_scales_stand_side_by_side_and_say_whether_the_verdict_is_stable(table: Table) -> None:
    large = replace(cost(table, static_x10=10.0, dynamic=10.0), scale="cpu")
    found = scales.draw_scales(TableView(table, [table, large]))
    assert len(found) == 2
    assert any("stable over the scales" in text for text in texts(found[0]))
    assert {"smoke", "cpu", "n=5", "1T FLOPs", "10T FLOPs"} <= {*read_lines(found[0])}
    assert "shaded: within the margin" in " ".join(texts(found[0]))
    for panel, unit in zip(found, ("nats", "points"), strict=True):
        said = re.search(r"moves by (\S+) (\w+) \[(\S+), (\S+)\]", " ".join(texts(panel)))
        assert said
        assert said[2] == unit
        assert len({len(number.partition(".")[2]) for number in said.group(1, 3, 4)}) == 1
        assert sum(bool(re.fullmatch(r"\+\d+\.\d+", text)) for text in read_lines(panel)) == 2, (
            "the effect at both scales"
        )
    assert scales.draw_scales(TableView(table, [table])) == []


def test_the_ladder_shows_every_scale_and_the_papers_effect(table: Table) -> None:
    ladder = build_ladders([table])[0]._replace(published=-0.5)
    panel = scales.draw_ladder(ladder, ["test", "smoke", "gpu"])
    axes = draw(panel)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["test", "smoke", "gpu"]
    assert [label.get_fontweight() for label in axes.get_xticklabels()] == ["normal", "bold", "normal"]
    assert texts(panel).count("not run") == 2
    (own,), (paper,) = marks(axes, COLORS["good"]), marks(axes, COLORS["ink"], "D")
    assert own.get_xdata()[0] == 1
    assert paper.get_ydata()[0] > own.get_ydata()[0] > 0, "both losses are lower, the paper's by more"


def test_a_scale_that_decides_nothing_does_not_flatten_the_others(table: Table) -> None:
    ladder = build_ladders([table])[0]
    (rung,) = ladder.rungs
    assert rung.ci_low is not None
    assert rung.ci_high is not None
    wide = rung._replace(scale="test", ci_low=rung.ci_low - 90, ci_high=rung.ci_high + 90, barred=True)
    both = scales.draw_ladder(ladder._replace(rungs=(wide, rung)), ["test", "smoke"])
    alone = scales.draw_ladder(ladder, ["smoke"])
    assert draw(both).get_ylim() == draw(alone).get_ylim()
    assert [mark.get_ydata()[0] for mark in marks(draw(both), COLORS["good"])] == [-rung.difference] * 2
    assert "a bar that ends at the edge goes on beyond it" in " ".join(texts(both))
    assert "goes on" not in " ".join(texts(alone))
    assert all(line.get_clip_on() for line in draw(both).lines)


def test_curves_of_runs_are_brought_to_one_grid() -> None:
    left, right = Curve([0.0, 10.0, 20.0], [4.0, 2.0, 1.0]), Curve([0.0, 20.0], [6.0, 2.0])
    assert interpolate(right, 10.0) == 4.0
    found = average([left, right])
    assert found.mean == (5.0, 3.0, 1.5)
    assert found.tokens == (0, 10, 20)
    assert found.n == 2
    long = Curve([float(n) for n in range(100)], [math.sin(n) for n in range(100)])
    short = thin(long, 10)
    assert len(short.values) == 10
    assert math.fsum(short.values) / 10 == pytest.approx(math.fsum(long.values) / 100)


def test_the_last_point_stays_where_a_seed_ends_a_few_tokens_early() -> None:
    found = average([Curve([100.0, 200.0, 300.0], [4.0, 3.0, 2.0]), Curve([100.0, 199.0, 298.0], [4.0, 3.0, 1.0])])
    assert found.tokens == (100, 200, 299)
    assert found.mean == (4.0, 3.0, 1.5)
    short = average([Curve([29505.0, 58769.0], [4.0, 3.0]), Curve([28964.0, 57657.0], [4.0, 2.0])])  # 2% early
    assert short.tokens == (29505, 58769)
    assert short.mean[-1] == 2.5


def test_a_checkpoint_that_is_evaluated_once_has_no_learning_curve(table: Table) -> None:
    once = average([Curve([0.0], [value]) for value in (4.0, 5.0)])
    assert curves.draw_curves(TableView(replace(table, curves={"docs/accuracy": {"dynamic": once}}))) == []


def test_two_points_are_drawn_as_marks(table: Table) -> None:
    two = average([Curve([10.0, 20.0], [value, 3.0]) for value in (4.0, 5.0, 6.0)])
    color = get_style([arm.name for arm in table.arms].index("dynamic"))["color"]
    (panel,) = curves.draw_curves(TableView(replace(table, curves={"docs/accuracy": {"dynamic": two}})))
    (line,) = marks(draw(panel), color)
    assert len(line.get_xdata()) == 2


def test_runs_without_a_common_number_of_tokens_are_in_the_key(table: Table) -> None:
    nothing = (None, None, None)
    apart = Band((10.0, 20.0, 30.0), nothing, nothing, nothing, 2, ((4.0, None, 3.0), (None, 3.5, None)))
    empty = Band((10.0, 20.0, 30.0), nothing, nothing, nothing, 2)
    panel = curves.draw_panel("loss", ["joint", "other"], {"joint": apart, "other": empty}, "")
    assert panel.key == ["joint"]
    assert "joint" in render_inline(panel)


def test_differences_of_runs_are_taken_in_step() -> None:
    first, second = Curve([10.0, 20.0], [5.0, 4.0]), Curve([10.0, 20.1], [4.0, 3.5])
    assert subtract(first, second) == Curve([10.0, 20.0], [1.0, 0.5])
    assert subtract(Curve([5.0, 10.0, 30.0], [5.0, 4.0, 1.0]), second) == Curve([5.0, 10.0], [1.0, 0.0])


def test_no_labels_collide(table: Table) -> None:
    large = replace(cost(table, static_x10=1000.0, dynamic=1500.0), scale="cpu")
    band = Band((0, 1e6, 2e6), (9.0, 5.0, 4.0), (8.0, 4.8, 3.9), (10.0, 5.2, 4.1), 5)
    whole = replace(large, curves={"validation/mlm_loss": {arm.name: band for arm in table.arms}})
    panels = [panel for _, found in draw_all(TableView(whole, [table, whole])) for panel in found]
    panels += [
        scales.draw_ladder(ladder, ["test", "smoke", "cpu", "gpu", "paper"]) for ladder in build_ladders([table])
    ]
    panels += [
        searches.draw_history([(at, 5.0 - at, 5.0 - at) for at in range(9)], "mlm_loss"),
        searches.draw_front([(at, 10.0**at, 5.0 - at, at > 2) for at in range(5)], ["seconds", "mlm_loss"]),
        searches.draw_importances({"optimizer.lr": 0.8, "a.name.that.is.longer.than.its.room": 0.2}, "mlm_loss"),
    ]
    assert len(panels) >= 12
    for panel in panels:
        found = [(text.get_text(), text.get_window_extent()) for text in list_texts(panel)]
        for said, box in found:
            assert 0 <= box.x0 < box.x1 <= 720, f"{panel.title}: {said} is cut"
            assert 0 <= box.y0 < box.y1 <= panel.height * 200, f"{panel.title}: {said} is cut"
        for (one, left), (other, right) in itertools.combinations(found, 2):
            assert not overlap(left, right), f"{panel.title}: {one} | {other}"


def overlap(one: Bbox, other: Bbox) -> bool:
    """Whether two texts stand over each other; their boxes hold room for descenders, which may touch."""
    return min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0) + 5


def test_an_anchor_is_named_beside_its_own_line_or_in_the_legend_alone(table: Table) -> None:
    cells = {"from scratch": 0.600, "bag of words": 0.602, "unigram (dynamic, static)": 0.604, "majority class": 0.606}
    for shift in (0.0, -0.02, -0.04):
        anchors = tuple(AnchorRow(name, None, {TASK: Level(mean + shift)}) for name, mean in cells.items())
        panel = arms.draw_arms(TableView(replace(table, anchors=anchors)))[1]
        axes = draw(panel)
        drawn = [line for line in axes.lines if line.get_color() == COLORS["anchor"]]
        lines = [axes.transData.transform((line.get_xdata()[0], 0))[0] for line in drawn]
        named = [text for text in axes.texts if text.get_color() == COLORS["anchor"]]
        assert len(lines) == 4
        assert named
        assert all(name in " ".join(texts(panel)) for name in cells)
        boxes = sorted((text.get_window_extent() for text in named), key=lambda box: box.x0)
        for box in boxes:
            assert min(min(abs(box.x0 - x), abs(box.x1 - x)) for x in lines) < 16
            assert not any(box.x0 < x < box.x1 for x in lines)
            assert 0 <= box.x0 < box.x1 <= 720
        assert not any("(" in text.get_text() for text in named)
        assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))


def test_a_single_point_is_drawn_and_two_seeds_are_drawn_as_seeds(table: Table) -> None:
    single = average([Curve([10.0], [value]) for value in (4.0, 5.0, 6.0)])
    (panel,) = curves.draw_curves(TableView(replace(table, curves={"docs/accuracy": {"dynamic": single}})))
    color = get_style([arm.name for arm in table.arms].index("dynamic"))["color"]
    axes = draw(panel)
    assert len(marks(axes, color)) == 1
    (bar,) = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert tuple(bar.get_xdata()) == (10, 10)
    assert bar.get_ydata()[0] < 500 < bar.get_ydata()[1], "the interval, upright"
    assert "dynamic (n=3)" in texts(panel)
    two = average([Curve([10.0, 20.0], [4.0, 3.0]), Curve([10.0, 20.0], [6.0, 3.5])])
    assert (two.ci_low, two.runs) == ((None, None), ((4.0, 3.0), (6.0, 3.5)))
    (panel,) = curves.draw_curves(TableView(replace(table, curves={"docs/accuracy": {"dynamic": two}})))
    assert len(draw(panel).collections) == 0
    assert [tuple(line.get_ydata()) for line in draw(panel).lines] == [(500, 325), (400, 300), (600, 350)]


def test_single_points_at_the_same_place_stand_side_by_side(table: Table) -> None:
    names = [arm.name for arm in table.arms]
    single, beside = (average([Curve([at], [value]) for value in (4.0, 5.0, 6.0)]) for at in (10.0, 10.1))
    later = average([Curve([20.0], [value]) for value in (4.0, 5.0, 6.0)])
    axes = draw(curves.draw_panel("loss", names, dict(zip(names, (single, beside, later), strict=True)), ""))
    first, second, third = (place(marks(axes, SERIES[at])[0])[0] for at in range(3))
    assert 8 < second - first < 24
    lone = draw(curves.draw_panel("loss", names, {names[2]: later}, ""))
    assert third == place(marks(lone, SERIES[2])[0])[0]
