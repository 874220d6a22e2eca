"""The original words at places that show others of their row."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from paribus.models.encoder import Outputs
from paribus.models.heads.cross_entropy import summed_cross_entropy
from paribus.models.heads.mlm import MaskedLMHead


class WordOrderHead(nn.Module):
    """The masked-LM head asked about tokens out of order (StructBERT, arXiv 1908.04577, section 2.2).

    Reads `moved_P` and `moved_target_P`; its loss is a sum, to be divided by "moved".
    """

    per = "moved"

    def __init__(self, head: MaskedLMHead) -> None:
        super().__init__()
        self._head = [head]  # held, not registered: its parameters are those of the masked-LM head

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[P, V] for the P tokens out of order."""
        return self._head[0].logits(outputs, {"slot_P": batch["moved_P"]})

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the cross-entropies, in nats."""
        return summed_cross_entropy(self.logits(outputs, batch), batch["moved_target_P"])
