"""The norms of an encoder, and how a change replaces them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


class Norm(nn.Module):
    """A norm that torch does not have. A method of fine-tuning that trains LayerNorms trains it too."""


def replace_norms(encoder: Encoder, make: Callable[[nn.LayerNorm], nn.Module]) -> None:
    """Put what `make` gives in place of each LayerNorm: of the embeddings, of the layers and, with pre-LN, at the end.

    Heads are not part of the encoder: theirs stay LayerNorms, so that the same head reads all arms.
    """
    for module in list(encoder.backbone.modules()):
        for name, norm in module.named_children():
            if isinstance(norm, nn.LayerNorm):
                setattr(module, name, make(norm))
