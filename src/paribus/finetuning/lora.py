"""Low-rank updates of a frozen encoder's matrices."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import Unavailable, UserError
from paribus.core.settings import within
from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network

MATRICES = ("query", "key", "value", "dense")


@dataclass(frozen=True)
class Lora(Method):
    """W + alpha / rank * B A for the chosen matrices of every layer, B zero at first (LoRA, arXiv 2106.09685).

    `matrices` are names of linear layers; `dense` is every projection of a sublayer. Only A and B move.
    Needs the package `peft`. Raises UserError for a rank below 1 and for unknown matrices, Unavailable without `peft`.
    """

    rank: int = 8
    alpha: int = 16
    dropout: float = field(default=0.0, metadata=within(0, 1))
    matrices: Sequence[str] = ("query", "value")
    semantics: ClassVar[int] = 1
    enters_layers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise UserError(f"finetune.method.rank={self.rank} is below 1", "use 8")
        if not self.matrices or not set(self.matrices) <= set(MATRICES):
            raise UserError(
                f"finetune.method.matrices={list(self.matrices)} is unknown", f"choose from {', '.join(MATRICES)}"
            )

    def require(self) -> None:
        """Raise Unavailable without the package."""
        if importlib.util.find_spec("peft") is None:
            raise Unavailable("finetune/method=lora needs the package peft", "pip install 'paribus[lora]'")

    def check(self, layers: int) -> None:
        self.require()

    def check_network(self, encoder: Network) -> None:
        there = {kind for kind, _ in encoder.matrices()} & set(MATRICES)
        if not there:
            kind = type(encoder).__name__
            cause = f"finetune/method=lora updates matrices of layers, but matrices of {kind} names none"
            raise UserError(cause, f"write {kind}.matrices, or set finetune/method=full")
        if absent := sorted(set(self.matrices) - there):
            named = ", ".join(sorted(there))
            cause = f"finetune.method.matrices has {absent[0]}, but the layers of the model have only {named}"
            raise UserError(cause, f"choose from {named}")

    def shape(self, encoder: Network, seed: int) -> None:
        self.require()
        import torch
        from peft import LoraConfig, inject_adapter_in_model

        from paribus.models.network import named_generator

        encoder.requires_grad_(False)
        chosen = [name for kind, name in encoder.matrices() if kind in self.matrices]
        config = LoraConfig(r=self.rank, lora_alpha=self.alpha, lora_dropout=self.dropout, target_modules=chosen)
        inject_adapter_in_model(config, encoder.backbone)
        encoder.restore_sharing()
        # A is uniform in +- 1 / sqrt(inputs), as in the package, but a pure function of seed and name; B is zero
        with torch.no_grad():
            for name, parameter in encoder.named_parameters():
                if "lora_A" in name:
                    bound = parameter.shape[1] ** -0.5
                    parameter.uniform_(-bound, bound, generator=named_generator(seed, name))
