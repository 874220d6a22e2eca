"""A model that writes: `transformers`' T5 behind the interface that objectives call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import T5Config, T5Model
from transformers.models.t5.modeling_t5 import (
    T5Attention,
    T5LayerCrossAttention,
    T5LayerFF,
    T5LayerNorm,
    T5LayerSelfAttention,
    T5Stack,
)

from paribus.models.encoder import Batch, Outputs
from paribus.models.tunable import Tunable

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary

PLACES: dict[type[nn.Module], str] = {
    T5LayerSelfAttention: "attention",
    T5LayerCrossAttention: "attention",
    T5LayerFF: "ffn",
}
MATRICES = {
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "dense",
    "wi": "dense",
    "wi_0": "dense",
    "wi_1": "dense",
    "wo": "dense",
}


class TextToText(Tunable):
    """A text-to-text model without its head, in the shape of `spec` (`paribus.models.t5.T5`): `T5Model`, or one T5
    stack over one stream.

    Attention is `scaled_dot_product_attention` with the biases of relative positions as its mask. On a CPU it is the
    library's plain form, to 1e-5 the same: there the other has no fused kernel for a mask that is learned, and a step
    takes 1.2 to 1.4 times as long.
    """

    def __init__(self, spec: Any, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.spec, self.vocabulary = spec, vocabulary
        self.width, self.depth = spec.hidden, spec.depth
        kernel = "sdpa" if torch.cuda.is_available() else "eager"
        config = T5Config(**spec.config(vocabulary) | {"attn_implementation": kernel})
        self.backbone: Any = _Stream(config, spec.architecture == "prefix_lm") if spec.single else _pair(config)
        self.share()

    @property
    def table_VD(self) -> nn.Parameter:
        """The word embeddings, [V, D], to which the head is tied."""
        weight: nn.Parameter = self.backbone.shared.weight
        return weight

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        """Hidden states [B, T, D] of what is written, or [B, L, D] of the whole stream.

        `batch["full"]` says that no row is padded, so that no mask of padding is made. What is written is padded on the
        right, where no real token looks.
        """
        if self.spec.single:
            return Outputs(self.backbone(batch["ids_BL"], batch["prefix_length_B"]), state)
        written = self.backbone(
            input_ids=batch["ids_BL"],
            attention_mask=self.real(batch),
            decoder_input_ids=batch["decoder_ids_BT"],
            use_cache=False,
        )
        return Outputs(written.last_hidden_state, state)

    @staticmethod
    def real(batch: Batch) -> Tensor | None:
        """int64 [B, L]: 1 where a token is read; None where no row is padded."""
        if batch["full"]:
            return None
        column_L = torch.arange(batch["ids_BL"].shape[1], device=batch["ids_BL"].device)
        real_BL: Tensor = (column_L < batch["length_B"][:, None]).long()
        return real_BL

    def depth_of(self, parameter: str) -> int:
        """See `Tunable.depth_of`: encoder and decoder stand side by side."""
        if "shared" in parameter:
            return 0
        parts = parameter.split(".")
        return int(parts[parts.index("block") + 1]) + 1 if "block" in parts else self.depth

    def sublayers(self) -> Iterator[tuple[str, Any]]:
        """See `Tunable.sublayers`: those of the encoder, then those of the decoder."""
        return ((PLACES[type(module)], module) for module in self.modules() if type(module) in PLACES)

    def norms(self) -> Iterator[nn.Module]:
        """See `Tunable.norms`."""
        return (module for module in self.modules() if isinstance(module, T5LayerNorm))

    def matrices(self) -> Iterator[tuple[str, str]]:
        """See `Tunable.matrices`; attention to what is read counts as attention."""
        for name, module in self.backbone.named_modules():
            if isinstance(module, nn.Linear) and (kind := MATRICES.get(name.rpartition(".")[2])):
                yield kind, name

    def share(self) -> None:
        """See `Tunable.share`."""
        if self.spec.architecture == "encoder_decoder_shared":
            _share(self.backbone)

    def silence(self) -> None:
        """See `Tunable.silence`; attention keeps its rate itself."""
        super().silence()
        for module in self.modules():
            if isinstance(module, T5Attention):
                module.dropout = 0.0

    @property
    def head_weights(self) -> frozenset[str]:
        """See `Tunable.head_weights`: the word embeddings where the head is tied to them."""
        return frozenset({"backbone.shared.weight"} if self.spec.head == "tied" else ())


def _pair(config: T5Config) -> Any:
    model: Any = T5Model(config)
    model.set_input_embeddings(model.shared)
    return model


class _Stream(nn.Module):
    """One stack without cross-attention. A prefix LM tells positions to the right of a token apart, too, a language
    model has all buckets to its left (Mesh TensorFlow: only a fully autoregressive model).
    """

    def __init__(self, config: T5Config, prefix: bool) -> None:
        super().__init__()
        stack: Any = T5Stack(config)
        self.prefix, self.shared, self.decoder = prefix, stack.embed_tokens, stack
        stack.block[0].layer[0].SelfAttention.is_decoder = not prefix

    def forward(self, ids_BL: Tensor, prefix_length_B: Tensor) -> Tensor:
        """Hidden states [B, L, D]; every token sees itself, those before it and, of a prefix LM, all of the prefix."""
        hidden_BLD: Tensor = self.decoder(
            input_ids=ids_BL, attention_mask=self._visible(ids_BL, prefix_length_B), use_cache=False
        ).last_hidden_state
        return hidden_BLD

    def _visible(self, ids_BL: Tensor, prefix_length_B: Tensor) -> Tensor:
        """float32 [1 or B, 1, L, L]: 0 where a token (row) sees a place (column), the lowest number elsewhere."""
        column_L = torch.arange(ids_BL.shape[1], device=ids_BL.device)
        before_LL = column_L[None] <= column_L[:, None]
        seen_BLL = before_LL[None]
        if self.prefix:
            within_BL = column_L < prefix_length_B[:, None]
            seen_BLL = before_LL | within_BL[:, None, :] & within_BL[:, :, None]
        lowest = torch.finfo(torch.float32).min
        return torch.zeros(seen_BLL.shape, device=ids_BL.device).masked_fill_(~seen_BLL, lowest)[:, None]


def _share(backbone: Any) -> None:
    """Give the decoder the encoder's weights of self-attention, feed-forward networks and norms, and what is put in."""
    encoder: Any = backbone.encoder
    decoder: Any = backbone.decoder
    for reads, writes in zip(encoder.block, decoder.block, strict=True):
        for part in "qkvo":
            setattr(writes.layer[0].SelfAttention, part, getattr(reads.layer[0].SelfAttention, part))
        for part in ("layer_norm", "dropout"):
            setattr(writes.layer[0], part, getattr(reads.layer[0], part))
        writes.layer[-1] = reads.layer[-1]
    decoder.final_layer_norm = encoder.final_layer_norm
