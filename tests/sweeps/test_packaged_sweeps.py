"""Every sweep file: composed and audited, run at scale=test, and made a table of.

`make test` composes two arms of each sweep at one scale, all scales in turn, and runs one arm; four tables are drawn.
`make test-slow` takes all arms and every scale, and draws every table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paribus.commands.table import table
from paribus.core.config import compose
from paribus.core.config_names import conf_dir
from paribus.core.recipes import table_seeds
from paribus.reports.tables.build import make_table
from paribus.reports.tables.files import render_committed
from paribus.sweeps.control import audit
from paribus.sweeps.request import parse
from paribus.sweeps.run import run_sweep
from paribus.sweeps.sweep import SCRATCH, Sweep, arm_overrides
from paribus.sweeps.sweep_file import load, names
from paribus.verdict.metrics import find_carrying, find_metric

SWEEPS = names()
SCALES = ("smoke", "cpu", "gpu", "paper")
SMALL = ["corpus.distributions=[rich,hypothesis]"]
PICTURED = ("roberta_table1", "bert_figure5", "t5_table11", "sun_table5")
OWN_TEXT = {  # the text is varied
    "albert_table7": [],
    **{name: [] for name in SWEEPS if load(name).universes},
    "transformer_xl_table7": ["corpus.of.distributions=[rich,hypothesis]"],
    "t5_table8": ["corpus.of.distributions=[rich,hypothesis]"],
    "t5_table8_domains": [],
}


def test_every_scale_has_a_recipe_for_every_family_of_the_sweeps() -> None:
    families = {load(name).family for name in SWEEPS}
    assert families == {path.name for path in (conf_dir() / "recipe").iterdir() if path.is_dir()}
    assert all(table_seeds(family, scale) for family in families for scale in ("test", *SCALES))


def last_arm(sweep: Sweep) -> str:
    """The last arm that is not the baseline."""
    return [arm for arm in sweep.arms if arm != sweep.baseline][-1]


@pytest.mark.parametrize(("name", "scale"), [(name, SCALES[at % len(SCALES)]) for at, name in enumerate(SWEEPS)])
def test_the_first_arms_are_composed_and_controlled(name: str, scale: str) -> None:
    sweep = load(name)
    others = [arm for arm in sweep.arms if arm != sweep.baseline]
    count = 1 if sweep.factorial is None else 3  # arms of a design vary half of its factors each
    check(sweep, scale, [sweep.baseline, *others[:count]])


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize("scale", SCALES)
def test_arms_are_composed_and_controlled(name: str, scale: str) -> None:
    check(sweep := load(name), scale, list(sweep.arms))


def check(sweep: Sweep, scale: str, arms: list[str]) -> None:
    """The arms are composed and differ in what the sweep varies alone; at scale=test the sweep's own run shows it."""
    configs = {arm: compose(list(arm_overrides(sweep, scale, arm))) for arm in arms}
    found = audit(sweep, configs)
    assert found["controlled"] is True
    assert found["differences"].pop(sweep.baseline) == {}
    assert found["differences"].keys() == set(arms) - {sweep.baseline}
    assert all(found["differences"].values())
    assert len(sweep.seeds_at(scale)) >= 2
    asked = {column.partition("/")[0] for column in sweep.columns} & set(configs[sweep.baseline].tasks)
    measured = {column for column in find_carrying(sweep.columns, tuple(sweep.varies)) if not find_metric(column).cost}
    assert asked or "mlm_loss" in sweep.columns or measured  # else its table has nothing that decides


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_fixes_its_claims_and_names_its_source(name: str) -> None:
    sweep = load(name)
    header = sweep.path.read_text(encoding="utf-8").splitlines()[:4]
    assert sweep.study == name
    assert sweep.claims
    assert not sweep.published or any("arXiv" in line or "section" in line for line in header)
    assert f"# make {name} SCALE=cpu" in header


@pytest.mark.parametrize("name", SWEEPS)
def test_an_arm_runs_at_scale_test_and_becomes_a_table(
    name: str, session_folder: Path, cache: Path, tmp_path: Path
) -> None:
    arm = last_arm(load(name))
    runs = run_arms(name, session_folder, cache, tmp_path, f"arms={arm}")
    if name in PICTURED:
        found = read_drawn(name, runs, tmp_path)
    else:
        found = json.loads(render_committed(make_table(load(name), "test", None, [runs]))["table.json"])
    (row,) = [row for row in found["arms"] if row["name"] == arm]
    assert row["n"] == 1 or row["reason"]  # or this machine lacks a component


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_all_arms_run_at_scale_test_and_become_a_table(
    name: str, session_folder: Path, cache: Path, tmp_path: Path
) -> None:
    found = read_drawn(name, run_arms(name, session_folder, cache, tmp_path), tmp_path)
    assert {row["name"] for row in found["arms"]} - {SCRATCH} == set(load(name).arms)
    assert all(row["n"] == 1 or row["reason"] for row in found["arms"])  # or this machine lacks a component
    assert not [note for note in found["notes"] if "is left out" in note]  # the anchor from scratch counts


def run_arms(name: str, session_folder: Path, cache: Path, tmp_path: Path, *own: str) -> Path:
    """The runs of a sweep with one seed. Sweeps share their pre-trainings, as a user's do."""
    runs = session_folder / "runs"
    corpus = [*OWN_TEXT.get(name, SMALL), f"paths.cache={cache}"]
    given = ["scale=test", *corpus, "profile.threads=1", "profile.precision=32-true", f"runs={runs}", "seeds=0", *own]
    assert run_sweep(parse("run", [name, *given])._replace(results=tmp_path / "results")) == 0
    return runs


def read_drawn(name: str, runs: Path, tmp_path: Path) -> dict[str, Any]:
    """The table of a sweep as `paribus table` writes it, with all drawings."""
    assert table([name, "scale=test", f"runs={runs}", f"results={tmp_path / 'results'}", f"out={tmp_path}"]) == 0
    found: dict[str, Any] = json.loads((tmp_path / "table.json").read_text())
    return found
