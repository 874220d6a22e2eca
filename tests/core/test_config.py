"""Every YAML of the project composes; presets and precedence; bad keys are explained; a user's conf extends ours."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from paribus.core.config import compose, flat, plain, split_overrides
from paribus.core.config_errors import SLOTS, renamed
from paribus.core.config_names import conf_dir
from paribus.core.errors import UserError
from paribus.core.recipes import name_recipe, table_seeds
from paribus.core.settings import GROUPS
from paribus.training.description import Run

FILES = sorted(path.relative_to(conf_dir()).with_suffix("").as_posix() for path in conf_dir().rglob("*.yaml"))
RECIPES = [name for name in FILES if name.startswith("recipe/") and name != "recipe/none"]
LAUNCHERS = [name for name in FILES if name.startswith("launcher/")]
TASKS = [name.partition("/")[2] for name in FILES if name.startswith("task/")]
CHOICES = [
    name for name in FILES if name not in ("train", "run", *RECIPES, *LAUNCHERS) and not name.startswith("task/")
]
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
    "finetune/joint/sampling": "finetune/joint=multi_task",
}


def test_the_glob_finds_the_files() -> None:
    assert len(CHOICES) >= 37
    assert len(RECIPES) >= 5


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_composes_and_resolves(name: str, trust: Callable[..., None]) -> None:
    trust("module")
    group, _, choice = name.rpartition("/")
    owner = [OWNERS[group]] if group in OWNERS else []
    key = SLOTS.get(group, group).replace("NAME", "slot")
    values = plain(compose(["scale=null", *owner, f"{key}={choice}", *REQUIRED.get(name, [])]))
    assert flat(values)


def test_every_task_composes_and_resolves() -> None:
    tasks = plain(compose(["scale=null", f"task=[{','.join(TASKS)}]"]).tasks)
    assert set(tasks) >= set(TASKS) - {"none"}
    assert all(flat(task) for task in tasks.values())


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_composes(name: str) -> None:
    _, family, *versions, scale = name.split("/")
    chosen = [f"recipe={name_recipe(family, scale, version)}" for version in versions]
    composed = compose([f"family={family}", f"scale={scale}", *chosen])
    values = flat(plain(composed))
    body = yaml.safe_load((conf_dir() / f"{name}.yaml").read_text())
    del body["defaults"]
    assert (composed.family, composed.scale) == (family, scale)
    assert {key: values[key] for key in flat(body)} == flat(body)
    assert len(set(table_seeds(family, scale, *versions))) >= 2


@pytest.mark.parametrize("given", [["recipe=t5/cpu"], ["+recipe=t5/cpu"], ["scale=cpu", "model=t5_tiny"]])
def test_a_recipe_is_what_scale_and_family_choose(given: list[str]) -> None:
    assert compose(given) == compose(["scale=cpu", "family=t5"])


@pytest.mark.parametrize("given", [["family=t5"], ["model=t5_mini"], ["model=t5_mini", "scale=null"]])
def test_a_family_and_a_model_compose_alone(given: list[str]) -> None:
    cfg = compose(given)
    parts = (cfg.objective, cfg.input, cfg.masking, cfg.evaluation.masking, cfg.tokenizer, cfg.model)
    names = [part._target_.rpartition(".")[2] for part in parts]
    assert names == ["Denoising", "Windows", "RandomSpans", "RandomSpans", "Unigram", "T5"]
    assert cfg.family == "t5"
    assert cfg.tokenizer.sentinels == 100


def test_what_is_chosen_goes_with_a_family() -> None:
    given = compose(["family=t5", "objective=denoising", "input=windows", "masking=random_spans"])
    assert given == compose(["family=t5"])


def test_no_recipe() -> None:
    assert compose(["scale=null"]) == compose(["recipe=none"]) == compose(["recipe=null"])
    assert compose(["scale=null"]).scale is None


def test_later_presets_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults, family, recipe, experiment, debug, command line."""
    folder = tmp_path / "conf" / "experiment"
    folder.mkdir(parents=True)
    preset = "# @package _global_\ndefaults: [override /model: t5_mini, override /masking: iid]\n"
    (folder / "mine.yaml").write_text(f"{preset}study: mine\nbatch: {{size: 5}}\ntrainer: {{max_steps: 7}}\n")
    monkeypatch.chdir(tmp_path)
    cfg = compose(["experiment=mine", "scale=cpu"])
    assert (cfg.family, cfg.scale, cfg.study) == ("t5", "cpu", "mine")
    assert (cfg.model.layers, cfg.model.dropout) == (4, 0.0), "a recipe's value outlasts another choice of the group"
    assert (cfg.batch.size, cfg.trainer.max_steps) == (5, 7)
    assert cfg.masking._target_.endswith("Iid")
    cfg = compose(["+experiment=mine", "debug=one_batch", "batch.size=6", "batch.size=3"])
    assert (cfg.study, cfg.batch.size, cfg.trainer.max_steps, cfg.scale) == ("debug", 3, 1, "smoke")
    (folder / "mine.yaml").write_text("# @package _global_\ndefaults: [override /recipe: t5/test]\n")
    assert compose(["experiment=mine"]).scale == "test"
    assert compose(["experiment=mine", "scale=gpu"]) == compose(["family=t5", "scale=gpu"])


@pytest.mark.parametrize("header", ["", "# My own preset.\n", "# @package _global_\n"])
def test_a_preset_of_the_users_own_needs_no_package_line(
    header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf/experiment/deep").mkdir(parents=True)
    body = f"{header}defaults: [override /masking: whole_word]\nmasking: {{rate: 0.35}}\n"
    (tmp_path / "conf/experiment/mine.yaml").write_text(body)
    (tmp_path / "conf/experiment/deep/mine.yaml").write_text(body)
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "deep/mine"):
        masking = compose([f"experiment={name}"]).masking
        assert (masking.rate, masking._target_.rpartition(".")[2]) == (0.35, "WholeWord")


def test_a_key_at_the_top_that_nothing_reads_is_refused() -> None:
    with pytest.raises(UserError, match="'expirement' is not a config group or key: did you mean experiment"):
        Run.of(compose(["scale=test", "+expirement=mine"]))
    Run.of(compose(["scale=test", "+debug=one_batch"]))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("+masking.rat=1", "unknown key 'masking.rat': did you mean rate?"),
        ("+masking.zzz=1", "unknown key 'masking.zzz': known: rate, "),
        ("+masking.schedule.zzz=1", "unknown key 'masking.schedule.zzz': known: none"),
        ("+trainer.max_step=1", "unknown key 'trainer.max_step'"),
        ("+tasks.sst2.max_trian=1", "unknown key 'tasks.sst2.max_trian': did you mean max_train?"),
        ("+tasks.sst2.metrcs=[]", "unknown key 'tasks.sst2.metrcs': did you mean metrics?"),
        ("+tasks.docs_package.max_trian=1", "unknown key 'tasks.docs_package.max_trian': did you mean max_train?"),
    ],
)
def test_a_key_that_a_component_does_not_have_is_named(override: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        Run.of(compose(["scale=test", "task=[sst2,docs_package]", override]))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sede: 1", "'sede' is not a config group or key: did you mean seed"),
        ("optimizer: {lrr: 1}", "did you mean optimizer.lr"),
        ("model: {buckets: 1}", "'model.buckets'"),
        ("objective: {encoding: {mask: 1}}", "'objective.encoding' is now 'objective/view'"),
        ("overrides: [seed=1]", "'overrides' is not a config group or key"),
    ],
)
def test_a_preset_sets_only_keys_that_exist(
    body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    (tmp_path / "conf" / "experiment" / "mine.yaml").write_text(f"# @package _global_\n{body}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        compose(["experiment=mine"])
    assert said in str(refused.value)
    assert "experiment/mine.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


PLAIN_HYDRA = """
import hydra, sys
from paribus.core.plugins import register
register()
@hydra.main(version_base="1.3", config_path=sys.argv.pop(), config_name="train")
def main(cfg):
    print(cfg.scale, cfg.family, cfg.model.hidden, cfg.objective._target_.split(".")[-1])
main()
"""


@pytest.mark.parametrize(
    ("arguments", "composed"),
    [
        (["recipe=bert/paper"], ["paper bert 768 MaskedLM"]),
        (["-m", "recipe=bert/test,t5/test,t5/paper"], [
            "test bert 128 MaskedLM", "test t5 128 Denoising", "paper t5 768 Denoising",
        ]),
    ],
)  # fmt: skip
def test_plain_hydra_composes_a_recipe(arguments: list[str], composed: list[str], tmp_path: Path) -> None:
    """In an application that is not ours, on our config."""
    command = [sys.executable, "-c", PLAIN_HYDRA, *arguments, str(conf_dir())]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines() == composed, ended.stderr


def test_an_explicit_override_beats_the_scale_and_the_last_one_counts() -> None:
    cfg = compose(["scale=smoke", "batch.size=5", "batch.size=7", "model=bert_mini"])
    assert (cfg.batch.size, cfg.model.layers, cfg.model.norm) == (7, 4, "pre")
    assert list(split_overrides(["a=1", "b=2", "a=3"]).items()) == [("b", "2"), ("a", "3")]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("modle=bert_tiny", "did you mean model"),
        ("model=bert_tinny", "unknown choice model=bert_tinny: did you mean bert_tiny"),
        ("model=elmo", "bert_base, bert_large"),
        ("optimizer.lrr=1", "optimizer.lr"),
        ("objective.tasks.capital=2", "did you mean objective.view"),  # and no _target_
        ("model.buckets=1", "'model.buckets' does not apply to model=bert_micro"),
        ("corpus.rules=1", "'corpus.rules' is not a config group or key"),
        (
            "finetune.head.windows.stride=8",
            "'finetune.head.windows.stride' does not apply to finetune/head/windows=none",
        ),  # no windows
        ("objective/inputs=mask", "'objective/inputs' does not apply to objective=mlm"),
        ("masking.mean_length=3", "'masking.mean_length' does not apply to masking=bernoulli: leave it out"),
        ("masking.schedule.copies=3", "'masking.schedule.copies' does not apply to masking/schedule=dynamic"),
        ("experiment=mine", "unknown choice experiment=mine: did you mean minilm? or write conf/experiment/mine.yaml"),
        ("n_trials=3", "'n_trials' is a key of the sweeper: write hydra.sweeper.n_trials=VALUE"),
        ("scale=huge", "scale=huge is unknown for family=bert: known: cpu, gpu, original, paper, smoke, test"),
        ("task=[docs_package,nope]", "unknown choice task=nope: known: "),
        ("task=nope", "unknown choice task=nope: known: "),
        ("scale=smok", "scale=smok is unknown for family=bert: did you mean smoke?"),
        ("family=t6", "unknown choice family=t6: known: bert, lm, t5"),
        ("recipe=t5/cppu", "unknown choice recipe=t5/cppu: did you mean t5/cpu"),
        ("experiment=exampel", "unknown choice experiment=exampel: did you mean example?"),
        ("debug=overfitt", "unknown choice debug=overfitt: did you mean overfit?"),
        ("seed", "write seed=VALUE"),
        ("optimizer.lr=[1", "optimizer.lr=[1"),
    ],
)
def test_bad_overrides_say_what_is_near(override: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        compose([override])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("overrides", "near"),
    [
        (["objective=several", "objective.tasks.capital=2"], "objective.tasks.capitalization"),
        (["task=sst2", "tasks.sst2.max_trian=1"], "tasks.sst2.max_train"),
    ],
)
def test_a_key_of_the_same_parent_is_near(overrides: list[str], near: str) -> None:
    with pytest.raises(UserError, match=rf"is not a config group or key: did you mean {near}\?"):
        compose(overrides)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("finetuning=lora", "finetune/method"),
        ("+finetuning=lora", "finetune/method"),
        ("finetuning.size=8", "finetune.method.size"),
        ("finetune.bilstm=true", "finetune/head"),
        ("finetune.layers=[1]", "finetune/head/layers"),
        ("finetune.stride=22", "finetune.head.windows.stride"),
        ("finetune.siamese=cosine", "finetune.head.parts"),
        ("objective/encoding=replace", "objective/view"),
        ("objective.encoding.mask=1.0", "objective.view.mask"),
        ("objective/disorder=trigrams", "objective/shuffling"),
        ("objective.disorder.rate=0.1", "objective.shuffling.rate"),
        ("objective.sight.bidirectional=1.0", "objective.attention_mask.bidirectional"),
    ],
)
def test_an_old_key_names_the_new_one(old: str, new: str) -> None:
    key = old.lstrip("+").partition("=")[0]
    with pytest.raises(UserError, match=rf"^'{key}' is now '{new}': write {new}=VALUE$"):
        compose([old])


@pytest.mark.parametrize("key", ["finetune.method", "objective.view", "finetunings", "objective"])
def test_a_key_of_today_has_no_other_name(key: str) -> None:
    assert renamed(key) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["recipe=t5/cpu", "scale=gpu"], "recipe=t5/cpu and scale=gpu contradict each other"),
        (["recipe=t5/cpu", "family=bert"], "recipe=t5/cpu and family=bert contradict each other"),
        (["model=t5_tiny", "family=bert"], "model=t5_tiny is of family=t5, not bert: set family=t5"),
        (["debug=overfit", "study=roberta_table1"], "a debug run belongs to the study 'debug'"),
    ],
)
def test_what_does_not_go_together(given: list[str], said: str) -> None:
    with pytest.raises(UserError) as refused:
        compose(given)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"a: [b\nc: 1\n", "mine.yaml, line 2, is not valid YAML: "),
        (b"a: 1\n\na: 2\n", "mine.yaml, line 3, is not valid YAML: found duplicate key a"),
        (b"# caf\xe9\n", "mine.yaml is not UTF-8 (invalid continuation byte at byte 5): convert the file"),
        (b"- a\n", "mine.yaml has no keys: write 'key: value' on each line"),
        (b"a: ${b\n", "no viable alternative at input '${b'"),
    ],
)
def test_a_users_file_that_is_no_yaml_is_named(
    body: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "masking").mkdir(parents=True)
    (tmp_path / "conf" / "masking" / "mine.yaml").write_bytes(body)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        compose(["masking=mine"])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_recipe_that_is_no_yaml_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf" / "recipe" / "bert").mkdir(parents=True)
    (tmp_path / "conf" / "recipe" / "bert" / "pocket.yaml").write_text("a: [")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"pocket\.yaml, line \d, is not valid YAML"):
        table_seeds("bert", "pocket")


def test_a_users_conf_folder_extends_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "conf" / "model"
    own.mkdir(parents=True)
    (own / "bert_mine.yaml").write_text((conf_dir() / "model" / "bert_tiny.yaml").read_text().replace("128", "64"))
    recipe = tmp_path / "conf" / "recipe" / "bert" / "pocket.yaml"
    recipe.parent.mkdir(parents=True)
    body = "# @package _global_\ndefaults: [override /model: bert_mine]\nscale: pocket\n"
    recipe.write_text(f"{body}table_seeds: [0, 1]\n")
    monkeypatch.chdir(tmp_path)
    assert compose(["scale=pocket"]).model.hidden == 64
    assert table_seeds("bert", "pocket") == (0, 1)
    recipe.write_text(body)
    with pytest.raises(UserError, match="lacks 'table_seeds'"):
        table_seeds("bert", "pocket")
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


def test_a_run_takes_the_components_that_have_equal_settings_from_another(arguments: list[str]) -> None:
    config = plain(compose([*arguments, "task=none", "model.layers=1"]))
    first = Run.of(config)
    other = Run.of({**config, "seed": 1, "masking": {**config["masking"], "rate": 0.3}}, like=first)
    assert other.corpus is first.corpus
    assert other.masking is not first.masking
    assert other.seed == 1
    assert other.identity == Run.of(dict(other.config)).identity
    with pytest.raises(UserError, match=r"model.layers=.*whole number"):  # true equals 1
        Run.of({**config, "model": {**config["model"], "layers": True}}, like=first)
