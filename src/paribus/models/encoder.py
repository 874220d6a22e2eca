"""The encoder: a `transformers` backbone behind the interface that objectives call, alone or two side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import torch
import transformers
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    PretrainedConfig,
    RobertaConfig,
    RobertaModel,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormModel,
)

from paribus.core.errors import UserError
from paribus.models.attention import PLAIN, check_parts, kernel
from paribus.models.encoder_names import ALBERT, layout_of, tensor_names
from paribus.models.generation import RowWriter
from paribus.models.last_layer import ReadPositions, allow_positions, computing_only, find_positions
from paribus.models.network import Batch, Network, Outputs, State, find_real, initialize, recording

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.attention_part import AttentionPart
    from paribus.models.bert import Bert
    from paribus.models.spec import Shape

KINDS: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertModel),
    "roberta": (RobertaConfig, RobertaModel),
    "roberta-prelayernorm": (RobertaPreLayerNormConfig, RobertaPreLayerNormModel),
}
_UNSEEN = torch.iinfo(torch.int32).max  # rank of padding: it alone sees itself


class Encoder(Network):
    """An encoder without heads, in the shape of `spec`.

    Post-LN is `BertModel`, pre-LN is `RobertaPreLayerNormModel`, and a checkpoint's own kind is kept. With left-only
    attention the first token attends only to itself, so the last real token ([SEP]) summarizes the row. Layers that
    share weights hold the same modules; shared parameters go by the name that they have in the first of these layers,
    so that they start from its bits.

    The states of layers of a pre-LN encoder have gone through its final LayerNorm, but not those of the embeddings.
    """

    gives_layers = True

    def __init__(self, spec: Bert, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary, spec.hidden, spec.layers)
        self.spec: Bert = spec
        self.left = spec.attention == "left"
        self.sets_visibility = any("visibility" in change.sets for change in spec.changes.values())
        self.first_position = 0 if spec.family == "bert" else vocabulary.pad + 1  # RoBERTa counts from the padding id
        self.arguments: dict[str, Any] = {  # those that the configs of `transformers` have in common
            "vocab_size": vocabulary.size,
            "hidden_size": spec.hidden,
            "num_hidden_layers": spec.layers,
            "num_attention_heads": spec.heads,
            "intermediate_size": spec.intermediate,
            "max_position_embeddings": spec.positions + self.first_position,
            "hidden_dropout_prob": spec.dropout,
            "attention_probs_dropout_prob": spec.attention_dropout,
            "initializer_range": float(spec.initializer_range),
            "type_vocab_size": 2,
            "pad_token_id": vocabulary.pad,
            "bos_token_id": vocabulary.cls,
            "eos_token_id": vocabulary.sep,
            "attn_implementation": kernel(changed=bool(spec.changes)),
            "is_decoder": self.left,
            **spec.further_arguments,
        }
        config, model = KINDS[spec.family]
        self.backbone: Any = model(config(**self.arguments), add_pooling_layer=False)
        self.norm_eps = float(self.backbone.config.layer_norm_eps)
        if spec.table_width != spec.hidden:
            narrow = config(**self.arguments | {"hidden_size": spec.table_width})
            self.backbone.embeddings = type(self.backbone.embeddings)(narrow)
            self.backbone.embeddings.projection = nn.Linear(spec.table_width, spec.hidden)
            # the matrix follows their LayerNorm (ALBERT, section 3.1)
            self.backbone.embeddings.register_forward_hook(lambda table, _, states_BLE: table.projection(states_BLE))
        for _, change in spec.sorted_changes:
            change.alter(self)
        for layer in self.backbone.encoder.layer:
            layer.attention.self.scaling = spec.score_scale
        self._add_parts()
        self.restore_sharing()
        exact = all(change.exact_at_places for _, change in spec.sorted_changes)
        self.reads_places = exact and allow_positions(self.backbone.encoder.layer[-1])
        self.compiled = False

    def begin(self, seed: int) -> Self:
        """Draw its initial weights; returns itself."""
        initialize(self, seed, self.std)
        for _, change in self.spec.sorted_changes:
            change.begin(self)
        return self

    def compile(self, *args: Any, **options: Any) -> None:
        self.backbone.compile(*args, **options)
        self.compiled = True

    @property
    def table_VD(self) -> nn.Parameter:
        weight: nn.Parameter = self.backbone.embeddings.word_embeddings.weight
        return weight

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """Hidden states [B, L, D] of `batch["ids_BL"]`.

        `batch["full"]` says that no row is padded, so that no mask is made and the fastest attention kernel runs. With
        left-only attention it always does: padding is on the right, to which no real token attends. With
        `batch["rank_BL"]` a place sees those of a rank not above its own.
        """
        read, asked = self._read_positions(batch), bool(batch.get("layers"))
        segments = {"first_B": batch["part_BL"].argmax(1)} if self.sets_visibility else {}
        position_1L = torch.arange(batch["ids_BL"].shape[1], device=batch["ids_BL"].device)[None]
        recorded = self.recorded if asked else ()
        decodes = bool(batch.get("predicts_tokens"))
        with computing_only(self.backbone.encoder.layer[-1], read, decodes), recording(recorded) as states:
            hidden_BLD = self.call(batch, self._attention_mask(batch, position_1L), **segments)
        outputs = Outputs(hidden_BLD, state, self.summarize(hidden_BLD, batch), None if read is None else read.table_N)
        if not asked:
            return outputs
        return outputs._replace(layers=self.name_layers(states, hidden_BLD), summarize=self.summarize)

    @property
    def recorded(self) -> tuple[nn.Module, ...]:
        """The modules that give the states of the embeddings and of each layer."""
        return (self.backbone.embeddings, *self.backbone.encoder.layer)

    def name_layers(self, states: list[Tensor], hidden_BLD: Tensor) -> tuple[Tensor, ...]:
        """`Outputs.layers` of the states that were recorded, if these are the last ones."""
        between = states[1:-1] if self.spec.norm == "post" else map(self.backbone.LayerNorm, states[1:-1])
        return (states[0], *between, hidden_BLD)

    def call(self, batch: Batch, mask: Tensor | None, **further: Any) -> Tensor:
        """[B, L, D]: what the backbone makes of a batch, under this attention mask."""
        ids_BL = batch["ids_BL"]
        position_1L = torch.arange(ids_BL.shape[1], device=ids_BL.device)[None]
        hidden_BLD: Tensor = self.backbone(
            input_ids=ids_BL,
            attention_mask=mask,
            token_type_ids=batch["part_BL"] if self.arguments["type_vocab_size"] > 1 else torch.zeros_like(ids_BL),
            position_ids=position_1L + self.first_position,
            use_cache=False,
            **further,
        ).last_hidden_state
        return hidden_BLD

    def _read_positions(self, batch: Batch) -> ReadPositions | None:
        """Where the last layer is computed; None for everywhere: the states of all layers are asked for, a row is
        summarized by its last token, a part of the layer needs all of it, or the forward pass is compiled, which wants
        one shape.
        """
        asked = "read_P" in batch and not batch.get("layers")
        if not asked or self.left or self.compiled or not self.reads_places:
            return None
        return find_positions(batch["read_P"], *batch["ids_BL"].shape)

    def summarize(self, hidden_BLD: Tensor, batch: Batch) -> Tensor | None:
        if not self.left:
            return None
        row_B = torch.arange(len(hidden_BLD), device=hidden_BLD.device)
        return hidden_BLD[row_B, batch["length_B"] - 1]

    def writer(self, batch: Batch, most: int) -> Callable[[Tensor | None], Tensor]:
        """As `Network.writer`: writes after the first `source_length_B` tokens of each row."""
        return super().writer(batch, most) if self.spec.attention == "right" else _EncoderWriter(self, batch, most)

    def _attention_mask(self, batch: Batch, position_1L: Tensor) -> Tensor | None:
        """int64 [B, L] or bool [B, 1, 1, L]: the real places; bool [B, 1, L, L]: who (row) sees whom by rank; None: as
        the model is.
        """
        if "rank_BL" in batch:
            rank_BL = torch.where(find_real(batch["length_B"], position_1L.shape[1]), batch["rank_BL"], _UNSEEN)
            visible_B1LL: Tensor = (rank_BL[:, None, :] <= rank_BL[:, :, None])[:, None]
            return visible_B1LL
        if self.spec.attention == "right":
            return self._attention_mask({**batch, "rank_BL": -position_1L}, position_1L)
        if batch["full"] or self.left:
            return None
        real_BL = find_real(batch["length_B"], position_1L.shape[1])
        return real_BL[:, None, None] if self.sets_visibility else real_BL.long()

    @contextmanager
    def watching_attention(self, keep: Callable[[Tensor, Tensor], None]) -> Iterator[None]:
        usual: str = self.backbone.config._attn_implementation
        modules = [layer.attention.self for layer in self.backbone.encoder.layer]
        for module in modules:
            module.keep = keep
        self.backbone.set_attn_implementation(PLAIN)
        try:
            with torch.compiler.set_stance("force_eager"):
                yield
        finally:
            self.backbone.set_attn_implementation(usual)
            for module in set(modules):
                del module.keep

    def share_embeddings(self, other: Network) -> None:
        """Read the tables of words, positions and segments and the LayerNorm of another encoder of this width; the
        projection to the layers stays its own (ELECTRA, arXiv 2003.10555, section 3.2).
        """
        for part in ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm"):
            setattr(self.backbone.embeddings, part, getattr(other.backbone.embeddings, part))

    def depth_of(self, parameter: str) -> int:
        if "embeddings" in parameter:
            return 0
        parts = parameter.split(".")
        return int(parts[parts.index("layer") + 1]) + 1 if "layer" in parts else self.depth

    def sublayers(self) -> Iterator[tuple[str, Any]]:
        for layer in self.backbone.encoder.layer:
            yield "attention", layer.attention.output
            if hasattr(layer.output, "dropout"):
                yield "ffn", layer.output

    def matrices(self) -> Iterator[tuple[str, str]]:
        for name, module in self.backbone.named_modules():
            if "encoder.layer." in name and type(module) is nn.Linear:
                yield name.rpartition(".")[2], name

    def std(self, name: str) -> float:
        given = (change.std(self.spec, name) for _, change in self.spec.sorted_changes)
        return next((std for std in given if std is not None), super().std(name))

    def rate(self, name: str) -> float:
        return math.prod(change.rate(self.spec, name) for _, change in self.spec.sorted_changes)

    def _add_parts(self) -> None:
        """Give the attention of every layer what changes do in it, as its module `parts`.

        Raises UserError for names that torch uses itself, for two parts in place of the softmax, for parts that differ
        between layers that share their attention, and for what `check_parts` refuses.
        """
        layers = self.backbone.encoder.layer
        once: dict[str, AttentionPart | None] = {}  # parts that all layers have
        for number, layer in enumerate(layers):
            found: dict[str, AttentionPart] = {}
            for name, change in self.spec.sorted_changes:
                part = once[name] if name in once else change.attention(self.spec, number)
                if change.one_part:
                    once[name] = part
                if part is not None:
                    found[name] = part
            if taken := next((name for name in found if "." in name or hasattr(nn.ModuleDict, name)), None):
                raise UserError(f"torch uses the name of model.changes.{taken} itself", "give it another name")
            instead = [name for name, part in found.items() if part.replaces_softmax]
            if len(instead) > 1:
                cause = f"model.changes.{instead[0]} and model.changes.{instead[1]} both replace the softmax"
                raise UserError(cause, "leave one of them out")
            if found:
                in_order = sorted(found.items(), key=lambda part: part[1].turn_order)
                layer.attention.self.parts = nn.ModuleDict(dict(in_order))
                sizes, places = (self.spec.heads, self.spec.key_size), self.spec.positions
                with torch.no_grad():
                    check_parts(dict(in_order), sizes, self.spec.attention, places)
            first = self.spec.first_of_group(number)
            if self.spec.sharing in ("all", "attention") and _settings(layers[first]) != _settings(layer):
                cause = f"model.changes differ between layers {first} and {number}, which share their attention"
                raise UserError(cause, "set model.sharing=none or ffn")
        for name, change in self.spec.sorted_changes:
            every = [getattr(layer.attention.self, "parts", {}) for layer in layers]
            change.tie([parts[name] for parts in every if name in parts])

    def restore_sharing(self) -> None:
        """Give every layer the modules of the first of its group: attention, feed-forward, each with its LayerNorm."""
        layers = self.backbone.encoder.layer
        for number, layer in enumerate(layers):
            first = layers[self.spec.first_of_group(number)]
            if self.spec.sharing in ("all", "attention"):
                layer.attention = first.attention
            if self.spec.sharing in ("all", "ffn"):
                layer.intermediate, layer.output = first.intermediate, first.output

    def checkpoint_config(self, head: nn.Module | None, pair: nn.Module | None) -> PretrainedConfig:
        """The config of the class in `transformers` that loads the network with these heads; without such a class one
        that it refuses to load.
        """
        if (why := self.spec.lacks_class) is not None:
            plain = super().checkpoint_config(head, pair)
            plain.architectures, plain.no_class = [], why
            return plain
        layout, arguments = layout_of(self.spec), {**self.arguments, "embedding_size": self.spec.table_width}
        config: PretrainedConfig = self.backbone.config
        if layout is ALBERT:
            arguments |= {"num_hidden_groups": self.spec.groups, "hidden_act": "gelu"}
        if layout.config is not None:
            config = getattr(transformers, layout.config)(**arguments)
        two_way = pair is not None and len(pair.state_dict()["classifier.bias"]) == 2
        alone = layout.causal if self.left else layout.masked
        names: list[Any] = [(layout.pretraining if two_way else None) or alone]
        config.architectures = names
        if self.head_untied:
            config.tie_word_embeddings = False
        return config

    def tensor_names(self) -> dict[str, str]:
        return tensor_names(self.spec, self.backbone.state_dict())

    def owns(self, name: str) -> bool:
        prefix = layout_of(self.spec).prefix
        return name.startswith(prefix) and not name.startswith(f"{prefix}pooler.")  # of the head on pairs

    @property
    def head_parts(self) -> Mapping[str, str]:
        return layout_of(self.spec).head

    @property
    def pair_parts(self) -> Mapping[str, str]:
        return layout_of(self.spec).pair


def _settings(layer: Any) -> dict[str, Any]:
    """{part of a layer's attention: its settings}, without weights."""
    parts = getattr(layer.attention.self, "parts", {})
    return {
        name: {
            **{key: value for key, value in vars(part).items() if not key.startswith("_")},
            **{key: buffer.tolist() for key, buffer in part.named_buffers()},
        }
        for name, part in parts.items()
    }


class _EncoderWriter(RowWriter):
    """A bidirectional encoder fills a mask after what is written (UniLM, arXiv 1905.03197, section 2.5); a
    left-to-right one predicts the next token.
    """

    def __init__(self, encoder: Encoder, batch: Batch, most: int) -> None:
        super().__init__(batch["ids_BL"], batch["source_length_B"], most, encoder.vocabulary.pad)
        self.encoder, self.source_B1 = encoder, batch["source_length_B"][:, None]

    def read(self) -> Tensor:
        last_B = self.length_B - 1 if self.encoder.left else self.length_B
        ids_BL = self.ids_BL[:, : int(last_B.max()) + 1]
        behind_BL = (torch.arange(ids_BL.shape[1], device=ids_BL.device) - self.source_B1 + 1).clamp(min=0)
        place_B = self.row_B * ids_BL.shape[1] + last_B
        batch = {"ids_BL": ids_BL, "length_B": last_B + 1, "part_BL": behind_BL.clamp(max=1), "full": False}
        batch["predicts_tokens"] = True
        if not self.encoder.left:
            ids_BL[self.row_B, last_B] = self.encoder.vocabulary.mask
            batch["rank_BL"] = behind_BL
        outputs: Outputs = self.encoder({**batch, "read_P": place_B})
        return outputs.at(place_B)


class TwoWay(Network):
    """A left-to-right and a right-to-left encoder of the same shape that share nothing.

    Their states are concatenated. A row is summarized by the states that have read all of it: the last token of the
    first, the first token of the second.
    """

    def __init__(self, spec: Shape, vocabulary: Vocabulary, encoders: Mapping[str, Any]) -> None:
        super().__init__(spec, vocabulary, 2 * spec.hidden, spec.layers)
        self.backbone = nn.ModuleDict(encoders)
        self.norm_eps, self.logit_scale = self.side("left").norm_eps, self.side("left").logit_scale

    def side(self, name: str) -> Encoder:
        """The encoder that reads to the left, or to the right."""
        encoder: Encoder = self.backbone[name]
        return encoder

    @property
    def sides(self) -> dict[str, Encoder]:
        return {name: self.side(name) for name in self.backbone}

    @property
    def table_VD(self) -> nn.Parameter:
        """That of the first encoder; heads on tokens know their own."""
        return self.side("left").table_VD

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """The states [B, L, 2 D] at all places."""
        whole = {name: value for name, value in batch.items() if name != "read_P"}
        sides = [encoder(whole) for encoder in self.sides.values()]
        hidden_BLD = torch.cat([side.hidden_BLD for side in sides], dim=-1)
        return Outputs(hidden_BLD, state, torch.cat([side.row_BD for side in sides], dim=-1))

    def compile(self, *args: Any, **options: Any) -> None:
        for encoder in self.sides.values():
            encoder.compile(*args, **options)

    def depth_of(self, parameter: str) -> int:
        return self.side("left").depth_of(parameter)

    def rate(self, name: str) -> float:
        return self.side("left").rate(name)

    def sublayers(self) -> Iterator[tuple[str, Any]]:
        for encoder in self.sides.values():
            yield from encoder.sublayers()

    def matrices(self) -> Iterator[tuple[str, str]]:
        for name, encoder in self.sides.items():
            yield from ((kind, f"{name}.backbone.{matrix}") for kind, matrix in encoder.matrices())

    def restore_sharing(self) -> None:
        for encoder in self.sides.values():
            encoder.restore_sharing()
