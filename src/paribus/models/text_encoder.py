"""The encoder of a text-to-text model, for heads to read.   CoVe (arXiv 1708.00107), section 3"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from paribus.models.network import Batch, Network, Outputs, State
from paribus.models.spec import Shape
from paribus.models.t5 import T5
from paribus.models.text_to_text import TextToText


@dataclass(frozen=True)
class T5Encoder(Shape):
    """The encoder of a text-to-text model `of` this shape; the mean of its states summarizes a row."""

    of: T5
    hidden: int
    layers: int

    @property
    def pooling(self) -> str:
        return "mean"

    @property
    def initializer_range(self) -> float:
        return self.of.initializer_range

    @property
    def single(self) -> bool:
        return self.of.single

    def std(self, name: str) -> float:
        """As that of the whole model."""
        return self.of.std(name)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        return self.of.encoder_flops(tokens, tokens / rows if rows else length)


class TextEncoder(TextToText):
    """The encoder of a text-to-text model of two stacks, whose weights it shares."""

    def __init__(self, model: TextToText) -> None:
        spec = T5Encoder(model.spec, model.spec.hidden, model.depth)
        Network.__init__(self, spec, model.vocabulary, model.width, model.depth)
        self.backbone = model.backbone.encoder

    @property
    def table_VD(self) -> nn.Parameter:
        weight: nn.Parameter = self.backbone.embed_tokens.weight
        return weight

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """The states [B, L, D] of what is read."""
        hidden_BLD = self.backbone(input_ids=batch["ids_BL"], attention_mask=self.real(batch)).last_hidden_state
        return Outputs(hidden_BLD, state)

    def watch(self, layer: int, keep: Callable[[Tensor], None]) -> None:
        """As `Network.watch`; the states of layers, but not the embeddings, have gone through the final norm."""
        if not layer:
            self.backbone.embed_tokens.register_forward_hook(lambda _, __, output: keep(output))
            return

        def hook(_: nn.Module, __: object, output: Tensor | tuple[Tensor, ...]) -> None:
            keep(self.backbone.final_layer_norm(output[0] if isinstance(output, tuple) else output))

        self.backbone.block[layer - 1].register_forward_hook(hook)

    def writer(self, batch: Batch, most: int) -> Callable[[Tensor | None], Tensor]:
        return Network.writer(self, batch, most)

    def depth_of(self, parameter: str) -> int:
        return 0 if "embed_tokens" in parameter else super().depth_of(parameter)

    def restore_sharing(self) -> None:
        """Nothing is shared inside an encoder."""

    @property
    def head_weights(self) -> frozenset[str]:
        return frozenset()

    @property
    def head_parts(self) -> Mapping[str, str]:
        return {}
