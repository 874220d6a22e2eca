"""Multi-task mixing: shares of sources, a stream that is a pure function of its place, records, what is refused."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_to_text import T5

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.models.t5 import ARCHITECTURES
from paribus.tasks.mixed_stream import TEXT, Mixed
from paribus.tasks.mixtures import Equal, Mixture, Proportional
from paribus.training.budget import plan_of, planned
from paribus.training.description import Run
from paribus.training.run import run


@pytest.fixture
def t5(arguments: list[str], task_folder: Path) -> list[str]:
    """Overrides of a text-to-text run of seconds with a task of two labels."""
    own = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.length=64", "input.length=64"]
    return [*arguments, *T5, *own]


def stream(arguments: list[str]) -> Mixed:
    cfg = compose(arguments)
    plan, _ = plan_of(Run.of(cfg), Run.of(cfg).data())
    assert isinstance(plan.examples, Mixed)
    return plan.examples


@pytest.mark.parametrize(
    ("mixture", "weights"),
    [
        (Equal(), [1, 1, 1]),
        (Proportional(), [1, 1 / 4, 1 / 16]),
        (Proportional(limit=400), [1, 1, 1 / 4]),
        (Proportional(limit=50), [1, 1, 1]),
        (Proportional(temperature=2), [1, 1 / 2, 1 / 4]),
        (Proportional(limit=400, temperature=2), [1, 1, 1 / 2]),
    ],
)
def test_shares_follow_the_sizes_of_the_sources(mixture: Mixture, weights: list[float]) -> None:
    sizes = [1600, 400, 100]
    assert mixture.weights(sizes) == pytest.approx(weights)
    counts = mixture.counts(sizes)
    assert sum(counts) == sum(sizes)
    assert counts == pytest.approx([2100 * w / sum(weights) for w in weights], abs=1)


def test_no_source_is_lost_in_a_pass() -> None:
    assert Proportional().counts([100_000, 1]) == [100_000, 1]
    assert Proportional(temperature=0.5).counts([100_000, 1])[1] == 1


def test_a_row_depends_on_its_place_alone(t5: list[str]) -> None:
    first, again = (stream([*t5, "mixture=equal"]) for _ in range(2))
    rows = np.random.default_rng(0).permutation(first.size(0))[:24]
    whole = first.batch(1, rows)
    again.batch(0, rows)  # another call before it
    halves = [pickle.loads(pickle.dumps(again)).batch(1, part) for part in (rows[:5], rows[5:])]
    length_B = np.concatenate([half["length_B"] for half in halves])
    assert (whole["length_B"] == length_B).all()
    for row, place in enumerate(length_B):
        half, at = (halves[0], row) if row < 5 else (halves[1], row - 5)
        assert (whole["ids_BL"][row, :place] == half["ids_BL"][at, :place]).all()
        written = whole["label_BT"][row][whole["label_BT"][row] >= 0]
        assert (written == half["label_BT"][at][half["label_BT"][at] >= 0]).all()
    assert stream([*t5, "mixture=equal", "seed=3"]).batch(1, rows)["ids_BL"].tolist() != whole["ids_BL"].tolist()


def test_every_example_is_read_once_before_any_is_read_again(t5: list[str]) -> None:
    mixed = stream([*t5, "mixture=equal"])
    plan = mixed.plans["sst2"]
    size = plan.examples.size(0)
    drawn: Counter[tuple[int, int]] = Counter()
    for epoch in range(3):
        for own, row_X in plan.blocks(epoch):
            drawn.update((own, int(row)) for row in row_X)
    assert set(drawn.values()) == {1}
    assert {row for own, row in drawn if own == 0} == set(range(size))


def test_text_in_a_mixture_is_that_of_the_run_without_it(t5: list[str]) -> None:
    cfg = compose(t5)
    alone = plan_of(Run.of(cfg), Run.of(cfg).data())[0].examples
    mixed = stream([*t5, "mixture=proportional"])
    text = np.arange(mixed.plans[TEXT].size)[:6]  # the corpus comes first
    own = np.concatenate([rows for _, rows in mixed.plans[TEXT].blocks(0)])[:6]
    found, expected = mixed.batch(0, text), alone.batch(0, own)
    for key in ("ids_BL", "label_BT", "decoder_ids_BT"):
        assert np.array_equal(found[key], expected[key])
    assert {key: found["counts"][key] for key in expected["counts"]} == expected["counts"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_record_tells_what_was_read_of_each_source(t5: list[str], architecture: str) -> None:
    own = ["mixture=equal", "trainer.max_steps=3", f"model.architecture={architecture}", "finetune.epochs=0"]
    cfg = compose([*t5, *own])
    found: dict[str, Any] = json.loads((run(cfg) / "result.json").read_text())
    sources = found["realised"]["sources"]
    assert set(sources) == {TEXT, "sst2"}
    assert sum(source["sequences"] for source in sources.values()) == found["budget"]["sequences"] == 12
    assert sum(source["share"] for source in sources.values()) == pytest.approx(1)
    assert found["budget"]["input_tokens"] == planned(Run.of(cfg))["tokens"]
    assert found["realised"]["corruption_rate"] == pytest.approx(0.15, abs=0.02)
    assert set(found["task_runs"][0]["metrics"]) == {"accuracy", "unknown_rate"}


def test_tasks_alone_are_a_mixture(t5: list[str]) -> None:
    mixed = stream([*t5, "mixture=proportional", "mixture.denoising=false"])
    assert list(mixed.plans) == ["sst2"]
    counts = mixed.batch(0, np.arange(4))["counts"]
    assert counts["raw_tokens"] == counts["noise"] == 0
    assert counts["drawn_sst2"] == 4


@pytest.mark.slow
def test_a_mixture_teaches_a_task_without_fine_tuning(t5: list[str]) -> None:
    own = ["mixture=equal", "trainer.max_steps=400", "model.dropout=0", "batch.size=16", "finetune.epochs=0"]
    found: dict[str, Any] = json.loads((run(compose([*t5, *own])) / "result.json").read_text())
    assert found["metrics"]["sst2/accuracy"] >= 0.9


def test_a_mixture_names_another_pre_training(t5: list[str]) -> None:
    names = {
        Run.of(compose([*t5, *own])).identity.pretrain
        for own in ([], ["mixture=equal"], ["mixture=equal", "mixture.denoising=false"], ["tasks.sst2.max_train=9"])
    }
    assert len(names) == 3  # what is fine-tuned on is not part of pre-training without a mixture
    smaller = Run.of(compose([*t5, "mixture=equal", "tasks.sst2.max_train=9"])).identity.pretrain
    assert smaller not in names


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (["mixture=equal", "mixture.tasks=[mnli]"], "mnli is not a task of the run"),
        (["mixture=equal", "mixture.tasks=[]"], "names no task"),
        (["mixture=equal", "task=none", "~tasks.sst2"], "a mixture needs tasks"),
        (["mixture=proportional", "mixture.limit=0"], "mixture.limit=0"),
        (["mixture=proportional", "mixture.temperature=0"], "mixture.temperature=0"),
        (["mixture=equal", "masking=fragment", "objective/targets=fragment"], "keeps places in the text"),
        (["mixture=equal", "mixture.target_length=2"], "cuts the label"),
        (["finetune.epochs=-1"], "finetune.epochs=-1 is out of bounds"),
    ],
)
def test_what_cannot_be_mixed_is_refused_before_any_step(t5: list[str], changes: list[str], match: str) -> None:
    own = [text for text in t5 if "sst2" not in text] if "~tasks.sst2" in changes else t5
    with pytest.raises(UserError, match=match):
        run(compose([*own, *(text for text in changes if not text.startswith("~"))]))


def test_an_encoder_reads_no_mixture(arguments: list[str], task_folder: Path) -> None:
    own = ["task=sst2", f"tasks.sst2.path={task_folder}", "mixture=equal"]
    with pytest.raises(UserError, match="task mixtures need a text-to-text objective"):
        run(compose([*arguments, *own]))
    with pytest.raises(UserError, match="leaves a new head untrained"):
        run(compose([*arguments, *own[:2], "finetune.epochs=0"]))
