"""A model that writes: `transformers`' T5 behind the interface that objectives call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import T5Config, T5Model
from transformers.models.t5.modeling_t5 import T5Stack

from ceteris.models.encoder import Batch, Outputs

if TYPE_CHECKING:
    from ceteris.tokens.vocabulary import Vocabulary


class TextToText(nn.Module):
    """A text-to-text model without its head, in the shape of `spec` (`ceteris.models.t5.T5`): `T5Model`, or one T5
    stack over one stream.

    Attention is `scaled_dot_product_attention` with the biases of relative positions as its mask.
    """

    def __init__(self, spec: Any, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.spec, self.vocabulary = spec, vocabulary
        self.width, self.depth = spec.hidden, spec.depth * (1 if spec.single else 2)
        config = T5Config(**spec.config(vocabulary))
        self.backbone: Any = _Stream(config, spec.architecture == "prefix_lm") if spec.single else _pair(config)
        if spec.architecture == "encoder_decoder_shared":
            _share(self.backbone)

    @property
    def table_VD(self) -> nn.Parameter:
        """The word embeddings, [V, D], to which the head is tied."""
        weight: nn.Parameter = self.backbone.shared.weight
        return weight

    def parameter_count(self) -> int:
        """Weights without those of a separate head; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        """Hidden states [B, T, D] of what is written, or [B, L, D] of the whole stream.

        `batch["full"]` says that no row is padded, so that no mask of padding is made. What is written is padded on the
        right, where no real token looks.
        """
        if self.spec.single:
            return Outputs(self.backbone(batch["ids_BL"], batch["prefix_length_B"]), state)
        written = self.backbone(
            input_ids=batch["ids_BL"],
            attention_mask=_real(batch),
            decoder_input_ids=batch["decoder_ids_BT"],
            use_cache=False,
        )
        return Outputs(written.last_hidden_state, state)

    def depth_of(self, parameter: str) -> int:
        """0 for embeddings, i + 1 for layer i, those of the decoder behind those of the encoder; the number of layers
        for what follows the last one. Weights that both share count where they are used first.
        """
        if "shared" in parameter:
            return 0
        parts = parameter.split(".")
        layers = int(self.spec.depth)  # of a stack
        below = layers if "decoder" in parts and not self.spec.single else 0
        if "block" in parts:
            return below + int(parts[parts.index("block") + 1]) + 1
        return below + layers


def _real(batch: Batch) -> Tensor | None:
    """int64 [B, L]: 1 where a token is read; None where no row is padded."""
    if batch["full"]:
        return None
    column_L = torch.arange(batch["ids_BL"].shape[1], device=batch["ids_BL"].device)
    real_BL: Tensor = (column_L < batch["length_B"][:, None]).long()
    return real_BL


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
        """bool [1 or B, 1, L, L]: whether a token (row) sees a place (column)."""
        column_L = torch.arange(ids_BL.shape[1], device=ids_BL.device)
        before_LL = column_L[None] <= column_L[:, None]
        if not self.prefix:
            return before_LL[None, None]
        within_BL = column_L < prefix_length_B[:, None]
        return (before_LL | within_BL[:, None, :] & within_BL[:, :, None])[:, None]


def _share(backbone: Any) -> None:
    """Give the decoder the encoder's weights of self-attention, feed-forward networks and norms."""
    encoder: Any = backbone.encoder
    decoder: Any = backbone.decoder
    for reads, writes in zip(encoder.block, decoder.block, strict=True):
        for part in "qkvo":
            setattr(writes.layer[0].SelfAttention, part, getattr(reads.layer[0].SelfAttention, part))
        writes.layer[0].layer_norm = reads.layer[0].layer_norm
        writes.layer[-1] = reads.layer[-1]
    decoder.final_layer_norm = encoder.final_layer_norm
