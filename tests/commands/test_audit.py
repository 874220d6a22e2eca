"""`paribus audit`: what stands behind a table, and what does not follow; `--reproduce`: the same bits again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from fake_site import made, sweep_file
from text_to_text import T5

from paribus.commands.cli import main
from paribus.core.checksums import seal
from paribus.core.config import compose
from paribus.reports.audit import count_numbers, find_differences


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return made(tmp_path, ["smoke"])


def run_of(user: Path, arm: str, seed: int = 0) -> Path:
    return next((user / "runs/roberta_table1" / arm).glob(f"seed{seed}-*"))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["audit", "sweeps/roberta_table1.yaml", "scale=smoke", *arguments])
    return status, capsys.readouterr().out


def test_a_table_in_order(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = said(capsys)
    assert "numbers match the records" in text
    assert "dynamic: masking.schedule = Dynamic" in text
    assert "static_x10: 800,000 input_tokens" in text
    assert "text: abc (all 20 runs)" in text
    assert "✗" not in text
    assert status == 0


def test_a_sweep_file_that_changed_after_the_runs(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = user / "sweeps/roberta_table1.yaml"
    changed = path.read_text().replace("margin 0.5 points", "margin 5 points")
    path.write_text(changed + "scales: {smoke: {revised: The margin.}}\n")
    status, text = said(capsys)
    assert status == 1
    assert "Changed after results had been seen: The margin." in text
    assert "✗ made with a different version of the sweep file: dynamic/seed0" in text
    assert "[margin]: 0.005 in the table, 0.05 from the records" in text


def test_an_edited_table_is_named_by_its_number(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = user / "reports/roberta_table1/smoke/table.json"
    table = json.loads(path.read_text())
    cell = next(arm for arm in table["arms"] if arm["name"] == "dynamic")["metrics"]["mlm_loss"]
    right, cell["mean"] = cell["mean"], 1.5
    path.write_text(json.dumps(table))
    _, text = said(capsys)
    assert f"arms[dynamic][metrics][mlm_loss][mean]: 1.5 in the table, {right} from the records" in text


def test_an_edited_record_and_a_hidden_difference(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = run_of(user, "static", 1) / "result.json"
    record.write_text(record.read_text().replace('"mlm_loss": 5', '"mlm_loss": 4'))
    config = run_of(user, "dynamic") / "config.yaml"
    values = yaml.safe_load(config.read_text())
    values["optimizer"]["lr"] = 0.5
    config.write_text(yaml.safe_dump(values))
    status, text = said(capsys)
    assert status == 1
    assert "edited after the run (checksum)" in text
    assert "✗ dynamic was trained with optimizer.lr = 0.5 (baseline: " in text


def test_runs_of_a_tree_with_uncommitted_changes_are_named(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (1, 3):
        place = run_of(user, "static", seed) / "result.json"
        record = {**json.loads(place.read_text()), "git": {"commit": "0" * 40, "dirty": seed == 3}}
        place.write_text(json.dumps(seal(record)))
    main(["table", "sweeps/roberta_table1.yaml", "scale=smoke"])
    assert "- 1 of 20 runs were made from a tree with uncommitted changes" in capsys.readouterr().out
    status, text = said(capsys)
    assert status == 1
    assert "✗ 1 of 20 runs from a tree with uncommitted changes: static/seed3\n" in text


def test_evaluation_texts_that_are_trained_on_are_counted(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in both sets" not in said(capsys)[1]
    path = run_of(user, "dynamic") / "result.json"
    counted = {"trec": {"examples": {"train": 90, "validation": 30}, "leaked": {"validation": 2}}}
    path.write_text(json.dumps(seal({**json.loads(path.read_text()), "task_examples": counted})))
    text = said(capsys)[1]
    assert "## Tasks: texts that are in both sets" in text
    assert "- Evaluation texts of trec (validation) that are also in its training set: 2 of 30." in text


def test_a_seed_of_two_precisions_is_named(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiles = {("static", 1): "32-true", ("dynamic", 1): "bf16-mixed", ("static", 2): "32-true"}
    for (arm, seed), precision in profiles.items():
        place = run_of(user, arm, seed) / "result.json"
        place.write_text(json.dumps(seal({**json.loads(place.read_text()), "profile": {"precision": precision}})))
    main(["table", "sweeps/roberta_table1.yaml", "scale=smoke"])
    assert "Seed 1 has runs in 32-true and bf16-mixed" in capsys.readouterr().out
    status, text = said(capsys)
    assert status == 1
    assert "✗ runs of seed 1 in different precisions: static/seed1 in 32-true; dynamic/seed1 in bf16-mixed\n" in text
    assert "seed 2 in different" not in text


def test_budgets_and_texts_apart(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = run_of(user, "static", 2)
    record = json.loads((place / "result.json").read_text())
    record["budget"]["input_tokens"] = 700_000
    record["data"]["fingerprint"] = "other"
    (place / "result.json").write_text(json.dumps(seal(record)))
    _, text = said(capsys)
    assert "budgets differ by more than 1% in input_tokens: static/seed2 used 700000 and" in text
    assert "runs on different texts: abc, other" in text
    assert "text: other (static/seed2)" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "audit needs a SWEEP|RUN"),
        (["nosuch"], "unknown sweep 'nosuch'"),
        (["sweeps/roberta_table1.yaml", "scael=x"], "audit has no option 'scael=': did you mean scale=?"),
        (["sweeps/roberta_table1.yaml", "scale=smoke", "out=away"], None),
        (["--reproduce"], "audit needs a SWEEP|RUN"),
        (["--reproduce", "nosuch"], "no finished run 'nosuch'"),
        (["--reproduce", "x", "scale=cpu"], "scale= does not apply to --reproduce"),
    ],
)
def test_bad_input(user: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str | None) -> None:
    status = main(["audit", *arguments])
    out, err = capsys.readouterr()
    assert (status, words in err) == (2, True) if words else (status, "is not a table" in out) == (1, True)


def test_hidden_differences_of_a_sweep_stop_it(user: Path, refusal: Callable[..., str]) -> None:
    path = sweep_file(user)
    content = yaml.safe_load(path.read_text())
    content["arms"]["dynamic"].append("optimizer.lr=0.5")
    path.write_text(yaml.safe_dump(content))
    assert "optimizer.lr" in refusal("audit", str(path), "scale=smoke")


def test_differing_walks_names_and_lengths() -> None:
    kept = {"arms": [{"name": "a", "n": 3}], "columns": ["x"]}
    assert find_differences(kept, kept) == []
    assert find_differences(kept, {"arms": [{"name": "a", "n": 4}], "columns": ["x", "y"]}) == [
        "arms[a][n]: 3 in the table, 4 from the records",
        "columns: 1 entries in the table, 2 entries from the records",
    ]
    assert count_numbers(kept) == 1


@pytest.mark.parametrize(("own", "metric"), [([], "mlm_loss"), (T5, "denoising_loss")])
def test_a_real_run_comes_out_with_the_same_bits(
    own: list[str],
    metric: str,
    arguments: list[str],
    cache: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    refusal: Callable[..., str],
) -> None:
    from paribus.training.run import run

    monkeypatch.chdir(tmp_path)
    folder = run(compose([*arguments, *own, "task=none", "logger=none", "study=mine"]))
    again = ["audit", "--reproduce", str(folder), f"paths.cache={cache}"]
    assert main(again) == 0
    text = capsys.readouterr().out
    assert "✓ metrics: the same bits" in text
    assert "model.safetensors: the same bits" in text
    assert "✗" not in text
    record = json.loads((folder / "result.json").read_text())
    record["metrics"][metric] += 1e-12
    (folder / "result.json").write_text(json.dumps(seal(record)))
    assert main(again) == 1
    assert f"✗ metrics[{metric}]:" in capsys.readouterr().out
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["masking"]["rate"] = 0.3
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert "the same config is now the run" in refusal(*again)
