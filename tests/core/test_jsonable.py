"""Dataclasses as JSON and back: every committed record and table keeps its content; older and newer files are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paribus.core.jsonable import EMPTY, OMITTED, REST, from_json, to_json
from paribus.reports.tables.schema import Table
from paribus.runs.archive import Archive
from paribus.runs.folder import RECORD
from paribus.runs.record import Record

RESULTS = Path(__file__).parents[2] / "analysis" / "results"


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Branch(Leaf):
    ends: tuple[float, float]


@dataclass(frozen=True)
class Tree:
    name: str
    parts: Mapping[str, Branch | Leaf]
    leaves: tuple[Leaf, ...] = ()
    owner: Leaf | None = field(default=None, metadata=EMPTY)
    note: str = field(default="", metadata=OMITTED)
    rest: Mapping[str, Any] = field(default_factory=dict, metadata=REST)


def test_there_and_back() -> None:
    tree = Tree("a", {"x": Leaf(1.0), "y": Branch(2.0, (1.0, 3.0))}, (Leaf(4.0),), rest={"later": [1]})
    content = {
        "name": "a", "parts": {"x": {"value": 1.0}, "y": {"value": 2.0, "ends": [1.0, 3.0]}}, "later": [1],
        "leaves": [{"value": 4.0}], "owner": {},
    }  # fmt: skip
    assert to_json(tree) == content
    assert from_json(Tree, json.loads(json.dumps(content))) == tree


def test_a_missing_key_takes_its_default_and_one_without_is_an_error() -> None:
    assert from_json(Tree, {"name": "a", "parts": {}}) == Tree("a", {})
    with pytest.raises(TypeError, match="parts"):
        from_json(Tree, {"name": "a"})


def test_committed_tables_and_records_keep_their_content() -> None:
    paths = sorted(RESULTS.glob("*/*/table.json"))
    assert paths
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert to_json(from_json(Table, content)) == content, path
        for run in Archive(path.parent).list_runs():
            record = json.loads(run.read(RECORD) or b"")
            assert to_json(from_json(Record, record)) == record, str(run)
