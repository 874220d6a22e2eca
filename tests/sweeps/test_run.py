"""`paribus run` with runs that take no time: what is found, what failed, what is tried again, what is kept."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quick_sweeps import Ask, Commands, made_record, plan

from paribus.core.errors import UserError
from paribus.core.files import write_json, write_text
from paribus.runs import store
from paribus.runs.folder import POINTER, RECORD, shelf_of
from paribus.runs.manifest import Manifest, read_manifest, write_manifest
from paribus.sweeps.expand import expand
from paribus.sweeps.request import parse
from paribus.sweeps.run import run_sweep, train_command
from paribus.sweeps.status import read_status
from paribus.training.description import Run
from paribus.training.profile import PRECISIONS, choose_precision
from paribus.training.sharing import locked


def test_runs_go_on_past_a_failure_which_is_named_recorded_and_tried_again(
    ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    request = ask("seeds=0,1", "slots=2")
    commands = Commands(request, tmp_path / "made")
    commands.flag("dynamic/seed0").touch()
    assert run_sweep(request, plan=plan, command=commands) == 1
    assert commands.called == [f"{arm}/seed{seed}" for seed in (0, 1) for arm in ("static_x10", "dynamic", "static")]
    said = capfd.readouterr().err
    assert "✗ dynamic/seed0 failed: planted failure: mend it (log: " in said
    assert "5/6 done, 1 failed" in said
    records = store.find_records("roberta_table1", "smoke", request.roots).records
    failed = [made for made in records if made.status == "failed"]
    assert [(made.arm, made.seed) for made in failed] == [("dynamic", 0)]
    assert failed[0].error == "planted failure: mend it"
    assert read_status(request).cells["dynamic/seed0"].state == "failed"

    commands.flag("dynamic/seed0").unlink()
    commands.called.clear()
    assert run_sweep(request, plan=plan, command=commands) == 0
    assert commands.called == ["dynamic/seed0"]
    assert "✓ dynamic/seed1 found (" in capfd.readouterr().err
    found = store.find_records("roberta_table1", "smoke", request.roots)
    assert {made.status for made in found.records} == {"done"}
    assert found.left_out == []
    assert run_sweep(request, plan=plan, command=commands) == 0
    assert commands.called == ["dynamic/seed0"], "the third time nothing is left"


def test_arms_on_the_plateau_are_named_at_the_end(ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    request = ask("seeds=0,1", "slots=2")
    losses = {
        "static_x10/seed0": 4.0,
        "dynamic/seed0": 4.0,
        "dynamic/seed1": 5.5,
        "static/seed0": 5.9,
        "static/seed1": 7.0,
    }
    commands = Commands(request, tmp_path / "made", losses)
    for _ in range(2):  # of new runs, and of those that are found
        assert run_sweep(request, plan=plan, command=commands) == 0
        said = capfd.readouterr().err
        told = "runs still on the plateau of a trivial model: dynamic (1 of 2), static (2 of 2). "
        assert f"{told}These arms decide nothing until they are trained longer; `paribus table` says how long." in said
        left = "static_x10 after 50% of its tokens, dynamic after 50% of its tokens."
        assert f"left the plateau of a trivial model: {left}\n" in said
    short = request._replace(arms=("static_x10",))
    assert run_sweep(short, plan=plan, command=commands) == 0
    assert "still on the plateau" not in capfd.readouterr().err


def test_a_seed_is_not_finished_in_another_precision_unasked(ask: Ask, tmp_path: Path) -> None:
    here = choose_precision("auto", "cpu")
    other = next(precision for precision in PRECISIONS if precision != here)
    request = ask("seeds=0,1", "slots=2", "profile.precision=auto")
    expanded = expand(request)
    job = expanded.jobs[0]
    found = made_record(expanded.run_of(job), profile={"precision": other})
    write_json(expanded.identity(job).folder / RECORD, found)
    commands = Commands(request, tmp_path / "made")
    with pytest.raises(UserError) as refused:
        run_sweep(request, plan=plan, command=commands)
    told = f"static_x10/seed0 was trained in {other}, and dynamic/seed0 would be trained in {here} here"
    advice = f"add profile.precision={other} to train both alike, or profile.precision={here} to mix them"
    assert str(refused.value) == f"{told}: {advice}"
    assert commands.called == []
    fresh = ask("seed=1", "profile.precision=auto")
    assert run_sweep(fresh, plan=plan, command=commands) == 0, "a seed of its own may differ"
    asked = ask("seeds=0,1", "slots=2", f"profile.precision={here}")
    assert run_sweep(asked, plan=plan, command=commands) == 0
    assert {"dynamic/seed0", "static/seed0"} < set(commands.called)


def begun(said: str) -> list[str]:
    return [line.split()[1] for line in said.splitlines() if line.startswith("▶")]


def test_two_sweepers_share_the_work(ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run that another sweeper trains is left to it until nothing else is to do, and is then found finished."""
    request = ask("seeds=0", "slots=2")
    commands = Commands(request, tmp_path / "made")
    other = next(job for job in commands.expanded.jobs if job.arm == "static_x10")
    identity = commands.expanded.identity(other)
    with locked(identity.folder, other.label):
        sweeper = threading.Thread(target=run_sweep, args=(request,), kwargs={"plan": plan, "command": commands})
        sweeper.start()
        while len(list(request.runs.rglob(RECORD))) < 2:
            assert sweeper.is_alive()
            time.sleep(0.02)
    sweeper.join()
    assert begun(capfd.readouterr().err) == ["dynamic/seed0", "static/seed0", "static_x10/seed0"]


def test_slots_do_different_pre_trainings_before_they_wait_for_one(
    arguments: list[str], task_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [text for text in arguments if not text.startswith(("scale=", "profile.", "paths.runs="))]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    asked = ["arms=cls,mean", "seeds=0,1", "slots=2", "scale=smoke", f"runs={tmp_path / 'runs'}"]
    request = parse("run", ["heads", *given, *asked, *task])
    assert run_sweep(request, plan=plan, command=Commands(request, tmp_path / "made")) == 0
    assert set(begun(capfd.readouterr().err)[:2]) == {"cls/seed0", "cls/seed1"}


def test_slots_do_different_fine_tunings_before_they_wait_for_one(
    equal_arms: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    request = parse("run", [*equal_arms, "slots=2", f"runs={tmp_path / 'runs'}"])
    commands = Commands(request, tmp_path / "made")
    for job in commands.expanded.jobs:  # their pre-training, which is none, is over
        write_text(shelf_of(request.runs, commands.expanded.identity(job).pretrain) / POINTER, "elsewhere")
    assert run_sweep(request, plan=plan, command=commands) == 0
    assert begun(capfd.readouterr().err)[:2] == ["scratch/seed0", "scratch/seed1"]


def test_finished_records_are_kept_on_request_and_found_without_their_runs(
    ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    request = ask("seeds=0", "slots=2", "arms=dynamic,static", f"results={kept}")
    commands = Commands(request, tmp_path / "made")
    assert run_sweep(request, plan=plan, command=commands) == 0
    folders = sorted(path.parent for path in kept.rglob(RECORD))
    assert [folder.parent.name for folder in folders] == ["dynamic", "static"]
    assert {folder.parents[1] for folder in folders} == {kept / "smoke" / "roberta_table1"}

    elsewhere = request._replace(runs=tmp_path / "fresh")
    commands.called.clear()
    assert run_sweep(elsewhere, plan=plan, command=commands) == 0
    assert commands.called == []
    assert "2 found, 0 new" in capfd.readouterr().err
    assert len(store.find_records("roberta_table1", "smoke", [kept / "smoke"]).records) == 2


def test_a_run_without_a_record_of_its_signature_has_failed(
    ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    request = ask("seeds=0", "arms=static")
    assert run_sweep(request, plan=plan, command=lambda job: [sys.executable, "-S", "-c", "pass"]) == 1
    assert "no record with this signature" in capfd.readouterr().err


def test_scale_test_trains_in_process_and_survives_errors(
    ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    request = ask("seeds=0", scale="test")
    trained = []

    def train(run: Run) -> None:
        trained.append(run.arm)
        if run.arm == "static_x10":
            raise UserError("no text", "give one")
        if run.arm == "dynamic":
            raise ZeroDivisionError("by zero")
        write_json(run.identity.folder / RECORD, made_record(run, status="diverged", error="loss inf"))

    assert run_sweep(request, plan=plan, train=train) == 1
    assert trained == ["static_x10", "dynamic", "static"]
    said = capfd.readouterr().err
    assert "static_x10/seed0 failed: no text: give one" in said
    assert "dynamic/seed0 failed: ZeroDivisionError: by zero" in said
    assert "✗ static/seed0 diverged" in said
    cells = read_status(request).cells
    assert [cells[f"{arm}/seed0"].state for arm in trained] == ["failed", "failed", "diverged"]


def test_unequal_budgets_and_undeclared_differences_stop_before_any_run(ask: Ask, tmp_path: Path) -> None:
    def unequal(config: Any) -> dict[str, Any]:
        return {**plan(config), "tokens": 120 if config.arm == "static" else 100}

    request = ask("seeds=0")
    with pytest.raises(UserError, match=r"in tokens .* static plans 120"):
        run_sweep(request, plan=unequal, command=lambda job: pytest.fail("must not run"))
    arms = {**request.sweep.arms, "static": ("masking/schedule=static", "optimizer.lr=0.5")}
    with pytest.raises(UserError, match=r"static: optimizer\.lr"):
        run_sweep(request._replace(sweep=replace(request.sweep, arms=arms)), plan=plan)
    assert not (tmp_path / "runs").exists()


def test_the_anchor_runs_where_the_scale_has_tasks(ask: Ask, task_folder: Path) -> None:
    request = ask("task=sst2", f"tasks.sst2.path={task_folder}", "seeds=0")
    expanded = expand(request)
    assert [job.arm for job in expanded.jobs] == ["static_x10", "dynamic", "static", "from_scratch"]
    assert expanded.config(expanded.jobs[-1]).trainer.max_steps == 0
    assert "from_scratch" not in expanded.audit["differences"]
    assert [job.arm for job in expand(ask("seeds=0")).jobs] == ["static_x10", "dynamic", "static"]


def test_a_key_that_an_override_takes_from_an_arm_is_named_with_the_arm() -> None:
    message = "arm replace_mlm: 'objective.asks' does not apply to objective=mlm"
    with pytest.raises(UserError, match=message):
        expand(parse("run", ["electra_table5", "scale=smoke", "objective=mlm"]))


def test_a_run_is_a_command_that_composes_to_the_audited_config(ask: Ask) -> None:
    from paribus.core.config import compose

    expanded = expand(ask("seed=3"))
    for job in expanded.jobs:
        python, flag, module, verb, *overrides = train_command(job)
        assert (python, flag, module, verb) == (sys.executable, "-m", "paribus", "train")
        assert compose(overrides) == expanded.config(job)
        assert Run.of(compose(overrides)).identity.signature == expanded.identity(job).signature


def test_the_manifest_lists_the_whole_sweep_and_the_planned_steps(ask: Ask, tmp_path: Path) -> None:
    request = ask("seeds=0", "arms=static")
    run_sweep(request, plan=plan, command=Commands(request, tmp_path / "made"))
    manifest = json.loads((request.runs / "roberta_table1" / "smoke.json").read_text())
    assert set(manifest["runs"]) == {f"{arm}/seed{seed}" for arm in request.sweep.arms for seed in (0, 1, 2)}
    assert manifest["steps"] == {"static_x10": 5, "dynamic": 5, "static": 5}
    assert manifest["sweep_hash"] == request.sweep.hash("smoke")


@pytest.mark.slow
def test_a_study_holds_one_sweep(ask: Ask, tmp_path: Path) -> None:
    """Else the manifest of the second would hide the runs of the first."""
    signatures = {"full/seed0": "a" * 12, "doc/seed0": "b" * 12}
    before = write_manifest(tmp_path / "runs", "roberta_table1", "smoke", Manifest("x", [], signatures, {}))
    request = ask("seed=1")
    with pytest.raises(UserError, match=r"study=roberta_table1 holds runs of another sweep \(doc, full\)"):
        run_sweep(request, command=Commands(request, tmp_path / "ready"), plan=plan)
    assert read_manifest(tmp_path / "runs", "roberta_table1", "smoke") == before


def test_roberta_table1_runs_at_scale_test_and_is_found_again(ask: Ask, capfd: pytest.CaptureFixture[str]) -> None:
    request = ask(scale="test")
    assert run_sweep(request) == 0
    found = store.find_records("roberta_table1", "test", request.roots)
    assert len(found.records) == 6
    assert found.left_out == []
    assert {made.sweep_hash for made in found.records} == {request.sweep.hash("test")}
    assert run_sweep(request) == 0
    assert "6 found, 0 new" in capfd.readouterr().err


@pytest.mark.parametrize("key", ["runs", "results"])
def test_a_folder_that_cannot_be_written_is_told_before_the_text_is_read(ask: Ask, tmp_path: Path, key: str) -> None:
    request = ask(f"cache={tmp_path / 'cache'}")._replace(**{key: Path("/proc/none")}, keep=True)
    with pytest.raises(UserError, match=r"^/proc/none.*/smoke\.json cannot be written"):
        run_sweep(request, plan=plan)
    assert not (tmp_path / "cache").exists()
