"""Tasks fine-tuned on the way of a pre-training: the same bits at the end, one record, no weights left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from paribus.core.config import compose
from paribus.reports.tables.curves import Curve, average_effects, collect_curves, read_points, subtract
from paribus.runs.record import Record, read_record
from paribus.training.finetune import Snapshots, count_rounds
from paribus.training.run import run


@pytest.fixture
def asked(arguments: list[str], task_folder: Path) -> list[str]:
    """Overrides of a run of seconds with a task of two classes."""
    return [*arguments, "trainer.max_steps=8", "model.dropout=0.1", "task=sst2", f"tasks.sst2.path={task_folder}"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()}


def test_points_change_neither_the_end_nor_leave_weights(asked: list[str]) -> None:
    none = run(compose(asked))
    some = run(compose([*asked, "evaluation.task_points=4"]))
    assert none != some
    assert weights(none) == weights(some)
    first, second = record(none), record(some)
    assert first["metrics"] == second["metrics"]
    assert first["task_runs"] == second["task_runs"]
    assert "task_points" not in first
    assert [point["step"] for point in second["task_points"]] == [2, 4, 6]
    assert all(point["task_runs"][0]["metrics"].keys() == {"accuracy"} for point in second["task_points"])
    assert [path.name for path in sorted((some / "points" / "2").iterdir())] == ["point.json"]


def test_a_point_is_what_a_shorter_run_with_a_constant_rate_ends_with(asked: list[str]) -> None:
    constant = [*asked, "lr_schedule=constant", "lr_schedule.warmup=0"]
    long = record(run(compose([*constant, "evaluation.task_points=2"])))
    short = record(run(compose([*constant, "trainer.max_steps=4"])))
    assert long["task_points"][0]["task_runs"] == short["task_runs"]
    assert long["task_points"][0]["tokens"] == short["budget"]["input_tokens"]


def test_a_point_is_fine_tuned_with_the_further_loss_of_the_end(asked: list[str]) -> None:
    further = ["finetune.replay=1.0", "finetune.forgetting=true", "finetune.keep=true"]
    constant = [*asked, "lr_schedule=constant", "lr_schedule.warmup=0", *further]
    long = run(compose([*constant, "evaluation.task_points=2"]))
    short = run(compose([*constant, "trainer.max_steps=4"]))
    tuned = "tuned/sst2-0.safetensors"
    assert (long / "points/4" / tuned).read_bytes() == (short / tuned).read_bytes()
    assert record(long)["task_points"][0]["task_runs"][0]["metrics"].keys() == {"accuracy"}


def test_points_are_numbers_of_tokens_too(asked: list[str]) -> None:
    kept = run(compose([*asked, "evaluation.task_points=[200,300]", "finetune.keep=true"]))
    points = record(kept)["task_points"]
    assert len(points) == 2
    assert all(point["tokens"] >= least for point, least in zip(points, (200, 300), strict=True))
    assert (kept / "points" / str(points[0]["step"]) / "model" / "model.safetensors").is_file()


def test_points_are_spaced_evenly_and_leave_out_the_end() -> None:
    assert Snapshots(4, 8, lambda step, tokens: None).at == {2, 4, 6}
    assert Snapshots(1, 8, lambda step, tokens: None).at == set()
    assert [count_rounds(points) for points in (0, 1, 4, [100, 200])] == [1, 1, 4, 3]


def test_curves_and_effects_hold_the_points(asked: list[str], tmp_path: Path) -> None:
    records: list[Record] = []
    for arm, rate in (("a", "0.15"), ("b", "0.4")):
        for seed in (0, 1):
            change = ["study=s", f"arm={arm}", f"seed={seed}", f"masking.rate={rate}", "evaluation.task_points=2"]
            found, _ = read_record(run(compose([*asked, *change])) / "result.json")
            assert found is not None
            records.append(found)
    curve = read_points(records[0])["sst2/accuracy after pre-training"]
    assert curve.values == [
        records[0].task_points[0].task_runs[0].metrics["accuracy"],
        records[0].metrics["sst2/accuracy"],
    ]
    effects = average_effects(collect_curves(records, ("a", "b"), [tmp_path / "runs"]), ("a", "b"), "a")
    assert effects["sst2/accuracy: difference from a"]["b"].n == 2
    assert "validation/mlm_loss: difference from a" in effects


def test_the_mean_over_tasks_has_a_curve_if_every_task_has_one(asked: list[str]) -> None:
    record, _ = read_record(run(compose([*asked, "evaluation.task_points=2"])) / "result.json")
    assert record is not None
    twice = []
    for point in record.task_points:
        other = tuple(replace(one, task="b", metrics={"f1": 0.25}) for one in point.task_runs)
        twice.append(replace(point, task_runs=(*point.task_runs, *other)))
    end = tuple(replace(one, task="b", metrics={"f1": 0.75}) for one in record.task_runs)
    both = replace(record, task_points=tuple(twice), task_runs=(*record.task_runs, *end))
    parts = read_points(both, ["sst2/accuracy", "b/f1"])
    first, second, mean = (parts[f"{name} after pre-training"] for name in ("sst2/accuracy", "b/f1", "mean"))
    assert mean.tokens == first.tokens
    assert mean.values == pytest.approx([(a + b) / 2 for a, b in zip(first.values, second.values, strict=True)])
    assert second.values == [0.25, 0.75]
    assert "mean after pre-training" not in read_points(record, ["sst2/accuracy", "b/f1"])


def test_differences_are_taken_at_the_same_points() -> None:
    base, near, late = Curve([10, 20], [1.0, 2.0]), Curve([10, 20.1], [2.0, 4.0]), Curve([15], [2.0])
    assert subtract(near, base) == Curve([10, 20.1], [1.0, 2.0])
    assert subtract(late, base) == Curve([15], [0.5])


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (["evaluation.task_points=-1"], "evaluation.task_points=-1 is out of bounds"),
        (["evaluation.task_points=often"], "how often tasks are fine-tuned"),
        (["evaluation.task_points=[1.5]"], "how often tasks are fine-tuned"),
        (["evaluation.task_points=2", "members=2"], "members makes an ensemble"),
        (["evaluation.task_points=2", "finetune.ensemble=2"], "finetune.ensemble makes an ensemble"),
        (["evaluation.task_points=2", "~tasks.sst2"], "there is no task"),
    ],
)
def test_points_that_cannot_be_are_refused(
    asked: list[str], change: list[str], cause: str, refused_run: Callable[..., str]
) -> None:
    assert cause in refused_run(*asked, *change)


def test_a_task_has_its_own_rate_and_epochs(asked: list[str]) -> None:
    plain = record(run(compose(asked)))
    own = record(run(compose([*asked, "+finetune.each.sst2={epochs: 2, lr: 1e-3}"])))
    same = record(run(compose([*asked, "finetune.epochs=2", "finetune.optimizer.lr=1e-3"])))
    assert own["task_runs"] == same["task_runs"]
    assert own["pretrain_signature"] == plain["pretrain_signature"]
    assert own["signature"] not in (plain["signature"], same["signature"])


@pytest.mark.parametrize("each", ["mnli={epochs: 2}", "sst2={rate: 2}", "sst2={epochs: 0}", "sst2={lr: 0.0}", "sst2=3"])
def test_odd_settings_of_a_task_are_refused(asked: list[str], each: str, refused_run: Callable[..., str]) -> None:
    assert "finetune.each." in refused_run(*asked, f"+finetune.each.{each}")
