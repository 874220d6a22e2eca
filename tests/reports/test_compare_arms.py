"""Two arms of several seeds each, over seeds and examples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import paribus
from paribus.core.errors import UserError
from paribus.reports.compare_arms import ArmComparison

RANDOM = np.random.default_rng(5)


def write(path: Path, scores_SN: object, first: int = 0, metric: str = "acc") -> Path:
    """A file of rows {id, seed, metric}, in any order."""
    rows = [
        {"id": at, "seed": first + seed, metric: float(score)}
        for seed, scores_N in enumerate(np.asarray(scores_SN))
        for at, score in enumerate(scores_N)
    ]
    RANDOM.shuffle(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_seeds_and_examples_are_resampled(tmp_path: Path) -> None:
    luck_S1, easy_1N = RANDOM.normal(0, 0.3, (6, 1)), RANDOM.normal(0, 1, (1, 80))
    first = write(tmp_path / "a.jsonl", 0.5 + luck_S1 + easy_1N + RANDOM.normal(0, 0.1, (6, 80)))
    second = write(tmp_path / "b.jsonl", luck_S1 + easy_1N + RANDOM.normal(0, 0.1, (6, 80)))
    found = paribus.compare(first, second, seed="seed")
    assert isinstance(found, ArmComparison)
    (row,) = found.rows
    assert (row.column, row.seeds, row.shared, row.examples) == ("acc", (6, 6), True, 80)
    assert row.difference == pytest.approx(0.5, abs=0.05)
    assert row.ci_low > 0.4  # luck and examples are shared, so they cancel
    assert row.by_seed[0] is not None
    assert row.by_seed[0] > 0.4
    assert "acc" in str(found)
    apart = paribus.compare(first, write(tmp_path / "c.jsonl", luck_S1[::-1] + easy_1N, 100), seed="seed").rows[0]
    assert not apart.shared  # type: ignore[union-attr]
    assert apart.ci_high - apart.ci_low > 2 * (row.ci_high - row.ci_low)  # type: ignore[operator]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", RANDOM.normal(0, 1, (3, 9)))
    with pytest.raises(UserError, match=r"several rows with the same id: .* --id or --seed"):
        paribus.compare(first, first)
    with pytest.raises(UserError, match="has one seed, the other arm has several"):
        paribus.compare(first, write(tmp_path / "b.jsonl", RANDOM.normal(0, 1, (1, 9))), seed="seed")
    with pytest.raises(UserError, match="other examples of acc in seed 0"):
        paribus.compare(first, write(tmp_path / "c.jsonl", RANDOM.normal(0, 1, (3, 8))), seed="seed")
    with pytest.raises(UserError, match="no column 'sed': did you mean seed"):
        paribus.compare(first, first, seed="sed")
    assert are_alike(paribus.compare(first, first, seed="seed"))


def are_alike(found: object) -> bool:
    """Equal arms differ by nothing."""
    assert isinstance(found, ArmComparison)
    return found.rows[0].p == 1.0 and found.rows[0].superiority == 0.5
