"""The static site: complete, self-contained, linked, small, and working in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from fake_records import record
from fake_site import keep, made, place_of

from paribus.commands.cli import main
from paribus.commands.report import report
from paribus.core.errors import UserError
from paribus.core.jsonable import from_json
from paribus.reporting.site.samples import color_html
from paribus.reporting.tables.files import render_files
from paribus.reporting.tables.schema import Table
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
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [place for name in ("href", "src") if (place := given.get(name))]
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
            assert (path.parent / unquote(place.partition("#")[0])).is_file(), f"{path}: {place}"


def test_every_number_leads_to_its_runs(site: Path) -> None:
    text = (site / "roberta_table1/smoke/index.html").read_text()
    for block in re.findall(r'<table class="numbers">.*?</table>', text, re.DOTALL)[:2]:
        for row in re.findall(r"<tr><td.*?</tr>", block, re.DOTALL):
            arm = re.search(r'href="([\w.]+)\.html"', row)
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)[1:]
            if arm:
                assert all(cell == "-" or cell.startswith(f'<a href="{arm[1]}.html">') for cell in cells)
                assert any(cell != "-" for cell in cells)
    runs = (site / "roberta_table1/smoke/dynamic.html").read_text()
    assert len(re.findall(r"<code>0dynamic-\d</code>", runs)) == 5
    assert "schedule:" in runs
    assert "Curves of each run" in runs


def test_what_a_table_page_tells(site: Path) -> None:
    text = (site / "roberta_table1/smoke/index.html").read_text()
    for words in (
        "Arms with their intervals", "Effect sizes", "Learning curves", "Quality against compute",
        "Effect against compute", "numbers of the table follow from the records", "FLOPs",
        "paribus run roberta_table1 scale=smoke", "../cpu/index.html", "published/roberta_table1.html",
    ):  # fmt: skip
        assert words in text, words
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


def test_examples_keep_the_colors_of_show() -> None:
    line = "#0  \x1b[2m[CLS]\x1b[0m a \x1b[1;31m[MASK](<b>)\x1b[0m"
    assert (
        color_html(line) == '#0  <span class="t-special">[CLS]</span> a <span class="t-mask">[MASK](&lt;b&gt;)</span>'
    )


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
    for study in ("other", "other.tune"):
        (tmp_path / "runs" / study).mkdir()
        (tmp_path / "runs" / study / "cpu.json").write_text("{}")
    assert main(["report", "paths.cache=cache", "examples=0"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "no table" in line]
    assert said == ["other at scale=cpu has runs but no table: paribus table other scale=cpu"]


def test_bad_input_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="there is no table yet"):
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


def browse(place: str, tmp_path: Path) -> tuple[str, list[str]]:
    """(the page as the browser has it after its scripts, lines of its console)."""
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    arguments = [*QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--v=0"]
    arguments += ["--virtual-time-budget=3000", "--dump-dom", place]
    done = subprocess.run([CHROMIUM, *arguments], capture_output=True, text=True, timeout=240, check=False)
    if "<html" not in done.stdout:
        pytest.skip(f"chromium does not run here: {done.stderr[-200:]}")
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def rows(dom: str) -> list[str]:
    """The rows that are shown, in their order."""
    body = dom.partition("<tbody>")[2].partition("</tbody>")[0]
    return [row for row in re.findall(r"<tr[^>]*>.*?</tr>", body, re.DOTALL) if "hidden" not in row.split(">")[0]]


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
    up, down = (rows(browse(f"{home}#sort={turn}study", tmp_path)[0]) for turn in ("", "-"))
    names = [re.sub("<[^>]+>", "", re.findall(r"<td[^>]*>(.*?)</td>", row)[0]) for row in up]
    assert names == sorted(names)
    assert len(down) == len(up)
    assert [re.sub("<[^>]+>", "", re.findall(r"<td[^>]*>(.*?)</td>", row)[0]) for row in down] == names[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["roberta_table1/smoke/index.html", "roberta_table1/smoke/dynamic.html",
                                  "published/index.html", "published/roberta_table1.html"])  # fmt: skip
def test_no_page_has_a_console_error(site: Path, tmp_path: Path, page: str) -> None:
    dom, console = browse((site / page).as_uri(), tmp_path)
    assert console == []
    assert "<h1>" in dom
