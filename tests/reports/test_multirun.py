"""Runs without a sweep file as a table: `table --from`, and the end of a multirun."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.utils import JobReturn
from kept_records import put
from kept_records import record as kept

from paribus.commands.cli import main
from paribus.commands.train import train
from paribus.core.plugins import DropEndedConfigs
from paribus.reports.multirun import find_differing
from paribus.runs.folder import CONFIG


def made(root: Path, seed: int, loss: float, score: float, **masking: Any) -> None:
    metrics = {"mlm_loss": loss, "mlm_perplexity": 9.0, "sst2/accuracy": score}
    signature = f"{seed}{masking.get('rate')}".replace(".", "")
    folder = put(root, kept("run", seed, signature, study="single", metrics=metrics))
    config = {"seed": seed, "study": "single", "paths": {"runs": str(seed)}, "masking": masking, "batch": {"size": 4}}
    (folder / CONFIG).write_text(yaml.safe_dump(config))


def test_runs_are_grouped_by_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, 0, 5.0, 0.5, _target_="paribus.x.Bernoulli", rate=0.15)
    made(tmp_path, 1, 5.2, 0.6, _target_="paribus.x.Bernoulli", rate=0.15)
    made(tmp_path, 0, 6.0, 0.7, _target_="paribus.x.WholeWord", rate=0.4)
    assert main(["table", "--from", str(tmp_path)]) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines[:-1]]
    assert rows == [
        ["masking", "masking.rate", "n", "mlm_loss ↓", "sst2/accuracy ↑"],
        ["Bernoulli", "0.15", "2", "5.100 (0.141)", "55.0 (7.1)"],
        ["WholeWord", "0.4", "1", "6.000", "70.0"],
    ]


def test_of_keys_that_go_together_the_shortest_is_shown() -> None:
    one, two = {"a.length": 1, "b.c.length": 1, "same": 3}, {"a.length": 2, "b.c.length": 2, "same": 3}
    assert find_differing([one, two]) == ["a.length"]


def test_what_follows_from_the_choice_of_a_group_is_not_shown() -> None:
    text = {"corpus": "Text", "corpus.path": "my/books", "masking": "Spans", "masking.mean": 3, "masking.rate": 0.1}
    docs = {"corpus": "Docs", "corpus.names": ["a", "b"], "masking": "Single", "masking.rate": 0.2}
    longer = {**text, "masking.mean": 5, "tasks.trec": "Table", "tasks.trec.path": "my/trec"}
    assert find_differing([text, docs]) == ["corpus", "masking", "masking.rate"]
    assert find_differing([text, docs, longer]) == ["corpus", "masking", "masking.mean", "masking.rate", "tasks.trec"]
    assert find_differing([{**text, "tasks": {}}, longer]) == ["masking.mean"]


def test_long_settings_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, 0, 5.0, 0.5, _target_="paribus.x.Bernoulli", rate=0.15, words=["long"] * 50)
    made(tmp_path, 0, 6.0, 0.7, _target_="paribus.x.Bernoulli", rate=0.4, words=["longer"] * 50)
    assert main(["table", "--from", str(tmp_path)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 110


def test_a_folder_without_runs_and_other_options_are_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    assert "no finished run below" in refusal("table", "--from", str(tmp_path))
    assert "scale= does not apply to --from: leave it out" in refusal("table", "--from", str(tmp_path), "scale=cpu")
    assert "table needs a SWEEP" in refusal("table")


def test_a_multirun_ends_with_a_table_and_one_run_with_json(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    own = [*arguments, "logger=none", "masking.rate=0.15"]
    ended: list[JobReturn] = []
    end = DropEndedConfigs.on_job_end

    def record(self: DropEndedConfigs, config: Any, job_return: JobReturn, **more: Any) -> None:
        assert job_return.cfg is not None
        end(self, config, job_return, **more)
        ended.append(job_return)

    monkeypatch.setattr(DropEndedConfigs, "on_job_end", record)
    assert train(["-m", *own, "seed=0,1"]) == 0
    assert [(job.cfg, job.hydra_cfg) for job in ended] == [(None, None)] * 2
    assert [text for job in ended for text in job.overrides or () if text.startswith("seed=")] == ["seed=0", "seed=1"]
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["n", "mlm_loss", "↓"]
    assert out.splitlines()[1].split()[0] == "2"
    assert "{" not in out
    assert train([*own, "seed=1"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "done"
    assert train([*own, "trainer.log_every=1", "optimizer.lr=1e30", "trainer.clip=null"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "diverged"


@pytest.mark.parametrize("seeds", ["1", "5"])
def test_a_number_of_seeds_is_refused_with_both_spellings(seeds: str, refusal: Callable[..., str]) -> None:
    error = refusal("plan", "roberta_table1", "scale=test", f"seeds={seeds}")
    assert f"seeds={seeds} can be read in two ways: write seed={seeds} for the seed {seeds} alone" in error
    assert f"or seeds=range(0,{seeds})" in error


def test_a_preset_may_ask_for_a_multirun(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "conf" / "experiment" / "both.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("hydra: {mode: MULTIRUN, sweeper: {params: {seed: '3,4'}}}\n")
    assert main(["train", *arguments, "task=none", "trainer.max_steps=0", "experiment=both"]) == 0
    assert sorted(path.name[:5] for path in tmp_path.glob("runs/single/run/seed*")) == ["seed3", "seed4"]


def test_the_runs_of_a_multirun_are_below_its_sweep_folder_and_are_sorted(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [text for text in arguments if not text.startswith("paths.runs=")]
    place = tmp_path / "study"
    swept = ["logger=none", "trainer.max_steps=0", "masking.rate=0.4,0.15,0.1"]
    assert train(["-m", *own, *swept, f"hydra.sweep.dir={place}"]) == 0
    told = capsys.readouterr().out
    assert len(list(place.glob("single/run/seed0-*/result.json"))) == 3
    assert not list(place.glob(".ended*"))
    assert main(["table", "--from", str(place)]) == 0
    assert capsys.readouterr().out == told
    assert [line.split()[0] for line in told.splitlines()[1:4]] == ["0.1", "0.15", "0.4"]


@pytest.mark.slow
def test_joblib_prints_the_table_of_the_basic_launcher(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    own = [text for text in arguments if not text.startswith("paths.runs=")]
    swept = ["logger=none", "trainer.max_steps=0", "seed=0,1", "masking=bernoulli,whole_word"]
    told = []
    for launcher in ("basic", "joblib"):
        assert train(["-m", *own, *swept, f"runs={tmp_path / launcher}", f"hydra/launcher={launcher}"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].splitlines()[0].split()[:2] == ["masking", "n"]


def test_runs_of_several_scales_have_their_own_recipes(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = [text for text in arguments if not text.startswith("scale=")]
    swept = ["logger=none", "trainer.max_steps=0", "task=none", "scale=test,null"]
    assert train(["-m", *own, *swept]) == 0
    configs = [yaml.safe_load(path.read_text()) for path in tmp_path.glob("runs/single/run/*/config.yaml")]
    assert sorted((str(config["scale"]), config["batch"]["size"]) for config in configs) == [("None", 32), ("test", 4)]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("masking.rate=abc", "masking.rate=abc has the wrong type: give a number"),
        ("+masking.foo=1", "unknown key 'masking.foo'"),
        ("~masking.rate", "masking.rate is missing"),
        ("masking.rate=2", "masking.rate=2 is out of bounds"),
        ("+hydra.callbacks.x._target_=os.system", "_target_=os.system is not trusted"),
    ],
)
def test_what_training_refuses_is_not_printed_as_a_config(
    override: str, said: str, refusal: Callable[..., str]
) -> None:
    assert said in refusal("train", override, "--cfg", "job")
    assert said in refusal("train", override, "scale=test")


def test_a_hostile_class_is_refused_before_hydra_makes_it(
    refusal: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    evil = "# @package _global_\nhydra: {callbacks: {x: {_target_: os.system, command: touch owned}}}\n"
    (tmp_path / "conf" / "experiment" / "evil.yaml").write_text(evil)
    (tmp_path / "conf" / "experiment" / "fine.yaml").write_text("# @package _global_\nseed: 1\n")
    for argv in (["experiment=evil"], ["-m", "experiment=fine,evil"], ["experiment=evil", "--cfg", "job"]):
        assert "_target_=os.system is not trusted" in refusal("train", "scale=test", *argv)
    assert not (tmp_path / "owned").exists()
    assert "gives several values" in refusal("train", "-m", "hydra.job.name=a,b")
    for flags in (["--config-dir", "conf"], ["-cn", "run"], ["--config-path", "/tmp"]):
        assert "write into ./conf" in refusal("train", "scale=test", *flags)
    assert "leave -m out" in refusal("train", "-m", "scale=test", "--cfg", "job")
    assert "known: arms, basic, optuna" in refusal("train", "-m", "scale=test", "hydra/sweeper=nope")
