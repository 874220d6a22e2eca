"""Every YAML of the project composes; bad keys are explained; a user's own conf folder extends ours."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from paribus.core.config import compose, conf_dir, expand, flat, plain, scale_settings, split_overrides
from paribus.core.errors import UserError
from paribus.core.settings import GROUPS

FILES = sorted(path.relative_to(conf_dir()).with_suffix("").as_posix() for path in conf_dir().rglob("*.yaml"))
RECIPES = [name for name in FILES if name.startswith("recipe/")]
LAUNCHERS = [name for name in FILES if name.startswith("launcher/")]
CHOICES = [name for name in FILES if name not in ("train", "run", *RECIPES, *LAUNCHERS)]
REQUIRED = {
    "corpus/text": ["corpus.path=somewhere"],
    "tokenizer/pretrained": ["tokenizer.name=somewhere"],
    "model/pretrained": ["model.name=somewhere"],
    "masking/annotator/function": ["masking.annotator.call='module:function'"],
}
OWNERS = {
    "objective/inputs": "objective=denoising",
    "objective/targets": "objective=denoising",
    "corpus/rules": "corpus=filtered",
    "masking/annotator": "masking=annotated_span",
}


def test_the_glob_finds_the_files() -> None:
    assert len(CHOICES) >= 37
    assert len(RECIPES) >= 5


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_composes_and_resolves(name: str) -> None:
    group, _, choice = name.rpartition("/")
    owner = [OWNERS[group]] if group in OWNERS else []
    values = plain(compose(["scale=null", *owner, f"{group}={choice}", *REQUIRED.get(name, [])]))
    assert flat(values)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_composes(name: str) -> None:
    _, family, scale = name.split("/")
    values = plain(compose([f"family={family}", f"scale={scale}"]))
    for text in scale_settings(family, scale)["overrides"]:
        key, _, value = text.partition("=")
        if key in flat(values):
            assert flat(values)[key] == yaml.safe_load(value) or str(flat(values)[key]) == value or "e-" in value
    assert len(set(scale_settings(family, scale)["seeds"])) >= 2


def test_an_explicit_override_beats_the_scale_and_the_last_one_counts() -> None:
    cfg = compose(["scale=smoke", "batch.size=5", "batch.size=7", "model=bert_mini"])
    assert (cfg.batch.size, cfg.model.layers, cfg.model.norm) == (7, 4, "pre")


def test_expand_lays_the_recipe_below() -> None:
    full = expand(["scale=test", "trainer.max_steps=9"])
    assert [text for text in full if text.startswith("trainer.max_steps=")] == ["trainer.max_steps=9"]
    assert "model=bert_tiny" in full
    assert list(split_overrides(["a=1", "b=2", "a=3"]).items()) == [("b", "2"), ("a", "3")]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("modle=bert_tiny", "did you mean model"),
        ("model=bert_tinny", "bert_base, bert_large"),
        ("optimizer.lrr=1", "optimizer.lr"),
        ("scale=huge", "known scales: cpu, gpu, paper, smoke, test"),
        ("seed", "write seed=VALUE"),
        ("optimizer.lr=[1", "optimizer.lr=[1"),
    ],
)
def test_bad_overrides_say_what_is_near(override: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        compose([override])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_users_conf_folder_extends_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "conf" / "model"
    own.mkdir(parents=True)
    (own / "bert_mine.yaml").write_text((conf_dir() / "model" / "bert_tiny.yaml").read_text().replace("128", "64"))
    recipe = tmp_path / "conf" / "recipe" / "bert" / "pocket.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("overrides: [model=bert_mine]\nseeds: [0, 1]\n")
    monkeypatch.chdir(tmp_path)
    scale_settings.cache_clear()
    assert compose(["scale=pocket"]).model.hidden == 64
    assert compose(["scale=null", "model=bert_tiny"]).model.hidden == 128


@pytest.mark.parametrize(
    ("override", "wanted"),
    [
        ("trainer.max_steps=abc", "a whole number"),
        ("evaluation.seed=abc", "a whole number"),
        ("seed=1.5", "a whole number"),
        ("members=many", "a whole number"),
        ("finetune.epochs=x", "a whole number"),
        ("finetune.clip=x", "a number"),
        ("finetune.seeds=0", "a list"),
        ("profile.compile=maybe", "true or false"),
        ("batch.size=null", "a value"),
    ],
)
def test_hydra_refuses_a_value_of_another_type(override: str, wanted: str) -> None:
    with pytest.raises(UserError, match=rf"^{re.escape(override)} has the wrong type.*give {wanted}"):
        compose([override])


def test_the_types_are_those_of_the_yaml_files() -> None:
    cfg = compose(["scale=null"])
    for name, group in GROUPS.items():
        assert {each.name for each in fields(group)} >= set(cfg[name])
