"""Files from strangers run no code: each way in is tried with a file that the code would touch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file, save_file

from paribus.core.build import build, kind
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.core.trust import declared
from paribus.finetuning import saved
from paribus.training.run import run

TINY = ["trainer.max_steps=1", "task=none", "logger=none"]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "touched"


@pytest.fixture
def bombs(mark: Path) -> list[dict[str, Any]]:
    """Nodes that would touch the file, by classes and functions that pass Hydra's own block list or do not."""
    code = f"open({str(mark)!r}, 'w')"
    return [
        {"_target_": "os.system", "command": f"touch {mark}"},
        {"_target_": "subprocess.Popen", "args": ["touch", str(mark)]},
        {"_target_": "builtins.eval", "_args_": [code]},
        {"_target_": "sympy.sympify", "a": code},
        {"_target_": "pathlib.Path.touch", "_args_": [{"_target_": "pathlib.Path", "_args_": [str(mark)]}]},
        {"_target_": "hydra.utils.get_method", "path": "os.system"},
        {"_target_": "paribus.core.files.os.system", "command": f"touch {mark}"},
        {"_target_": "paribus.core.files.write_text", "path": str(mark), "text": "touched"},
        {"_target_": "paribus.sweeps.launchers.forks.Server", "environment": {}},
    ]


@pytest.fixture
def untouched(refusal: Callable[..., str], mark: Path) -> Callable[[list[str]], str]:
    """A function that gives a command and returns its message; nothing was touched."""

    def give(command: list[str]) -> str:
        line = refusal(*command)
        assert not mark.exists()
        return line

    return give


@pytest.fixture
def checkpoint(arguments: list[str]) -> Path:
    return run(compose([*arguments, *TINY]))


def spoil(folder: Path, bomb: dict[str, Any]) -> None:
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["model"]["dropout"] = bomb
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def test_a_config_builds_no_stranger_s_class(bombs: list[dict[str, Any]], mark: Path) -> None:
    for bomb in bombs:
        for node in (bomb, {"a": [bomb]}, {"_target_": "paribus.optim.lr_schedule.Schedule", "shape": bomb}):
            with pytest.raises(UserError, match=r"not trusted|no component|not a component|cannot be imported"):
                build(node)
    assert not mark.exists()


def test_a_value_does_not_become_a_class_when_it_is_resolved_again(mark: Path) -> None:
    for slashes in ("", "\\", "\\\\\\"):
        with pytest.raises(UserError):
            build({"a": f"{slashes}${{oc.create:'{{_target_: os.system, command: touch {mark}}}'}}"})
    assert not mark.exists()


def test_the_name_of_a_class_imports_no_stranger_s_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\nclass A: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"_target_=stranger\.A is not trusted"):
        kind("stranger.A")
    assert not (tmp_path / "imported").exists()


def test_only_the_user_declares_what_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("import subprocess\nclass A:\n    pass\n")
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"conf/trusted\.yaml"):
        build({"_target_": "mine.A"})
    for bad in ("trusted: mine", "[mine]", "trusted: [1]", "{", "trusted: [mine]\nmore: 1"):
        (tmp_path / "conf" / "trusted.yaml").write_text(bad)
        with pytest.raises(UserError, match="trusted"):
            declared()
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [mine]\n")
    assert type(build({"_target_": "mine.A"})).__name__ == "A"
    for name in ("mine.subprocess.Popen", "mine2.A", "min.A"):
        with pytest.raises(UserError, match="not trusted"):
            kind(name)
    with pytest.raises(UserError, match="trusted"):
        compose(["+trusted=[os]", "+masking.x._target_=os.system"])


def test_only_a_declared_module_is_imported_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "house.py").write_text("class A:\n    pass\n")
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [other]\n")
    with pytest.raises(UserError, match="not trusted"):
        kind("house.A")
    assert kind("torch.optim.SGD")
    assert str(tmp_path) not in sys.path
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [house]\n")
    assert kind("house.A").__name__ == "A"
    assert sys.path[-1] == str(tmp_path), "installed packages come first"


def test_a_checkpoint_of_a_stranger(
    checkpoint: Path, arguments: list[str], bombs: list[dict[str, Any]], untouched: Callable[[list[str]], str]
) -> None:
    name = f"model.name={checkpoint / 'model'}"
    own = ["train", *arguments, *TINY, "model=pretrained", name, "tokenizer=pretrained", f"tokenizer.{name[6:]}"]
    own = [text for text in own if not text.startswith("tokenizer.vocab_size")]
    for bomb in bombs:
        spoil(checkpoint, bomb)
        assert "_target_" in untouched(own)


def test_a_run_of_a_stranger_that_is_reproduced(
    checkpoint: Path, bombs: list[dict[str, Any]], untouched: Callable[[list[str]], str]
) -> None:
    for bomb in bombs:
        spoil(checkpoint, bomb)
        assert "_target_" in untouched(["audit", "--reproduce", str(checkpoint)])


def test_a_fine_tuning_of_a_stranger(
    arguments: list[str], task_folder: Path, bombs: list[dict[str, Any]], mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.keep=true", "logger=none"]
    folder = run(compose([*arguments, "trainer.max_steps=1", *task]))
    (path,) = (folder / "tuned").glob("*.safetensors")
    with saved.safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["paribus"])
    tensors = load_file(path)
    monkeypatch.setattr(saved, "fingerprint", lambda backbone: about["backbone"])
    for bomb in bombs:
        for part in ("finetuning", "head", "task_type"):
            save_file(tensors, path, {"paribus": json.dumps({**about, part: {**about[part], "x": bomb}})})
            with pytest.raises(UserError):
                saved.load(path, backbone=saved.nn.Linear(1, 1))  # type: ignore[arg-type]
    assert not mark.exists()


def test_a_sweep_file_of_a_stranger(
    arguments: list[str],
    bombs: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    untouched: Callable[[list[str]], str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [text for text in arguments if not text.startswith("paths.runs=")]
    for bomb in bombs:
        sweep = {"study": "s", "varies": ["seed"], "matched": "tokens", "baseline": "a", "columns": ["mlm_loss"]}
        told = f"+masking.x={json.dumps(bomb)}".replace('"', "'").replace("'_target_'", "_target_")
        for place in ({"base": [told], "arms": {"a": [], "b": []}}, {"arms": {"a": [told], "b": []}}):
            (tmp_path / "sweep.yaml").write_text(yaml.safe_dump({**sweep, **place}))
            for verb in ("plan", "run"):
                untouched([verb, "sweep.yaml", *given])
    (tmp_path / "sweep.yaml").write_text(
        yaml.safe_dump({**sweep, "base": ["hydra.searchpath=[pkg://this]"], "arms": {"a": [], "b": []}})
    )
    assert "hydra.searchpath" in untouched(["run", "sweep.yaml", *given])


WAYS = {
    "an override": ["+masking.x={NODE}"],
    "a part of Hydra's own config": ["+hydra.callbacks.x={NODE}"],
    "a value that Hydra resolves": ["+hydra.callbacks.x=${oc.create:'{NODE}'}"],
    "a log handler": ["+hydra.job_logging.handlers.x={'()': os.system, command: 'touch MARK'}"],
    "a sampler": ["-m", "hydra/sweeper=optuna", "hydra.sweeper.sampler={NODE}", "masking.rate=interval(0.1,0.5)"],
    "a pruner": ["-m", "hydra/sweeper=optuna", "+hydra.sweeper.pruner={NODE}", "masking.rate=interval(0.1,0.5)"],
    "a space": ["-m", "hydra/sweeper=optuna", "hydra.sweeper.custom_search_space=os.system"],
    "an annotator": ["masking=annotated_span", "masking/annotator=function", "masking.annotator.call='os:system'"],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_an_override_of_a_stranger(
    way: str, arguments: list[str], mark: Path, monkeypatch: pytest.MonkeyPatch, untouched: Callable[[list[str]], str]
) -> None:
    node = f"{{_target_: os.system, command: 'touch {mark}'}}"
    own = [text.replace("{NODE}", node).replace("MARK", str(mark)) for text in WAYS[way]]
    untouched(["train", *arguments, *TINY, *own])


@pytest.mark.parametrize("group", ["task", "search", "experiment", "masking"])
def test_a_file_of_a_group_of_a_stranger(
    group: str,
    arguments: list[str],
    mark: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    untouched: Callable[[list[str]], str],
) -> None:
    bomb = {"_target_": "os.system", "command": f"touch {mark}"}
    (tmp_path / "conf" / group).mkdir(parents=True)
    path = tmp_path / "conf" / group / "strange.yaml"
    content: dict[str, Any] = {"task": {**bomb}, "masking": bomb}.get(group, {"masking": {"rate": bomb}})
    if group == "search":
        content = {"defaults": [{"override /hydra/sweeper": "optuna"}], "hydra": {"sweeper": {"pruner": bomb}}}
    head = "" if group in ("task", "masking") else "# @package _global_\n"
    path.write_text(head + yaml.safe_dump(content))
    monkeypatch.chdir(tmp_path)
    own = [] if group == "task" else ["task=none"]
    more = ["-m", "masking.rate=interval(0.1,0.5)"] if group == "search" else []
    untouched(["train", *arguments, "trainer.max_steps=1", "logger=none", *own, f"{group}=strange", *more])


def test_what_is_trusted_is_built(trust: Callable[..., None]) -> None:
    assert build({"_target_": "optuna.pruners.MedianPruner"}).__class__.__name__ == "MedianPruner"
    assert kind("torch.optim.AdamW").__name__ == "AdamW"
    trust("decimal")
    assert str(build({"_target_": "decimal.Decimal", "value": "2"})) == "2"
