"""One run from text to record: found again, resumed to the same bits, refused where the input is bad."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from run_files import lines, record, weights

from paribus.core.checksums import verify
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.core.processes import Stopped
from paribus.objectives.evaluation import HeldOutEvaluation
from paribus.runs.identity import meaning
from paribus.training import callbacks
from paribus.training.description import Run
from paribus.training.learner import Learner
from paribus.training.run import run

STEPS = ["trainer.max_steps=8", "trainer.log_every=1", "model.dropout=0.1", "model.attention_dropout=0.1"]


CONTRACT = {
    "schema", "signature", "study", "arm", "seed", "status", "metrics", "task_runs", "budget", "speed", "realised",
    "data", "versions", "git", "wandb_id",
}  # fmt: skip


def test_a_record_holds_what_the_contract_names(arguments: list[str]) -> None:
    folder = run(compose([*arguments, "study=s", "arm=a", "seed=3"]))
    found = record(folder)
    assert folder.parts[-3:-1] == ("s", "a")
    assert folder.name == f"seed3-{found['signature']}"
    assert set(found) >= CONTRACT
    assert (found["schema"], found["study"], found["arm"], found["seed"], found["status"]) == (1, "s", "a", 3, "done")
    assert {"mlm_loss", "mlm_perplexity", "mlm_accuracy"} <= set(found["metrics"])
    assert {"raw_tokens", "input_tokens", "predicted_tokens", "flops", "train_seconds", "steps"} <= set(found["budget"])
    assert found["budget"]["steps"] == 2
    assert found["speed"]["tokens_per_second"] > 0
    assert found["baselines"]["mlm_loss"]["unigram"] > 0
    assert 0.1 < found["realised"]["masking_rate"] < 0.25
    assert verify(found)
    assert (folder / "config.yaml").is_file()


def test_the_same_command_finds_the_run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    first = run(compose(arguments))
    before = (first / "result.json").read_bytes()
    again = run(compose([*arguments, "profile.workers=1", "trainer.log_every=7"]))
    assert again == first
    assert (first / "result.json").read_bytes() == before
    assert "found" in capsys.readouterr().err


def test_another_meaning_is_another_run(arguments: list[str]) -> None:
    base = Run.of(compose(arguments)).identity
    for change in ("seed=1", "masking.rate=0.2", "masking/schedule=static", "optimizer.lr=0.5", "model.layers=1"):
        assert Run.of(compose([*arguments, change])).identity.signature != base.signature
    for same in ("profile.workers=2", "study=other", "arm=other", "logger=wandb", "profile.precision=bf16-mixed"):
        assert Run.of(compose([*arguments, same])).identity.signature == base.signature


def test_one_text_in_another_place_is_the_same_run(arguments: list[str], text_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    for file in text_folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    moved = Run.of(compose([*arguments, f"corpus.path={copy}"])).identity
    assert moved.signature == Run.of(compose(arguments)).identity.signature


@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupted_run_ends_with_the_same_bits(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    whole = run(compose([*arguments, *STEPS, f"run_dir={tmp_path / 'whole'}"]))
    broken = compose(
        [
            *arguments,
            *STEPS,
            f"run_dir={tmp_path / 'broken'}",
            "profile.checkpoint_steps=3",
            f"profile.workers={workers}",
        ]
    )
    save = callbacks.LastCheckpoint.save

    def save_and_die(self: callbacks.LastCheckpoint, trainer: Any) -> None:
        save(self, trainer)
        if trainer.global_step == 6:
            callbacks.append_line(self.folder / "metrics.jsonl", {"step": 7, "train/mlm_loss": 99.0})
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(broken)
    assert not (tmp_path / "broken" / "result.json").exists()
    resumed = run(broken)
    assert weights(resumed) == weights(whole)
    assert lines(resumed) == lines(whole)
    assert record(resumed)["budget"]["input_tokens"] == record(whole)["budget"]["input_tokens"]
    assert not (resumed / callbacks.LAST).exists()


@pytest.mark.parametrize("damage", ["digit", "line", "gone"])
def test_a_damaged_curve_of_an_interrupted_run_is_trained_again(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: str,
) -> None:
    whole = run(compose([*arguments, *STEPS, f"run_dir={tmp_path / 'whole'}"]))
    broken = compose([*arguments, *STEPS, f"run_dir={tmp_path / 'broken'}", "profile.checkpoint_steps=3"])
    save = callbacks.LastCheckpoint.save

    def save_and_die(self: callbacks.LastCheckpoint, trainer: Any) -> None:
        save(self, trainer)
        if trainer.global_step == 6:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(broken)
    curve = tmp_path / "broken" / "metrics.jsonl"
    text = curve.read_text()
    first, rest = text.split("\n", 1)
    at = first.index("_loss") + len('_loss": ')
    changed = {"digit": f"{first[:at]}{(int(first[at]) + 1) % 10}{first[at + 1 :]}\n{rest}", "line": rest}
    curve.unlink() if damage == "gone" else curve.write_text(changed[damage])
    assert lines(run(broken)) == lines(whole)
    assert weights(tmp_path / "broken") == weights(whole)
    assert "metrics.jsonl is damaged; training starts over" in capsys.readouterr().err


def test_a_checkpoint_before_the_first_line_of_the_curve_is_resumed(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = [*arguments, *STEPS, "trainer.log_every=1000", "evaluation.points=0", "evaluation.own_points=0"]
    asked = compose([*quiet, f"run_dir={tmp_path / 'broken'}", "profile.checkpoint_steps=3"])
    save = callbacks.LastCheckpoint.save

    def save_and_die(self: callbacks.LastCheckpoint, trainer: Any) -> None:
        save(self, trainer)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(asked)
    assert not (tmp_path / "broken" / "metrics.jsonl").exists()
    whole = run(compose([*quiet, f"run_dir={tmp_path / 'whole'}"]))
    assert weights(run(asked)) == weights(whole)
    assert "starts over" not in capsys.readouterr().err


def test_what_is_trained_outlasts_a_stop_in_the_evaluation(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [*arguments, *STEPS, "evaluation.points=0", "evaluation.own_points=0", "profile.checkpoint_seconds=null"]
    whole = run(compose([*own, f"run_dir={tmp_path / 'whole'}"]))
    asked = compose([*own, f"run_dir={tmp_path / 'stopped'}"])

    def stop(*_: object) -> None:
        raise Stopped(signal.SIGTERM)

    def train_again(*_: object) -> None:
        raise AssertionError("all steps were done")

    with monkeypatch.context() as patch:
        patch.setattr(HeldOutEvaluation, "measure", stop)
        with pytest.raises(Stopped):
            run(asked)
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "training_step", train_again)
        resumed = run(asked)
    assert weights(resumed) == weights(whole)
    assert lines(resumed) == lines(whole)
    assert record(resumed)["budget"]["input_tokens"] == record(whole)["budget"]["input_tokens"]


def test_workers_and_microbatches_do_not_change_the_data(arguments: list[str], tmp_path: Path) -> None:
    extra = [*STEPS, "model.dropout=0", "model.attention_dropout=0"]
    plain = run(compose([*arguments, *extra, f"run_dir={tmp_path / 'a'}"]))
    spread = run(compose([*arguments, *extra, f"run_dir={tmp_path / 'b'}", "profile.workers=4"]))
    micro = run(compose([*arguments, *extra, f"run_dir={tmp_path / 'c'}", "profile.microbatch=1"]))
    assert weights(spread) == weights(plain)
    assert record(micro)["budget"]["predicted_tokens"] == record(plain)["budget"]["predicted_tokens"]
    assert record(micro)["metrics"]["mlm_loss"] == pytest.approx(record(plain)["metrics"]["mlm_loss"], abs=1e-3)


def test_tasks_are_fine_tuned_over_their_seeds(arguments: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.seeds=[0,1]", "finetune.batch_size=8"]
    found = record(run(compose([*arguments, *task])))
    assert [(r["task"], r["seed"]) for r in found["task_runs"]] == [("sst2", 0), ("sst2", 1)]
    mean = sum(r["metrics"]["accuracy"] for r in found["task_runs"]) / 2
    assert found["metrics"]["sst2/accuracy"] == pytest.approx(mean)
    assert set(found["baselines"]["sst2/accuracy"]) == {"majority", "bag_of_words"}


def test_without_steps_the_model_is_from_scratch(arguments: list[str]) -> None:
    found = record(run(compose([*arguments, "trainer.max_steps=0"])))
    assert found["budget"]["steps"] == found["budget"]["input_tokens"] == 0
    assert found["metrics"]["mlm_loss"] > found["baselines"]["mlm_loss"]["unigram"]


@pytest.mark.parametrize(
    ("own", "mend"), [([], "=6"), (["profile.microbatch=6"], "=4"), (["batch.size=1"], "smaller model")]
)
def test_too_little_memory_names_the_microbatch_and_keeps_the_batch(
    own: list[str], mend: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Learner, *_: object, **__: object) -> None:
        torch.empty(2**60, dtype=torch.uint8)  # what no machine has

    asked = compose([*arguments, "batch.size=12", *own, "logger=none"])
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "manual_backward", ask)
        with pytest.raises(UserError, match=f"do not fit into memory.*{mend}"):
            run(asked)
    again = compose([*arguments, "batch.size=12", "profile.microbatch=4", "logger=none"])
    assert Run.of(again).identity.signature == Run.of(compose([*arguments, "batch.size=12"])).identity.signature
    assert record(run(again))["budget"]["sequences"] == 24


@pytest.mark.parametrize("steps", [6, 1])
def test_a_diverged_run_is_a_record(arguments: list[str], steps: int) -> None:
    broken = ["trainer.log_every=1", "optimizer.lr=1e30", "trainer.clip=null"]
    found = record(run(compose([*arguments, f"trainer.max_steps={steps}", *broken])))
    assert found["status"] == "diverged"
    assert "loss" in found["error"]
    assert set(found) >= CONTRACT


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["nothing.here=1"], "nothing.here"),
        (["model=bert_tinny"], "bert_tiny"),
        (["input.length=1000"], "input.length=1000 exceeds model.positions=512"),
        (["tokenizer.vocab_size=5000"], "tokenizer.vocab_size"),
        (["trainer.max_steps=null"], "trainer has no budget"),
        (["batch.size=0"], "batch.size=0"),
        (["masking.rate=0"], "masking.rate"),
        (["objective.view.mask=0.9"], "objective.view"),
        (["optimizer.lr=-1"], "optimizer.lr"),
        (["corpus.path=/nowhere"], "/nowhere"),
        (["profile.precision=8"], "profile.precision"),
        (["task=sst2", "tasks.sst2.path=/nowhere"], "tasks.sst2.path"),
    ],
)
def test_bad_input_is_one_line_before_any_step(
    arguments: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*arguments, *bad)


def test_help_is_fast_because_nothing_heavy_is_imported() -> None:
    heavy = "[m for m in ('torch', 'hydra', 'numpy') if m in sys.modules]"
    code = f"import sys; from paribus.commands.cli import main; main(['--help']); print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_finding_a_finished_run_imports_no_torch(arguments: list[str]) -> None:
    run(compose(arguments))
    code = (
        "import sys; from paribus.core.config import compose; from paribus.training.run import run;"
        f"run(compose({arguments!r})); print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_a_full_disk_names_the_checkpoint(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import pytorch_lightning as pl

    def full(self: Any, path: Any, *more: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.Trainer, "save_checkpoint", full)
    with pytest.raises(UserError, match=r"last\.ckpt cannot be written"):
        run(compose([*arguments, "profile.checkpoint_steps=1"]))


MASKING = """
from dataclasses import dataclass
from paribus.corruption.masking.single_tokens import Bernoulli

@dataclass(frozen=True)
class Own(Bernoulli):
    '''A masking that one module after another holds.'''
"""


def test_a_component_that_moves_keeps_the_run_s_id(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from paribus.corruption.masking import single_tokens, whole_word

    one = Run.of(compose(arguments)).identity
    monkeypatch.setattr(whole_word, "Bernoulli", single_tokens.Bernoulli, raising=False)
    monkeypatch.setattr(single_tokens.Bernoulli, "__module__", whole_word.__name__)
    other = Run.of(compose([*arguments, f"masking._target_={whole_word.__name__}.Bernoulli"])).identity
    assert one == other
    assert one.signature != Run.of(compose([*arguments, "masking=whole_word"])).identity.signature


def test_a_class_of_others_counts_with_its_import_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Callable[..., None]
) -> None:
    trust("own_masking_one", "own_masking_two")
    for module in ("own_masking_one", "own_masking_two"):
        (tmp_path / f"{module}.py").write_text(MASKING)
    monkeypatch.syspath_prepend(str(tmp_path))
    one, other = (meaning({"_target_": f"own_masking_{n}.Own", "rate": 0.2}) for n in ("one", "two"))
    assert (one["component"], other["component"]) == ("own_masking_one.Own", "own_masking_two.Own")
    assert one["rate"] == 0.2


def test_every_setting_of_a_component_counts_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Callable[..., None]
) -> None:
    trust("own_masking_one")
    (tmp_path / "own_masking_one.py").write_text(MASKING)
    monkeypatch.syspath_prepend(str(tmp_path))
    one, other = (meaning({"_target_": "own_masking_one.Own", "path": name}) for name in ("a.txt", "b.txt"))
    assert one != other, "two lexicons are two arms"
