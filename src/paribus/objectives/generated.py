"""Objectives whose network reads a text in which tokens were replaced (ELECTRA, arXiv 2003.10555, section 2).

A replacement that is drawn inside a step depends only on the row's noise key, the stream and the position: not on the
microbatch, the order of rows, the rank or a resume. So the counter hash of `core.noise` stands here for tensors, with
the same bits on any device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax
from torch.nn.utils import parametrize

from paribus.core.noise import FIRST, GOLDEN, SECOND, stream_number
from paribus.models import checkpoint
from paribus.models.heads.head import Head, cut_rows, name_places, summed_cross_entropy
from paribus.models.heads.vocabulary import ORIGINAL, MaskedLMHead
from paribus.models.network import Batch, Network, State
from paribus.objectives.objective import Objective

GENERATOR = "generator"  # the name of its loss

KEY: Final = "row_key_B"  # of a batch whose collator adds the row keys


def _signed(word: int) -> int:
    """The int64 with the same bits as this 64-bit word."""
    return word - (1 << 64) if word >= 1 << 63 else word


_GOLDEN, _FIRST, _SECOND = (_signed(int(word)) for word in (GOLDEN, FIRST, SECOND))


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """A logical shift: int64 has only an arithmetic one."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix64(value: Tensor) -> Tensor:
    """`core.noise.mix64` in int64 arithmetic, which wraps as uint64 does."""
    value = (value ^ _shift_right(value, 30)) * _FIRST
    value = (value ^ _shift_right(value, 27)) * _SECOND
    return value ^ _shift_right(value, 31)


def draw_bits(key_B: Tensor, stream: str, row_P: Tensor, position_P: Tensor) -> Tensor:
    """int64 [P]: the stream's draws of 32 bits at these positions of rows with these noise keys, int64 [B]."""
    start_B = mix64(key_B ^ _signed(int(stream_number(stream))))
    word_P = mix64(start_B[row_P] + (position_P // 2 + 1) * _GOLDEN)
    return torch.where(position_P % 2 == 1, _shift_right(word_P, 32), word_P & 0xFFFFFFFF)


def draw_uniform(batch: Batch, stream: str, row_P: Tensor, position_P: Tensor) -> Tensor:
    """float64 [P]: such draws for a batch whose collator has `row_keys`, as numbers in (0, 1): the middles of intervals
    of 2**-32.
    """
    return (draw_bits(batch[KEY], stream, row_P, position_P).double() + 0.5) / 2**32


def put(ids_BL: Tensor, slot_P: Tensor, written_P: Tensor) -> Tensor:
    """A copy of the ids with these at flat places."""
    return ids_BL.flatten().index_copy(0, slot_P, written_P).view_as(ids_BL)


class AddStopped(nn.Module):
    """Adds another table, to which no gradient flows."""

    def __init__(self, base: nn.Embedding) -> None:
        super().__init__()
        self._base = [base]  # held, not registered: its weights belong to another network

    def forward(self, own_VD: Tensor) -> Tensor:
        return self._base[0].weight.detach() + own_VD


class FromNoise(Objective):
    """The network reads the batch as it is: its random tokens are the replacements."""

    writes: ClassVar[bool] = True

    @property
    def own_head_name(self) -> str:
        return next(iter(self.heads))

    def write(self, network: nn.Module, batch: Batch) -> Batch:
        return {**batch, ORIGINAL: put(batch["ids_BL"], batch["slot_P"], batch["target_P"])}

    def forward(self, network: nn.Module, batch: Batch, state: State = None) -> tuple[dict[str, Tensor], Any]:
        return super().forward(network, self.write(network, batch), state)


class FromGenerator(FromNoise):
    """The generator predicts the noised places and writes a sample there; the network reads the result.

    A sample is a plain number: no gradient of the network's loss reaches the generator but through what they share.

    Args:
        generator: a network of the objective's own; None: the network itself.
        fill: its head.
        learns: whether it is trained; if not, it is the network that the stage before trained, frozen.
        disentangled: whether the network's embeddings are, while it is trained, the generator's plus tables of its own,
            and the generator's have no gradient from the network's loss.
    """

    def __init__(
        self,
        heads: Mapping[str, Head],
        weights: Mapping[str, float],
        generator: Network | None,
        fill: MaskedLMHead,
        *,
        temperature: float,
        disallow_correct: bool,
        learns: bool = True,
        disentangled: bool = False,
    ) -> None:
        super().__init__(heads, {**({GENERATOR: 1.0} if learns else {}), **weights})
        self.generator, self.fill, self.learns, self.disentangled = generator, fill, learns, disentangled
        self.temperature, self.disallow_correct = temperature, disallow_correct
        if generator is not None and not learns:
            generator.requires_grad_(False)
            fill.requires_grad_(False)

    def take_over(self, folder: Path) -> None:
        """The generator and its head, unless it learns."""
        if self.generator is not None and not self.learns:
            checkpoint.load(self.generator, folder)
            checkpoint.load_head(self.generator, self.fill, folder)

    @contextmanager
    def while_training(self, network: Network) -> Iterator[None]:
        """With `disentangled`, the generator starts from the network's tables, and the network's own begin at 0; at the
        end, the network's tables are the sums.
        """
        if not self.disentangled or self.generator is None:
            yield
            return
        pairs = [
            (getattr(network.backbone.embeddings, part), getattr(self.generator.backbone.embeddings, part))
            for part in ("word_embeddings", "position_embeddings")
        ]
        tables = [(table, base) for table, base in pairs if isinstance(table, nn.Embedding)]
        for table, base in tables:
            with torch.no_grad():
                base.weight.copy_(table.weight)
                table.weight.zero_()
            parametrize.register_parametrization(table, "weight", AddStopped(base))
        try:
            yield
        finally:
            for table, _ in tables:
                parametrize.remove_parametrizations(table, "weight", leave_parametrized=True)

    def denominators(self) -> dict[str, str]:
        generator = {GENERATOR: self.fill.denominator} if self.learns else {}
        return {**generator, **super().denominators()}

    def write(self, network: nn.Module, batch: Batch) -> Batch:
        return self._with_samples(batch, self._generator_logits(network, batch))

    def forward(self, network: nn.Module, batch: Batch, state: State = None) -> tuple[dict[str, Tensor], Any]:
        logits_PV = self._generator_logits(network, batch)
        losses, state = Objective.forward(self, network, self._with_samples(batch, logits_PV), state)
        if self.learns:
            losses = {GENERATOR: summed_cross_entropy(logits_PV, batch["target_P"]), **losses}
        return losses, state

    def _generator_logits(self, network: nn.Module, batch: Batch) -> Tensor:
        """[P, V]: the generator's logits at the noised places."""
        reader = network if self.generator is None else self.generator
        return self.fill.logits(reader(name_places([self.fill], batch)), batch)

    def _with_samples(self, batch: Batch, logits_PV: Tensor) -> Batch:
        """The batch with a sample from these logits at each noised place."""
        sampled_P = self.sample(logits_PV.detach(), batch)
        original_BL = put(batch["ids_BL"], batch["slot_P"], batch["target_P"])
        return {**batch, "ids_BL": put(batch["ids_BL"], batch["slot_P"], sampled_P), ORIGINAL: original_BL}

    def sample(self, logits_PV: Tensor, batch: Batch) -> Tensor:
        """int64 [P]: one id for each predicted place, drawn from the generator's distribution.

        One uniform number per place, of the row's noise key, is looked up in the cumulative distribution: the same law
        as the authors' Gumbel noise over the vocabulary, and it depends on neither microbatch, rank nor resume.
        """
        width = batch["ids_BL"].shape[1]
        drawn_P = draw_uniform(batch, "replaced", batch["slot_P"] // width, batch["slot_P"] % width)
        sampled: list[Tensor] = []
        for logits_RV, target_R1, drawn_R1 in cut_rows(logits_PV, batch["target_P"][:, None], drawn_P[:, None]):
            logits_RV = logits_RV.float() / self.temperature
            if self.disallow_correct:
                logits_RV = logits_RV.scatter(1, target_R1, float("-inf"))
            cumulative_RV = softmax(logits_RV, -1).cumsum(-1, dtype=torch.float64)
            sampled.append(torch.searchsorted(cumulative_RV, drawn_R1 * cumulative_RV[:, -1:]))
        return torch.cat(sampled)[:, 0]
