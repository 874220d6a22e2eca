"""The static site: an index of claims whose links resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_records import design, study

from ceteris.cli import main
from ceteris.errors import UserError
from ceteris.tables.build import build
from ceteris.tables.files import render, write
from ceteris.tables.report import report


def test_the_index_links_to_every_table(tmp_path: Path) -> None:
    table = build(design(), study())
    write(tmp_path / "results" / table["scale"] / table["study"], render(table))
    site = tmp_path / "site"
    places = [f"reports={tmp_path / 'none'}", f"results={tmp_path / 'results'}", f"out={site}"]
    assert main(["report", *places]) == 0
    text = (site / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', text)
    assert links
    assert all((site / link).is_file() for link in links)
    assert table["claims"][0]["said"] in text.replace("&gt;", ">")


def test_without_a_table_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no table was made yet"):
        report([f"reports={tmp_path}", f"results={tmp_path}"])
    with pytest.raises(UserError, match="does not know 'scale='"):
        report(["scale=smoke"])
