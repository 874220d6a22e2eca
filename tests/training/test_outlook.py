"""No dead end: what will stay on the plateau is said before the first step, and a table says what to type next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_records import LOSS, TASK, own, record, study
from kept_records import put

from paribus.commands.cli import main
from paribus.core.checksums import seal
from paribus.core.config import compose, plain
from paribus.reports.answers import next_step
from paribus.reports.tables.build import make_table
from paribus.reports.tables.terminal import print_brief
from paribus.runs.manifest import Manifest, write_manifest
from paribus.sweeps.expand import expand
from paribus.sweeps.plan import command_with, forecast_plateau
from paribus.sweeps.request import Request, parse
from paribus.sweeps.sweep_file import load
from paribus.training.outlook import foresee, lengthen, name_positions


def config_of(*overrides: str) -> dict[str, Any]:
    found: dict[str, Any] = plain(compose(list(overrides)))
    return found


def test_a_recipe_knows_when_its_runs_left_the_plateau() -> None:
    config = config_of("recipe=bert/v1/cpu")
    assert config["exit_tokens"] == {"learned": 2.6e6}
    outlook = foresee(config, 1.3e6)
    assert outlook is not None
    assert outlook.factor == pytest.approx(2.5)
    assert outlook.longer == f"trainer.max_epochs={round(12 * 2.5)}"
    assert "1.3 million input tokens are too few, the recipe's runs left it after 2.6 million" in str(outlook)
    assert foresee(config, 2.7e6) is None
    assert foresee(config, 0.0) is None, "nothing is pre-trained"


def test_positions_that_were_not_measured_say_nothing() -> None:
    assert name_positions(config_of("scale=cpu", "model/position=learned")["model"]) == "learned"
    assert name_positions(config_of("scale=cpu")["model"]) == "rotary"
    assert name_positions(config_of("scale=cpu", "model/position=alibi")["model"]) == "alibi"
    other = config_of("scale=cpu", "model/position=rotary", "model.changes.position.share=0.5")
    assert name_positions(other["model"]) == ""
    assert name_positions(config_of("scale=cpu", "model=t5_tiny")["model"]) == "relative"
    assert name_positions(config_of("scale=cpu", "model=pretrained", "model.name=x")["model"]) == ""
    assert foresee(config_of("scale=cpu", "model/position=alibi"), 1e5) is None


@pytest.mark.parametrize(
    ("trainer", "override"),
    [
        ({"max_epochs": 8, "max_steps": None}, "trainer.max_epochs=16"),
        ({"max_epochs": None, "max_steps": 101}, "trainer.max_steps=202"),
        ({"max_epochs": 8, "max_steps": 100}, ""),
        ({"max_epochs": None, "max_flops": 1e9}, ""),
    ],
)
def test_the_budget_that_is_set_grows(trainer: dict[str, Any], override: str) -> None:
    assert lengthen(trainer, 2.0) == override


def test_a_sweep_names_the_arms_and_the_command(tmp_path: Path) -> None:
    request = parse("run", ["roberta_table1", "scale=cpu", "trainer.max_epochs=4", f"runs={tmp_path}"])
    expanded = expand(request)
    forecast = forecast_plateau(
        expanded, {arm: {"tokens": 1e6 if arm == "static" else 9e6} for arm in expanded.configs}
    )
    assert forecast is not None
    assert forecast.arms == ("static",)
    command = command_with(request, forecast.worst.longer)
    assert command == f"paribus run roberta_table1 scale=cpu runs={tmp_path} trainer.max_epochs=13"
    assert forecast_plateau(expanded, {arm: {"tokens": 9e6} for arm in expanded.configs}) is None


def test_a_run_says_it_before_its_first_step(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "scale=test", *arguments, "+exit_tokens.rotary=1e6", "+exit_tokens.learned=1e6"]) == 0
    said = capsys.readouterr().err
    assert "run/seed0 will probably stay on the plateau of a model that only knows word frequencies" in said
    assert "trainer.max_steps=" in said


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return Request(load("roberta_table1"), "smoke", runs=tmp_path / "runs", results=tmp_path / "results")


def write(request: Request, records: list[dict[str, Any]], overrides: list[str] | None = None) -> None:
    runs = {f"{one['arm']}/seed{one['seed']}": one["signature"] for one in records}
    manifest = Manifest(request.sweep.hash("smoke"), overrides or [], runs, {})
    write_manifest(request.runs, request.study_name, "smoke", manifest)
    for one in records:
        put(request.runs, seal(one))


def test_runs_on_the_plateau_must_be_longer(request_: Request) -> None:
    stuck = own(5.9)
    found = [
        {**one, "own": stuck, "budget": {**one["budget"], "train_seconds": 60.0}, "finetune_seconds": 30.0}
        for one in study(3)
    ]
    write(request_, found, ["optimizer.lr=1e-3"])
    step = next_step(make_table(request_.sweep, "smoke", None, request_.roots), request_)
    assert step is not None
    command, _, why = step.partition("   # ")
    assert command.startswith(f"paribus run roberta_table1 scale=smoke runs={request_.runs}")
    assert " optimizer.lr=1e-3 trainer.max_epochs=" in command
    assert "stayed on the plateau of a trivial model: about" in why
    assert "min" in why


def test_open_claims_get_seeds(request_: Request, capsys: pytest.CaptureFixture[str]) -> None:
    losses = {"static_x10": (5.0, 5.3, 4.8), "dynamic": (5.1, 5.0, 5.2), "static": (5.3, 5.4, 5.2)}
    scores = {"static_x10": (0.40, 0.42, 0.41), "dynamic": (0.41, 0.41, 0.42), "static": (0.30, 0.31, 0.33)}
    budget = {"input_tokens": 8e5, "train_seconds": 100.0}
    found = [
        record(arm, seed, {LOSS: loss, TASK: score}, budget=budget)
        for arm in losses
        for seed, (loss, score) in enumerate(zip(losses[arm], scores[arm], strict=True))
    ]
    found += [record("from_scratch", seed, {TASK: 0.2 + 0.001 * seed}, budget={"steps": 0}) for seed in range(3)]
    write(request_, found)
    table = make_table(request_.sweep, "smoke", None, request_.roots)
    step = next_step(table, request_)
    assert step is not None
    assert "--until-decided max_seeds=" in step
    print_brief(table, Path("reports"), step)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= 30
    assert all(len(line) <= 80 for line in printed.splitlines() if "paribus" not in line)
    assert "A new mask in every epoch is no worse than ten masks in turn (the paper's claim)" in " ".join(
        printed.split()
    )
    assert "--until-decided" in printed
    assert "78.3" in printed, "the paper's numbers stay"


def test_a_decided_table_leads_to_ones_own_question(request_: Request, capsys: pytest.CaptureFixture[str]) -> None:
    write(request_, study(6, spread=0.0001))
    table = make_table(request_.sweep, "smoke", None, request_.roots)
    step = next_step(table, request_)
    print_brief(table, Path("reports"), step)
    printed = capsys.readouterr().out
    assert step is None, [claim.said for claim in table.claims]
    assert "paribus init --text" in printed or "init --text" in printed
    assert "reports/table.md" in printed
