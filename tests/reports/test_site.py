"""The static site: complete, self-contained, linked, small, and working in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from fake_records import design, make_table, own, read, record, study
from fake_site import keep, made, place_of

from paribus.commands.cli import main
from paribus.commands.report import report
from paribus.core.checksums import seal
from paribus.core.errors import UserError
from paribus.core.jsonable import from_json
from paribus.reports.effects import measure_in_margins, name_unit, sign_effect
from paribus.reports.plots.style import COLORS
from paribus.reports.site.arm_page import Sample, render_arm, split_colors
from paribus.reports.site.claim_page import render_claim_page, suggest_points
from paribus.reports.site.claims import add_hours, describe_cost, format_hours, make_lines
from paribus.reports.site.collect import collect, load_sweeps
from paribus.reports.site.forest import Axis
from paribus.reports.tables.files import render_files
from paribus.reports.tables.html import make_style
from paribus.reports.tables.schema import Table
from paribus.verdict.checks import CHECKS
from paribus.verdict.claims import PAPER
from paribus.verdict.published import ids

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made(folder)
        assert main(["report", "paths.cache=cache"]) == 0
    return folder / "reports" / "site"


class Page(HTMLParser):
    VOID = ("meta", "br", "path", "circle", "rect", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.away: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        places = [place for name in ("href", "src") if (place := given.get(name))]
        away = [place for place in places if tag == "a" and re.match("https://(arxiv.org/abs|wandb.ai)/", place)]
        self.away += away
        self.links += [place for place in places if place not in away]
        self.names |= {given["id"] or ""} if "id" in given else set()
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_every_page_is_well_formed_and_every_link_resolves(site: Path) -> None:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > len(ids())
    for path, page in pages.items():
        assert page.open == [], path
        for place in page.links:
            if place.startswith("data:"):
                continue
            assert not re.match(r"[a-z]+:|//", place), f"{path} needs {place}"
            file, _, name = unquote(place).partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.is_file(), f"{path}: {place}"
            if name and "=" not in name:
                assert name in pages[target].names, f"{path}: {place}"


def test_every_table_has_a_caption_and_headers(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text()
        for table in re.findall(r"<table[^>]*>(?:(?!<table).)*</table>", text, re.DOTALL):
            assert re.match(r"<table[^>]*><caption[^>]*>[^<]+</caption>", table), path
            assert re.findall(r"<th (?!scope)", table) == [], path
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody")[2], re.DOTALL):
                assert row.startswith(('<th scope="row"', '<th scope="rowgroup"')), path


def test_every_number_leads_to_its_runs(site: Path) -> None:
    text = (site / "roberta_table1/smoke/index.html").read_text()
    blocks = re.findall(r'<table class="numbers"><caption class="unseen">[RD].*?</table>', text, re.DOTALL)
    assert len(blocks) == 2, "results and differences"
    for block in blocks:
        for row in re.findall(r'<tr><th scope="row".*?</tr>', block, re.DOTALL):
            arm = re.search(r'href="([\w.]+)\.html"', row)
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
            if arm:
                leads = (f'<a href="{arm[1]}.html">', '<a href="../../published/roberta_table1.html">')
                assert all(cell in ("-", "n/a") or cell.startswith(leads) for cell in cells)
                assert any(cell != "-" for cell in cells)
    runs = (site / "roberta_table1/smoke/dynamic.html").read_text()
    assert "<li>masking.schedule = Dynamic (baseline: Copies)</li>" in runs.partition("<h2>Runs</h2>")[0]
    assert len(re.findall(r"<code>0dynamic-\d</code>", runs)) == 5
    assert "schedule:" in runs
    assert "Curves of each run" in runs


def test_every_number_of_the_front_page_leads_to_its_runs(site: Path) -> None:
    text = (site / "index.html").read_text()
    forest = re.search(r'<table class="forest".*?</table>', text, re.DOTALL)
    assert forest
    numbers = re.findall(r'<td class="value"><a href="([^"#]*)#(\w+)">([^<]*)</a>', forest[0])
    assert len(numbers) == 4, "one claim on two columns at two scales"
    for place, scale, number in [*numbers, *re.findall(r'by <span class="name"><a href="(.*?)#(\w+)">(.*?)<', text)]:
        assert re.fullmatch(r"[+-]?[\d.]+ (points|nats) \[-?[\d.]+, -?[\d.]+\]", number), number
        page = (site / place).read_text()
        section = page.partition(f'<section id="{scale}">')[2].partition("</section>")[0]
        for arm in ("dynamic", "static_x10"):
            assert section.count(f'href="{scale}/{arm}.html#seed') == 5 * 2, "five seeds on two columns"
    assert '<a href="roberta_table1/claim-1.html"' in forest[0]


def test_contrasts_undecided_for_another_reason_than_seeds_are_folded_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path)
    for path in (tmp_path / "runs/roberta_table1").glob("*/seed?-0*/result.json"):  # those at smoke scale
        path.write_text(json.dumps(seal({**json.loads(path.read_text()), "own": own(5.9)})))
    assert main(["table", "sweeps/roberta_table1.yaml", "scale=smoke"]) == 0
    report(["examples=0"])
    text = (tmp_path / "reports/site/index.html").read_text()
    forests = re.findall(
        r'(?:<summary>([^<]*)</summary>)?\s*<ul class="key">(.*?)</ul>\s*<table class="forest"(.*?)</table>',
        text,
        re.DOTALL,
    )
    scales = [(said, re.findall(r'<td class="value"><a href="[^"#]*#(\w+)">', forest)) for said, _, forest in forests]
    assert scales[0] == ("", ["cpu", "cpu"])
    assert scales[1][0].startswith("2 more, undecided for another reason than too few seeds")
    assert scales[1][1] == ["smoke", "smoke"]
    keys = [key for _, key, _ in forests]
    assert ["reproduced" in key for key in keys] == [True, False], "each key is of its own rows"
    assert all("bar and [brackets]: the interval behind the verdict, 95% or wider" in key for key in keys)


def test_a_contrast_of_one_seed_is_not_folded_away() -> None:
    few, stuck = study(seeds=1), [{**each, "own": own(5.9)} for each in study()]
    rows = [make_table(design(), records).claims[0].contrasts[0] for records in (few, stuck)]
    assert [row.barred for row in rows] == [False, True]


def test_the_numbers_of_a_wide_axis_are_powers_of_ten() -> None:
    assert Axis(-2000.0, 2000.0).list_named() == [-1000, -100, -10, -1, 0, 1, 10, 100, 1000]
    assert Axis(-5.0, 5.0).list_named() == Axis(-5.0, 5.0).list_ticks() == [-3, -1, 0, 1, 3]


def test_a_run_leads_to_its_config_its_record_and_the_paper(site: Path) -> None:
    page = Page((site / "roberta_table1/smoke/dynamic.html").read_text())
    assert {f"seed{seed}" for seed in range(5)} <= page.names
    assert {"#config1", "runs/dynamic-seed3.json"} <= set(page.links)
    record = json.loads((site / "roberta_table1/smoke/runs/dynamic-seed3.json").read_text())
    assert (record["arm"], record["seed"], record["scale"]) == ("dynamic", 3, "smoke")
    for name in ("index.html", "roberta_table1/claim-1.html", "published/roberta_table1.html"):
        assert "https://arxiv.org/abs/1907.11692" in Page((site / name).read_text()).away, name


def test_a_run_on_wandb_is_linked_if_its_config_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    for seed in (0, 1):
        place = next((tmp_path / "runs/roberta_table1/dynamic").glob(f"seed{seed}-*"))
        own = {**json.loads((place / "result.json").read_text()), "wandb_id": f"abc{seed}"}
        (place / "result.json").write_text(json.dumps(seal(own)))
    config = yaml.safe_load((place / "config.yaml").read_text())
    config["logger"] = {"entity": "us", "project": "paribus"}
    (place / "config.yaml").write_text(yaml.safe_dump(config))
    report(["examples=0"])
    text = (tmp_path / "reports/site/roberta_table1/smoke/dynamic.html").read_text()
    assert Page(text).away == ["https://wandb.ai/us/paribus/runs/abc1"]
    assert "<code>abc0</code>" in text


def test_the_page_of_a_claim_stands_its_scales_side_by_side(site: Path) -> None:
    text = (site / "roberta_table1/claim-1.html").read_text()
    heads = re.findall(r'<th scope="col">(\w*)</th>', text.partition("</thead>")[0])
    assert heads == ["", "test", "smoke", "cpu", "gpu", "paper"]
    assert "Effects at each scale" in text
    assert "Effects against tokens" not in text, "one evaluation is no curve"
    assert "dynamic: masking.schedule = Dynamic (baseline: Copies)" in text
    assert "margin 0.02 nats." in text
    assert "[Brackets]: the interval behind the verdict, 95% or wider" in text
    assert re.search(r'<p class="lead">Our claim\. <a href="../published/roberta_table1.html">Liu .*</a>\.</p>', text)
    assert "mlm_loss (nats)" in text
    matrix = (site / "scales.html").read_text()
    assert "[Brackets]: the interval behind the verdict, 95% or wider" in matrix
    row = re.search(r'<tr><th scope="row"><span class="say"><a href="roberta_table1/claim-1.html.*?</tr>', matrix)
    assert row
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row[0])
    assert [bool(cell) for cell in cells] == [False, True, True, False, False]
    assert "reproduced (2 of 3 columns)" in cells[1]


def test_the_six_checks_stand_on_the_front_page_and_on_the_page_of_a_claim(site: Path) -> None:
    front = (site / "index.html").read_text()
    assert "Checks: (1) both arms left the plateau by half of their tokens, (2)" in front
    assert re.search(r'<td data-name="solid">\d+</td>', front)
    (cell,) = re.findall(r'<td data-name="checks" data-key="0">(.*?)</td>', front)[:1]
    assert re.findall(r'aria-label="check (\d \w+)', cell)[:3] == ["1 passes", "2 passes", "3 passes"]
    page = (site / "roberta_table1/claim-1.html").read_text()
    asked = re.findall(r'<li class="c-([a-z-]+)">. ([^:]+):', page.partition("docs_package/accuracy</h3>")[2])[:6]
    assert [what for _, what in asked] == list(CHECKS.values())
    assert [state for state, _ in asked] == [*["passes"] * 3, *["does-not-apply"] * 2, "passes"]


def test_effects_are_shown_against_tokens_where_runs_were_evaluated_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    for arm, loss in (("dynamic", 4.0), ("static_x10", 4.5)):
        for place in (tmp_path / "runs/roberta_table1" / arm).glob("seed*"):
            line = {"step": 300, "validation/mlm_loss": loss}
            with (place / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n" + json.dumps({**line, "step": 590}) + "\n")
    report(["examples=0"])
    text = (tmp_path / "reports/site/roberta_table1/claim-1.html").read_text()
    assert "Effects against tokens" in text
    assert "mlm_loss at smoke scale (nats)" in text


def test_costs_count_a_shared_pre_training_once() -> None:
    def run(seed: int, **more: Any) -> dict[str, Any]:
        budget = {"train_seconds": 1800.0}
        return record("dynamic", seed, {}, budget=budget, profile={"accelerator": "cpu", "threads": 2}, **more)

    shared = [run(0, pretrain_signature="one"), run(1, pretrain_signature="one"), run(2, pretrain_signature="two")]
    assert add_hours(read(shared)) == {"core-hours": 2.0}
    again = {**run(3, pretrain_signature="one"), "budget": {"train_seconds": 900.0}}
    assert add_hours(read([*shared, again])) == {"core-hours": 2.5}
    gpu = {**run(3), "profile": {"accelerator": "gpu", "device": "H100", "ranks": 4}}
    assert add_hours(read([run(1, status="failed"), gpu])) == {"process-hours on H100": 2.0}
    hours = {"core-hours": 2.04, "process-hours on H100": 1234.0}
    assert format_hours(hours) == "2 core-hours, 1,234 process-hours on H100"


def test_costs_say_how_many_runs_recorded_their_fine_tuning() -> None:
    def run(seed: int, **more: Any) -> dict[str, Any]:
        tuned = [{"task": "sst2", "seed": 0, "metrics": {"accuracy": 0.5}}]
        budget = {"train_seconds": 1800.0}
        return record("dynamic", seed, {}, budget=budget, profile={"threads": 1}, task_runs=tuned, **more)

    recorded = [run(seed, finetune_seconds=900.0) for seed in (0, 1)]
    assert describe_cost(read(recorded)) == "1 core-hours of pre-training, 0.5 core-hours of fine-tuning"
    assert describe_cost(read([*recorded, run(2)])).endswith("0.5 core-hours of fine-tuning (2 of 3 runs)")
    assert describe_cost(read([run(0)])) == "0.5 core-hours of pre-training"


def test_a_contrast_is_turned_and_counted_in_margins() -> None:
    row = make_table(design(), study()).claims[0].contrasts[0]
    assert row.difference is not None
    assert row.ci_high is not None
    found = sign_effect(replace(row, published=-0.3))
    assert (found.effect, found.low, found.published) == (-row.difference, -row.ci_high, 0.3)
    scaled = measure_in_margins(row)
    assert scaled is not None
    assert scaled.effect == pytest.approx(-row.difference / 0.02)
    bare = measure_in_margins(replace(row, margin=0.0))
    assert bare is not None
    assert bare.effect == pytest.approx(-row.difference / (row.sd or 1.0))
    assert measure_in_margins(replace(row, margin=0.0, sd=None)) is None
    task = replace(row, column="sst2/accuracy")
    assert sign_effect(task).effect == row.difference


@pytest.mark.parametrize(
    ("column", "unit"),
    [("mlm_loss", "nats"), ("sst2/forgetting", "nats"), ("stage_forgetting", "nats"), ("sst2/f1", "points")],
)
def test_every_effect_has_its_unit(column: str, unit: str) -> None:
    assert name_unit(column) == unit


def test_a_mean_over_tasks_stands_beside_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    place = tmp_path / "reports/roberta_table1/smoke/table.json"
    content = json.loads(place.read_text())
    content["columns"] += ["mean"]
    content["about"]["mean"] = content["about"]["docs_package/accuracy"]
    for row in content["arms"]:
        row["metrics"]["mean"] = {**row["metrics"]["docs_package/accuracy"], "values": [0.5, 0.6, 0.7, 0.8, 0.9]}
    place.write_text(json.dumps(content))
    report(["examples=0"])
    text = (tmp_path / "reports/site/roberta_table1/smoke/dynamic.html").read_text()
    assert re.findall(r'data-name="mean">([^<]*)<', text) == ["50.0", "60.0", "70.0", "80.0", "90.0"]


def test_a_report_that_is_on_no_server_is_named(site: Path) -> None:
    page = (site / "published/gpt1_table5.html").read_text()
    assert ", OpenAI report, 2018</p>" in page
    assert Page(page).away == []


def test_contrasts_without_a_margin_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    place = tmp_path / "reports/roberta_table1/smoke/table.json"
    content = json.loads(place.read_text())
    content["claims"][0]["contrasts"][0]["margin"] = 0.0
    content["claims"][0] |= {"says": "<b>New</b> & old", "whose": "paper"}
    place.write_text(json.dumps(content))
    report(["examples=0"])
    text = (tmp_path / "reports/site/index.html").read_text()
    assert "* no margin: in standard deviations" in text
    assert len(re.findall(r"</a>\* <span", text)) == 1
    assert "&lt;b&gt;New&lt;/b&gt; &amp; old" in text
    assert "<b>New" not in text


def test_claims_below_a_bag_of_words_are_counted_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    place = tmp_path / "reports/roberta_table1/smoke/table.json"
    content = json.loads(place.read_text())
    claim = next(one for one in content["claims"] if one["verdict"] == "reproduced")
    count = sum(one["verdict"] in ("reproduced", "contradicted", "equivalent") for one in content["claims"])
    claim["below"] = [claim["contrasts"][0]["column"]]
    place.write_text(json.dumps(content))
    report(["examples=0"])
    text = (tmp_path / "reports/site/index.html").read_text()
    below = "a bag-of-words baseline beats every arm on at least one task."
    assert f"In 1 of the {count} decided claims at smoke scale, {below}" in text
    assert "† a bag-of-words baseline beats every arm on the task" in text
    assert len(re.findall(r"</a>\*?† <span", text)) == 1


def test_contrasts_of_one_claim_on_one_column_name_their_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    place = tmp_path / "reports/roberta_table1/smoke/table.json"
    content = json.loads(place.read_text())
    found = content["claims"][0]["contrasts"]
    content["claims"][0]["contrasts"] = [found[0], {**found[0], "arm": "static"}, {**found[1], "margin": 0.01}]
    place.write_text(json.dumps(content))
    report(["examples=0"])
    forest = (tmp_path / "reports/site/index.html").read_text().partition('<table class="forest"')[2]
    names = re.findall(r'<th scope="row" class="what"><a[^>]*>[^<]*</a>(.*?)</th>', forest)
    against = [f' <span class="small">{arm} against static_x10</span>' for arm in ("dynamic", "static")]
    assert sorted(names) == sorted(["", *against])
    page = (tmp_path / "reports/site/roberta_table1/claim-1.html").read_text()
    assert "; margin 1 point." in page


def test_runs_without_a_recorded_cost_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    for path in (tmp_path / "runs/roberta_table1").glob("*/seed*/result.json"):
        path.write_text(json.dumps(seal({**json.loads(path.read_text()), "budget": {}, "task_runs": []})))
    report(["examples=0"])
    assert '<td data-name="cost">not recorded</td>' in (tmp_path / "reports/site/index.html").read_text()
    page = (tmp_path / "reports/site/roberta_table1/claim-1.html").read_text()
    assert "<p>Cost of these arms: not recorded.</p>" in page


def test_the_front_page_says_what_was_trained_and_starts_with_the_largest_scale(site: Path) -> None:
    text = (site / "index.html").read_text()
    lead = text.partition("<table")[0]
    for words in ("A margin is the smallest difference that matters", "trains models of text", "smoke: minutes",
                  'href="#contrasts"', 'href="#claims"'):  # fmt: skip
        assert words in lead, words
    counts = text.partition('<table class="counts">')[2].partition("</table>")[0]
    assert re.findall(r'<tr><th scope="row">(\w+)', counts) == ["cpu", "smoke"]
    links = re.findall(r'href="#([^"]*)">(\d+)<', counts)
    assert all("&amp;whose=not A/A&amp;about=a choice in pre-training, exploratory" in place for place, _ in links)
    (key,) = re.findall(r'<td data-name="measured" data-key="([^"]*)">', text)
    effects = [measure_in_margins(row) for row in read_table(site, "cpu").claims[0].contrasts]
    assert float(key) == pytest.approx(min(one.effect for one in effects if one is not None), rel=1e-5)


def read_table(site: Path, scale: str) -> Table:
    return from_json(Table, json.loads((site / "roberta_table1" / scale / "table.json").read_text()))


def test_every_claim_of_a_paper_has_a_source() -> None:
    lines = make_lines([], load_sweeps())
    of_papers = [line for line in lines if line.claim.whose == PAPER]
    assert len(of_papers) > 100
    assert [line.place for line in of_papers if not line.sourced] == []
    (figure,) = [line for line in lines if line.place == "bert_figure5/claim-1.html"]
    lead = '<p class="lead">The paper&#39;s claim. arXiv 1810.04805, appendix C.1.</p>'
    assert lead in render_claim_page(figure, []).decode()
    pages = {line.study: render_claim_page(line, []).decode() for line in lines if not line.published}
    assert '<p class="lead">An A/A test.</p>' in pages["aa"]
    assert all("no published table" not in page for page in pages.values())


def test_the_tables_of_the_user_come_first_and_what_was_not_run_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke", "cpu"])
    committed = tmp_path / "analysis/results/cpu/roberta_table1"
    committed.parent.mkdir(parents=True)
    (tmp_path / "reports/roberta_table1/cpu").rename(committed)
    report(["examples=0"])
    text = (tmp_path / "reports/site/index.html").read_text()
    yours = text.partition('<h2 id="own">Your tables</h2>')[2].partition("<h2>All tables</h2>")[0]
    assert re.findall(r'href="([^"]*)/index.html"', yours) == ["roberta_table1/smoke"]
    assert text.index('id="own"') < text.index('class="counts"') < text.index('id="contrasts"')
    assert "not run" not in text.partition('<table class="counts">')[2].partition("</table>")[0]
    folds = re.findall(r"<details><summary>(Not run yet: [^<]*)</summary>", text)
    assert len(folds) == 1
    assert re.fullmatch(rf"Not run yet: \d+ claims and {len(ids()) - 1} published tables", folds[0])
    listed, folded = (tmp_path / "reports/site/published/index.html").read_text().split("<details>")
    assert re.findall(r'<th scope="row"><a href="(\w+).html">', listed) == ["roberta_table1"]
    assert folded.count('<th scope="row">') == len(ids()) - 1
    report(["examples=0", "reports=nowhere"])
    assert "Your tables" not in (tmp_path / "reports/site/index.html").read_text()


def test_tests_of_identical_arms_come_last(site: Path) -> None:
    items = re.findall(
        r'<li><span class="say">.*?<span class="small name">(\w+)</span></li>', (site / "scales.html").read_text()
    )
    twins = [study == "aa" for study in items]
    assert any(twins)
    assert twins == sorted(twins)


def test_notes_of_a_published_table_stand_above_its_flags(site: Path) -> None:
    pages = [
        path.read_text().partition("<h2>Flags and sources</h2>")[2] for path in (site / "published").glob("*.html")
    ]
    assert sum(page.startswith("\n<p>") for page in pages) > 10
    assert not any(re.search(r"</ul>\n<p>.*</p>\n<ul>", page) for page in pages)


def test_what_a_table_page_tells(site: Path) -> None:
    text = (site / "roberta_table1/smoke/index.html").read_text()
    for words in (
        "Arms with their intervals", "Effect sizes", "Learning curves", "Effect at each scale", "../claim-1.html",
        "numbers of the table match the records", "FLOPs",
        "paribus run roberta_table1 scale=smoke", "../cpu/index.html", "published/roberta_table1.html",
    ):  # fmt: skip
        assert words in text, words
    assert "Quality against compute" not in text, "all arms cost the same"
    assert "stable over scales" in (site / "index.html").read_text()


def test_the_site_is_the_same_bytes_again_and_as_the_tables(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site.parents[1])
    before = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    report(["out=again", "paths.cache=cache"])
    after = {path.relative_to("again"): path.read_bytes() for path in Path("again").rglob("*") if path.is_file()}
    assert after == before
    for name in ("table.md", "table.csv", "plot.svg", "table.html"):
        made_by_table = Path("reports/roberta_table1/cpu", name).read_bytes()
        assert (site / "roberta_table1/cpu" / name).read_bytes() == made_by_table


def test_an_unreadable_corpus_is_said_and_not_hidden(site: Path) -> None:
    text = (site / "roberta_table1/smoke/static.html").read_text()
    assert "Left out: corpus.path=nowhere" in text


def test_examples_keep_the_colors_of_show(site: Path) -> None:
    line = "#0  \x1b[2m[CLS]\x1b[0m a \x1b[1;31m[MASK](<b>)\x1b[0m"
    folder = site.parents[1]
    entry = next(iter(collect(folder / "reports", folder / "runs", folder / "none")))
    page = render_arm(entry, "dynamic", Sample((split_colors(line),))).decode()
    colored = '#0  <span class="t-special">[CLS]</span> a <span class="t-mask">[MASK](&lt;b&gt;)</span>'
    assert f'<p class="sample">{colored}</p>' in page


def test_what_a_user_writes_is_text_on_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    odd = "<u>\" onclick='x'&amp;"
    place = tmp_path / "reports/roberta_table1/smoke/table.json"
    content = json.loads(place.read_text())
    content |= {"title": odd, "notes": [odd], "facts": {"text": odd}}
    content["claims"][0] |= {"says": odd, "said": odd}
    content["claims"][0]["contrasts"][0]["reason"] = odd
    content["arms"][1]["overrides"] = [odd]
    place.write_text(json.dumps(content))
    report(["examples=0"])
    folder = tmp_path / "reports/site"
    pages = [folder / name for name in ("index.html", "scales.html", "roberta_table1/claim-1.html")]
    pages += [folder / "roberta_table1/smoke" / name for name in ("index.html", "table.html", "dynamic.html")]
    for page in pages:
        text = page.read_text()
        assert "<u>" not in text, page
        assert odd in unescape(text), page
        Page(text)


def test_every_published_table_has_a_page(site: Path) -> None:
    assert {path.stem for path in (site / "published").glob("*.html")} == {*ids(), "index"}


def test_an_edited_record_shows_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    path = next((tmp_path / "runs/roberta_table1/dynamic").glob("seed0-*/result.json"))
    path.write_text(path.read_text().replace('"mlm_loss": 4', '"mlm_loss": 3'))
    report(["examples=0"])
    text = (tmp_path / "reports/site/roberta_table1/smoke/index.html").read_text()
    assert "edited after the run (checksum)" in text
    assert 'class="amiss">✗ arms[dynamic]' in text


def test_the_loss_around_tuned_weights_is_drawn_where_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    own = {
        "distance": [1.0],
        "length": [2.0],
        "line": [[2.0, 1.0]],
        "around": [[1.5, 1.0]],
        "plane": [[2.0, 1.0], [1.5, None]],
    }
    places = {"line": [0.0, 1.0], "around": [-1.0, 0.0], "plane": [0.0, 1.0]}
    place = tmp_path / "reports/roberta_table1/smoke/flatness.json"
    page, heading = tmp_path / "reports/site/roberta_table1/smoke/index.html", "around the fine-tuned weights, sst2"
    report(["examples=0"])
    assert heading not in page.read_text()
    place.write_text(json.dumps({"task": "sst2", "places": places, "arms": {"static": own}}))
    report(["examples=0"])
    assert heading in page.read_text()
    place.write_text("[]")
    with pytest.raises(UserError, match=r"flatness\.json cannot be read: .*`paribus flatness`"):
        report(["examples=0"])


def test_judged_runs_of_others_are_no_reason_to_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    Path("runs.csv").write_text("arm,seed,acc\na,0,0.5\na,1,0.6\nb,0,0.7\nb,1,0.9\n")
    assert main(["judge", "runs.csv", "--metric", "acc", "--baseline", "a"]) == 0
    assert Path("reports/judged/runs/table.json").is_file()
    report(["examples=0"])
    assert Path("reports/site/roberta_table1/smoke/index.html").is_file()


def test_failed_runs_and_strange_names_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["smoke"])
    failed = record("dynamic", 5, {}, status="failed", error="<b>&", signature="0dynamic-5")
    keep(tmp_path, failed)
    (place_of(tmp_path, failed) / "metrics.jsonl").write_text("half a li")
    report(["examples=0"])
    assert "failed: &lt;b&gt;&amp;" in (tmp_path / "reports/site/roberta_table1/smoke/dynamic.html").read_text()


def test_runs_without_a_table_are_said_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path)
    for name in ("other", "other.tune"):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "cpu.json").write_text("{}")
    assert main(["report", "paths.cache=cache", "examples=0"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "no table" in line]
    mend = "type `paribus table`, the path of its sweep file, study=other and scale=cpu"
    assert said == [f"other at scale=cpu has runs but no table: {mend}"]


def test_bad_input_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"there is no table in .* yet"):
        report([])
    with pytest.raises(UserError, match="no option 'scale='"):
        report(["scale=smoke"])
    with pytest.raises(UserError, match="examples=few"):
        report(["examples=few"])
    place = tmp_path / "reports/a/b/table.json"
    place.parent.mkdir(parents=True)
    place.write_text("{}")
    with pytest.raises(UserError, match=r"table\.json cannot be read"):
        report([])
    odd = {"study": "../../x", "scale": "smoke", "arms": [], "claims": [], "columns": []}
    place.write_text(json.dumps(odd))
    with pytest.raises(UserError, match=r"table\.json names '\.\./\.\./x'"):
        report([])
    assert not (tmp_path / "x").exists()


def test_a_table_read_back_renders_the_same(site: Path) -> None:
    folder = site.parents[1] / "reports/roberta_table1/smoke"
    again = render_files(from_json(Table, json.loads((folder / "table.json").read_text())))
    assert {name: (folder / name).read_bytes() for name in again} == again


def shine(color: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((shine(one), shine(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_stands_out_by_4_5_and_drawings_by_3_in_light_and_dark() -> None:
    palettes = [
        dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in make_style().split("{") if "--ink:" in block
    ]
    assert len(palettes) == 3, "light, dark by the system, dark by choice"
    light, dark, chosen = palettes
    assert dark == chosen
    assert dark.keys() == light.keys()
    for palette in (light, dark):
        for name in ("ink", "soft-ink", "link", "good", "bad", "same", "open", "idle", "anchor"):
            for ground in ("ground", "raised"):
                assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)
        for name in (f"s{at}" for at in range(8)):
            assert contrast(palette[name], palette["ground"]) >= 3.0, name
    for name, color in COLORS.items():
        assert color == light[name], f"{name} differs in files and pages"


def browse(place: str, tmp_path: Path, *options: str) -> tuple[str, list[str]]:
    """(the page as the browser has it after its scripts, lines of its console)."""
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    arguments = [*QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--v=0"]
    arguments += [*options, "--virtual-time-budget=9000", "--dump-dom", place]
    done = subprocess.run([CHROMIUM, *arguments], capture_output=True, text=True, timeout=240, check=False)
    if "<html" not in done.stdout:
        pytest.skip(f"chromium does not run here: {done.stderr[-200:]}")
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def rows(dom: str) -> list[str]:
    """The rows of lists that are shown, in their order."""
    bodies = re.findall(r"<table[^>]* data-list.*?<tbody>(.*?)</tbody>", dom, re.DOTALL)
    found = [row for body in bodies for row in re.findall(r"<tr[^>]*>.*?</tr>", body, re.DOTALL)]
    return [row for row in found if not re.match(r'<tr(?: [\w-]+="[^"]*")* hidden=""', row)]


def names(found: list[str]) -> list[str]:
    return [re.sub("<[^>]+>", "", re.findall(r'<span class="say">(.*?)</span>', row)[0]) for row in found]


@pytest.mark.slow
def test_search_filters_and_sorting_in_a_real_browser(site: Path, tmp_path: Path) -> None:
    home = (site / "index.html").as_uri()
    dom, console = browse(home, tmp_path)
    assert console == []
    everything = rows(dom)
    assert len(everything) > 1
    dom, console = browse(f"{home}#verdict=undecided&scale=cpu", tmp_path)
    chosen = rows(dom)
    assert console == []
    assert all("cpu:undecided" in row for row in chosen)
    assert len(chosen) == sum("cpu:undecided" in row for row in everything)
    assert f"{len(chosen)} of {len(everything)} shown" in dom
    assert rows(browse(f"{home}#q=nothing+has+this", tmp_path)[0]) == []
    counts = re.findall(r'href="#(verdict=[^"]*scale=cpu[^"]*)">(\d+)<', (site / "index.html").read_text())
    for place, count in counts:
        if int(count):
            shown = rows(browse(f"{home}#{unescape(place).replace(' ', '%20')}", tmp_path)[0])
            assert len(shown) == int(count), place
    up, down = (names(rows(browse(f"{home}#q=spans&sort={turn}claim", tmp_path)[0])) for turn in ("", "-"))
    assert len(up) > 3
    assert up == sorted(up)
    assert down == up[::-1]
    assert "<details open" in browse(f"{home}#q=spans", tmp_path)[0], "claims that were not run are unfolded"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.html", "scales.html", "roberta_table1/claim-1.html",
                                  "roberta_table1/smoke/index.html", "roberta_table1/smoke/dynamic.html",
                                  "published/index.html", "published/roberta_table1.html"])  # fmt: skip
def test_no_page_has_a_console_error(site: Path, tmp_path: Path, page: str) -> None:
    dom, console = browse((site / page).as_uri(), tmp_path)
    assert console == []
    assert "<h1>" in dom


MEASURE = """
const found = [];
function look(page, view) {
  const root = view.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) found.push(`${page} is ${root.scrollWidth} wide`);
  for (const wide of view.querySelectorAll(".wide")) {
    const hides = wide.scrollWidth > wide.clientWidth + 1 && !wide.classList.contains("scrolls");
    if (hides) found.push(`${page} hides a table`);
  }
  for (const cell of view.querySelectorAll("table.forest :is(.what, .value)"))
    if (cell.scrollWidth > cell.clientWidth + 1) found.push(`${page} cuts ${cell.textContent}`);
  const named = view.querySelector(".axis-name")?.getBoundingClientRect();
  const ticks = [...view.querySelectorAll(".axis div span")].map((tick) => tick.getBoundingClientRect());
  const shown = ticks.filter((tick) => tick.width);
  if (named?.width && named.right > shown[0].left) found.push(`${page} draws the name of the axis over it`);
  for (let at = 1; at < shown.length; at++)
    if (shown[at].left < shown[at - 1].right) found.push(`${page} draws ticks over each other`);
  for (const svg of view.querySelectorAll("svg.plot")) {
    const labels = [...svg.querySelectorAll("text")].map((text) => [text.getBoundingClientRect(), text.textContent]);
    for (const [one, said] of labels) {
      if (one.right > svg.getBoundingClientRect().right + 1) found.push(`${page} cuts ${said}`);
      for (const [other, also] of labels) {
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        if (said < also && wide > 1 && high > 3) found.push(`${page} draws ${said} over ${also}`);
      }
    }
  }
}
async function measure(pages) {
  for (const page of pages) await new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.style.width = `${WIDTH}px`;
    frame.onload = () => { look(page, frame.contentDocument); frame.remove(); done(); };
    frame.src = page;
    document.body.append(frame);
  });
  document.body.innerHTML = `<html-measured>${found.join("; ")}</html-measured>`;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 700, 900, 1400])
def test_pages_fit_and_labels_do_not_collide(site: Path, tmp_path: Path, width: int) -> None:
    pages = ["index.html", "scales.html", "roberta_table1/claim-1.html", "roberta_table1/cpu/index.html",
             "roberta_table1/cpu/dynamic.html", "published/index.html", "published/roberta_table1.html"]  # fmt: skip
    place = site / f"measure{width}.html"
    script = f"const WIDTH = {width}; {MEASURE} measure({json.dumps(pages)});"
    place.write_text(f"<body><script>{script}</script></body>")
    dom, _ = browse(place.as_uri(), tmp_path, "--allow-file-access-from-files", "--window-size=1500,900")
    place.unlink()
    assert re.findall("<html-measured>(.*?)</html-measured>", dom, re.DOTALL) == [""]


def test_claims_stand_in_a_markdown_page_at_the_largest_scale(site: Path) -> None:
    text = (site / "claims.md").read_text()
    headings = ["At cpu scale", "roberta_table1", "Does a small verdict predict a large one?"]
    assert re.findall(r"^##+ (.*)", text, re.MULTILINE) == headings
    claim = json.loads((site / "roberta_table1/cpu/table.json").read_text())["claims"][0]
    (row,) = [line for line in text.splitlines() if line.startswith(f"- `{claim['text']}` (ours). ")]
    assert f"**{claim['verdict'].capitalize()}** (2 of 3 columns): " in row
    assert row.endswith("on `docs_package/accuracy`, n\xa0=\xa05, `✓✓✓––✓`.")
    for contrast in claim["contrasts"]:
        better = "better" if (contrast["difference"] < 0) == ("loss" in contrast["column"]) else "worse"
        assert f"`{contrast['arm']}` is {better} than `{contrast['versus']}` by " in row
        assert f" on `{contrast['column']}`, n\u00a0=\u00a0{contrast['n']}" in row
    assert '<a href="claims.md">' in (site / "index.html").read_text()


def test_a_page_says_how_to_measure_tasks_during_pre_training_if_that_can_be_done() -> None:
    results = Path(__file__).parents[2] / "analysis/results"
    lines = make_lines(collect(results / "none", results / "none", results), load_sweeps())
    asked = {
        (entry.study, entry.scale): suggest_points(entry, claim) for line in lines for entry, claim in line.entries
    }
    command = "paribus run roberta_table2 scale=cpu study=roberta_table2_over_tokens evaluation.task_points=3"
    assert asked["roberta_table2", "cpu"] == command
    page = next(line for line in lines if line.study == "roberta_table2")
    assert f"<pre>{command}</pre>" in render_claim_page(page, []).decode()
    assert asked["bert_figure5", "cpu"] == asked["roberta_table1", "cpu"] == "", "they were measured"
    assert asked["houlsby_table1", "cpu"] == "", "its pre-training is another's"
    assert asked["t5_table13", "smoke"] == asked["cove", "smoke"] == "", (
        "an ensemble, and an encoder that is trained on"
    )
