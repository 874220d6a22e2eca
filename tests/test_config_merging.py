"""Config files merged as dicts give the config and the errors of Hydra's own merging."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from omegaconf import DictConfig, OmegaConf

from paribus.core import config as configs
from paribus.core import merging
from paribus.core.errors import UserError
from paribus.core.shortcuts import _loaded
from paribus.sweeps.sweep import arm_overrides, load

OWN = {
    "nothing to replace": ("masking/own", "defaults: [bernoulli]\nrate: ???\n"),
    "null": ("masking/own", "defaults: [bernoulli]\nselector: null\n"),
    "a value in place of a group": ("masking/own", "defaults: [bernoulli]\nschedule: 1\n"),
    "a plain file before its types": ("corpus/own", "# @package _global_\ntrainer: {max_steps: 7}\nbatch: {size: 5}\n"),
    "null before its types": ("corpus/own", "# @package _global_\nbatch: null\n"),
    "a dict upon an interpolation": (
        "masking/own",
        "defaults: [bernoulli, _self_, other@_here_]\nextra: ${.schedule}\n",
    ),
}


@pytest.fixture(autouse=True)
def own_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "masking").mkdir(parents=True)
    (tmp_path / "conf" / "masking" / "other.yaml").write_text("extra: {count: 1}\n")
    return tmp_path / "conf"


def by_hydra(overrides: list[str]) -> DictConfig:
    def refuse(*_: object) -> NoReturn:
        raise merging.UnlikeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_merge_files", refuse)
        return configs._compose("train", overrides)


@pytest.fixture
def unlike(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which compositions were left to Hydra."""
    found: list[str] = []
    original = merging._merge_files

    def counted(*arguments: Any) -> DictConfig:
        try:
            return original(*arguments)
        except merging.UnlikeError as error:
            found.append(str(error))
            raise

    monkeypatch.setattr(merging, "_merge_files", counted)
    return found


def describe(config: DictConfig) -> list[object]:
    """Keys in their order, values, types and flags."""
    found: list[object] = []
    for key, node in config._content.items() if isinstance(config._content, dict) else ():
        data = node._metadata
        found += [key, data.ref_type, data.object_type, data.optional, sorted((data.flags or {}).items())]
        found += describe(node) if isinstance(node, DictConfig) else [repr(node)]
    return found


@pytest.mark.parametrize(
    ("name", "scale"), [("roberta_table1", "cpu"), ("t5_table8_domains", "gpu"), ("electra_table1", "smoke")]
)
def test_the_arms_of_a_sweep(name: str, scale: str, unlike: list[str]) -> None:
    sweep = load(name)
    for arm in list(sweep.arms)[:3]:
        overrides = list(arm_overrides(sweep, scale, arm))
        assert describe(configs._compose("train", overrides)) == describe(by_hydra(overrides))
    assert not unlike


@pytest.mark.parametrize("case", OWN)
def test_files_of_the_users_own(case: str, own_conf: Path, unlike: list[str]) -> None:
    path, text = OWN[case]
    (own_conf / path).parent.mkdir(exist_ok=True)
    (own_conf / f"{path}.yaml").write_text(text)
    overrides = ["scale=test", path.replace("/", "=")]
    assert describe(configs._compose("train", overrides)) == describe(by_hydra(overrides))
    assert len(unlike) == (" before its types" in case or case == "a dict upon an interpolation")


def test_a_wrong_type_is_explained_by_hydra(own_conf: Path) -> None:
    (own_conf / "experiment").mkdir()
    (own_conf / "experiment" / "own.yaml").write_text("# @package _global_\ntrainer: {max_steps: two}\n")
    overrides = ["scale=test", "experiment=own"]
    with pytest.raises(UserError, match=r"experiment/own.*two") as whole:
        by_hydra(overrides)
    with pytest.raises(UserError) as found:
        configs._compose("train", overrides)
    assert str(found.value) == str(whole.value)


def test_a_list_at_the_top_is_refused(own_conf: Path) -> None:
    (own_conf / "experiment").mkdir()
    (own_conf / "experiment" / "own.yaml").write_text("# @package _global_\n- seed\n")
    with pytest.raises(UserError, match=r"experiment/own\.yaml has no keys: write 'key: value' on each line"):
        configs._compose("train", ["scale=test", "experiment=own"])


def test_loaded_files_stay_as_they_are() -> None:
    configs._compose("train", ["scale=test"])
    before = {file: OmegaConf.to_yaml(result.config) for file, (result, _) in _loaded.items()}
    for overrides in (["scale=cpu", "family=t5", "trainer.max_steps=7"], ["scale=test", "masking.rate=0.3"]):
        configs._compose("train", overrides).masking.rate = 0.9
        by_hydra(overrides).masking.rate = 0.8
    assert all(OmegaConf.to_yaml(_loaded[file][0].config) == text for file, text in before.items())
