"""The store: what counts as a record, which records belong together, what a folder's state is."""

from __future__ import annotations

import fcntl
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kept_records import put, record

from paribus.core.checksums import seal, verify
from paribus.core.files import write_json
from paribus.core.jsonable import from_json
from paribus.runs import store
from paribus.runs.folder import FAILED, RECORD, RunFolder, find_finished, read_last_step, read_state, write_failure
from paribus.runs.manifest import Manifest, read_manifest, write_manifest
from paribus.runs.record import Record, read_record


def test_seal_sees_every_edit() -> None:
    made = record()
    assert verify(made)
    assert verify(json.loads(json.dumps(made)))
    assert seal(made) == made
    assert not verify({**made, "metrics": {"mlm_loss": 4.9}})
    assert not verify({key: value for key, value in made.items() if key != "checksum"})
    assert not verify({**made, "metrics": {"mlm_loss": float("nan")}})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"schema": 1, "signat', "half-written"),
        ("[1, 2]", "not the record of a run"),
        ('{"loss": 3}', "not the record of a run"),
        (json.dumps(record(schema=99)), "schema 99"),
        (json.dumps({**record(), "seed": 7}), "edited after the run"),
        (json.dumps(record(metrics=None)), "'metrics' is missing"),
        (json.dumps(record(status="fine")), "status fine"),
        (json.dumps(record(study="other")), "a record of the study other"),
    ],
)
def test_what_is_no_whole_record_is_named_and_left_out(tmp_path: Path, content: str, why: str) -> None:
    put(tmp_path, record(seed=1))
    bad = tmp_path / "s" / "dynamic" / "seed0-aa" / RECORD
    bad.parent.mkdir(parents=True)
    bad.write_text(content)
    found = store.find_records("s", "smoke", [tmp_path])
    assert [made.seed for made in found.records] == [1]
    assert len(found.left_out) == 1
    assert str(bad) in found.left_out[0]
    assert why in found.left_out[0]


def test_other_scales_are_left_out_without_a_word(tmp_path: Path) -> None:
    put(tmp_path, record(scale="cpu"))
    assert store.find_records("s", "smoke", [tmp_path]) == ([], [])


def test_a_finished_run_hides_its_failure_and_its_copies(tmp_path: Path) -> None:
    one, two = tmp_path / "runs", tmp_path / "kept"
    put(one, record(status="failed"), FAILED)
    put(two, record())
    found = store.find_records("s", "smoke", [one, two]).records
    assert [made.status for made in found] == ["done"]
    put(one, record(arm="static", status="failed", error="no memory"), FAILED)
    assert [made.status for made in store.find_records("s", "smoke", [one, two]).records] == ["done", "failed"]


def test_the_manifest_says_which_signatures_belong_together(tmp_path: Path) -> None:
    put(tmp_path, record(signature="old"))
    put(tmp_path, record(signature="new"))
    put(tmp_path, record(seed=1, signature="old1"))
    assert len(store.find_records("s", "smoke", [tmp_path]).records) == 3, "without a manifest nothing is chosen"
    write_manifest(tmp_path, "s", "smoke", Manifest("h", ["a=1"], {"dynamic/seed0": "new"}, {"dynamic": 9}))
    assert [made.signature for made in store.find_records("s", "smoke", [tmp_path]).records] == ["new"]


def test_a_manifest_grows_for_the_same_sweep_and_is_replaced_for_another(tmp_path: Path) -> None:
    first = Manifest("h", ["a=1"], {"dynamic/seed0": "x"}, {"dynamic": 9})
    write_manifest(tmp_path, "s", "smoke", first)
    grown = write_manifest(tmp_path, "s", "smoke", first._replace(runs={"dynamic/seed1": "y"}))
    assert grown.runs == {"dynamic/seed0": "x", "dynamic/seed1": "y"}
    assert read_manifest(tmp_path, "s", "smoke") == grown
    other = first._replace(overrides=["a=2"], runs={"dynamic/seed0": "z"})
    assert write_manifest(tmp_path, "s", "smoke", other).runs == {"dynamic/seed0": "z"}
    (tmp_path / "s" / "smoke.json").write_text("{")
    assert read_manifest(tmp_path, "s", "smoke") is None


def test_a_manifest_keeps_the_tuning_of_arms_that_another_command_ran(tmp_path: Path) -> None:
    one, other = ({"spec": {"trials": 2}, "arms": {arm: {"chosen": {}, "trials": []}}} for arm in "ab")
    write_manifest(tmp_path, "s", "smoke", Manifest("h", [], {}, {}, tuning=one))
    both = write_manifest(tmp_path, "s", "smoke", Manifest("h", [], {}, {}, tuning=other))
    assert list(both.tuning["arms"]) == ["a", "b"]
    anew = other | {"spec": {"trials": 3}}
    assert write_manifest(tmp_path, "s", "smoke", Manifest("h", [], {}, {}, tuning=anew)).tuning == anew


def test_commands_that_write_one_manifest_together_lose_no_run(tmp_path: Path) -> None:
    def write(number: int) -> None:
        write_manifest(tmp_path, "s", "smoke", Manifest("h", [], {f"a/seed{number}": "x"}, {}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    found = read_manifest(tmp_path, "s", "smoke")
    assert found is not None
    assert len(found.runs) == 40


def test_states_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert read_state(folder)[0] == "missing"
    folder.mkdir()
    (folder / "signature").write_text("aa\n")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert read_state(folder)[0] == "running"
    assert read_state(folder)[0] == "stopped"
    failed = Record(signature="aa", study="s", arm="a", seed=0, status="failed", scale="smoke")
    write_failure(folder, failed, "why")
    assert read_state(folder)[0] == "failed"
    assert find_finished(folder, "aa") is None, "a failed run is tried again"
    write_json(folder / RECORD, record(status="diverged"))
    assert read_state(folder)[0] == "diverged"
    assert find_finished(folder, "aa") is not None
    assert find_finished(folder, "bb") is None


def test_a_failure_is_a_whole_record(tmp_path: Path) -> None:
    run = Record(signature="aa", study="s", arm="a", seed=0, status="failed", scale="smoke", sweep_hash="h")
    write_failure(tmp_path, run, "out of memory")
    made, why = read_record(tmp_path / FAILED)
    assert why == ""
    assert made is not None
    assert (made.status, made.error) == ("failed", "out of memory")


def test_keep_copies_the_record_without_weights(tmp_path: Path) -> None:
    folder = put(tmp_path / "runs", record())
    for name in ("config.yaml", "metrics.jsonl", "model.bin"):
        (folder / name).write_text("seed: 0\n")
    kept = store.keep(folder, tmp_path / "results" / "smoke", "s")
    target = tmp_path / "results" / "smoke" / "s" / "dynamic" / "seed0-aa"
    assert kept == RunFolder(target)
    assert sorted(path.name for path in target.iterdir()) == ["config.yaml", "metrics.jsonl", "result.json"]
    assert store.keep(folder, tmp_path / "results" / "smoke", "s") == kept
    assert store.find_records("s", "smoke", [tmp_path / "results" / "smoke"]).records == [from_json(Record, record())]


def test_last_step_survives_a_half_written_line(tmp_path: Path) -> None:
    assert read_last_step(tmp_path) == 0
    lines = "".join(json.dumps({"step": step, "x": "y" * 90}) + "\n" for step in range(200))
    (tmp_path / "metrics.jsonl").write_text(lines + '{"step": 20')
    assert read_last_step(tmp_path) == 199


def test_a_kept_run_names_no_place_of_the_machine(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "s" / "a" / "seed0-abc"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(
        f"paths: {{cache: {tmp_path}}}\ncorpus: {{path: {tmp_path}/novels}}\ntasks: {{t: {{path: {tmp_path}/sst2}}}}\n"
    )
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    (run / "result.json").write_text("{}\n")
    kept = store.keep(run, tmp_path / "results", "s")
    text = (kept.read("config.yaml") or b"").decode()
    assert str(tmp_path) not in text
    assert "path: novels" in text
    assert "path: sst2" in text
    given = [f"corpus.path={tmp_path}/novels", "seed=1", "paths.cache=/x"]
    assert store.portable_overrides(given) == ["corpus.path=novels", "seed=1"]
