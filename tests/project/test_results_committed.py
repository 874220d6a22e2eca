"""The tables of `analysis/results` are those of the records beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.commands.table import table
from paribus.sweeps.sweep_file import names

RESULTS = Path(__file__).parents[2] / "analysis/results"
TABLES = sorted(str(path.parent.relative_to(RESULTS)) for path in RESULTS.glob("*/*/table.json"))


@pytest.mark.slow
@pytest.mark.parametrize("committed", TABLES)
def test_a_committed_table_matches_its_records(committed: str, capsys: pytest.CaptureFixture[str]) -> None:
    scale, study = committed.split("/")
    sweep = max((name for name in names() if study.startswith(name)), key=len)
    failed = table([sweep, f"scale={scale}", f"study={study}", f"results={RESULTS}", "--check"])
    assert not failed, capsys.readouterr().out
