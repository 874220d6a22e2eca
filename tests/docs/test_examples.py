"""The scripts in docs/examples run as they are written."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import paribus

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs" / "examples").glob("*.py"))
SAYS = {
    "collator_in_a_trainer": "masked tokens in the last batch",
    "compare_two_models": "A - B [95%]",
    "judge_a_csv": "settings, budgets and texts were not compared",
    "load_runs": "# roberta_table1",
}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "analysis").symlink_to(ROOT / "analysis")
    runpy.run_path(str(path))
    assert SAYS[path.stem] in capsys.readouterr().out


def test_every_script_is_named_in_the_documents() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert set(SAYS) == {path.stem for path in SCRIPTS}
    assert [path.name for path in SCRIPTS if f"examples/{path.name}" not in text] == []


def test_a_study_without_runs_is_no_empty_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs/books_trec").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(paribus.UserError, match=r"no run of books_tre at scale=cpu .*did you mean books_trec\?"):
        paribus.load_runs("books_tre", "cpu")
    with pytest.raises(paribus.UserError, match="try `paribus run books_trec scale=cpu`"):
        paribus.load_runs("books_trec", "cpu")


def test_the_package_shows_its_own_names_alone() -> None:
    assert dir(paribus) == sorted([*paribus.__all__, "__version__"])
