"""Files of a table: the same bytes for the same records, readable, escaped, self-contained; and the verb."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from fake_records import LOSS, TASK, build, design, make_table, study

from paribus.commands.table import table
from paribus.core.checksums import seal
from paribus.core.errors import UserError
from paribus.reports.tables.build import count_trials
from paribus.reports.tables.files import check, draw_pictures, render_files
from paribus.reports.tables.latex import escape, render_latex
from paribus.reports.tables.markdown import render_grid
from paribus.reports.tables.schema import Aggregate, Estimate, OrderRow, OverallRow, Printed, Tuned
from paribus.sweeps.tuning import ArmTuning, Trial, Tuning
from paribus.verdict.claims import Sentence

PLOTS = {f"{name}.{kind}" for name in ("plot", "effects") for kind in ("png", "svg")}
FILES = {"table.md", "table.tex", "evidence.tex", "table.html", "table.json", "table.csv"} | PLOTS


@pytest.fixture(scope="module")
def rendered() -> dict[str, bytes]:
    return render_files(make_table(design(), study()))


def test_all_files_and_the_same_bytes_again(rendered: dict[str, bytes]) -> None:
    assert rendered.keys() == FILES
    assert render_files(make_table(design(), study()[::-1])) == rendered


def test_json_is_the_table(rendered: dict[str, bytes]) -> None:
    assert json.loads(rendered["table.json"]) == build(design(), study())


def test_markdown_is_aligned_and_says_everything(rendered: dict[str, bytes]) -> None:
    text = rendered["table.md"].decode()
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        assert len({len(line) for line in block.splitlines()}) == 1
    assert "static_x10 (baseline)" in text
    assert "(from scratch)" in text
    assert "(unigram)" in text
    assert "reproduced (2 of 3 columns) at smoke scale" in text
    assert "Liu et al. 2019, arXiv 1907.11692, Table 1" in text
    assert re.search(r"dynamic +\|   5 \| \*\*4\.\d{3} \(0\.\d{3}\) \[4\.\d{3}, 4\.\d{3}\]\*\*", text)
    assert "dynamic differs from the baseline in no masking.schedule.copies (baseline: 3)." in text


def test_a_claim_is_told_in_words_with_its_owner() -> None:
    asked = design(sentences={design().claims[0]: Sentence("New masks do not hurt", "paper")})
    made = render_files(make_table(asked, study()))
    assert json.loads(made["table.json"])["claims"][0]["whose"] == "paper"
    assert "**New masks do not hurt (the paper's claim)**: reproduced" in made["table.md"].decode()
    assert f"`{asked.claims[0]}`" in made["table.md"].decode()
    assert "New masks do not hurt (the paper&#39;s claim)<br>" in made["table.html"].decode()
    assert "New masks do not hurt" in made["evidence.tex"].decode()


def test_evidence_says_what_its_two_p_values_test(rendered: dict[str, bytes]) -> None:
    for name in ("table.md", "table.html"):
        text = rendered[name].decode()
        for words in ("p (zero)", "p of the claim", "against its margin, adjusted for all claims and looks"):
            assert words in text, (name, words)


def test_latex_is_balanced_and_escaped(rendered: dict[str, bytes]) -> None:
    text = (rendered["table.tex"] + rendered["evidence.tex"]).decode()
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == text.count(r"\begin{tabular}")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[_#&%](?!$)", re.sub(r" & |%$", " ", body, flags=re.M))
    assert escape("a_b & 50 % of {x} ~ \\ $ ^") == (
        r"a\_b \& 50 \% of \{x\} \textasciitilde{} \textbackslash{} \$ \textasciicircum{}"
    )
    assert body.isascii()
    assert set(re.findall(r"\\(?:tiny|scriptsize|footnotesize|small|resizebox)", body)) == {r"\footnotesize"}


def test_latex_keeps_different_names_different() -> None:
    assert [escape(name) for name in ("α=0.1", "β", "Ωα", "α-1")] == [
        r"$\alpha$=0.1", r"$\beta$", r"$\Omega\alpha$", r"$\alpha$-1",
    ]  # fmt: skip
    assert (escape("≥-1"), escape("$α")) == (r"$\geq-$1", r"\$$\alpha$")
    assert escape("你 ж") == "你 ж"


def test_latex_has_ours_and_the_papers_numbers_in_one_table(rendered: dict[str, bytes]) -> None:
    first = rendered["table.tex"].decode().split(r"\end{tabular}")[0]
    assert r"\multicolumn{2}{c}{ours} & \multicolumn{3}{c}{paper} \\" in first
    assert r"\cmidrule(lr){3-4}\cmidrule(lr){5-7}" in first
    assert r"\shortstack[r]{SST-2\\accuracy} & \shortstack[r]{squad20\\F1}" in first
    lines = first.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("dynamic & 5 & "))
    assert lines[at].endswith(r" & 92.9 & 78.7 & 84.0 \\")
    assert "n/a" not in rendered["table.tex"].decode()  # of sst2, which was not run, only the paper's number is printed
    assert lines[at + 1].startswith(r" &  & [4.")


def test_a_column_that_was_not_run_is_beside_the_papers_number(rendered: dict[str, bytes]) -> None:
    text = rendered["table.md"].decode()
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| ")]
    heading, dynamic = rows[0], next(row for row in rows if row[1] == "dynamic")
    at = heading.index("sst2/accuracy ↑")
    assert heading[at + 1] == "paper: sst2_acc"
    assert dynamic[at : at + 2] == ["n/a", "92.9"]
    assert dynamic[heading.index("paper: squad20_f1")] == "78.7"
    assert next(row for row in rows if row[1] == "(majority class)")[at : at + 2] == ["-", "-"]
    assert "n/a: not run here." in text
    assert "Paper: Liu et al. 2019, arXiv 1907.11692, Table 1; BERT_BASE reimplemented" in text
    assert "dynamic is 'dynamic masking (reimplementation)'." in text


def test_a_page_breaks_cells_and_headings_so_that_more_columns_fit(rendered: dict[str, bytes]) -> None:
    page = rendered["table.html"].decode()
    assert re.search(r"<td>4\.899 \(0\.009\)<br>|<b>4\.899 \(0\.009\)<br>\[4\.888, 4\.910\]</b>", page)
    assert "sst2/<br>accuracy ↑</th>" in page
    assert "paper:<br>sst2_acc</th>" in page
    assert '<th scope="row" class="words">static_x10 (baseline)</th>' in page


def test_a_figure_says_below_its_title_what_it_is_of() -> None:
    table = make_table(design(), study())
    plain, told = (draw_pictures(replace(table, facts=facts)) for facts in ({}, {"text": "docs " * 60 + "end"}))
    for name, figure in told.items():
        heading, below = (text.get_text() for text in figure.texts)
        assert heading.startswith("roberta_table1 at smoke scale: ")
        assert " ".join(below.split("\n")) == "docs " * 60 + "end."
        assert figure.get_figheight() > plain[name].get_figheight() + 0.1 * len(below.split("\n"))


def test_latex_goes_on_below_if_it_is_too_wide() -> None:
    table = make_table(design(), study())
    papers = tuple(f"metric{at}" for at in range(12))
    assert table.paper is not None
    arms = [replace(arm, published={name: Printed(1.0, "") for name in papers}) for arm in table.arms[:2]]
    wide = replace(table, arms=(*arms, table.arms[2]), paper=replace(table.paper, own=papers))
    results = render_latex(wide).split(r"\end{table}")[0]
    assert results.count(r"\begin{tabular}") > 1
    assert all(results.count(name) == 1 for name in ("metric0 ", "metric11 "))
    assert "bag of words" not in results.split(r"\begin{tabular}")[-1], "rows without a number are left out there"


def test_latex_compiles(tmp_path: Path) -> None:
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("no pdflatex is installed")
    records = [r | {"status": "failed", "error": "50 % of_{x} → [gone]\n"} if r["seed"] == 4 else r for r in study()]
    packages = r"\usepackage[utf8]{inputenc}\usepackage{booktabs}"
    for name, content in render_files(make_table(design(), records)).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "paper.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}\input{{table}}\input{{evidence}}"
        rf"{escape('αβ ως ΓΩ $α α-1 ≥-1 ≤≈≠ → ∞ −')}\end{{document}}"
    )
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    if "booktabs.sty' not found" in done.stdout or "I can't find the format file" in done.stdout:
        pytest.skip("this LaTeX lacks booktabs")
    assert done.returncode == 0, done.stdout[-1500:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000


def test_footnotes_name_what_failed_and_what_was_tuned() -> None:
    records = [r | {"status": "failed", "error": "out of memory"} if r["seed"] == 4 else r for r in study()]
    made = replace(make_table(design(), records), tuned={"dynamic": Tuned(20, {"optimizer.lr": 0.001})})
    text = render_files(made)["table.md"].decode()
    assert "| dynamic (partial) [b] " in text
    assert "[b] dynamic/seed4 failed: out of memory; tuned with 20 trials: optimizer.lr=0.001." in text
    assert "[a] static_x10/seed4 failed: out of memory." in text


def test_tuned_arms_are_told_with_their_trials() -> None:
    search = Tuning({"on": "mlm_loss"}, {"b": ArmTuning({"x": "1"}, [Trial(0, {"x": "1"}), Trial(1, {"x": "2"})])})
    assert count_trials(search) == {"b": Tuned(2, {"x": "1"})}
    assert count_trials(Tuning()) == {}


def test_arms_with_other_batches_that_were_not_tuned_are_told() -> None:
    said = "No learning rate was searched for each arm: it may suit one batch.size or optimizer better than another."
    varied = (("batch.size", "optimizer"), ("optimizer.lr",))
    assert [said in make_table(design(varies=keys), study()).notes for keys in varied] == [True, False]


class Balanced(HTMLParser):
    VOID = ("meta", "br", "path", "circle", "rect", "link", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_html_is_well_formed_and_needs_nothing_else(rendered: dict[str, bytes]) -> None:
    text = rendered["table.html"].decode()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "<script" not in text
    assert "<svg" in text


def test_html_escapes_names() -> None:
    records = [r | {"status": "failed", "error": "<b>&"} if r["seed"] == 4 else r for r in study()]
    assert "&lt;b&gt;&amp;" in render_files(make_table(design(), records))["table.html"].decode()


def test_csv_has_every_cell(rendered: dict[str, bytes]) -> None:
    rows = list(csv.DictReader(io.StringIO(rendered["table.csv"].decode())))
    mine = [row for row in rows if (row["arm"], row["column"]) == ("dynamic", LOSS)]
    assert len(mine) == 1
    assert len(mine[0]["values"].split()) == 5
    assert {row["column"] for row in rows if row["kind"] == "arm"} == {LOSS, TASK}
    assert [row["mean"] for row in rows if row["kind"] == "published" and row["column"] == "sst2_acc"] == [
        "92.5",
        "92.9",
    ]


def test_plots_carry_no_date(rendered: dict[str, bytes]) -> None:
    assert rendered["plot.png"].startswith(b"\x89PNG")
    assert b"Software" not in rendered["plot.png"]
    assert b"<svg" in rendered["plot.svg"]
    assert b"metadata" not in rendered["plot.svg"]


def test_grid_escapes_bars() -> None:
    assert render_grid(["a", "b"], [["x|y", "1"]]).splitlines()[2] == "| x\\|y |   1 |"


def test_check_names_the_files_that_differ(tmp_path: Path) -> None:
    content = {"table.md": b"one", "table.csv": b"two"}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    assert check(tmp_path, content) == []
    (tmp_path / "table.md").write_bytes(b"edited")
    (tmp_path / "table.csv").unlink()
    csv, md = check(tmp_path, content)
    assert csv.endswith("table.csv: is missing")
    assert md.endswith("table.md: differs from its records")


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        ([], "table needs a SWEEP"),
        (["a", "b"], "table: Got unexpected extra argument"),
        (["a", "--force"], "--force"),
        (["a", "scael=cpu"], "scael"),
        (["nosuchsweep"], "nosuchsweep"),
    ],
)
def test_bad_arguments_are_named(argv: list[str], names: str) -> None:
    with pytest.raises(UserError, match=names):
        table(argv)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sweep of its own and kept records of all its runs."""
    monkeypatch.chdir(tmp_path)
    asked = design()
    sweep = {
        "study": asked.study,
        "varies": list(asked.varies),
        "matched": "tokens",
        "arms": {arm: list(overrides) for arm, overrides in asked.arms.items()},
        "baseline": asked.baseline,
        "columns": list(asked.columns),
        "claims": list(asked.claims),
        "published": dict(asked.published),
    }
    (tmp_path / "mine.yaml").write_text("# RoBERTa, table 1\n" + yaml.safe_dump(sweep))
    for record in study():
        place = tmp_path / "results/smoke" / record["study"] / record["arm"] / f"seed{record['seed']}-x" / "result.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(seal(record)))
    return tmp_path


def test_the_verb_writes_prints_and_checks(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = kept / "results/smoke/roberta_table1"
    assert table(["mine.yaml", "results=results", f"out={folder}"]) == 0
    said = capsys.readouterr().out
    assert "# roberta_table1: RoBERTa, table 1" in said
    assert re.search(r"reproduced( \(\d of \d columns\))? at smoke scale", said)
    assert {path.name for path in folder.iterdir()} >= FILES
    assert table(["mine.yaml", "results=results", "--check"]) == 0
    record = next(folder.glob("dynamic/seed0-*/result.json"))
    record.write_text(record.read_text().replace('"mlm_loss": 4', '"mlm_loss": 3'))
    assert table(["mine.yaml", "results=results", "--check"]) == 1
    copies = r"`paribus run mine scale=smoke results=nowhere`, which copies finished runs there"
    with pytest.raises(UserError, match=rf"no committed results in nowhere/.*: give results= .*{copies}"):
        table(["mine.yaml", "results=nowhere", "--check"])
    assert "table.json: differs from its records" in capsys.readouterr().out
    assert table(["mine.yaml", "results=results"]) == 0
    assert "edited after the run" in capsys.readouterr().out


def test_what_is_said_over_all_tasks_and_of_the_order() -> None:
    made = make_table(design(), study())
    value = Estimate(0.5, 0.4, 0.6)
    rows = (OverallRow("static_x10", 5, value), OverallRow("dynamic", 5, value, value))
    order = OrderRow(TASK, "sst2_acc", ("static_x10", "dynamic"), 5, 1.0, -0.2, 1.0)
    assert made.paper is not None
    made = replace(made, aggregate=Aggregate((TASK, "sst2/accuracy"), rows), paper=replace(made.paper, orders=(order,)))
    text = render_files(made)["table.md"].decode()
    assert re.search(r"\| dynamic +\| +5 \| +50.0 \[40.0, 60.0\] \| +50.0 \[40.0, 60.0\] \|", text)
    assert re.search(r"\| sst2_acc +\| static_x10, dynamic \| 1.00 \[-0.20, 1.00\] \| +5 \|", text)
    assert "All tasks" not in render_files(make_table(design(), study()))["table.md"].decode()
