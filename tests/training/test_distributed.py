"""One run on two CPU processes: the same masks, the same loss, the same resume as on one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.tensor import DTensor

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.training.budget import plan_of
from paribus.training.callbacks import LAST, Evaluations
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.steps import PretrainingSteps

OWN = [
    "task=none", "logger=none", "trainer.log_every=1", "trainer.max_steps=6", "evaluation.points=1",
    "model.dropout=0", "model.attention_dropout=0",
]  # fmt: skip
Made = tuple[Path, dict[str, Any], list[dict[str, Any]]]


@pytest.fixture
def trained(arguments: list[str], tmp_path: Path) -> Callable[..., Made]:
    """(folder, record, the lines of its curve) of a run under a name."""

    def made(name: str, *more: str) -> Made:
        given = [text for text in arguments if not text.startswith("paths.runs=")]
        folder = run(compose([*given, *OWN, f"paths.runs={tmp_path / name}", *more]))
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return folder, json.loads((folder / "result.json").read_text()), lines

    return made


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_ranks_of_a_step_read_its_sequences_and_its_masks(arguments: list[str], ranks: int) -> None:
    cfg = compose([*arguments, "batch.size=7"])
    plan, _ = plan_of(Run.of(cfg), Run.of(cfg).data())

    def rows(share: tuple[int, int], micro: int | None = None) -> list[tuple[Any, ...]]:
        """Each sequence as its tokens, noised, and what is predicted where."""
        found = []
        own = PretrainingSteps(plan, 9, micro, share)[1]
        even = PretrainingSteps(plan, 9, micro, share, even=True)[1]
        assert len(even) == len(PretrainingSteps(plan, 9, micro, (0, ranks))[1]) or share == (0, 1)
        assert [batch.get("idle", False) for batch in even] == [False] * len(own) + [True] * (len(even) - len(own))
        assert not any(batch["counts"] for batch in even[len(own) :])
        for batch in own:
            length = batch["ids_BL"].shape[1]
            slot_P, target_P = batch["slot_P"].numpy(), batch["target_P"].numpy()
            for at, ids_L in enumerate(batch["ids_BL"].numpy()):
                own = slot_P // length == at
                real = int(batch["length_B"][at])
                found.append((tuple(ids_L[:real]), tuple(slot_P[own] % length), tuple(target_P[own])))
        return sorted(found)

    whole = rows((0, 1))
    assert len(whole) == 7
    assert sorted(row for rank in range(ranks) for row in rows((rank, ranks))) == whole
    assert sorted(row for rank in range(ranks) for row in rows((rank, ranks), 2)) == whole
    assert np.concatenate([target for _, _, target in whole]).size > 0


@pytest.mark.parametrize("strategy", ["ddp", pytest.param("fsdp", marks=pytest.mark.slow)])
def test_two_processes_train_as_one_at_the_same_batch(trained: Callable[..., Made], strategy: str) -> None:
    one, alone, curve = trained("alone", "evaluation.points=2")
    two, both, shared = trained("both", "evaluation.points=2", f"trainer={strategy}", "profile.accelerator=cpu")
    assert (both["profile"]["ranks"], both["profile"]["strategy"]) == (2, strategy)
    assert both["signature"] == alone["signature"]
    for own, other in zip(curve, shared, strict=True):
        assert own.keys() == other.keys()
        for key, value in own.items():
            assert other[key] == pytest.approx(value, abs=1e-5, rel=1e-5), key
    assert both["metrics"]["mlm_loss"] == pytest.approx(alone["metrics"]["mlm_loss"], abs=1e-5)
    weights, other = (load_file(folder / "model" / "model.safetensors") for folder in (one, two))
    assert weights.keys() == other.keys()
    for key, weight in weights.items():
        assert torch.allclose(other[key], weight, atol=1e-5), key
    counts = ("raw_tokens", "input_tokens", "predicted_tokens", "sequences", "steps")
    assert {key: both["budget"][key] for key in counts} == {key: alone["budget"][key] for key in counts}


DROPPED = ["batch.size=8", "profile.microbatch=2", "model.dropout=0.1", "profile.accelerator=cpu"]


def bits(folder: Path) -> dict[str, bytes]:
    weights = load_file(folder / "model" / "model.safetensors")
    return {name: tensor.numpy().tobytes() for name, tensor in weights.items()}


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_that_share_the_microbatches_give_the_same_bits(trained: Callable[..., Made], ranks: int) -> None:
    alone, one, curve = trained("alone", *DROPPED)
    folder, several, shared = trained("several", *DROPPED, "trainer=ddp", f"profile.ranks={ranks}")
    assert several["profile"]["ranks"] == ranks
    assert bits(folder) == bits(alone)
    assert shared == curve
    assert several["metrics"] == one["metrics"]


@pytest.fixture
def stopped(
    trained: Callable[..., Made], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., dict[str, Any]]:
    """Start a run whose machine goes away at step 5; its checkpoint is of step 4."""
    stop = Evaluations.on_train_batch_end

    def fails(self: Any, trainer: Any, *rest: Any) -> None:
        if trainer.global_step == 5:
            raise RuntimeError("the machine went away")
        stop(self, trainer, *rest)

    def start(*own: str) -> dict[str, Any]:
        with monkeypatch.context() as patched:
            patched.setattr(Evaluations, "on_train_batch_end", fails)
            with pytest.raises(RuntimeError, match="went away"):
                trained("stopped", *own)
        (last,) = (tmp_path / "stopped").rglob(LAST)
        found: dict[str, Any] = torch.load(last, weights_only=True)
        return found

    return start


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_resume_to_the_same_bits(
    trained: Callable[..., Made], stopped: Callable[..., dict[str, Any]], strategy: str
) -> None:
    own = [f"trainer={strategy}", "profile.checkpoint_steps=2", "batch.size=6", "model.dropout=0.1"]
    _, whole, _ = trained("whole", *own)
    stopped(*own)
    _, resumed, lines = trained("stopped", *own)
    assert resumed["metrics"] == whole["metrics"]
    assert [line["step"] for line in lines if "train/lr" in line] == [1, 2, 3, 4, 5, 6]


REMEMBERS = [
    "model=transformer_xl_tiny", "objective=stream_lm", "input=streams", "masking=none", "input.length=8",
    "model.memory=12", "model.dropout=0.1", "profile.microbatch=2", "profile.checkpoint_steps=2",
]  # fmt: skip

TWO_STREAMS = [
    "model=xlnet_tiny", "objective=permutation", "input=xlnet_pair", "masking=permutation_span", "input.length=16",
    "model.memory=12", "model.dropout=0.1", "model.attention_dropout=0.1",
    "profile.microbatch=2", "profile.checkpoint_steps=2",
]  # fmt: skip


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("remembers", [REMEMBERS, TWO_STREAMS], ids=["transformer_xl", "xlnet"])
def test_a_memory_resumes_in_the_middle_of_its_streams(
    trained: Callable[..., Made], stopped: Callable[..., dict[str, Any]], remembers: list[str], ranks: int
) -> None:
    own = [*remembers] if ranks == 1 else [*remembers, "trainer=ddp", f"profile.ranks={ranks}"]
    folder, whole, curve = trained("whole", *own)
    carried = stopped(*own)["carried"]
    assert sorted(carried) == [0, 1]  # of both microbatches, whichever process has them
    resumed, record, lines = trained("stopped", *own)
    assert record["metrics"] == whole["metrics"]
    assert bits(resumed) == bits(folder)
    assert [line for line in lines if "train/lr" in line] == [line for line in curve if "train/lr" in line]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1), (4, 2)])
def test_another_number_of_processes_resumes_to_the_same_bits(
    trained: Callable[..., Made], stopped: Callable[..., dict[str, Any]], first: int, then: int
) -> None:
    def on(ranks: int) -> list[str]:
        own = [*DROPPED, "profile.checkpoint_steps=2"]
        return own if ranks == 1 else [*own, "trainer=ddp", f"profile.ranks={ranks}"]

    folder, whole, curve = trained("whole", *on(1))
    stopped(*on(first))
    resumed, record, lines = trained("stopped", *on(then))
    assert record["profile"]["ranks"] == then
    assert bits(resumed) == bits(folder)
    assert lines == curve
    assert record["metrics"] == whole["metrics"]


@pytest.mark.parametrize("optimizer", [pytest.param("adamw", marks=pytest.mark.slow), "lamb"])
def test_one_process_goes_on_from_the_checkpoint_of_shards(
    trained: Callable[..., Made], stopped: Callable[..., dict[str, Any]], optimizer: str
) -> None:
    own = ["profile.checkpoint_steps=2", "batch.size=6", f"optimizer={optimizer}"]
    _, whole, _ = trained("whole", *own)
    last = stopped(*own, "trainer=fsdp")
    (moments,) = last["optimizer_states"]
    assert not any(isinstance(value, DTensor) for value in last["state_dict"].values())
    assert not any(isinstance(value, DTensor) for own in moments["state"].values() for value in own.values())
    _, resumed, _ = trained("stopped", *own)
    assert resumed["profile"]["ranks"] == 1
    assert resumed["metrics"]["mlm_loss"] == pytest.approx(whole["metrics"]["mlm_loss"], abs=1e-5)


def test_what_cannot_be_shared_is_refused_in_one_line(
    trained: Callable[..., Made],
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(UserError, match=r"profile.ranks=0 is out of bounds"):
        trained("none", "profile.ranks=0")
    with pytest.raises(UserError, match=r"profile.ranks=99999 is above 4 for each of \d+ cores: lower profile.ranks"):
        trained("many", "profile.ranks=99999", "profile.accelerator=cpu")
    with pytest.raises(UserError, match=r"trainer.noise_every does not work with profile.ranks=2"):
        trained("noise", "profile.ranks=2", "trainer.noise_every=2", "profile.accelerator=cpu")
    with pytest.raises(UserError, match=r"profile.strategy=deepspeed is unknown: use ddp or fsdp"):
        trained("unknown", "profile.strategy=deepspeed")
    with pytest.raises(UserError, match=r"profile.compile=true does not work with profile.strategy=fsdp"):
        trained("compiled", "trainer=fsdp", "profile.ranks=2", "profile.compile=true", "profile.accelerator=cpu")
    with pytest.raises(UserError, match=r"optimizer=adafactor with profile.strategy=fsdp needs whole matrices"):
        trained("factored", "trainer=fsdp", "profile.ranks=2", "optimizer=adafactor", "profile.accelerator=cpu")
    monkeypatch.setattr(sys, "argv", sys.argv)
    assert main(["train", "-m", *arguments, *OWN, "profile.ranks=2"]) == 2
    said = capsys.readouterr().err
    assert said.count("paribus: profile.ranks=2 does not work inside a Hydra multirun") == 1
    assert "Traceback" not in said
