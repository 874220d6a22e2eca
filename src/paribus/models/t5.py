"""T5's text-to-text models as plain settings; torch is imported when one is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, SingleStreamCollator
from paribus.models.spec import ModelSpec

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.text_to_text import TextToText

SINGLE = ("language_model", "prefix_lm")
ARCHITECTURES = ("encoder_decoder", "encoder_decoder_shared", "encoder_decoder_half", *SINGLE)
ACTIVATIONS = (  # the names of `transformers`; gelu_new and gated-gelu have the tanh form
    "relu", "gelu_new", "silu", "gated-sigmoid", "gated-linear", "gated-relu", "gated-gelu", "gated-silu",
)  # fmt: skip
HEADS = ("tied", "separate")


@dataclass(frozen=True)
class T5(ModelSpec):
    """A text-to-text model in the shape of T5 (arXiv 1910.10683, sections 2.1 and 3.2), with initial weights.

    Encoder and decoder have `layers` each, and half as many each in the `half` architecture; a language model or prefix
    LM has `layers` in its one stack. With `shared` the decoder has the encoder's weights, but its own cross-attention
    and biases of relative positions, which have another meaning there. `buckets` tell relative positions apart, up to
    `distance`. Raises UserError for a shape that cannot be built.
    """

    layers: int = field(metadata=within(1, 10**3))
    hidden: int = field(metadata=within(1, 10**5))
    heads: int = field(metadata=within(1, 10**4))
    key_width: int
    intermediate: int = field(metadata=within(1, 10**6))
    dropout: float = field(default=0.1, metadata=within(0, 1))
    architecture: str = "encoder_decoder"
    activation: str = "relu"
    head: str = "tied"
    buckets: int = 32
    distance: int = 128
    initializer_factor: float = 1.0
    semantics: ClassVar[int] = 1
    writes_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        chosen = (("architecture", ARCHITECTURES), ("activation", ACTIVATIONS), ("head", HEADS))
        for key, known in chosen:
            if getattr(self, key) not in known:
                raise UserError(f"model.{key}={getattr(self, key)} is unknown", f"use {', '.join(known)}")
        if min(self.layers, self.hidden, self.heads, self.key_width, self.intermediate) < 1:
            raise UserError("model has a size below 1", "give positive whole numbers")
        if self.architecture == "encoder_decoder_half" and self.layers % 2:
            raise UserError(f"model.layers={self.layers} is odd", "give an even number")
        if self.buckets < 4 or self.buckets % 2 or self.distance <= self.buckets // 2:
            raise UserError(
                f"model.buckets={self.buckets} with model.distance={self.distance}",
                "give an even number, at least 4, and a distance above half of it",
            )

    @property
    def single(self) -> bool:
        return self.architecture in SINGLE

    @property
    def tied_head(self) -> bool:
        return self.head == "tied"

    @property
    def depth(self) -> int:
        """Layers of each stack."""
        return self.layers // 2 if self.architecture == "encoder_decoder_half" else self.layers

    @property
    def initializer_range(self) -> float:
        return float(self.initializer_factor * self.hidden**-0.5)

    def std(self, name: str) -> float:
        """Standard deviation of the initial weights of that name, as in Mesh TensorFlow: that of the query includes the
        scale of the attention scores.
        """
        part = name.removesuffix(".weight").rpartition(".")[2]
        fan_in = {
            "shared": 1.0,
            "q": self.hidden * self.key_width,
            "o": self.heads * self.key_width,
            "wo": self.intermediate,
        }
        return float(self.initializer_factor * fan_in.get(part, self.hidden) ** -0.5)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """As `Shape.forward_flops`; in a single stream `tokens` are all of it, of which `written` are predicted."""
        read, wrote = (amount / rows if rows else length for amount in (tokens, written))
        if self.single:
            # Places that a token sees on average: itself and those before it, at least the prefix
            prefix = read - wrote if self.architecture == "prefix_lm" else 0.0
            seen = (read * (read + 1) + prefix * (prefix - 1)) / (2 * read) if read else 0.0
            return tokens * self.depth * self._layer(seen)
        encoder = self.encoder_flops(tokens, read)
        decoder = written * self.depth * (self._layer((wrote + 1) / 2) + 4.0 * self._inner * (self.hidden + read))
        return encoder + decoder + tokens * self.depth * 4.0 * self._inner * self.hidden  # keys, values of what is read

    def encoder_flops(self, tokens: float, read: float) -> float:
        """Of the encoder on rows of `read` tokens."""
        return tokens * self.depth * self._layer(read)

    @property
    def _inner(self) -> int:
        return self.heads * self.key_width

    def _layer(self, seen: float) -> float:
        """Of one token through self-attention to `seen` places and the feed-forward network."""
        matrices = 3 if self.activation.startswith("gated-") else 2
        return 2.0 * self.hidden * (4 * self._inner + matrices * self.intermediate) + 4.0 * seen * self._inner

    def config(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """The arguments of `transformers.T5Config`."""
        return {
            "vocab_size": vocabulary.size,
            "d_model": self.hidden,
            "d_kv": self.key_width,
            "d_ff": self.intermediate,
            "num_layers": self.depth,
            "num_heads": self.heads,
            "relative_attention_num_buckets": self.buckets,
            "relative_attention_max_distance": self.distance,
            "dropout_rate": self.dropout,
            "feed_forward_proj": self.activation,
            "initializer_factor": float(self.initializer_factor),
            "tie_word_embeddings": self.head == "tied",
            "pad_token_id": vocabulary.pad,
            "eos_token_id": vocabulary.sep,
            "decoder_start_token_id": vocabulary.pad,
            "is_encoder_decoder": not self.single,
        }

    @property
    def collator(self) -> EncoderDecoderCollator:
        return SingleStreamCollator() if self.single else EncoderDecoderCollator()

    def build(self, vocabulary: Vocabulary, seed: int) -> TextToText:
        from paribus.models.network import initialize
        from paribus.models.text_to_text import TextToText

        model = TextToText(self, vocabulary)
        initialize(model, seed, self.std)
        return model
