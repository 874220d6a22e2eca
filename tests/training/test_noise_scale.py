"""The gradient noise scale: right on a model whose noise is known; measuring it changes no bit of training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from paribus.core.config import compose
from paribus.training import noise_scale
from paribus.training.description import Run
from paribus.training.noise_scale import NoiseScale, Sums, estimates
from paribus.training.run import run

STEPS = ["trainer.max_steps=6", "trainer.log_every=1", "model.dropout=0.1"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()}


@pytest.mark.parametrize(("b", "size"), [(1, 4), (4, 16), (16, 256)])
def test_a_quadratic_of_known_noise(b: int, size: int) -> None:
    """Loss |theta - x|^2 / 2 with x ~ N(0, diag(sd^2)): gradients have mean theta and covariance diag(sd^2)."""
    random = np.random.default_rng(0)
    theta_D, sd_D = np.full(20, 0.5), np.linspace(0.5, 2.0, 20)
    sums = Sums()
    for _ in range(1500):
        gradient_ND = theta_D + sd_D * random.standard_normal((size, 20))
        norms = [float((gradient_ND[:n].mean(0) ** 2).sum()) for n in (b, size)]
        sums.add(*estimates(norms[0], b, norms[1], size))
    noise, signal = float((sd_D**2).sum()), float((theta_D**2).sum())
    assert sums.noise / sums.count == pytest.approx(noise, rel=0.06)
    assert sums.signal / sums.count == pytest.approx(signal, rel=0.15)
    scale, error = sums.scale(), sums.error()
    assert scale is not None
    assert error is not None
    assert abs(scale - noise / signal) < 4 * error
    assert error < 0.1 * scale


def test_noise_that_hides_the_gradient_has_no_scale() -> None:
    sums = Sums()
    sums.add(2.0, -0.1)
    assert sums.scale() is None
    assert sums.error() is None


@pytest.mark.parametrize("more", [[], ["profile.microbatch=2"], ["trainer.clip=null"]])
def test_measuring_changes_no_bit_and_no_name(arguments: list[str], tmp_path: Path, more: list[str]) -> None:
    given = [*arguments, *STEPS, *more]
    plain = run(compose([*given, f"paths.runs={tmp_path / 'plain'}"]))
    measured = run(compose([*given, "trainer.noise_every=2", f"paths.runs={tmp_path / 'measured'}"]))
    assert weights(measured) == weights(plain)
    assert measured.name == plain.name
    found = record(measured)
    assert "noise_scale" not in record(plain)["realised"]
    scale = found["realised"]["noise_scale"]
    assert (scale["measured"], scale["every"], scale["from_step"], scale["batch"]) == (1, 2, 3, 4.0)
    assert 10 < scale["tokens_per_sequence"] <= 32
    assert found["metrics"] == record(plain)["metrics"]
    assert found["budget"]["input_tokens"] == record(plain)["budget"]["input_tokens"]


def test_the_whole_step_measured_as_the_small_batch_has_the_steps_norm(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small batch's loss is computed as the step's: with all its sequences the two norms are one."""
    seen: list[tuple[float, float]] = []
    monkeypatch.setattr(noise_scale, "SHARE", 1)
    monkeypatch.setattr(
        noise_scale, "estimates", lambda small, b, large, size: seen.append((small, large)) or (1.0, 1.0)
    )

    def whole(self: NoiseScale, step: int) -> Any:
        epoch, rows = self.plan.blocks(step)[0]
        return noise_scale.as_batch(self.plan.examples.batch(epoch, rows))

    monkeypatch.setattr(NoiseScale, "_draw_part", whole)
    still = ["model.dropout=0.0", "model.attention_dropout=0.0"]
    run(compose([*arguments, *still, "trainer.max_steps=3", "trainer.noise_every=1", "trainer.clip=1.0"]))
    assert len(seen) == 3
    assert all(small == pytest.approx(large, rel=1e-4) for small, large in seen)


def test_a_step_of_one_sequence_is_not_measured(arguments: list[str]) -> None:
    found = record(run(compose([*arguments, "batch.size=1", "trainer.noise_every=1"])))["realised"]["noise_scale"]
    assert (found["sequences"], found["measured"]) == (None, 0)


def test_an_interrupted_run_measures_the_same(arguments: list[str], tmp_path: Path) -> None:
    noise = NoiseScale.__new__(NoiseScale)
    noise.sums, noise.recent, noise.tokens, noise.sequences = Sums(2, 3.0, 4.0, 5.0, 6.0, 7.0), [1.0, 2.0], 30, 4
    other = NoiseScale.__new__(NoiseScale)
    other.load_state_dict(json.loads(json.dumps(noise.state_dict())))
    assert other.__dict__ == noise.__dict__


def test_the_setting_names_no_run(arguments: list[str]) -> None:
    assert Run.of(compose(arguments)).identity == Run.of(compose([*arguments, "trainer.noise_every=5"])).identity
