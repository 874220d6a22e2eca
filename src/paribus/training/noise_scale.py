"""The gradient noise scale: the batch size at which noise and signal of the gradient are equal.

McCandlish et al. 2018 (arXiv 1812.06162), appendix A.1: of the squared gradient norms at two batch sizes b < B,
    |G|^2 = (B |G_B|^2 - b |G_b|^2) / (B - b),    tr(Sigma) = (|G_b|^2 - |G_B|^2) / (1/b - 1/B)
are unbiased; their means are divided, B_simple = tr(Sigma) / |G|^2. Well below it a larger batch saves steps at no cost
in examples, well above it saves hardly any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import pytorch_lightning as pl
import torch
from torch import Tensor

from paribus.core.checksums import digest
from paribus.corruption.examples import Stream
from paribus.data.order import Order
from paribus.models.network import Batch, as_batch, seed_dropout
from paribus.training.callbacks import StepCallback
from paribus.training.learner import total_counts

if TYPE_CHECKING:
    from paribus.training.learner import Learner
    from paribus.training.steps import Step

SHARE = 4  # the small batch is a quarter of the step, at most a microbatch
HALF_LIFE = 20  # measurements, of the curve in metrics.jsonl
FROM = 0.5  # the record's number is that of the run's second half; in the first the gradient shrinks quickly


@dataclass
class Sums:
    """Sums over measurements of tr(Sigma) and |G|^2, gradients being those of means over sequences."""

    count: int = 0
    noise: float = 0.0
    signal: float = 0.0
    noise2: float = 0.0
    signal2: float = 0.0
    both: float = 0.0

    def add(self, noise: float, signal: float) -> None:
        self.count += 1
        self.noise += noise
        self.signal += signal
        self.noise2 += noise * noise
        self.signal2 += signal * signal
        self.both += noise * signal

    def scale(self) -> float | None:
        """tr(Sigma) / |G|^2 in sequences; None if noise hides the gradient, so that no positive |G|^2 is left."""
        return self.noise / self.signal if self.signal > 0.0 and self.noise > 0.0 else None

    def error(self) -> float | None:
        """The standard error of `scale`, to first order."""
        scale, n = self.scale(), self.count
        if scale is None or n < 2:
            return None
        noise, signal = self.noise / n, self.signal / n
        spread = (self.noise2 / n - noise**2) / noise**2 + (self.signal2 / n - signal**2) / signal**2
        spread -= 2.0 * (self.both / n - noise * signal) / (noise * signal)
        return scale * math.sqrt(max(0.0, spread) / (n - 1))


def estimates(small: float, b: int, large: float, size: int) -> tuple[float, float]:
    """(tr(Sigma), |G|^2) from the squared gradient norms at batches of `b` and of `size` sequences."""
    signal = (size * large - b * small) / (size - b)
    return (small - large) / (1.0 / b - 1.0 / size), signal


class NoiseScale(StepCallback):
    """Measures on every `every`-th step: one more pass over a quarter of its sequences. Training keeps its bits.

    `write(trainer, step, values)` is called when the curve has a new point.
    """

    def __init__(
        self,
        plan: Order[Stream],
        every: int,
        total: int,
        microbatch: int | None,
        write: Callable[[Any, int, Any], None],
    ) -> None:
        self.plan, self.every, self.total, self.microbatch, self.write = plan, max(1, every), total, microbatch, write
        self.sums = Sums()
        self.recent = [0.0, 0.0]  # decaying sums of tr(Sigma) and |G|^2
        self.tokens = self.sequences = 0  # of the measured steps
        self._small: tuple[Tensor, int] | None = None

    def on_train_batch_start(
        self, trainer: pl.Trainer, module: pl.LightningModule, batch: Step, batch_idx: int
    ) -> None:
        self._small = None
        if trainer.global_step % self.every == 0 and (part := self._draw_part(trainer.global_step)) is not None:
            self._small = _squared_norm(trainer, cast("Learner", module), part), int(part["counts"]["sequences"])

    def _draw_part(self, step: int) -> Batch | None:
        """A random part of a step's sequences, as a batch; None if the step has a single one."""
        epoch, rows = max(self.plan.blocks(step), key=lambda block: len(block[1]))
        most = len(rows) if self.microbatch is None else self.microbatch // self.plan.examples.readings
        size = max(1, min(most, len(rows) // SHARE))
        return as_batch(self.plan.examples.batch(epoch, rows[:size])) if len(rows) > size else None

    def on_before_optimizer_step(self, trainer: pl.Trainer, module: pl.LightningModule, optimizer: object) -> None:
        if self._small is not None:
            learner = cast("Learner", module)
            clipped = learner.clip is not None
            norm = learner.last["grad_norm"] if clipped else _norm([p.grad for p in learner.parameters()])
            self._large = norm.detach() ** 2

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        if self._small is None:
            return
        small, b = self._small
        counts = module.last["counts"]
        noise, signal = estimates(float(small), b, float(self._large), counts["sequences"])
        decay = 0.5 ** (1.0 / HALF_LIFE)
        self.recent = [decay * self.recent[0] + noise, decay * self.recent[1] + signal]
        if trainer.global_step > FROM * self.total:
            self.sums.add(noise, signal)
            self.tokens, self.sequences = self.tokens + counts["input_tokens"], self.sequences + counts["sequences"]
        if self.recent[0] > 0.0 and self.recent[1] > 0.0:
            self.write(trainer, trainer.global_step, {"train/noise_scale": self.recent[0] / self.recent[1]})

    def record(self) -> dict[str, Any]:
        """For the run's record: the scale in sequences and in tokens, with what it was measured on."""
        scale, error, n = self.sums.scale(), self.sums.error(), self.sums.count
        per_sequence = self.tokens / max(1, self.sequences)
        return {
            "sequences": scale,
            "tokens": None if scale is None else scale * per_sequence,
            "error": error,
            "noise": self.sums.noise / max(1, n),
            "signal": self.sums.signal / max(1, n),
            "tokens_per_sequence": per_sequence,
            "batch": self.sequences / max(1, n),
            "measured": n,
            "every": self.every,
            "from_step": math.ceil(FROM * self.total),
        }

    def state_dict(self) -> dict[str, Any]:
        return {"sums": asdict(self.sums), "recent": self.recent, "tokens": self.tokens, "sequences": self.sequences}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums, self.recent = Sums(**state["sums"]), list(state["recent"])
        self.tokens, self.sequences = state["tokens"], state["sequences"]


def _squared_norm(trainer: pl.Trainer, module: Learner, batch: Batch) -> Tensor:
    """|G_b|^2 of a separate batch, as the step computes its loss; neither gradients nor random states are touched."""
    batch = trainer.strategy.batch_to_device(batch)
    parameters = [p for p in module.parameters() if p.requires_grad]
    with torch.random.fork_rng(), trainer.precision_plugin.train_step_context():
        seed_dropout(module.device, int(digest([module.seed, trainer.global_step, "noise"], 15), 16))
        terms, _ = module.terms(batch, module.objective.divisors(total_counts([batch])))
        loss = module.loss(terms)
        return _norm(torch.autograd.grad(loss, parameters, allow_unused=True)) ** 2


def _norm(gradients: Iterable[Tensor | None]) -> Tensor:
    norms = [torch.linalg.vector_norm(gradient.float()) for gradient in gradients if gradient is not None]
    total: Tensor = torch.linalg.vector_norm(torch.stack(norms))
    return total
