"""An encoder of any kind of `transformers` behind the interface that objectives call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import MODEL_MAPPING, AutoModel, AutoModelForMaskedLM, PretrainedConfig
from transformers.activations import ACT2FN

from paribus.core.errors import UserError
from paribus.models.attention import kernel
from paribus.models.encoder_names import ALBERT, pair_names
from paribus.models.network import Batch, Network, Outputs, State, find_real, recording

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.spec import Shape

_BARE: Any = AutoModel
_MASKED: Any = AutoModelForMaskedLM


class EncoderFacts(NamedTuple):
    """Facts about an encoder that its classes give without its weights.

    Attributes:
        width, depth, table_width: of the states, number of layers, of the word embeddings.
        positions: the longest row.
        stack: the name of the list of layers in the backbone; layers that all share weights are one.
        masked: the class with a head on tokens.
        prefix: of the backbone's weights in a checkpoint.
        head: {part of our head on tokens: its name in a checkpoint}; empty if theirs is another kind of head.
        unbiased: the parts without a bias.
        activation, norm_eps: of that head.
    """

    width: int
    depth: int
    table_width: int
    positions: int
    stack: str
    masked: str
    prefix: str
    head: Mapping[str, str]
    unbiased: frozenset[str]
    activation: str
    norm_eps: float


def read_facts(config: PretrainedConfig) -> EncoderFacts:
    """Facts from the classes that `transformers` builds for a config. Raises UserError if we cannot read them."""
    try:
        with torch.device("meta"):
            model = _MASKED.from_config(config)
        if config.is_encoder_decoder or getattr(config, "is_decoder", False):
            raise ValueError("it is a decoder")
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RuntimeError) as error:
        cause = f"transformers makes no {config.model_type} of the checkpoint's config.json ({error})"
        raise UserError(cause, "give a checkpoint that AutoModelForMaskedLM loads") from error
    base, width = model.base_model, int(config.hidden_size)

    groups = getattr(config, "num_hidden_groups", config.num_hidden_layers)  # ALBERT's layers share weights
    lists = {name: len(module) for name, module in base.named_modules() if isinstance(module, nn.ModuleList)}
    stack = next((name for name, size in lists.items() if size == groups), None)
    if stack is None or groups not in (1, config.num_hidden_layers):
        raise UserError(f"the layers of this {config.model_type} are not one list", "give another checkpoint")

    tables = [module for name, module in base.named_modules() if name.endswith("position_embeddings")]
    if tables and isinstance(table := tables[0], nn.Embedding):
        # Kinds that count from the padding id leave out the rows up to it
        positions = table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    else:
        positions = int(config.max_position_embeddings)

    head = _find_head(model, width)
    activations = {type(ACT2FN[name]): name for name in ("gelu", "gelu_new", "silu", "relu")}
    outside = [type(module) for _, module in _list_outside(model)]
    return EncoderFacts(
        width=width,
        depth=int(config.num_hidden_layers),
        table_width=model.get_input_embeddings().weight.shape[1],
        positions=positions,
        stack=stack,
        masked=type(model).__name__,
        prefix=f"{model.base_model_prefix}.",
        head={part: name for part, (name, _) in head.items()},
        unbiased=frozenset(part for part, (_, module) in head.items() if part != "bias" and module.bias is None),
        # A function that is not a module is GELU
        activation=next((activations[kind] for kind in outside if kind in activations), "gelu"),
        norm_eps=float(getattr(head["norm"][1], "eps", 1e-12)) if head else 1e-12,
    )


def _find_head(model: Any, width: int) -> dict[str, tuple[str, Any]]:
    """{our part: (its name in a checkpoint, the module)} of a head as ours: dense, activation, norm, tied table."""
    table, decoder = model.get_input_embeddings().weight, model.get_output_embeddings()
    if decoder is None or decoder.weight is not table or decoder.bias is None:
        return {}
    outside = [(name, module) for name, module in _list_outside(model) if module is not decoder]
    linear = [(name, module) for name, module in outside if isinstance(module, nn.Linear)]
    dense = [(name, module) for name, module in linear if module.weight.shape == (table.shape[1], width)]
    norm = [(name, module) for name, module in outside if isinstance(module, nn.LayerNorm)]
    tied = set(model._tied_weights_keys or ())
    parameters = model.named_parameters(remove_duplicate=False)
    bias = [name for name, parameter in parameters if parameter is decoder.bias and name not in tied]
    if not (len(dense) == len(norm) == len(bias) == 1):
        return {}
    return {"dense": dense[0], "norm": norm[0], "bias": (bias[0], decoder)}


def _list_outside(model: Any) -> list[tuple[str, nn.Module]]:
    """The modules that are not of the backbone."""
    backbone = set(map(id, model.base_model.modules()))
    return [(name, module) for name, module in model.named_modules() if id(module) not in backbone]


class AnyNetwork(Network):
    """An unmodified encoder of `transformers`: bidirectional, with the last layer computed at every position.

    The states of layers of a pre-LN encoder have not gone through its final norm. If all layers are one module, or the
    embeddings none, the states of single layers are not given.
    """

    def __init__(self, spec: Shape, vocabulary: Vocabulary, facts: EncoderFacts, config: PretrainedConfig) -> None:
        super().__init__(spec, vocabulary, facts.width, facts.depth)
        self.facts = facts
        self.norm_eps, self.head_activation, self.head_unbiased = facts.norm_eps, facts.activation, facts.unbiased
        model: Any = MODEL_MAPPING[type(config)]
        options: dict[str, Any] = {"attn_implementation": kernel()} if model._supports_attention_backend else {}
        if "add_pooling_layer" in inspect.signature(model.__init__).parameters:
            options["add_pooling_layer"] = False
        self.backbone: Any = _BARE.from_config(config, **options)
        self.gives_layers = len(self._layers) == self.depth and hasattr(self.backbone, "embeddings")
        arguments = inspect.signature(self.backbone.forward).parameters
        self.segments = int(getattr(config, "type_vocab_size", 0) or 0) if "token_type_ids" in arguments else 0

    @property
    def table_VD(self) -> nn.Parameter:
        weight: nn.Parameter = self.backbone.get_input_embeddings().weight
        return weight

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        real_BL = find_real(batch["length_B"], batch["ids_BL"].shape[1]).long()
        segments = {"token_type_ids": batch["part_BL"].clamp(max=self.segments - 1)} if self.segments else {}
        asked = bool(batch.get("layers")) and self.gives_layers
        with recording((self.backbone.embeddings, *self._layers) if asked else ()) as states:
            hidden_BLD = self.backbone(input_ids=batch["ids_BL"], attention_mask=real_BL, **segments).last_hidden_state
        return Outputs(hidden_BLD, state, layers=tuple(states) if asked else None)

    def compile(self, *args: Any, **options: Any) -> None:
        self.backbone.compile(*args, **options)

    @property
    def _layers(self) -> nn.ModuleList:
        stack: nn.ModuleList = self.backbone.get_submodule(self.facts.stack)
        return stack

    def depth_of(self, parameter: str) -> int:
        _, in_stack, rest = parameter.partition(f"{self.facts.stack}.")
        if in_stack:
            return int(rest.partition(".")[0]) + 1
        return 0 if "embedding" in parameter else self.depth

    def checkpoint_config(self, head: nn.Module | None, pair: nn.Module | None) -> PretrainedConfig:
        config: PretrainedConfig = self.backbone.config
        config.architectures = [self.facts.masked]
        return config

    def tensor_names(self) -> dict[str, str]:
        return {name: self.facts.prefix + name for name in self.backbone.state_dict()}

    def owns(self, name: str) -> bool:
        return name.startswith(self.facts.prefix) and not name.startswith(self.pair_parts["pooler"])

    @property
    def head_parts(self) -> Mapping[str, str]:
        return self.facts.head

    @property
    def pair_parts(self) -> Mapping[str, str]:
        return ALBERT.pair if self.facts.prefix == ALBERT.prefix else pair_names(self.facts.prefix)


def count_flops(config: PretrainedConfig, length: int) -> int:
    """Floating-point operations of the matrix products in a forward pass of one row, heads left out."""
    with torch.device("meta"):
        model = _BARE.from_config(config, attn_implementation="eager")
        ids_1L = torch.ones(1, length, dtype=torch.long)
        shapes = ((1, length), (1, 1, length, length))
        masks = [{}, *({"attention_mask": torch.ones(shape, dtype=torch.long)} for shape in shapes)]
    for mask in masks:  # some kinds read the values of a mask, others those of the one that they make themselves
        try:
            with FlopCounterMode(display=False) as counter, torch.device("meta"):
                model(input_ids=ids_1L, **mask)
            return int(counter.get_total_flops())
        except RuntimeError as error:
            failed = error
    raise UserError(f"the operations of this {config.model_type} cannot be counted ({failed})", "give another model")
