"""`run`, `status` and `plan` as a user types them, and the sweeper under plain Hydra."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kept_records import put, record

from paribus.commands.cli import main
from paribus.core.console import duration
from paribus.core.errors import UserError
from paribus.runs import store
from paribus.runs.folder import FAILED, RECORD
from paribus.runs.manifest import Manifest, write_manifest
from paribus.sweeps.expand import expand
from paribus.sweeps.launchers.local import Slot
from paribus.sweeps.plan import price, price_claims, write_costs
from paribus.sweeps.request import Request, parse
from paribus.sweeps.status import RunCell, SweepStatus, read_status
from paribus.sweeps.sweep import SCRATCH, Job, jobs
from paribus.sweeps.sweep_file import load
from paribus.training.description import Run


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["run"], "run needs a SWEEP: for example, paribus run roberta_table1"),
        (["run", "no_such"], "nor packaged: `paribus run --help` lists the sweeps"),
        (
            ["plan", "optuna_lr"],
            "'optuna_lr' is a search, not a sweep: `paribus run optuna_lr` runs it, `paribus status",
        ),
        (["table", "optuna_lr"], "'optuna_lr' is a search, not a sweep"),
        (["plan", "roberta_table1", "other"], "plan: Got unexpected extra argument (other)"),
        (["run", "roberta_table1", "--force"], "run has no flag '--force'"),
        (["run", "roberta_table1", "scale=huge"], "scale=huge is unknown"),
        (["status", "roberta_table1", "scale=huge"], "scale=huge is unknown"),
        (["run", "roberta_table1", "slots=many"], "slots=many is not valid: write"),
        (["run", "roberta_table1", "seeds=a"], "seeds=a is not valid: write seeds=0,1,2"),
        (["run", "roberta_table1", "arms=nobody"], "has no arm 'nobody'"),
        (["run", "roberta_table1", "family=t5"], "family= belongs to the sweep file"),
        (["run", "roberta_table1", "debug=one_batch"], "debug= belongs to the sweep file"),
        (["train", "search=optuna_lr"], "a search needs a multirun: add -m"),
        (["run", "roberta_table1", "scale=test", "modle=bert_tiny"], "modle"),
        (["run", "roberta_table1", "scale=test", "model=bert_tyni"], "unknown choice model=bert_tyni"),
    ],
)
def test_bad_input_is_one_line_and_status_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_request_reads_its_own_keys_and_leaves_the_others_as_overrides() -> None:
    argv = ["scale=cpu", "roberta_table1", "slots=3", "seeds=range(2,5)", "arms=[static,dynamic]", "runs=/r"]
    request = parse("run", [*argv, "study=pilot", "optimizer.lr=1e-3", "+x.y=[1,2]", "~a.b"])
    assert request.scale == "cpu"
    assert request.slots == 3
    assert request.seeds == (2, 3, 4)
    assert request.arms == ("static", "dynamic")
    assert request.runs == Path("/r")
    assert request.study_name == "pilot"
    assert request.overrides == ("optimizer.lr=1e-3", "+x.y=[1,2]", "~a.b")
    assert not request.keep
    kept = parse("run", ["roberta_table1", "results=there", "slots=auto", "seed=4"])
    assert (kept.keep, kept.results, kept.slots, kept.seeds) == (True, Path("there"), None, (4,))


def test_status_tells_states_from_the_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def made(arm: str, seed: int, **changes: Any) -> dict[str, Any]:
        return record(arm=arm, seed=seed, study="roberta_table1", **changes)

    put(tmp_path, made("static_x10", 0, metrics={"mlm_loss": 5.4321, "docs_package/accuracy": 0.3219}))
    put(tmp_path, made("dynamic", 0, status="failed"), FAILED)
    put(tmp_path, made("dynamic", 1, status="diverged", metrics={}))
    stopped = tmp_path / "roberta_table1" / "static" / "seed0-aa"
    running = tmp_path / "roberta_table1" / "static" / "seed1-aa"
    for folder in (stopped, running):
        folder.mkdir(parents=True)
        (folder / "signature").write_text("aa\n")
        (folder / "metrics.jsonl").write_text(json.dumps({"step": 30}) + "\n")
    runs = {f"{arm}/seed{seed}": "aa" for arm in ("static_x10", "dynamic", "static") for seed in (0, 1)}
    steps = dict.fromkeys(("static_x10", "dynamic", "static"), 60)
    write_manifest(tmp_path, "roberta_table1", "smoke", Manifest("h", [], runs, steps))
    with (running / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["status", "roberta_table1", "scale=smoke", f"runs={tmp_path}", f"results={tmp_path / 'r'}"]) == 0
    printed = capsys.readouterr()
    assert "These runs were made with an older version of the sweep file" in printed.err
    lines = [line.split() for line in printed.out.splitlines()]
    assert lines[0] == ["roberta_table1", "at", "scale=smoke"]
    assert lines[2] == ["static_x10", "✓", "5.432", "·", "·"], "the claims at smoke are about the loss"
    assert lines[3] == ["dynamic", "✗", "✗", "·"]
    assert lines[4] == ["static", "‖", "50%", "▶", "50%", "·"]
    assert lines[5] == ["1/9", "done,", "1", "running,", "1", "stopped,", "1", "failed,", "1", "diverged"]


def test_status_shows_the_last_commands_runs_and_no_older(tmp_path: Path) -> None:
    old = record(arm="static", study="roberta_table1", signature="old")
    put(tmp_path, old)
    request = Request(load("roberta_table1"), runs=tmp_path, results=tmp_path / "r")
    assert read_status(request).cells["static/seed0"].state == "done"
    runs = {"static/seed0": "new", "static/seed7": "more"}
    write_manifest(tmp_path, "roberta_table1", "smoke", Manifest("h", ["optimizer.lr=1"], runs, {}))
    status = read_status(request)
    assert status.cells["static/seed0"].state == "missing"
    assert "static/seed7" in status.cells


def test_board_estimates_what_is_left() -> None:
    listed = [Job("s", arm, seed, ()) for seed in (0, 1) for arm in ("a", "b")]
    status = SweepStatus("s", listed, ["mlm_loss"], slots=2)
    assert status.seconds_left() is None
    status.set("a/seed0", state="done", metrics={"mlm_loss": 1.0})
    status.set("b/seed0", state="running", share=0.5)
    status.durations["a/seed0"] = 100.0
    assert status.seconds_left() == pytest.approx(150.0), (
        "one slot has a whole run to do, the other half a run and a whole one"
    )
    assert status.summary() == "1/4 done, 1 running, about 2 min left"
    assert status.text().splitlines()[2].split() == ["a", "✓", "1.000", "·"]
    assert str(RunCell("running", 0.25)) == "▶ 25%"
    status.columns = ["mlm_loss", "mlm_accuracy", "sst2/accuracy"]
    status.set("b/seed0", "done", metrics={"mlm_loss": 5.4321, "mlm_accuracy": 0.2, "sst2/accuracy": 0.3219})
    assert str(status.cells["b/seed0"]) == "✓ 5.432 32.2", "a loss and a score"
    shown = status.table()
    assert shown.row_count == 2
    status.durations["b/seed0"] = 40.0
    assert status.seconds_left() == pytest.approx(100.0)


def test_runs_side_by_side_take_as_long_as_the_last_of_them() -> None:
    status = SweepStatus("s", [Job("s", "a", seed, ()) for seed in range(5)], "mlm_loss", slots=4)
    status.set("a/seed0", state="done")
    status.durations["a/seed0"] = 100.0
    for seed, seconds in ((1, 90), (2, 90), (3, 90), (4, 20)):
        status.set(f"a/seed{seed}", state="running", share=1.0)  # all are past pre-training
        status.begun[f"a/seed{seed}"] = time.time() - seconds, 0.0
    assert status.seconds_left() == pytest.approx(80.0, abs=1.0)
    status.begun["a/seed4"] = time.time() - 20, 0.5
    assert status.seconds_left() == pytest.approx(30.0, abs=1.0), "the second half of a run that was resumed"


def test_the_anchor_without_pre_training_says_nothing_of_the_others() -> None:
    status = SweepStatus("s", [Job("s", arm, seed, ()) for seed in (0, 1) for arm in ("a", SCRATCH)], "mlm_loss")
    status.set(f"{SCRATCH}/seed0", state="done")
    status.durations[f"{SCRATCH}/seed0"] = 10.0
    assert status.seconds_left() is None
    status.set("a/seed0", state="done")
    status.durations["a/seed0"] = 100.0
    assert status.seconds_left() == pytest.approx(110.0)


@pytest.mark.parametrize(("seconds", "said"), [(4, "4 s"), (300, "5 min"), (9000, "2.5 h"), (864000, "10 days")])
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_plan_multiplies_by_runs_and_divides_by_slots(arguments: list[str], task_folder: Path) -> None:
    given = [text for text in arguments if not text.startswith(("paths.runs=", "profile.threads="))]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "seeds=0,1"]
    request = parse("plan", ["roberta_table1", *given, *task])
    measured = []

    def planned(config: Any) -> dict[str, Any]:
        steps = 0 if config.trainer.max_steps == 0 else 10
        return {"tokens": steps * 1000, "sequences": steps, "steps": steps, "flops": steps * 1e9, "epochs": steps / 5}

    def measure(config: Any) -> dict[str, float]:
        measured.append((config.arm, config.profile.threads))
        own = {
            "start_seconds": 1.0,
            "pretrain_seconds": 2.0 * planned(Run.of(config))["steps"],
            "finetune_seconds": 5.0,
        }
        return {"seconds_per_step": 2.0, **own}

    prices = price(expand(request), [Slot((0, 1, 2))], planned, measure)
    found = prices.of()
    assert measured == [(arm, 3) for arm in ("static_x10", "dynamic", "static", "from_scratch")]
    assert [(cost.runs, cost.seconds) for cost in found] == [(2, 26.0), (2, 26.0), (2, 26.0), (2, 6.0)]
    lines = write_costs(request, found, 2).splitlines()
    assert lines[-2].split() == ["total", "8", "6e+04", "6e+10", "3", "min"]
    assert "about 84 s on this machine, 2 runs side by side" in lines[-1]
    dearer = [found[0]._replace(flops=1.5 * found[0].flops), *found[1:]]
    relative = {
        line.split()[0]: " ".join(line.split()[6:8]) for line in write_costs(request, dearer, 2).splitlines()[2:5]
    }
    assert relative == {"static_x10": "1.00 x", "dynamic": "0.67 x", "static": "0.67 x"}, "FLOPs per token"
    assert price_claims(prices, 2) == [
        "one claim alone                       time",
        "arms=static_x10,dynamic,from_scratch  58 s  A new mask in every epoch is no worse than ten masks in turn",
        "arms=dynamic,static,from_scratch      58 s  Repeating one mask forever raises the loss",
    ]


def test_the_plan_of_one_arm_is_in_the_singular(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    given = [text for text in arguments if not text.startswith("paths.runs=")]
    request = parse("plan", ["roberta_table1", *given, "task=none", "seeds=0", "arms=static"])
    budget = {"tokens": 1.0, "sequences": 1, "steps": 1, "flops": 1.0, "epochs": 1}
    took = dict.fromkeys(("seconds_per_step", "start_seconds", "pretrain_seconds", "finetune_seconds"), 1.0)
    prices = price(expand(request), [Slot((0,))], lambda _: budget, lambda _: took)
    assert capsys.readouterr().err.endswith("measuring one arm with a few steps, threads per run: 1\n")
    assert write_costs(request, prices.of(), 1).endswith("about 3 s on this machine, one run at a time")
    assert write_costs(request, prices.of(), 1, 4.0).endswith(
        "about 7 s on this machine, one run at a time, 4 s of it to load libraries"
    )


def test_plan_counts_a_stage_that_arms_share_once_for_each_seed(arguments: list[str], task_folder: Path) -> None:
    given = [text for text in arguments if not text.startswith(("paths.runs=", "profile.threads="))]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "seeds=0,1"]
    request = parse("plan", ["roberta_table1", *given, *task, "arms=static_x10,dynamic,static"])
    first = {"tokens": 1000.0, "flops": 1e9}

    def planned(config: Any) -> dict[str, Any]:
        whole = {"tokens": 3000.0, "sequences": 1, "steps": 1, "flops": 3e9, "epochs": 1}
        return {**whole, "stages": {"pretraining": first, "further": {"tokens": 2000.0, "flops": 2e9}}}

    def measure(config: Any) -> dict[str, Any]:
        own = {"start_seconds": 1.0, "pretrain_seconds": 30.0, "finetune_seconds": 5.0, "seconds_per_step": 1.0}
        return {**own, "stages": {"common": 10.0, str(config.arm): 20.0}}

    prices = price(expand(request), [Slot((0, 1, 2))], planned, measure)
    found = prices.of()
    assert [cost.own_seconds for cost in found] == [72.0, 52.0, 52.0, 52.0][: len(found)]
    alone = {line.split()[0]: line.split()[1:3] for line in price_claims(prices, 1)[1:]}
    pairs = ("arms=static_x10,dynamic", "arms=dynamic,static")
    assert alone == {key: ["2", "min"] for key in pairs}, "72 + 52 seconds"
    shared = 1000 * 2 * (len(found) - 1)
    total = write_costs(request, found, 1).splitlines()[-2].split()
    assert total[2:4] == [f"{6000 * len(found) - shared:.3g}", f"{(6000 * len(found) - shared) * 1e6:.3g}"]


def test_plan_counts_the_fine_tunings_of_arms_that_differ_in_nothing_once(equal_arms: list[str]) -> None:
    def planned(config: Any) -> dict[str, Any]:
        none = {"tokens": 0.0, "flops": 0.0}
        return {**none, "sequences": 0, "steps": 0, "stages": {"pretraining": none}}

    def measure(config: Any) -> dict[str, Any]:
        own = {"start_seconds": 1.0, "pretrain_seconds": 2.0, "finetune_seconds": 5.0, "seconds_per_step": 0.0}
        return {**own, "stages": {"none": 2.0}}

    found = price(expand(parse("plan", equal_arms)), [Slot((0,))], planned, measure).of()
    assert [(cost.arm, cost.own_seconds) for cost in found] == [("scratch", 2 * 8.0), ("from_scratch", 2 * 1.0)]


class Recorder:
    """A launcher that launches nothing."""

    def __init__(self, fails: bool = False) -> None:
        self.batches: list[list[list[str]]] = []
        self.fails = fails

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
        from hydra.core.utils import JobReturn, JobStatus

        self.batches.append([list(overrides) for overrides in job_overrides])
        status = JobStatus.FAILED if self.fails else JobStatus.COMPLETED
        returned = UserError("planted", "mend it") if self.fails else 0.5
        return [JobReturn(status=status, _return_value=returned) for _ in job_overrides]


def sweeper(arguments: Sequence[str], launcher: Recorder) -> Any:
    """The sweeper as Hydra makes it for `paribus train -m hydra/sweeper=arms ...`, with another launcher."""
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.plugins import Plugins
    from hydra.types import HydraContext, RunMode

    from paribus.core.config_names import conf_dir

    GlobalHydra.instance().clear()
    hydra = Hydra.create_main_hydra2("train", create_config_search_path(str(conf_dir())))
    config = hydra.compose_config("train", ["hydra/sweeper=arms", *arguments], run_mode=RunMode.MULTIRUN)
    context = HydraContext(config_loader=hydra.config_loader, callbacks=None)
    made = Plugins.instance().instantiate_sweeper(config=config, hydra_context=context, task_function=lambda cfg: None)
    made.launcher = launcher
    GlobalHydra.instance().clear()
    return made


def test_the_arms_sweeper_launches_the_runs_of_the_sweep(arguments: list[str]) -> None:
    launcher = Recorder()
    given = ["sweep=roberta_table1", *arguments]
    results = sweeper(given, launcher).sweep([*given, "seed=0,1"])
    assert len(results) == 6
    (batch,) = launcher.batches
    runs = next(text.partition("=")[2] for text in arguments if text.startswith("paths.runs="))
    own = [text for text in arguments if not text.startswith(("scale=", "paths.runs="))]
    listed = jobs(load("roberta_table1"), "test", [*own, f"paths.runs={runs}"], seeds=(0, 1))
    assert batch == [[*job.overrides, "recipe=bert/test"] for job in listed]


def test_the_arms_sweeper_refuses_bad_sweeps_and_reports_failures(arguments: list[str]) -> None:
    launcher = Recorder(fails=True)
    with pytest.raises(UserError, match=r"hydra/sweeper=arms needs a sweep"):
        sweeper(arguments, launcher).sweep(arguments)
    made = sweeper(["sweep=roberta_table1", *arguments], launcher)
    with pytest.raises(UserError, match="unknown sweep 'nothing'"):
        made.sweep(["sweep=nothing", *arguments])
    assert launcher.batches == []
    with pytest.raises(UserError, match="planted"):
        made.sweep(["sweep=roberta_table1", *arguments])
    assert len(launcher.batches[0]) == 6, "all were launched before the first failure is raised"


def test_one_seed_and_one_arm_may_be_given_by_the_names_of_several(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paribus.commands.train import train

    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    own = ["hydra/sweeper=arms", "sweep=roberta_table1", "seeds=0", "arms=dynamic", "task=none", "logger=none"]
    assert train(["-m", *own, *arguments]) == 0
    found = store.find_records("roberta_table1", "test", [tmp_path / "runs"]).records
    assert [(made.arm, made.seed) for made in found] == [("dynamic", 0)]


def test_status_is_quick(tmp_path: Path) -> None:
    """Nothing is composed: hundreds of runs in a moment."""
    sweep = load("roberta_table1")
    for seed in range(200):
        for arm in sweep.arms:
            folder = tmp_path / "roberta_table1" / arm / f"seed{seed}-aa"
            folder.mkdir(parents=True)
            (folder / RECORD).write_text(json.dumps(record(arm=arm, seed=seed, study="roberta_table1")))
    start = time.perf_counter()
    read_status(Request(sweep, runs=tmp_path, results=tmp_path / "r", seeds=tuple(range(200))))
    assert time.perf_counter() - start < 2.0


def test_the_study_layer_needs_no_torch() -> None:
    code = "import sys; from paribus.commands import plan, status; from paribus.sweeps import expand, run; "
    code += "print([name for name in ('torch', 'rich', 'hydra') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
