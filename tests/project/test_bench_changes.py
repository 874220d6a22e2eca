"""The bench of changes has a row for every packaged choice that changes the forward pass, beside what its FLOPs say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from paribus.core.config_names import choices

ANALYSIS = Path(__file__).parents[2] / "analysis"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ANALYSIS))
    spec = importlib.util.spec_from_file_location("bench_changes", ANALYSIS / "bench_changes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_changes", module)
    spec.loader.exec_module(module)
    return module


def test_every_choice_has_a_ratio_of_seconds_and_one_of_flops(bench: ModuleType) -> None:
    sizes = {"hidden": 32, "heads": 2, "intermediate": 48, "layers": 1}
    found = {row.name.split()[1]: row for row in bench.rows(turns=1, tokens=128, short=64, long=128, sizes=sizes)}
    positions = {f"position={name}" for name in choices("model/position")} - {"position=learned"}
    assert found.keys() == {*choices("model/change"), *positions} - bench.HEADS_AND_WEIGHTS
    assert all(row.value > 0.0 and row.unit == "x" for row in found.values())
    flops = {name: float(row.note.split()[1]) for name, row in found.items()}
    assert flops["relu"] == flops["swiglu"] == 1.0
    assert flops["no_ffn"] < 1.0 < flops["position=transformer_xl"]
    assert found["window"].name.endswith("rows of 128")
    assert found["relu"].name.endswith("rows of 64")
