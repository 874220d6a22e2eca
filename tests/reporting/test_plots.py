"""Drawings: scales and ticks, shapes as SVG and PNG, and what the panels of a table show."""

from __future__ import annotations

import io
import itertools
import math
import re
import struct
import warnings
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from fake_records import LOSS, TASK, design, make_table, study

from paribus.reporting.ladder import build_ladders
from paribus.reporting.plots import arms, axes, curves, effects, pareto, png, scales
from paribus.reporting.plots.drawing import View, draw_all
from paribus.reporting.plots.png import render_pdf, render_png
from paribus.reporting.plots.scene import (
    COLORS,
    DASHES,
    SERIES,
    SHAPES,
    Area,
    Item,
    Label,
    Line,
    Mark,
    Scene,
    add_heading,
    fit_label,
    get_style,
    measure_text,
    place_beside,
)
from paribus.reporting.plots.svg import render_svg
from paribus.reporting.tables.curves import Curve, average, average_effects, interpolate, subtract, thin
from paribus.reporting.tables.schema import AnchorRow, Band, Cell, Level, Printed, Table


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(design(), study())


def texts(scene: Scene) -> list[str]:
    return [item.text for item in scene.items if isinstance(item, Label)]


def marks(scene: Scene, color: str) -> list[Mark]:
    return [item for item in scene.items if isinstance(item, Mark) and item.color == color]


def test_ticks_are_round_inside_and_told_apart() -> None:
    for low, high in ((0.0, 1.0), (4.4, 7.7), (-3.1, 0.2), (18.2e12, 18.3e12), (0.4012, 0.4019)):
        ticks = axes.Scale(low, high, 0.0, 100.0).ticks()
        assert 2 <= len(ticks) <= 7
        assert all(low - 1e-9 <= tick <= high * (1 + 1e-9) + 1e-9 for tick in ticks)
        assert len(set(axes.plain(ticks))) == len(ticks)
    assert axes.Scale(1.0, 1e6, 0.0, 60.0, log=True).ticks() == [1, 10, 100, 1e3, 1e4, 1e5, 1e6]


def test_a_scale_maps_its_ends_to_its_pixels() -> None:
    scale = axes.Scale(10.0, 1000.0, 40.0, 140.0, log=True)
    assert (scale(10.0), scale(100.0), scale(1000.0)) == pytest.approx((40.0, 90.0, 140.0))
    opened = axes.spread([5.0, 5.0], 0.0, 10.0)
    assert opened.low < 5.0 < opened.high
    assert axes.plain(axes.spread([0.0, 1e-17], 0.0, 10.0).ticks()) == ["-0.010", "-0.005", "0.000", "0.005", "0.010"]


def test_numbers_are_short() -> None:
    assert [axes.short(x) for x in (0.0, 0.5, 1500.0, 2.5e6, 18.25e12)] == ["0", "0.5", "1.5k", "2.5M", "18.2T"]
    assert axes.plain([0.0, 0.25, 0.5]) == ["0.00", "0.25", "0.50"]


def test_series_differ_without_their_colors() -> None:
    assert len({get_style(number)[1:] for number in range(8)}) == 8
    assert len(set(SERIES)) == len(SERIES) == len(SHAPES) == len(DASHES)
    for color in COLORS.values():
        assert color == "none" or re.fullmatch("#[0-9A-Fa-f]{6}", color)


def test_svg_is_xml_with_every_shape() -> None:
    items = [Mark(20 * n, 20, shape, "s1") for n, shape in enumerate(SHAPES, 1)]
    scene = Scene(200, 50, (*items, Line(((0, 0), (9, 9)), "ink", 1, (2, 2)), Label(1, 2, "<a & b>", turned=True)), "t")
    for alone in (True, False):
        root = ET.fromstring(render_svg(scene, alone))
        assert len(list(root)) >= len(items) + 2
    assert "&lt;a &amp; b&gt;" in render_svg(scene)


def pixels(data: bytes) -> tuple[int, int, bytes]:
    """(width, height, palette indices with filter bytes) of a PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    parts, place = b"", 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        if data[place + 4 : place + 8] == b"IDAT":
            parts += data[place + 8 : place + 8 + length]
        place += 12 + length
    return width, height, zlib.decompress(parts)


def test_png_draws_the_same_scene() -> None:
    area = Area(((10, 10), (90, 10), (90, 40)), "s0", 1.0)
    items = (*(Mark(12 * n, 45, shape, "s1") for n, shape in enumerate(SHAPES, 1)), area, Label(5, 20, "a $b$"))
    drawn = render_png(Scene(100, 50, items))
    assert pixels(drawn)[:2] == (200, 100)
    assert len(set(pixels(drawn)[2])) > 4
    assert drawn == png._draw_png(Scene(100, 50, items))
    assert drawn != render_png(Scene(100, 50, items[:-1]))


def test_a_band_keeps_its_color_among_thousands_of_shades() -> None:
    from PIL import Image

    bands: list[Item] = [Area(((90 * at, 0), (90 * at + 60, 0), (90 * at + 60, 60)), f"s{at}") for at in range(8)]
    shades = [Area(((x, 100), (x + 9, 100), (x, 400)), f"s{x % 8}", 0.02 + x / 1000) for x in range(0, 700, 5)]
    picture = Image.open(io.BytesIO(render_png(Scene(720, 420, (*bands, *shades))))).convert("RGB")
    colors = [[int(COLORS[f"s{at}"][k : k + 2], 16) for k in (1, 3, 5)] for at in range(8)]
    painted = [[255 - 0.18 * (255 - part) for part in color] for color in colors]
    seen = [picture.getpixel((2 * (90 * at + 50), 2 * 20)) for at in range(8)]
    assert [min(range(8), key=lambda at: math.dist(one, painted[at])) for one in seen] == list(range(8))
    assert max(map(math.dist, seen, painted)) < 2
    assert picture.getpixel((2 * 700, 2 * 80)) == (255, 255, 255)


def test_a_name_that_the_font_lacks_is_drawn_without_a_warning() -> None:
    scene = Scene(100, 50, (Label(5, 20, "动态"),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pixels(png._draw_png(scene))[:2] == (200, 100)
        assert render_pdf(scene).startswith(b"%PDF")


def test_a_picture_is_drawn_once_and_again_if_the_kept_one_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path))
    drawn: list[Scene] = []
    draw = png._draw_png
    monkeypatch.setattr(png, "_draw_png", lambda scene: [drawn.append(scene), draw(scene)][1])
    scene = Scene(100, 50, (Mark(20, 20),))
    first = render_png(scene)
    assert render_png(scene) == first
    assert len(drawn) == 1
    (kept,) = (tmp_path / "plots").iterdir()
    kept.write_bytes(kept.read_bytes()[:-10])
    assert render_png(scene) == first
    assert len(drawn) == 2
    render_png(Scene(100, 50, (Mark(20, 21),)))
    assert len(drawn) == 3


def test_scenes_flow_into_rows() -> None:
    one = Scene(300, 100, (Mark(1, 1),))
    whole = place_beside([one, one, one], most=700)
    assert (whole.width, whole.height) == (600, 200)
    assert [(item.x, item.y) for item in whole.items if isinstance(item, Mark)] == [(1, 1), (301, 1), (1, 101)]


def test_arms_show_means_seeds_intervals_and_anchors(table: Table) -> None:
    loss, task = arms.draw_arms(View(table))
    assert len([m for m in marks(loss, "s0") if m.shape == "square"]) == 3
    assert len(marks(loss, "soft")) == 15
    assert any("unigram 6.500" in text for text in texts(loss))
    assert any("bag of words 58.0" in text for text in texts(task))
    means = {arm.name: arm.metrics[LOSS].mean for arm in table.arms}
    places = [mark.x for mark in marks(loss, "s0")]
    assert (places[1] < places[0] < places[2]) == (means["dynamic"] < means["static_x10"] < means["static"])


def test_the_paper_stands_beside_the_arm_it_is_about() -> None:
    mapped = {"table": "roberta_table1", "rows": {"dynamic": "dynamic masking"}, "metrics": {TASK: "sst2_acc"}}
    shown = make_table(design(published=mapped), study())
    printed = {"sst2_acc": Printed(60.4, "x", "60.40")}
    rows = [replace(arm, published=printed if arm.name == "dynamic" else {}) for arm in shown.arms]
    panel = arms.draw_arms(View(replace(shown, arms=tuple(rows))))[1]
    (mark,) = marks(panel, "paper")
    assert not mark.filled
    assert any("paper: 60.40" in text for text in texts(panel))


def test_effects_are_turned_and_each_pair_is_shown_once_with_the_published_effect(table: Table) -> None:
    loss, task = effects.draw_effects(View(table))
    assert sum("dynamic against static_x10" in text for text in texts(loss)) == 1
    (mark,) = marks(loss, "good")
    zero = next(item for item in loss.items if isinstance(item, Line) and item.color == "ink")
    assert mark.shape == "circle"
    assert mark.x > zero.points[0][0], "the lower loss lies right"
    contrast = replace(table.claims[0].contrasts[0], published=0.04)
    claim = replace(table.claims[0], contrasts=(contrast,))
    (panel,) = effects.draw_effects(View(replace(table, claims=(claim,))))
    (diamond,) = marks(panel, "paper")
    assert diamond.x < marks(panel, "good")[0].x
    assert marks(task, "paper") == []


def test_curves_show_bands_and_lines_inside_the_panel(table: Table) -> None:
    band = Band((0, 10, 20), (9.0, 5.0, 4.0), (8.0, 4.8, 3.9), (10.0, 5.2, 4.1), 5)
    shown = replace(table, curves={"train/mlm_loss": {"dynamic": band}})
    (panel,) = curves.draw_curves(View(shown))
    assert sum(isinstance(item, Area) for item in panel.items) == 1
    assert "dynamic (n=5)" in texts(panel)
    for item in panel.items:
        if isinstance(item, Area | Line):
            assert all(0 <= x <= panel.width and 0 <= y <= panel.height for x, y in item.points)


def test_a_panel_is_in_the_unit_of_its_column_and_names_the_arms_that_it_draws(table: Table) -> None:
    band = Band((10.0, 20.0, 30.0), (0.5, 0.6, 0.7), (0.4, 0.5, 0.6), (0.6, 0.7, 0.8))
    for metric in ("docs/accuracy after pre-training", "docs/accuracy: difference from dynamic", "validation/mlm_loss"):
        (panel,) = curves.draw_curves(View(replace(table, curves={metric: {"dynamic": band}})))
        words = [item.text for item in panel.items if isinstance(item, Label)]
        assert ("60" in words) == any(word.startswith("points; ") for word in words) == ("docs/" in metric)
        assert [word for word in words if word.startswith(tuple(arm.name for arm in table.arms))] == ["dynamic (n=1)"]


def test_arms_that_share_their_pretraining_are_one_curve_without_a_difference(table: Table) -> None:
    band = Band((10.0, 20.0), (5.0, 4.0), (4.8, 3.9), (5.2, 4.1), 5)
    shared = dict.fromkeys((arm.name for arm in table.arms), band)
    (panel,) = curves.draw_curves(View(replace(table, curves={"train/mlm_loss": shared})))
    assert sum(isinstance(item, Area) for item in panel.items) == 1
    assert "all arms (n=5)" in texts(panel)
    part = {arm.name: band for arm in table.arms[:2]}
    (panel,) = curves.draw_curves(View(replace(table, curves={"train/mlm_loss": part})))
    assert f"{table.arms[0].name}, {table.arms[1].name} (n=5)" in texts(panel)
    same, other = Curve([10.0, 20.0], [5.0, 4.0]), Curve([10.0, 20.0], [5.5, 4.0])
    runs = {"validation/mlm_loss": {"a": {0: same}, "b": {0: same}, "c": {0: other}}}
    assert {name: list(found) for name, found in average_effects(runs, "abc", "a").items()} == {
        "validation/mlm_loss: difference from a": ["c"]
    }


def test_a_long_label_is_smaller_before_it_is_cut() -> None:
    text = "all_parameters against adapters_2048: +1.83, n=5, undecided"
    for width in (400.0, 330.0, 260.0):
        label = fit_label(Label(0, 0, text, 10.5), width)
        assert label.text == text
        assert measure_text(text, label.size) <= width + 1e-6
        assert label.size <= 10.5
    assert fit_label(Label(0, 0, text, 10.5), 100.0).text.endswith("…")
    assert fit_label(Label(0, 0, text, 10.5, bold=True), 350.0).size < fit_label(Label(0, 0, text, 10.5), 350.0).size


def test_text_is_never_wider_than_it_is_measured() -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    names, columns = ("mask80_random20 (n=5)", "ensemble4", "two_way"), ("own/mlm_loss", "docs_package/accuracy")
    for bold, words in ((False, names), (True, columns)):
        font = FontProperties("DejaVu Sans", weight="bold" if bold else "normal")
        for text in words:
            assert TextPath((0, 0), text, 10, prop=font).get_extents().width <= 1.05 * measure_text(text, 10, bold)


def test_a_long_heading_is_wrapped() -> None:
    scene = add_heading(
        Scene(360, 50, (Mark(20, 20),)), "label_efficiency at cpu scale: arms with their intervals", "n=2"
    )
    heads = [item for item in scene.items if isinstance(item, Label)]
    assert [head.text for head in heads] == ["label_efficiency at cpu scale: arms with", "their intervals", "n=2"]
    assert all(find_box(head)[1] <= scene.width for head in heads)
    assert all(one.y + 10 < other.y for one, other in itertools.pairwise(heads))
    assert heads[-1].y < next(item.y for item in scene.items if isinstance(item, Mark))


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
    assert pareto.draw_pareto(View(table)) == []
    assert pareto.draw_pareto(View(cost(table, dynamic=1.09))) == []
    assert len(pareto.draw_pareto(View(cost(table, dynamic=1.1)))) == 2


def test_arms_of_one_cost_stand_beside_each_other(table: Table) -> None:
    loss = pareto.draw_pareto(View(cost(table, static=1.5)))[0]
    above = [item for item in loss.items if isinstance(item, Mark) and item.size == 9]
    assert len({round(mark.x) for mark in above}) == 3


def test_scales_stand_side_by_side_and_say_whether_the_verdict_is_stable(table: Table) -> None:
    large = replace(cost(table, static_x10=10.0, dynamic=10.0), scale="cpu")
    found = scales.draw_scales(View(table, [table, large]))
    assert len(found) == 2
    assert any("stable over the scales" in text for text in texts(found[0]))
    assert {"smoke", "cpu", "n=5", "1T FLOPs", "10T FLOPs"} <= set(texts(found[0]))
    assert "shaded: within the margin" in " ".join(texts(found[0]))
    for panel, unit in zip(found, ("nats", "points"), strict=True):
        said = re.search(r"moves by (\S+) (\w+) \[(\S+), (\S+)\]", " ".join(texts(panel)))
        assert said
        assert said[2] == unit
        assert len({len(number.partition(".")[2]) for number in said.group(1, 3, 4)}) == 1
        assert sum(bool(re.fullmatch(r"\+\d+\.\d+", text)) for text in texts(panel)) == 2, "the effect at both scales"
    assert scales.draw_scales(View(table, [table])) == []


def test_the_ladder_shows_every_scale_and_the_papers_effect(table: Table) -> None:
    ladder = build_ladders([table])[0]._replace(published=-0.5)
    panel = scales.draw_ladder(ladder, ["test", "smoke", "gpu"])
    assert [text for text in texts(panel) if text in ("test", "smoke", "gpu", "not run")] == [
        "test", "not run", "smoke", "gpu", "not run",
    ]  # fmt: skip
    (own,), (paper,) = marks(panel, "good"), marks(panel, "paper")
    zero = next(item for item in panel.items if isinstance(item, Line) and item.color == "ink").points[0][1]
    assert paper.y < own.y < zero, "both losses are lower, the paper's by more: both lie above zero"


def test_a_scale_that_decides_nothing_does_not_flatten_the_others(table: Table) -> None:
    ladder = build_ladders([table])[0]
    (rung,) = ladder.rungs
    assert rung.ci_low is not None
    assert rung.ci_high is not None
    wide = rung._replace(scale="test", ci_low=rung.ci_low - 90, ci_high=rung.ci_high + 90, barred=True)
    both = scales.draw_ladder(ladder._replace(rungs=(wide, rung)), ["test", "smoke"])
    alone = scales.draw_ladder(ladder, ["smoke"])
    assert [mark.y for mark in marks(both, "good")] == [marks(alone, "good")[0].y] * 2
    assert "a bar that ends at the edge goes on beyond it" in " ".join(texts(both))
    assert "goes on" not in " ".join(texts(alone))
    assert all(0 <= y <= both.height for item in both.items if isinstance(item, Line) for _, y in item.points)


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
    assert curves.draw_curves(View(replace(table, curves={"docs/accuracy": {"dynamic": once}}))) == []


def test_two_points_are_drawn_as_marks(table: Table) -> None:
    two = average([Curve([10.0, 20.0], [value, 3.0]) for value in (4.0, 5.0, 6.0)])
    color = get_style([arm.name for arm in table.arms].index("dynamic"))[0]
    (panel,) = curves.draw_curves(View(replace(table, curves={"docs/accuracy": {"dynamic": two}})))
    assert len(marks(panel, color)) == 2


def test_differences_of_runs_are_taken_in_step() -> None:
    first, second = Curve([10.0, 20.0], [5.0, 4.0]), Curve([10.0, 20.1], [4.0, 3.5])
    assert subtract(first, second) == Curve([10.0, 20.0], [1.0, 0.5])
    assert subtract(Curve([5.0, 10.0, 30.0], [5.0, 4.0, 1.0]), second) == Curve([5.0, 10.0], [1.0, 0.0])


def test_no_labels_collide(table: Table) -> None:
    large = replace(cost(table, static_x10=1000.0, dynamic=1500.0), scale="cpu")
    band = Band((0, 1e6, 2e6), (9.0, 5.0, 4.0), (8.0, 4.8, 3.9), (10.0, 5.2, 4.1), 5)
    whole = replace(large, curves={"validation/mlm_loss": {arm.name: band for arm in table.arms}})
    panels = [scene for _, found in draw_all(View(whole, [table, whole])) for scene in found]
    panels += [
        scales.draw_ladder(ladder, ["test", "smoke", "cpu", "gpu", "paper"]) for ladder in build_ladders([table])
    ]
    assert len(panels) >= 9
    for panel in panels:
        boxes = [find_box(item) for item in panel.items if isinstance(item, Label)]
        for (left, one), (right, other) in itertools.combinations(zip(boxes, texts(panel), strict=True), 2):
            apart = left[1] <= right[0] or right[1] <= left[0] or left[3] <= right[2] or right[3] <= left[2]
            assert apart, f"{panel.title}: {one} | {other}"


def test_an_anchor_is_named_beside_its_own_line_or_in_the_legend_alone(table: Table) -> None:
    cells = {"from scratch": 0.600, "bag of words": 0.602, "unigram (dynamic, static)": 0.604, "majority class": 0.606}
    for shift in (0.0, -0.02, -0.04):
        anchors = tuple(AnchorRow(name, None, {TASK: Level(mean + shift)}) for name, mean in cells.items())
        panel = arms.draw_arms(View(replace(table, anchors=anchors)))[1]
        lines = [item.points[0][0] for item in panel.items if isinstance(item, Line) and item.color == "anchor"]
        named = [item for item in panel.items if isinstance(item, Label) and item.color == "anchor"]
        assert len(lines) == 4
        assert named
        assert all(name in " ".join(texts(panel)) for name in cells)
        for label in named:
            left, right = find_box(label)[:2]
            assert min(min(abs(left - x), abs(right - x)) for x in lines) < 8
            assert not any(left < x < right for x in lines)
            assert 0 <= left < right <= panel.width
            assert "(" not in label.text
        boxes = sorted(find_box(label)[:2] for label in named)
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(boxes))


def find_box(label: Label) -> tuple[float, float, float, float]:
    """(left, right, top, bottom) of a label, about."""
    width = measure_text(label.text, label.size, label.bold)
    left = label.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor] * width
    return left, left + width, label.y - 0.7 * label.size, label.y


def test_a_single_point_is_drawn_and_two_seeds_are_drawn_as_seeds(table: Table) -> None:
    single = average([Curve([10.0], [value]) for value in (4.0, 5.0, 6.0)])
    (panel,) = curves.draw_curves(View(replace(table, curves={"docs/accuracy": {"dynamic": single}})))
    color = get_style([arm.name for arm in table.arms].index("dynamic"))[0]
    assert len(marks(panel, color)) == 1 + 1  # and the one in the key
    bars = [item.points for item in panel.items if isinstance(item, Line) and item.color == color]
    assert any(one[0] == other[0] and one[1] != other[1] for one, other in bars)  # the interval, upright
    two = average([Curve([10.0, 20.0], [4.0, 3.0]), Curve([10.0, 20.0], [6.0, 3.5])])
    assert (two.ci_low, two.runs) == ((None, None), ((4.0, 3.0), (6.0, 3.5)))
    (panel,) = curves.draw_curves(View(replace(table, curves={"docs/accuracy": {"dynamic": two}})))
    assert not any(isinstance(item, Area) for item in panel.items)
    key = 1
    assert sum(isinstance(item, Line) and item.color == color for item in panel.items) == 3 + key


def test_single_points_at_the_same_place_stand_side_by_side(table: Table) -> None:
    names = [arm.name for arm in table.arms]
    single, beside = (average([Curve([at], [value]) for value in (4.0, 5.0, 6.0)]) for at in (10.0, 10.1))
    later = average([Curve([20.0], [value]) for value in (4.0, 5.0, 6.0)])
    panel = curves.draw_panel("loss", names, dict(zip(names, (single, beside, later), strict=True)), "")
    first, second, third = ([one.x for one in marks(panel, get_style(at)[0])] for at in range(3))
    assert 4 < second[0] - first[0] < 12
    lone = curves.draw_panel("loss", names, {names[2]: later}, "")
    assert third[0] == marks(lone, get_style(2)[0])[0].x
