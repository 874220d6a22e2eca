"""Equal tuning of the arms: the space, the trials, what is chosen, and a table that follows from what was kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from quick_sweeps import made_record

from paribus.commands.table import table
from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.runs import store
from paribus.runs.folder import RECORD
from paribus.runs.manifest import read_manifest
from paribus.sweeps.expand import expand
from paribus.sweeps.launchers.local import Slot
from paribus.sweeps.plan import price
from paribus.sweeps.request import Request, parse
from paribus.sweeps.run import run_sweep
from paribus.sweeps.search.space import dimension, grid
from paribus.sweeps.status import read_status
from paribus.sweeps.sweep_file import load
from paribus.sweeps.tune_arms import apply_recorded_tuning
from paribus.sweeps.tuning import Tune
from paribus.training.description import Run

SWEEP: dict[str, Any] = {
    "study": "rates",
    "base": ["objective=mlm"],
    "varies": ["batch.size"],
    "matched": "sequences",
    "arms": {"small": ["batch.size=4"], "large": ["batch.size=8"]},
    "baseline": "small",
    "columns": ["mlm_loss", "sst2/accuracy"],
    "seeds": [0, 1],
    "tune": {"trials": 3, "space": {"optimizer.lr": "tag(log, interval(1e-4, 1e-2))"}, "on": "mlm_loss"},
}
BEST = {"small": 1e-3, "large": 1e-2}


def plan(config: Any) -> dict[str, Any]:
    return {"tokens": 100, "sequences": 10, "steps": 5, "flops": 1.0, "epochs": 1.0}


class Trained:
    """Runs that take no time; the loss grows with the distance of the learning rate to the best of the arm."""

    def __init__(self, fails: tuple[str, ...] = ()) -> None:
        self.called: list[tuple[str, int, float]] = []
        self.fails = fails

    def __call__(self, run: Run) -> None:
        rate = run.config["optimizer"]["lr"]
        self.called.append((run.arm, run.seed, rate))
        if run.arm in self.fails:
            raise UserError("planted failure", "mend it")
        loss = 3.0 + abs(rate - BEST[run.arm.partition(".")[0]])
        write_json(run.identity.folder / RECORD, made_record(run, metrics={"mlm_loss": loss}))


@pytest.fixture
def ask(arguments: list[str], tmp_path: Path) -> Callable[..., Request]:
    """A request for the sweep above with some of its keys changed."""

    def made(*more: str, **changes: Any) -> Request:
        path = tmp_path / "rates.yaml"
        path.write_text(yaml.safe_dump({**SWEEP, **changes}, sort_keys=False))
        given = [text for text in arguments if not text.startswith("paths.runs=")]
        request = parse("run", [str(path), *given, f"runs={tmp_path / 'runs'}", "profile.threads=null", *more])
        return request._replace(results=tmp_path / "results") if not request.keep else request

    return made


def tuning(request: Request) -> dict[str, Any]:
    manifest = read_manifest(request.runs, request.study_name, request.scale)
    assert manifest is not None
    return dict(manifest.tuning)


def test_every_arm_gets_the_same_trials_and_the_table_runs_use_what_was_chosen(ask: Callable[..., Request]) -> None:
    request, train = ask(), Trained()
    assert run_sweep(request, plan=plan, train=train) == 0
    trials = [called for called in train.called if ".trial" in called[0]]
    assert [(arm, lr) for arm, _, lr in trials] == [
        (f"{arm}.trial{at}", lr) for arm in ("small", "large") for at, lr in enumerate((1e-4, 1e-3, 1e-2))
    ]
    assert {seed for _, seed, _ in trials} == {100}
    runs = train.called[len(trials) :]
    assert sorted(runs) == [("large", 0, 1e-2), ("large", 1, 1e-2), ("small", 0, 1e-3), ("small", 1, 1e-3)]
    kept = tuning(request)["arms"]
    assert {arm: found["chosen"] for arm, found in kept.items()} == {
        "small": {"optimizer.lr": "0.001"},
        "large": {"optimizer.lr": "0.01"},
    }
    first = kept["small"]["trials"][0]
    assert first["values"] == {"optimizer.lr": "0.0001"}
    assert first["runs"][0] | {"signature": ""} == {
        "seed": 100, "signature": "", "status": "done", "value": first["value"],
    }  # fmt: skip
    again = Trained()
    assert run_sweep(request, plan=plan, train=again) == 0
    assert again.called == [], "trials and runs are found again"


def test_a_choice_at_an_end_of_the_space_is_said_before_the_table_is_run(
    ask: Callable[..., Request], capsys: pytest.CaptureFixture[str]
) -> None:
    request = ask()
    run_sweep(request, plan=plan, train=Trained())
    found = capsys.readouterr().err
    said = "large: optimizer.lr = 0.01 is the lowest or highest value tried. To search further, stop this run and widen"
    assert found.index(f"{said} tune.space in {request.sweep.path}.") < found.index("large/seed0")
    assert "small: optimizer.lr" not in found


def test_trials_never_slip_into_the_table_and_status_shows_them(ask: Callable[..., Request]) -> None:
    request = ask()
    run_sweep(request, plan=plan, train=Trained())
    found = store.find_records("rates", "test", request.roots).records
    assert sorted({(made.arm, made.seed) for made in found}) == [
        ("large", 0), ("large", 1), ("small", 0), ("small", 1),
    ]  # fmt: skip
    status = read_status(request)
    assert status.cells["small.trial1/seed100"].state == "done"
    assert status.count("done") == len(status.jobs) == 6 + 4


def test_a_table_says_how_its_arms_were_tuned_and_follows_from_the_kept_files(
    ask: Callable[..., Request], tmp_path: Path
) -> None:
    results = tmp_path / "kept"
    request = ask(f"results={results}")
    run_sweep(request, plan=plan, train=Trained())
    name = str(request.sweep.path)
    where = ["scale=test", f"runs={tmp_path / 'none'}", f"results={results}"]
    assert table([name, *where, f"out={results / 'test' / 'rates'}"]) == 0
    made = json.loads((results / "test" / "rates" / "table.json").read_text())
    assert made["tuning"]["arms"]["large"]["chosen"] == {"optimizer.lr": "0.01"}
    assert made["audit"]["differences"]["large"]["optimizer.lr"] == [0.001, 0.01]
    text = (results / "test" / "rates" / "table.md").read_text()
    assert "Tuned with 3 trials per arm (grid over optimizer.lr in tag(log, interval(1e-4, 1e-2))) by mlm_loss" in text
    assert "tuned with 3 trials: optimizer.lr=0.001" in text
    assert "large: optimizer.lr = 0.01 is the lowest or highest value tried." in text
    assert made["tuned"]["large"] == {"trials": 3, "chosen": {"optimizer.lr": "0.01"}}
    assert table([name, *where, "--check"]) == 0
    elsewhere = Trained()
    fresh = request._replace(runs=tmp_path / "fresh")
    assert run_sweep(fresh, plan=plan, train=elsewhere) == 0
    assert elsewhere.called == [], "the kept search and records are enough"


def test_a_failed_trial_is_the_worst_and_is_tried_again(ask: Callable[..., Request]) -> None:
    request, train = ask(), Trained(fails=("small.trial1",))
    assert run_sweep(request, plan=plan, train=train) == 0
    found = tuning(request)["arms"]["small"]
    assert found["chosen"] == {"optimizer.lr": "0.0001"}
    assert (found["trials"][1]["value"], found["trials"][1]["runs"][0]["status"]) == (None, "failed")
    again = Trained()
    run_sweep(request, plan=plan, train=again)
    assert again.called[0] == ("small.trial1", 100, 1e-3)
    assert tuning(request)["arms"]["small"]["chosen"] == {"optimizer.lr": "0.001"}
    with pytest.raises(UserError, match=r"no trial of large ended with mlm_loss"):
        run_sweep(ask("study=other"), plan=plan, train=Trained(fails=tuple(f"large.trial{at}" for at in range(3))))


def test_tuning_is_switched_off_by_hand_and_arms_are_searched_one_at_a_time(ask: Callable[..., Request]) -> None:
    plain = ask("tune=false")
    train = Trained()
    run_sweep(plain, plan=plan, train=train)
    assert {lr for _, _, lr in train.called} == {1e-3}
    assert len(train.called) == 4
    assert tuning(plain) == {}
    run_sweep(ask("arms=small"), plan=plan, train=Trained())
    assert list(tuning(plain)["arms"]) == ["small"]
    run_sweep(ask("arms=large"), plan=plan, train=Trained())
    assert sorted(tuning(plain)["arms"]) == ["large", "small"]
    assert dict(apply_recorded_tuning(ask()).sweep.chosen) == {
        "large": ("optimizer.lr=0.01",), "small": ("optimizer.lr=0.001",),
    }  # fmt: skip


def test_the_plan_counts_the_trials_without_tasks(ask: Callable[..., Request]) -> None:
    def measure(config: Any) -> dict[str, float]:
        return {"seconds_per_step": 1.0, "start_seconds": 1.0, "pretrain_seconds": 10.0, "finetune_seconds": 5.0}

    found = price(expand(ask()), [Slot((0,))], plan, measure).of()
    assert [(cost.arm, cost.runs, cost.seconds) for cost in found] == [
        ("small (trials)", 3, 11.0), ("small", 2, 16.0), ("large (trials)", 3, 11.0), ("large", 2, 16.0),
    ]  # fmt: skip


def test_the_plan_counts_the_pre_training_of_trials_that_differ_in_fine_tuning_alone_once(
    ask: Callable[..., Request],
) -> None:
    def planned(config: Any) -> dict[str, Any]:
        return {**plan(config), "stages": {"pretraining": {"tokens": 100, "flops": 1.0}}}

    def measure(config: Any) -> dict[str, Any]:
        own = {"seconds_per_step": 1.0, "start_seconds": 1.0, "pretrain_seconds": 30.0, "finetune_seconds": 5.0}
        return {**own, "stages": {"all arms": 30.0}}

    space = {"finetune.optimizer.lr": "tag(log, interval(1e-4, 1e-2))"}
    request = ask(tune={**SWEEP["tune"], "space": space})
    found = price(expand(request), [Slot((0,))], planned, measure).of()
    assert [cost.own_seconds for cost in found] == pytest.approx([3 * 1 + 30.0, 2 * 36.0, 3 * 1.0, 2 * 6.0])


def test_another_launcher_wants_the_search_first(ask: Callable[..., Request]) -> None:
    with pytest.raises(UserError, match="rates tunes its arms and small is not tuned yet"):
        apply_recorded_tuning(ask())


def test_on_is_a_key_and_no_truth_value(ask: Callable[..., Request]) -> None:
    path = ask().sweep.path
    path.write_text(path.read_text().replace("'on': mlm_loss", "on: mlm_loss"))
    tuned = load(str(path)).tune_at("test")
    assert tuned is not None
    assert tuned.on == "mlm_loss"


def test_a_scale_refines_the_search_or_leaves_it_out(ask: Callable[..., Request]) -> None:
    sweep = ask(scales={"cpu": {"tune": {"trials": 5}}, "gpu": {"tune": False}}).sweep
    trials = {scale: tune.trials for scale in ("smoke", "cpu", "gpu") if (tune := sweep.tune_at(scale))}
    assert trials == {"smoke": 3, "cpu": 5}
    assert sweep.declared_keys == ("batch.size", "optimizer.lr")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"on": "f1"}, "'tune.on' names the unknown column 'f1'"),
        ({"trials": 0}, "tune.trials=0 is below 1"),
        ({"seeds": [1, 100]}, "uses seed 1 of the table"),
        ({"space": {"optimizer.rate": "interval(1, 2)"}}, "tune.space: 'optimizer.rate' is not a config group or key"),
        ({"space": {"optimizer.lr": "0.1"}}, "'optimizer.lr' is the single value 0.1"),
        ({"space": {"optimizer.lr": "interval(1,"}}, "'optimizer.lr' cannot be read"),
        ({"space": {"trainer.max_tokens": "interval(1, 9)"}}, "names the budget 'trainer.max_tokens'"),
        ({"space": {"optimizer.lr": "choice(1, 2)"}}, "3 trials do not fill a grid"),
        ({"sampler": "best"}, "tune.sampler=best is unknown"),
        ({"on": "sst2/accuracy"}, "needs the task sst2"),
        ({"tries": 3}, "unknown key 'tune.tries'"),
    ],
)
def test_bad_searches_are_refused_before_any_run(
    ask: Callable[..., Request], changes: dict[str, Any], said: str
) -> None:
    train = Trained()
    with pytest.raises(UserError) as caught:
        run_sweep(ask(tune={**SWEEP["tune"], **changes}), plan=plan, train=train)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert train.called == []


def test_what_is_searched_cannot_be_given_by_hand_and_seeds_stay_apart(ask: Callable[..., Request]) -> None:
    for more, said in (("optimizer.lr=1e-3", "optimizer.lr= is tuned"), ("seeds=0,100", "seed 100 is a seed")):
        with pytest.raises(UserError, match=said):
            run_sweep(ask(more), plan=plan, train=Trained())


def tune(sampler: str, trials: int) -> Tune:
    space = {"lr": dimension("lr", "tag(log, interval(1e-4, 1e-2))"), "layers": dimension("layers", [2, 4])}
    return Tune(trials, space, "mlm_loss", (100,), sampler, {})


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_sampled_values_follow_from_the_seed_and_survive_failures(sampler: str) -> None:
    def walk(seed: int) -> list[dict[str, str]]:
        rounds, tried = tune(sampler, 6).rounds(seed), []
        batch = next(rounds)
        while batch:
            tried += batch
            try:
                batch = rounds.send([float("inf") if at == 0 else float(v["lr"]) for at, v in enumerate(batch)])
            except StopIteration:
                break
        return tried

    first = walk(1)
    assert len(first) == 6
    assert all(1e-4 <= float(values["lr"]) <= 1e-2 and values["layers"] in ("2", "4") for values in first)
    assert walk(1) == first
    assert walk(2) != first


def test_a_grid_is_even_and_whole() -> None:
    space = {"lr": dimension("lr", "tag(log, interval(1e-4, 1e-2))"), "depth": dimension("depth", "range(1, 3)")}
    assert grid(space, 4) == [
        {"lr": lr, "depth": depth} for lr in ("0.0001", "0.01") for depth in ("1", "2")
    ]  # fmt: skip
    assert grid({"n": dimension("n", "int(interval(1, 9))")}, 3) == [{"n": "1"}, {"n": "5"}, {"n": "9"}]
    with pytest.raises(UserError, match="2 x n"):
        grid(space, 5)
    with pytest.raises(UserError, match="exceed the distinct points"):
        grid({"n": dimension("n", "int(interval(1, 2))")}, 5)


def test_the_search_is_part_of_what_was_fixed(ask: Callable[..., Request]) -> None:
    one = ask().sweep.hash("test")
    assert ask(tune={**SWEEP["tune"], "trials": 5}).sweep.hash("test") != one
    assert load("roberta_table1").tune_at("cpu") is None
