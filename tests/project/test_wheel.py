"""The wheel works outside of a checkout: configs, sweeps and published tables are inside of it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from paribus.core.config_names import conf_dir, sweeps_dir

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_carries_what_it_needs(tmp_path: Path) -> None:
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(wheel, check=True, capture_output=True)
    (built,) = tmp_path.glob("paribus-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(built) as content:
        content.extractall(site)
    for source, inside in ((conf_dir(), "_files/conf"), (sweeps_dir(), "_files/sweeps")):
        wanted = sorted(path.relative_to(source) for path in source.rglob("*.yaml"))
        assert (
            sorted(path.relative_to(site / "paribus" / inside) for path in (site / "paribus" / inside).rglob("*.yaml"))
            == wanted
        )
    for folder in ("paribus/reports/site/assets", "paribus/reports/templates"):
        wanted = sorted(path.name for path in (ROOT / "src" / folder).iterdir())
        assert sorted(path.name for path in (site / folder).iterdir()) == wanted
    code = (
        "from paribus.core.config import compose, conf_dir; from paribus.sweeps.sweep import names;"
        "print(conf_dir(), compose(['scale=smoke']).model.layers, names())"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{site / 'paribus' / '_files' / 'conf'} 2 ")
    assert "roberta_table1" in done.stdout
