"""Types and bounds of settings: what is wrong is refused before anything is computed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from paribus.core.config import compose, plain
from paribus.core.errors import UserError
from paribus.core.values import check_values
from paribus.data.tokens.prepare import cut_words
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.training.description import Run

REFUSED = {
    "a whole number": [
        "finetune.seeds=[[[[]]]]", "seed=1.5", "evaluation.seed=abc", "trainer.max_tokens=true",
        "evaluation.examples=true",
    ],
    "is out of bounds: give a number from 0 to 1": [
        "masking.rate=-1", "masking.rate=nan", "model.dropout=2",
        "lr_schedule.final=-1",
    ],
    "is out of bounds: give a number from 1 to": ["model.layers=0", "model.heads=0", "model.hidden=0"],
    "out of bounds": [
        "trainer.max_epochs=1e30", "input.length=99999999", "finetune.batch_size=0",
        "finetune.length=0", "finetune.epochs=-1", "evaluation.examples=0",
        "evaluation.own_examples=0", "profile.workers=-1",
    ],
    "is out of bounds: give a number from 0 up": [
        "seed=-1", "evaluation.seed=-1", "optimizer.lr=-1", "finetune.seeds=[-1]",
    ],
    "is not finite": ["optimizer.lr=nan", "optimizer.weight_decay=inf"],
    "is too large": ["seed=99999999999999999999999"],
    "corpus.path is missing: write corpus.path=PATH": ["corpus=text"],
    "model.name is missing: write model.name=NAME": ["model=pretrained"],
    "tasks.x.classes is missing: add 'classes:' to its file": [
        "+tasks.x={_target_:paribus.tasks.tables.table.LabelTable,name:x,columns:{text:a,label:b},path:y}"
    ],
    r"tasks.x.classes=DESC is not a list: give tasks.x.classes=\[DESC\]": [
        "+tasks.x={_target_:paribus.tasks.tables.table.LabelTable,name:x,columns:{text:a,label:b},path:y,classes:DESC}"
    ],
    "give a number": ["optimizer.weight_decay=true", "optimizer.lr=abc", "masking.rate=true", "masking.rate=[1]"],
    "a choice of": ["evaluation.masking=1", "masking.schedule=abc", "~objective.view._target_"],
    "tasks.x names no _target_: write a class, such as": ["+tasks.x.y=3", "+tasks.x=3"],
    "has no key": ["+=", "=1", "~=", "++@model=3"],
    "is a list of choices: give one choice of batch": ["batch=[1,2]"],
    "unknown choice": ["masking=1.5", "corpus=null", "objective/view=true", "~finetune/head=0"],
}  # fmt: skip


@pytest.mark.parametrize(("message", "override"), [(why, one) for why, each in REFUSED.items() for one in each])
def test_a_wrong_value_is_refused(message: str, override: str) -> None:
    with pytest.raises(UserError, match=message):
        Run.of(compose(["scale=test", "logger=none", override]))


def test_numbers_of_others_components_may_be_negative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Callable[..., None]
) -> None:
    """Only they know their bounds; the labels of our own tasks may lie below zero too."""
    (tmp_path / "shifted.py").write_text("class Shifted:\n    def __init__(self, offset: int, inner): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    trust("shifted")
    own = {"_target_": "shifted.Shifted", "offset": -3, "inner": {"size": -1}}
    check_values({"masking": own})
    check_values({"_target_": "paribus.tasks.types.regression.Regression", "least": -1.0, "most": -0.5}, "tasks.x.type")
    with pytest.raises(UserError, match=r"masking.inner.size=nan is not finite"):
        check_values({"masking": {**own, "inner": {"size": float("nan")}}})


def test_what_an_interpolation_gives_has_the_type_of_its_key() -> None:
    with pytest.raises(UserError, match=r"batch.size=.* give a whole number|could not be converted to Integer"):
        Run.of(compose(["scale=test", "logger=none", "batch.size='${oc.env:HOME}'"]))


def test_the_settings_of_every_task_have_types() -> None:
    with pytest.raises(UserError, match=r"tasks\.sst2\.max_train=x has the wrong type: give a whole number or null"):
        Run.of(compose(["scale=test", "logger=none", "task=sst2", "tasks.sst2.max_train=x"]))


def test_a_text_that_reads_as_a_number_needs_quotes() -> None:
    given = ["scale=test", "logger=none", "finetune/head/pooling=mean"]
    with pytest.raises(
        UserError, match=r"kind=nan has the wrong type: .* 'finetune\.head\.pooling\.kind=\"nan\"' for this"
    ):
        Run.of(compose([*given, "finetune.head.pooling.kind=nan"]))
    with pytest.raises(UserError, match=r"pooling\.kind=nan is unknown"):
        Run.of(compose([*given, 'finetune.head.pooling.kind="nan"']))


def test_every_default_is_in_bounds() -> None:
    for scale in ("test", "smoke", "cpu", "gpu", "paper"):
        for family in ("bert", "t5"):
            check_values(plain(compose([f"scale={scale}", f"family={family}"])))
    check_values(plain(compose(["scale=null", "finetune/head/layers=concat"])))


@pytest.mark.parametrize("own", ["finetune.seeds=[]", "finetune.seeds=[1,1]", "finetune.batch_size=0"])
def test_the_fine_tuning_is_checked_before_the_pre_training(
    own: str, arguments: list[str], task_folder: Path, refusal: Callable[..., str]
) -> None:
    assert own.partition("=")[0] in refusal(
        "train", *arguments, "task=sst2", f"tasks.sst2.path={task_folder}", "logger=none", own
    )


def test_the_same_text_does_not_train_and_judge(
    arguments: list[str], text_folder: Path, tmp_path: Path, refused_run: Callable[..., str]
) -> None:
    same = tmp_path / "same"
    same.mkdir()
    for split in ("train", "validation"):
        shutil.copy(text_folder / "train.txt", same / f"{split}.txt")
    given = [text for text in arguments if not text.startswith("corpus.path=")]
    assert "the same" in refused_run(*given, f"corpus.path={same}", "task=none", "logger=none")


def test_one_arm_is_no_sweep_and_no_record_no_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = {"study": "s", "varies": ["seed"], "matched": "tokens", "baseline": "a", "columns": ["mlm_loss"]}
    (tmp_path / "one.yaml").write_text(yaml.safe_dump({**sweep, "arms": {"a": []}}))
    assert "a sweep needs two arms or more" in refusal("plan", "one.yaml", "scale=test")
    assert "no run of roberta_table1 at scale=test" in refusal(
        "audit", "roberta_table1", "scale=test", "runs=none", "results=none"
    )


@pytest.mark.parametrize("overrides", [["model.initializer_range=0"], ["model=t5_tiny", "model.initializer_factor=1"]])
def test_a_whole_number_serves_as_a_number(overrides: list[str]) -> None:
    spec = Run.of(compose(["scale=test", *overrides])).model
    network = spec.build(Vocabulary(size=60, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4)), 0)
    assert any(parameter.numel() for parameter in network.parameters())


def test_a_word_without_end_is_cut_before_a_tokenizer_is_trained() -> None:
    assert cut_words("x" * 25 + " y", 10) == f"{'x' * 10} {'x' * 10} xxxxx y"
    assert cut_words("x" * 10 + " y", 10) == "x" * 10 + " y"
    assert cut_words("one two") == "one two"
    assert cut_words(f"{' ' * 30}one  {'x' * 11}\n", 10) == f"{' ' * 30}one  {'x' * 10} x\n"
