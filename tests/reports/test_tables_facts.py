"""What a table says of itself, and how it is printed: facts, terminal, LaTeX, PDF."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_records import design, make_table, own, read, study
from kept_records import put

from paribus.core.arguments import choice
from paribus.reports.tables.build import assemble
from paribus.reports.tables.facts import _join_budgets, find_facts, write_line
from paribus.reports.tables.files import render_files, render_texts
from paribus.reports.tables.latex import name_arm, name_column, render_evidence, render_latex
from paribus.reports.tables.schema import Table
from paribus.reports.tables.terminal import print_table
from paribus.runs.manifest import Manifest, write_manifest
from paribus.runs.record import Record

CONFIG: dict[str, Any] = {
    "corpus": {"_target_": "paribus.data.corpus.text.Text", "path": "/far/books"},
    "model": {"_target_": "paribus.models.bert.Bert", "layers": 2, "hidden": 128},
    "tokenizer": {"_target_": "paribus.data.tokens.trained.WordPiece", "vocab_size": 8192},
    "stages": {},
}
LINE = (
    "books; 400K tokens × 12 epochs; 2 layers × 128 (4.41M parameters); 8,192 entries (WordPiece); 2 seeds; AMD EPYC; "
    "overrides: corpus=text, corpus.path=books."
)


def records(**changes: Any) -> list[dict[str, Any]]:
    more = {"realised": {"epochs": 12.0, "parameters": 4_410_000}, "profile": {"device": "AMD EPYC"}, **changes}
    return [{**made, **more, "budget": {**made["budget"], "raw_tokens": 4_800_000}} for made in study(2)]


def label(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name.partition('-')[0]}"


def stored(root: Path, **changes: Any) -> list[Path]:
    from paribus.core.checksums import seal

    folders = [put(root, seal(made)) for made in records()]
    for folder in folders:
        (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIG, **changes}))
    write_manifest(root, "roberta_table1", "smoke", Manifest(
        "hash", ["corpus=text", "corpus.path=/far/books", "paths.cache=/c"],
        {label(folder): folder.name.partition("-")[2] for folder in folders}, {},
    ))  # fmt: skip
    return folders


def test_the_facts_stand_under_the_title_of_every_form(tmp_path: Path) -> None:
    stored(tmp_path)
    made = assemble(design(seeds=(0, 1)), [tmp_path])
    assert write_line(made.facts) == LINE
    found = render_texts(made)
    assert found["table.md"].splitlines()[2] == LINE
    assert LINE in found["table.html"]
    assert '"text": "books"' in found["table.json"]
    first = found["table.tex"].split(r"\end{table}")[0]
    assert r"2 layers $\times$ 128 (4.41M parameters); 8,192 entries" in first
    assert write_line({}) == ""


def test_facts_that_differ_are_listed_and_unknown_ones_left_out(tmp_path: Path) -> None:
    folders = stored(tmp_path)
    for folder in folders:
        if folder.parent.name == "static":
            further = {"further": {"corpus": {"_target_": "x.Docstrings"}}, "other": None}
            changed = {"model": {"_target_": "x.Pretrained", "name": "/a/b/minilm"}, "stages": further}
            tokenizer = {"tokenizer": {"_target_": "x.Pretrained", "name": "bert-base-cased", "vocab_size": None}}
            (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIG, **changed, **tokenizer}))
    facts = find_facts(["dynamic", "static"], read(records()), [tmp_path])
    assert facts["text"] == "books, then docstrings in some arms"
    assert facts["model"] == "2 layers × 128 (4.41M parameters) or minilm (4.41M parameters)"
    assert facts["vocabulary"] == "8,192 entries (WordPiece) or tokenizer of bert-base-cased"
    assert "overrides" not in facts
    sized = {"tokenizer": {"_target_": "x.Characters", "vocab_size": 8192}}
    for folder in folders:
        (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIG, **sized}))
    assert find_facts(["dynamic"], read(records()), [tmp_path])["vocabulary"] == "at most 8,192 entries (Characters)"
    asked = ["logger=none", "profile.threads=1", "+profile.new=1", "~logger", "trainer.max_steps=9"]
    assert find_facts(["dynamic"], read(records()), [tmp_path], asked)["overrides"] == "trainer.max_steps=9"
    assert find_facts(["dynamic"], read(records(realised={}, profile={})), [tmp_path])["budget"] == "4.8M tokens"
    none = [{**made, "budget": {}} for made in records()]
    assert find_facts(["dynamic"], read(none), [tmp_path])["budget"] == "no pre-training"
    assert find_facts(["dynamic"], read(records()), [tmp_path / "nowhere"]) == {}


def test_many_budgets_are_a_range() -> None:
    def of(*millions: float) -> list[Record]:
        one = {**records()[0], "realised": {}}
        return read([{**one, "budget": {"raw_tokens": number * 1e6}} for number in millions])

    assert _join_budgets(of(7, 3, 5)) == "7M tokens or 3M tokens or 5M tokens"
    assert _join_budgets(of(7, 3, 5, 4)) == "3M to 7M tokens"
    assert _join_budgets(of(7, 3, 0, 5)) == "3M to 7M tokens or no pre-training"
    assert _join_budgets(of(4.18, 4.16, 4.2, 8)) == "4.18M tokens or 8M tokens"


@pytest.fixture
def wide() -> Table:
    """A table with more columns than a terminal is wide."""
    tasks = [f"task_{n}/accuracy" for n in range(8)]
    made = [
        {**one, "metrics": {**one["metrics"], **dict.fromkeys(tasks, 0.5 + one["seed"] / 100)}, "own": own(5.0)}
        for one in study(3)
    ]
    columns = ("mlm_loss", "docs_package/accuracy", *tasks)
    return make_table(design(columns=columns, published={}, seeds=(0, 1, 2)), made)


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_of_any_width_shows_everything(wide: Table, width: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(wide, width, color=False)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert "|" not in out
    for column in wide.columns:
        assert column.rpartition("/")[2] in out
    assert out.count("task_7/") >= 2
    assert out.count("\ndynamic ") >= 4, "each part repeats the arms"
    assert "[0.4" in out.replace("[0.5", "[0.4") or "[4" in out
    assert "…" not in out


def test_no_sentence_on_what_does_not_occur() -> None:
    text = render_texts(make_table(design(claims=()), study(1)))["table.md"]
    assert "Bold:" not in text
    assert "accuracies in points" in text
    loss = make_table(design(claims=(), columns=("mlm_loss",), published={}), study(3))
    assert "accuracies in points" not in render_texts(loss)["table.md"]


def test_a_small_p_has_one_sign() -> None:
    text = render_texts(make_table(design(), study(8, spread=0.001)))["table.md"]
    assert "p<0.001" in text
    assert "p=<" not in text


def test_latex_has_labels_names_for_print_and_real_minus_signs() -> None:
    made = make_table(design(), study())
    first, further = render_latex(made), render_evidence(made)
    assert r"\label{tab:roberta-table1-smoke}" in first
    assert first.count(r"\begin{table}") == 1
    labels = [text.partition("}")[0] for text in (first + further).split(r"\label{")[1:]]
    assert len(labels) == (first + further).count(r"\begin{table}") == len(set(labels)) > 2
    assert "MLM loss" in first
    assert "static x10" in first
    assert "MLM loss: dynamic - static x10" in further
    assert "[$-$0." in further
    assert " -0." not in further


@pytest.mark.parametrize(
    ("style", "inside", "caption"),
    [
        ("sd", r"4.902 $\pm$ 0.0", r"Mean $\pm$ standard deviation over n"),
        ("interval", r"4.902 [4.8", r"Mean [95\% t interval of the mean] over n"),
        ("both", r"4.902 (0.0", r"Mean (standard deviation) [95\% t interval of the mean]"),
    ],
)
def test_a_mean_has_the_style_that_is_asked_for(style: str, inside: str, caption: str) -> None:
    text = render_latex(make_table(design(), study()), style).split(r"\end{table}")[0]
    assert caption in text
    assert inside[6:] in text
    assert (r"\pm" in text) == (style == "sd")


def test_figures_for_a_paper_are_pdf_without_a_title() -> None:
    made = make_table(design(), study())
    files = render_files(made, pdf=True)
    pictures = {Path(name).stem for name in files if name.endswith(".png")}
    assert pictures == {Path(name).stem for name in files if name.endswith(".pdf")} != set()
    assert all(content.startswith(b"%PDF") for name, content in files.items() if name.endswith(".pdf"))
    assert files == render_files(made, pdf=True), "the same bytes again"
    assert not any(name.endswith(".pdf") for name in render_files(made))


def test_names_for_print() -> None:
    assert [name_column(one) for one in ("sst2/accuracy", "squad_v2/f1", "mlm_loss", "my_task/mcc", "mean")] == [
        "SST-2 accuracy", "SQuAD 2.0 F1", "MLM loss", "my task MCC", "mean",
    ]  # fmt: skip
    assert name_arm("static_x10") == "static x10"


def test_a_style_is_one_of_three(refusal: Callable[..., str]) -> None:
    assert "style=std is not valid: did you mean sd?" in refusal("table", "roberta_table1", "style=std")
    assert "style= does not apply to --check" in refusal("table", "roberta_table1", "style=sd", "--check")
    with pytest.raises(ValueError, match="known: a, b"):
        choice(["a", "b"])("xyz")
