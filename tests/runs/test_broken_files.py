"""What is broken on disk: it is mended, or refused by name, and it never blocks what is to be done."""

from __future__ import annotations

import json
from pathlib import Path

import fake_site
import optuna
import pytest
from fake_records import study
from quick_sweeps import Ask, made_record, plan

from paribus.commands.cli import main
from paribus.core.checksums import SUMS, seal
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.reports.compare import read_answers
from paribus.runs.folder import CURVES, GOLD, RECORD, RunFolder
from paribus.runs.gold import Gold, read_gold, write_gold
from paribus.runs.manifest import Manifest, read_manifest, write_manifest
from paribus.runs.record import read_record
from paribus.sweeps.request import Request
from paribus.sweeps.run import run_sweep
from paribus.sweeps.search.storage import open_storage
from paribus.sweeps.status import read_status
from paribus.training.callbacks import append_line
from paribus.training.description import Run
from paribus.training.run import run

SHORT = ["trainer.max_steps=2", "task=none", "logger=none"]


@pytest.mark.parametrize("torn", [b'{"op_code":0,"worker_id":"', b"\0" * 3000, b'{"a": 1' * 20_000])
def test_a_journal_with_a_torn_line_goes_on(torn: bytes, tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    made = optuna.create_study(study_name="s", storage=open_storage(f"journal:{journal}"))
    made.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    whole = journal.read_bytes()
    journal.write_bytes(whole + torn)
    again = optuna.load_study(study_name="s", storage=open_storage(f"journal:{journal}"))
    assert journal.read_bytes() == whole
    journal.write_bytes(whole + torn)  # torn while this one is open: the next that writes cuts it
    again.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert [trial.state.name for trial in again.trials] == ["COMPLETE"] * 3
    assert all(map(json.loads, journal.read_text().splitlines()))


def test_a_spoilt_record_is_made_again(arguments: list[str]) -> None:
    config = compose([*arguments, *SHORT])
    path = run(config) / RECORD
    kept = json.loads(path.read_text())
    older = {key: value for key, value in kept.items() if key not in ("checksum", "data")}
    edited = path.read_text().replace(f'"mlm_loss": {kept["metrics"]["mlm_loss"]}', '"mlm_loss": 1.25')
    for spoilt in (edited, path.read_text()[:100], "", "[]", json.dumps(seal(older)), "\0" * 50, "[" * 100_000):
        path.write_text(spoilt)
        run(config)
        record, why = read_record(path)
        assert record is not None, why
        assert json.loads(path.read_text())["metrics"] == kept["metrics"]


def test_a_sweep_with_a_diverged_run_says_so_every_time(ask: Ask, capfd: pytest.CaptureFixture[str]) -> None:
    request: Request = ask("seeds=0", "arms=dynamic,static", scale="test")

    def train(run: Run) -> None:
        odd = {"status": "diverged", "error": "loss inf"} if run.arm == "static" else {}
        write_json(run.identity.folder / RECORD, made_record(run, **odd))

    for _ in range(2):
        assert run_sweep(request, plan=plan, train=train) == 1
        said = capfd.readouterr().err
        assert "1/2 done, 1 diverged" in said
        assert "✗ diverged and left out of the table's means: static/seed0" in said
    assert read_status(request).summary().startswith("1/2 done, 1 diverged")


def test_the_report_has_a_place_for_a_diverged_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fake_site.made(tmp_path, ["smoke"])
    folder = next(path.parent for path in sorted(tmp_path.rglob(RECORD)) if "static/" in str(path))
    record = json.loads((folder / RECORD).read_text())
    for key in ("metrics", "task_runs", "budget", "baselines", "checksum"):
        record.pop(key, None)
    (folder / RECORD).write_text(json.dumps(seal({**record, "status": "diverged", "error": "loss inf"})))
    assert len(study()) > 3
    assert main(["table", "sweeps/roberta_table1.yaml", "scale=smoke"]) == 0
    assert main(["report", "paths.cache=cache"]) == 0
    assert "diverged" in (tmp_path / "reports/roberta_table1/smoke/table.md").read_text()


def test_a_curve_holds_no_number_that_json_lacks(tmp_path: Path) -> None:
    append_line(tmp_path / "metrics.jsonl", {"step": 3, "loss": float("nan"), "norm": float("inf"), "lr": 0.5})
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 3, "lr": 0.5}\n'


def damage(path: Path, kind: str, other: bytes = b"") -> None:
    """Break a file in place: cut it, empty it, flip a bit in its middle, fill it with noise, put another one there."""
    content = bytearray(path.read_bytes())
    if kind == "flip":
        content[len(content) // 2] ^= 1
    path.unlink()  # it may be a link to the file of another run
    path.write_bytes(
        {"cut": bytes(content[: len(content) // 2]), "empty": b"", "flip": bytes(content), "other": other}.get(
            kind, bytes(len(content))
        )
    )


CACHED = ("ids.bin", "meta.json", "word_start.bin", "tokenizer.json", "summary.json", "train.parquet", "fingerprints/")
DAMAGES = ("cut", "empty", "flip", "zero", "other", "gone")


@pytest.fixture
def tuned(arguments: list[str], task_folder: Path, tmp_path: Path) -> list[str]:
    """Overrides of a run with a task, whose cache is its own."""
    own = [text for text in arguments if not text.startswith("paths.cache=")]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.epochs=1", "logger=none"]
    return [*own, f"paths.cache={tmp_path / 'cache'}", "trainer.max_steps=2", *task]


def test_what_is_damaged_in_the_cache_is_built_again(
    tuned: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = json.loads((run(compose(tuned)) / RECORD).read_text())
    for turn, name in enumerate(CACHED):
        found = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file() and name in str(path))
        kind = DAMAGES[turn % len(DAMAGES)]
        capfd.readouterr()
        for path in found:
            path.unlink() if kind == "gone" else damage(path, kind, b"{}")
        assert found, name
        again = compose([*tuned, f"paths.runs={tmp_path / name.strip('/')}"])
        record = json.loads((run(again) / RECORD).read_text())
        assert record["metrics"] == wanted["metrics"], (name, kind)
        assert record["signature"] == wanted["signature"]
        said = capfd.readouterr().err
        assert kind == "gone" or "is damaged" in said, (name, kind, said)


@pytest.mark.parametrize("kind", ["cut", "flip", "zero"])
def test_what_is_damaged_in_a_run_is_done_again(
    kind: str, tuned: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = run(compose(tuned))
    wanted = json.loads((folder / RECORD).read_text())
    for name in ("model/model.safetensors", "model/tokenizer.json", "pretrain.json", "task_runs.jsonl"):
        damage(folder / name, kind)
        (folder / RECORD).unlink()
        capfd.readouterr()
        run(compose(tuned))
        record = json.loads((folder / RECORD).read_text())
        assert (record["metrics"], record["task_runs"]) == (wanted["metrics"], wanted["task_runs"]), name
        assert "damaged" in capfd.readouterr().err, name


@pytest.mark.parametrize("name", ["pretrain.json", "task_runs.jsonl", "result.json", "model/model.safetensors"])
def test_the_file_of_another_run_is_not_taken_for_its_own(name: str, tuned: list[str]) -> None:
    folder, other = run(compose(tuned)), run(compose([*tuned, "seed=1"]))
    wanted = json.loads((folder / RECORD).read_text())
    content = (other / name).read_bytes()
    assert content != (folder / name).read_bytes()
    if name == "task_runs.jsonl":  # so small a run scores the same
        line = json.loads(content)
        content = json.dumps(seal({**line, "metrics": {"accuracy": 0.123}})).encode()
    (folder / name).unlink()  # it may be a link
    (folder / name).write_bytes(content)
    if name != RECORD:
        (folder / RECORD).unlink()
    run(compose(tuned))
    record = json.loads((folder / RECORD).read_text())
    assert {key: record[key] for key in ("metrics", "task_runs")} == {
        key: wanted[key] for key in ("metrics", "task_runs")
    }


@pytest.mark.parametrize("kind", ["zero", "other", "gone"])
def test_answers_that_are_damaged_are_given_again(
    kind: str, tuned: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = run(compose(tuned))
    path = folder / GOLD
    wanted = path.read_bytes()
    if kind == "other":  # as a run of the same task would have it
        write_gold(folder, {name: Gold(1 - own.gold, ~own.right) for name, own in read_gold(folder).items()})
    else:
        path.unlink() if kind == "gone" else damage(path, kind)
    with pytest.raises(UserError, match=r"gold\.npz"):
        read_answers(str(folder), [], None)
    (folder / RECORD).unlink()
    run(compose(tuned))
    assert path.read_bytes() == wanted
    assert f"{GOLD} is damaged or from another run; its fine-tuning runs are repeated" in capfd.readouterr().err


def test_learning_curves_are_those_that_the_run_wrote(tuned: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    folder, other = run(compose(tuned)), run(compose([*tuned, "seed=1"]))
    record, _ = read_record(folder / RECORD)
    assert record
    wanted = RunFolder(folder).read_curve_lines(record)
    assert wanted
    damage(folder / CURVES, "other", (other / CURVES).read_bytes())
    assert RunFolder(folder).read_curve_lines(record) == []
    assert "is damaged or from another run; its curves are left out" in capfd.readouterr().err
    (folder / RECORD).unlink()
    run(compose(tuned))
    assert f"{CURVES} is damaged; pre-training starts over" in capfd.readouterr().err
    assert RunFolder(folder).read_curve_lines(record) == wanted


def test_a_model_without_its_checksums_is_trained_again(tuned: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    folder = run(compose(tuned))
    wanted = (folder / "model/model.safetensors").read_bytes()
    for name in (SUMS, "model.safetensors"):
        (folder / "model" / name).unlink()
    (folder / RECORD).unlink()
    run(compose(tuned))
    assert (folder / "model/model.safetensors").read_bytes() == wanted
    assert f"{SUMS} is damaged; pre-training starts over" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["cut", "flip", "zero", "empty"])
def test_a_damaged_checkpoint_is_not_resumed_from(
    kind: str, arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = [*arguments, "task=none", "logger=none", "trainer.max_steps=6", "trainer.max_epochs=null"]
    own += ["profile.checkpoint_steps=2", "evaluation.points=6"]
    wanted = json.loads((run(compose(own)) / RECORD).read_text())["metrics"]
    again = compose([*own, f"paths.runs={tmp_path / 'again'}"])

    class Stop:
        def report(self, step: int, values: object, tokens: int = 0) -> bool:
            return step >= 4

    with pytest.raises(optuna.TrialPruned):
        run(again, Stop())
    (last,) = (tmp_path / "again").rglob("last.ckpt")
    damage(last, kind)
    assert json.loads((run(again) / RECORD).read_text())["metrics"] == wanted
    assert "is damaged; training starts over" in capfd.readouterr().err


def test_a_damaged_manifest_is_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = Manifest("h", [], {"a/seed0": "1"}, {"a": 5})
    write_manifest(tmp_path, "s", "smoke", made)
    path = tmp_path / "s" / "smoke.json"
    assert read_manifest(tmp_path, "s", "smoke") == made
    whole = path.read_text()
    for spoilt in (whole.replace("5", "6"), whole[:40], "[]", "3", "{}", "[" * 100_000, json.dumps({"runs": []})):
        path.write_text(spoilt)
        assert read_manifest(tmp_path, "s", "smoke") is None
        assert "is damaged and ignored" in capfd.readouterr().err
    older = {"sweep_hash": "h", "overrides": [], "runs": {"a/seed0": "1"}, "steps": {"a": 5}}
    path.write_text(json.dumps(older))
    assert read_manifest(tmp_path, "s", "smoke") == made
    path.write_text(json.dumps({**older, "runs": {"../../x/seed0": "1"}}))
    assert read_manifest(tmp_path, "s", "smoke") is None
