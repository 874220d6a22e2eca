"""Composed configs on disk: the same as composed anew, and composed anew after every change of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf
from omegaconf.errors import ConfigAttributeError

from paribus.core import config as configs
from paribus.core.config import compose, plain

OVERRIDES = ["scale=test", "masking/schedule=dynamic", "task=sst2"]


@pytest.fixture
def composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what Hydra has composed, with an empty cache."""
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    found: list[str] = []
    original = configs._compose

    def counted(name: str, overrides: list[str]) -> object:
        found.append(name)
        return original(name, overrides)

    monkeypatch.setattr(configs, "_compose", counted)
    return found


def test_a_stored_config_is_the_composed_one(composed: list[str]) -> None:
    first, second = compose(OVERRIDES), compose(OVERRIDES)
    assert composed == ["train"]
    assert second == first
    trees = [OmegaConf.to_container(config, resolve=False) for config in (first, second)]
    assert repr(trees[0]) == repr(trees[1]), "values of the same types in the same order"
    assert repr(plain(first)) == repr(plain(second))
    with pytest.raises(ConfigAttributeError):
        _ = second.unknown


def test_another_override_or_a_new_or_changed_file_is_composed_anew(composed: list[str], tmp_path: Path) -> None:
    compose(OVERRIDES)
    compose([*OVERRIDES, "seed=1"])
    assert len(composed) == 2
    own = tmp_path / "conf" / "masking" / "own.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("defaults: [bernoulli]\nrate: 0.25\n")
    compose(OVERRIDES)
    assert len(composed) == 3
    assert compose([*OVERRIDES, "masking=own"]).masking.rate == 0.25
    own.write_text("defaults: [bernoulli]\nrate: 0.5\n")
    assert compose([*OVERRIDES, "masking=own"]).masking.rate == 0.5
    assert len(composed) == 5


def test_a_plugin_that_we_do_not_know_switches_it_off(
    composed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hydra_plugins" / "other").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    compose(OVERRIDES)
    compose(OVERRIDES)
    assert len(composed) == 2
