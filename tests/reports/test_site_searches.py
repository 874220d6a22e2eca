"""Searches on the static site: a page each, with trials, history or Pareto front, and importances."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from search_worker import Launcher, settings

from paribus.commands.cli import main
from paribus.core.errors import UserError
from paribus.sweeps.search.space import dimension
from paribus.sweeps.search.status import open_search
from paribus.sweeps.search.worker import search


class Two:
    """Two objectives that pull apart, of two parameters."""

    def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[Any]:
        x, y = (float(text.partition("=")[2]) for text in batch[0])
        return [SimpleNamespace(_return_value=None, return_value={"loss": x + y / 100, "flops": 1e9 * (2 - x)})]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two searches as `paribus run` leaves them."""
    monkeypatch.chdir(tmp_path)
    folder = Path("runs/lr-smoke.search")
    folder.mkdir(parents=True)
    search(settings(f"journal:{folder}/journal", 6, folder, objectives=("mlm_loss",)), Launcher(tmp_path / "log", 0.0))
    folder = Path("runs/pareto-smoke.search")
    space = {name: dimension(name, "interval(0, 1)") for name in ("depth", "width")}
    both = {"space": space, "directions": ("minimize", "minimize"), "objectives": ("loss", "flops")}
    search(settings(f"sqlite:///{folder}/trials.db", 8, folder, **both), Two())
    return tmp_path / "runs"


def test_a_site_shows_searches_without_any_table(runs: Path) -> None:
    assert main(["report", "out=site"]) == 0
    front = Path("site/index.html").read_text()
    assert '<a href="search-lr-smoke.html">lr-smoke</a>' in front
    assert "6/6 done" in front
    assert "importance for mlm_loss: x 100%" in front
    page = Path("site/search-lr-smoke.html").read_text()
    best = min(row.values[0] for row in open_search(runs / "lr-smoke.search")[0].rows)
    assert f"mlm_loss {best:.6g}" in page
    assert "<title>mlm_loss against trials</title>" in page
    assert "<title>importance for mlm_loss</title>" in page
    assert page.count('<th scope="row">') == 6
    page = Path("site/search-pareto-smoke.html").read_text()
    assert "<title>flops against loss</title>" in page
    assert "<title>importance for loss</title>" in page
    assert "<title>importance for flops</title>" in page
    front = [trial.number for trial in open_search(runs / "pareto-smoke.search")[1].best_trials]
    assert all(f"trial {number}: " in page for number in front)


def test_a_search_that_cannot_be_opened_is_said_and_the_rest_is_shown(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "lr-smoke.search/journal").unlink()
    shutil.copytree(runs / "pareto-smoke.search", runs / "broken.search")
    (runs / "broken.search/study.json").write_text("{")
    assert main(["report", "out=site"]) == 0
    said = capsys.readouterr().err
    assert (
        "the search lr-smoke is not shown: runs/lr-smoke.search/journal, which holds the search, does not exist" in said
    )
    assert "the search broken is not shown" in said
    assert not (runs / "lr-smoke.search/journal").exists(), "looking makes no storage"
    assert "search-pareto-smoke" in Path("site/index.html").read_text()


def test_a_search_of_another_storage_is_named(runs: Path) -> None:
    study = runs / "pareto-smoke.search/study.json"
    study.write_text(study.read_text().replace('"study": "s"', '"study": "t"'))
    with pytest.raises(UserError, match="holds no search t"):
        open_search(runs / "pareto-smoke.search")
    with pytest.raises(UserError, match="there is no search in"):
        open_search(runs)
