"""Text-to-text models: T5 of `transformers` behind the interface that objectives call, whole or its encoder alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, T5Config, T5Model
from transformers.models.t5.modeling_t5 import (
    T5Attention,
    T5DenseActDense,
    T5DenseGatedActDense,
    T5LayerCrossAttention,
    T5LayerFF,
    T5LayerNorm,
    T5LayerSelfAttention,
    T5Stack,
)

from paribus.models.attention import kernel
from paribus.models.generation import RowWriter
from paribus.models.network import Batch, Network, Outputs, State, find_real, recording
from paribus.models.spec import Shape
from paribus.models.t5 import T5

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.t5 import T5

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


class TextToText(Network):
    """A text-to-text model without its head, in the shape of `spec`: `T5Model`, or one T5 stack over one stream.

    The biases of relative positions are added to the scores of attention.
    """

    def __init__(self, spec: T5, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary, spec.hidden, spec.depth)
        self.spec: T5 = spec
        config = T5Config(**spec.config(vocabulary) | {"attn_implementation": kernel()})
        self.backbone: Any
        if spec.single:
            self.backbone = _SingleStream(config, spec.architecture == "prefix_lm")
        else:
            self.backbone = T5Model(config)
            self.backbone.set_input_embeddings(self.backbone.shared)
        use_lean_modules(self.backbone)
        self.restore_sharing()

    @property
    def table_VD(self) -> nn.Parameter:
        weight: nn.Parameter = self.backbone.shared.weight
        return weight

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """Hidden states [B, T, D] of what is written, or [B, L, D] of the whole stream.

        `batch["full"]` says that no row is padded, so that no mask of padding is made. What is written is padded on the
        right, to which no real token attends. `batch["shown_BL"]`, if given, says which places of what is read the
        decoder sees.
        """
        if self.spec.single:
            return Outputs(self.backbone(batch["ids_BL"], batch["prefix_length_B"]), state)
        read, seen_BL = {"input_ids": batch["ids_BL"]}, self.real(batch)
        if "shown_BL" in batch:
            read = {"encoder_outputs": self.backbone.encoder(input_ids=batch["ids_BL"], attention_mask=seen_BL)}
            seen_BL = batch["shown_BL"].long()
        written = self.backbone(
            **read, attention_mask=seen_BL, decoder_input_ids=batch["decoder_ids_BT"], use_cache=False
        )
        return Outputs(written.last_hidden_state, state)

    def compile(self, *args: Any, **options: Any) -> None:
        self.backbone.compile(*args, **options)

    @staticmethod
    def real(batch: Batch) -> Tensor | None:
        """int64 [B, L]: 1 at tokens that are read; None if no row is padded."""
        if batch["full"]:
            return None
        return find_real(batch["length_B"], batch["ids_BL"].shape[1]).long()

    def depth_of(self, parameter: str) -> int:
        if "shared" in parameter:
            return 0
        parts = parameter.split(".")
        return int(parts[parts.index("block") + 1]) + 1 if "block" in parts else self.depth

    def sublayers(self) -> Iterator[tuple[str, Any]]:
        """Those of the encoder, then those of the decoder."""
        return ((PLACES[type(module)], module) for module in self.modules() if type(module) in PLACES)

    def norms(self) -> Iterator[nn.Module]:
        return (module for module in self.modules() if isinstance(module, T5LayerNorm))

    def matrices(self) -> Iterator[tuple[str, str]]:
        """Those of all attention, to what is read too, and of feed-forward networks."""
        for name, module in self.backbone.named_modules():
            if isinstance(module, nn.Linear) and (kind := MATRICES.get(name.rpartition(".")[2])):
                yield kind, name

    def restore_sharing(self) -> None:
        """Give the decoder the self-attention, feed-forward networks and norms of the encoder, with what was put in."""
        if self.spec.architecture != "encoder_decoder_shared":
            return
        encoder, decoder = self.backbone.encoder, self.backbone.decoder
        for reads, writes in zip(encoder.block, decoder.block, strict=True):
            for part in "qkvo":
                setattr(writes.layer[0].SelfAttention, part, getattr(reads.layer[0].SelfAttention, part))
            for part in ("layer_norm", "dropout"):
                setattr(writes.layer[0], part, getattr(reads.layer[0], part))
            writes.layer[-1] = reads.layer[-1]
        decoder.final_layer_norm = encoder.final_layer_norm

    def remove_dropout(self) -> None:
        """Remove all dropout; attention keeps its rate itself."""
        super().remove_dropout()
        for module in self.modules():
            if isinstance(module, T5Attention):
                module.dropout = 0.0

    @property
    def head_weights(self) -> frozenset[str]:
        return frozenset({"backbone.shared.weight"} if self.spec.tied_head else ())

    def std(self, name: str) -> float:
        return self.spec.std(name)

    def writer(self, batch: Batch, most: int) -> Callable[[Tensor | None], Tensor]:
        return _StreamWriter(self, batch, most) if self.spec.single else _DecoderWriter(self, batch)

    def checkpoint_config(self, head: nn.Module | None, pair: nn.Module | None) -> PretrainedConfig:
        """That of `T5ForConditionalGeneration`; for one stack `transformers` has no class."""
        config = T5Config(**self.spec.config(self.vocabulary))
        config.architectures = None if self.spec.single else ["T5ForConditionalGeneration"]
        return config

    def tensor_names(self) -> dict[str, str]:
        names = self.backbone.state_dict()
        return {name: "shared.weight" if name.endswith("embed_tokens.weight") else name for name in names}

    def owns(self, name: str) -> bool:
        return not name.startswith("lm_head.")

    @property
    def head_parts(self) -> Mapping[str, str]:
        return {"weight": "lm_head.weight"}


class _SingleStream(nn.Module):
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
        column_L = torch.arange(ids_BL.shape[1], device=ids_BL.device)
        before_LL = column_L[None] <= column_L[:, None]
        seen_BLL = before_LL[None]
        if self.prefix:
            within_BL = column_L < prefix_length_B[:, None]
            seen_BLL = before_LL | within_BL[:, None, :] & within_BL[:, :, None]
        # float32 [1 or B, 1, L, L]: 0 if a token (row) attends to a place (column), else the lowest number
        lowest = torch.finfo(torch.float32).min
        mask_B1LL = torch.zeros(seen_BLL.shape, device=ids_BL.device).masked_fill_(~seen_BLL, lowest)[:, None]
        hidden_BLD: Tensor = self.decoder(input_ids=ids_BL, attention_mask=mask_B1LL, use_cache=False).last_hidden_state
        return hidden_BLD


class _DecoderWriter:
    """The states [B, D] after what is written so far; keys and values are kept."""

    def __init__(self, model: TextToText, batch: Batch) -> None:
        self.decoder: Any = model.backbone.decoder
        self.mask_BL = model.real(batch)
        self.read_BLD = model.backbone.encoder(input_ids=batch["ids_BL"], attention_mask=self.mask_BL).last_hidden_state
        self.start_B = torch.full_like(batch["length_B"], model.vocabulary.pad)
        self.kept: Any = None

    def __call__(self, token_B: Tensor | None) -> Tensor:
        step = self.decoder(
            input_ids=(self.start_B if token_B is None else token_B)[:, None],
            encoder_hidden_states=self.read_BLD,
            encoder_attention_mask=self.mask_BL,
            past_key_values=self.kept,
            use_cache=True,
        )
        self.kept = step.past_key_values
        state_BD: Tensor = step.last_hidden_state[:, -1]
        return state_BD


class _StreamWriter(RowWriter):
    """For one stream: a stack without cross-attention caches nothing."""

    def __init__(self, model: TextToText, batch: Batch, most: int) -> None:
        super().__init__(batch["ids_BL"], batch["prefix_length_B"], most, model.vocabulary.pad)
        self.backbone, self.prefix_B = model.backbone, batch["prefix_length_B"]

    def read(self) -> Tensor:
        hidden_BLD: Tensor = self.backbone(self.ids_BL[:, : int(self.length_B.max())], self.prefix_B)
        return hidden_BLD[self.row_B, self.length_B - 1]


# T5's feed-forward networks and norms as `transformers` has them, with fewer passes over memory


class _FeedForward(T5DenseActDense):
    """Without the library's conversion to float32 before the last matrix, which exists for 8-bit weights."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        written: Tensor = self.wo(self.dropout(self.act(self.wi(hidden_states))))
        return written


class _GatedFeedForward(T5DenseGatedActDense):
    """As `_FeedForward`."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        written: Tensor = self.wo(self.dropout(self.act(self.wi_0(hidden_states)) * self.wi_1(hidden_states)))
        return written


class _Norm(T5LayerNorm):
    """Root mean square norm (arXiv 1910.07467). Its result has the type of the matrix products that read it."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        kind = hidden_states.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden_states.dtype
        normed: Tensor = _RootMeanSquare.apply(  # type: ignore[no-untyped-call]
            hidden_states, self.weight, self.variance_epsilon, dtype
        )
        return normed


class _RootMeanSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given_ND: Tensor, weight_D: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        length_N1 = torch.linalg.vector_norm(given_ND, dim=-1, keepdim=True, dtype=torch.float32)
        scale_N1 = length_N1.square_().div_(given_ND.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(given_ND, weight_D, scale_N1)
        normed_ND: Tensor = given_ND * scale_N1
        return normed_ND.mul_(weight_D).to(dtype)

    @staticmethod
    def backward(ctx: Any, gradient_ND: Tensor) -> tuple[Tensor | None, ...]:
        given_ND, weight_D, scale_N1 = ctx.saved_tensors
        by_normed_ND = gradient_ND.to(torch.float32)
        normed_ND = given_ND * scale_N1
        product_ND = by_normed_ND * normed_ND
        by_weight_D = product_ND.sum(tuple(range(product_ND.ndim - 1)))
        along_N1 = product_ND.mul_(weight_D).mean(-1, keepdim=True)
        by_given_ND = (by_normed_ND * weight_D).sub_(normed_ND.mul_(along_N1)).mul_(scale_N1)
        return by_given_ND.to(given_ND.dtype), by_weight_D, None, None


LEAN: dict[type[nn.Module], type[nn.Module]] = {
    T5DenseActDense: _FeedForward,
    T5DenseGatedActDense: _GatedFeedForward,
    T5LayerNorm: _Norm,
}


def use_lean_modules(model: nn.Module) -> None:
    """Give the parts of a T5 model their lean forward pass; weights and their names stay."""
    for module in model.modules():
        if lean := LEAN.get(type(module)):
            module.__class__ = lean


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
    """The encoder of a text-to-text model of two stacks, whose weights it shares.

    The states of layers, but not the embeddings, have gone through the final norm.
    """

    gives_layers = True

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
        asked = bool(batch.get("layers"))
        with recording((self.backbone.embed_tokens, *self.backbone.block) if asked else ()) as states:
            hidden_BLD = self.backbone(input_ids=batch["ids_BL"], attention_mask=self.real(batch)).last_hidden_state
        layers = (states[0], *map(self.backbone.final_layer_norm, states[1:])) if asked else None
        return Outputs(hidden_BLD, state, layers=layers)

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
