"""Composed configs on disk: the same as composed anew, and composed anew after every change of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf
from omegaconf.errors import ConfigAttributeError

from paribus.core import config as configs
from paribus.core.config import compose, keep_bases, plain
from paribus.core.errors import UserError
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load

OVERRIDES = ["scale=test", "masking/schedule=dynamic", "task=sst2"]


@pytest.fixture
def composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what Hydra has composed, with an empty cache."""
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    found: list[str] = []
    original = configs.compose_uncached

    def counted(name: str, overrides: list[str]) -> object:
        found.append(name)
        return original(name, overrides)

    monkeypatch.setattr(configs, "compose_uncached", counted)
    monkeypatch.setattr(configs, "_bases", {})
    monkeypatch.setattr(configs, "_bases_folder", None)
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
    compose([*OVERRIDES, "optimizer=lamb"])
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


def test_configs_that_differ_in_values_share_what_hydra_composes(
    composed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_bases(tmp_path / "bases")
    made = [compose([*OVERRIDES, f"seed={seed}", f"arm=a{seed}"]) for seed in range(2)]
    monkeypatch.setattr(configs, "_bases", {})  # as in another process
    made.append(compose([*OVERRIDES, "seed=2", "arm=a2"]))
    assert composed == ["train"]
    assert [(config.seed, config.arm) for config in made] == [(0, "a0"), (1, "a1"), (2, "a2")]
    with pytest.raises(UserError, match=r"seed=x has the wrong type: give a whole number"):
        compose([*OVERRIDES, "seed=x"])


@pytest.mark.parametrize("name", ["t5_table10", "sun_table5", "roberta_table1"])
def test_it_is_what_hydra_composes_from_all_overrides(name: str, composed: list[str]) -> None:
    sweep = load(name)
    for arm in sweep.arms:
        own = ["study=other", "optimizer.lr=3e-3", "paths.runs='a b'", "seed=2"]
        overrides = list(arm_overrides(sweep, "cpu", arm, own))
        whole = configs.compose_uncached("train", overrides)
        assert repr(OmegaConf.to_container(compose(overrides))) == repr(OmegaConf.to_container(whole))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("finetune.pooling=cls", "'finetune.pooling' is now 'finetune.head.pooling'"),
        ("masking.rat=0.2", "did you mean masking.rate"),
        ("trainer.max_steps=two", "wrong type"),
        ("seed=0,1", "seed"),
        ("finetune.length=[", "cannot be read"),
        ("masking.rate@other=0.2", "masking.rate"),
    ],
)
def test_an_error_is_that_of_the_whole(override: str, message: str, composed: list[str]) -> None:
    with pytest.raises(UserError) as whole:
        configs.compose_uncached("train", [*OVERRIDES, override])
    with pytest.raises(UserError, match=message) as found:
        compose([*OVERRIDES, override])
    assert str(found.value) == str(whole.value)


def test_a_composition_leaves_nothing_in_the_next(composed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    several = ["scale=test", "task=[docs_package,docs_order]", "stages=further"]
    first, then = compose(several), compose(["scale=test", "task=docs_signature"])
    monkeypatch.setattr(configs, "_bases", {})
    assert set(first.tasks) == {"docs_package", "docs_order"}
    assert set(then.tasks) == {"docs_signature"}
    alone = configs.compose_uncached("train", ["scale=test", "task=docs_signature"])
    assert repr(OmegaConf.to_container(then)) == repr(OmegaConf.to_container(alone))


def test_a_choice_may_follow_from_another(composed: list[str], tmp_path: Path) -> None:
    (tmp_path / "conf" / "objective").mkdir(parents=True)
    (tmp_path / "conf" / "objective" / "own.yaml").write_text(
        "defaults: [mlm, {/masking/schedule@schedule: '${optimizer}'}]\n"
    )
    (tmp_path / "conf" / "masking" / "schedule").mkdir(parents=True)
    (tmp_path / "conf" / "masking" / "schedule" / "adamw.yaml").write_text("marked: 1\n")
    assert compose(["scale=test", "objective=own", "optimizer=adamw"]).objective.schedule.marked == 1
