"""Probes of frozen encoders: the same for every arm, exact again, and without a trace in the encoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from paribus.core.build import build
from paribus.core.config import compose
from paribus.finetuning.probe import fit_logistic
from paribus.training.description import Run
from paribus.training.evaluate import TrainedProbe, placed
from paribus.training.run import run
from paribus.training.streams import probe_examples

PROBED = "evaluation.probe_examples=24"


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def right(weight_CD: torch.Tensor, state_ND: torch.Tensor, label_N: torch.Tensor) -> float:
    found_N = (state_ND @ weight_CD[:, :-1].T + weight_CD[:, -1]).argmax(-1)
    return float((found_N == label_N).double().mean())


def test_the_fit_finds_what_is_linear_and_nothing_else() -> None:
    draw = torch.Generator().manual_seed(0)
    state_ND = torch.randn(600, 8, dtype=torch.float64, generator=draw)
    label_N = (state_ND @ torch.arange(8.0, dtype=torch.float64) > 3).long()
    weight_CD = fit_logistic(state_ND[:400], label_N[:400])
    assert right(weight_CD, state_ND[400:], label_N[400:]) > 0.9
    coin_N = torch.randint(2, (600,), generator=draw)
    assert right(fit_logistic(state_ND[:400], coin_N[:400]), state_ND[400:], coin_N[400:]) < 0.6
    assert torch.equal(weight_CD, fit_logistic(state_ND[:400], label_N[:400]))


def test_the_fit_is_the_optimum() -> None:
    """Two classes of one feature: at the optimum the gradient vanishes, the penalty's included."""
    state_ND = torch.tensor([[-1.0], [0.5], [1.0], [-0.5]], dtype=torch.float64)
    label_N = torch.tensor([0, 0, 1, 1])
    weight_CD = fit_logistic(state_ND, label_N).requires_grad_()
    loss = torch.nn.functional.cross_entropy(state_ND @ weight_CD[:, :-1].T + weight_CD[:, -1], label_N)
    (loss + 0.1 * weight_CD[:, :-1].square().sum()).backward()  # type: ignore[no-untyped-call]
    assert weight_CD.grad is not None
    assert float(weight_CD.grad.abs().max()) < 1e-7
    assert float(weight_CD.detach()[1, 0] - weight_CD.detach()[0, 0]) > 0.1


def test_a_probe_leaves_the_encoder_and_the_random_state_as_they_were(arguments: list[str]) -> None:
    cfg = compose([*arguments, "model.dropout=0.5"])
    data = Run.of(cfg).data()
    encoder = build(cfg.model).build(data.vocabulary, 0).train()
    before, state = {k: v.clone() for k, v in encoder.state_dict().items()}, torch.get_rng_state()
    examples = [probe_examples(Run.of(cfg), data, "order", split, masked=False) for split in ("train", "validation")]
    probe = TrainedProbe("sop", examples[0], examples[1], 40, 16)
    first = probe.measure(encoder)
    assert probe.measure(encoder) == first == TrainedProbe("sop", examples[0], examples[1], 40, 16).measure(encoder)
    assert encoder.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_probes_read_the_common_pairs_without_masks(arguments: list[str]) -> None:
    cfg = compose(arguments)
    shown, masked = (
        probe_examples(Run.of(cfg), Run.of(cfg).data(), "next", masked=m).views(0, range(6)) for m in (False, True)
    )
    assert (shown.inputs.ids_BL == shown.text.ids_BL).all()
    assert (shown.text.ids_BL == masked.text.ids_BL).all()
    assert (shown.text.label_B == masked.text.label_B).all()
    assert (masked.inputs.ids_BL != masked.text.ids_BL).any()


@pytest.mark.parametrize("arm", [[], ["objective=mlm_sop", "input=segment_pair", "input.pairs=order"]])
def test_every_model_is_asked_about_both_kinds_of_pairs(arguments: list[str], arm: list[str]) -> None:
    plain, probed = (record(run(compose([*arguments, *arm, *extra]))) for extra in ([], [PROBED]))
    own = {"nsp_accuracy", "sop_accuracy"} if arm else set()
    asked = {"nsp_probe_accuracy", "sop_probe_accuracy"}
    assert {name for name in plain["metrics"] if "mlm" not in name} == own
    assert {name for name in probed["metrics"] if "mlm" not in name} == own | asked
    assert all(0 <= probed["metrics"][name] <= 1 for name in asked)
    assert all(0.5 <= probed["baselines"][name]["majority"] < 1 for name in asked)
    assert {name: probed["metrics"][name] for name in plain["metrics"]} == plain["metrics"]


def test_asking_for_probes_is_part_of_a_run_s_name(arguments: list[str]) -> None:
    none, some = (Run.of(compose([*arguments, f"evaluation.probe_examples={n}"])).identity.signature for n in (0, 24))
    assert Run.of(compose(arguments)).identity.signature == none != some


def test_a_text_without_documents_has_no_probe_of_next_segments(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = " ".join(f"The {n} sailors crossed the river before the winter." for n in range(300))
    (tmp_path / "train.txt").write_text(sentences + "\n")
    (tmp_path / "validation.txt").write_text(sentences[:4000] + "\n")
    found = record(run(compose([*arguments, PROBED, f"corpus.path={tmp_path}", "tokenizer.vocab_size=80"])))
    assert "sop_probe_accuracy" in found["metrics"]
    assert "nsp_probe_accuracy" not in found["metrics"]
    assert "another document, but the text has only 1" in capsys.readouterr().err


def test_a_negative_number_of_examples_is_refused(arguments: list[str], refused_run: Callable[..., str]) -> None:
    assert "evaluation.probe_examples=-1" in refused_run(*arguments, "evaluation.probe_examples=-1")


def test_what_is_evaluated_lies_on_the_device_and_afterwards_on_the_cpu() -> None:
    class Named(torch.nn.Linear):
        def to(self, *where: Any, **how: Any) -> Any:
            moves.append(where[0])
            return self

    moves: list[str] = []
    with placed("cuda", Named(1, 1), Named(1, 1)):
        moves.append("measured")
    assert moves == ["cuda", "cuda", "measured", "cpu", "cpu"]
