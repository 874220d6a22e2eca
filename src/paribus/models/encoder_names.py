"""The names that `transformers` gives the weights of an encoder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from paribus.models.bert import Bert


def pair_names(prefix: str) -> dict[str, str]:
    """{our part of the head on pairs: its name in a checkpoint}, as BERT has them."""
    return {"pooler": f"{prefix}pooler.dense", "classifier": "cls.seq_relationship"}


class Layout(NamedTuple):
    """Names in `transformers`.

    Attributes:
        prefix: of the backbone's weights.
        masked, causal, pretraining: the classes with a head on tokens, with the same left to right, and with both
            heads, if any.
        head, pair: {our part of the head on tokens or on pairs: its name}.
        config: the class of the config, if it is not the backbone's own.
        projection: of the embeddings to the layers.
    """

    prefix: str
    masked: str
    causal: str | None
    pretraining: str | None
    head: dict[str, str]
    pair: dict[str, str]
    config: str | None = None
    projection: str = "embeddings.projection"


_BERT = Layout(
    "bert.",
    "BertForMaskedLM",
    "BertLMHeadModel",
    "BertForPreTraining",
    {
        "dense": "cls.predictions.transform.dense",
        "norm": "cls.predictions.transform.LayerNorm",
        "bias": "cls.predictions.bias",
        "own_table_VD": "cls.predictions.decoder.weight",
    },
    pair_names("bert."),
)
_PRELN = Layout(
    "roberta_prelayernorm.",
    "RobertaPreLayerNormForMaskedLM",
    "RobertaPreLayerNormForCausalLM",
    None,
    {
        "dense": "lm_head.dense",
        "norm": "lm_head.layer_norm",
        "bias": "lm_head.bias",
        "own_table_VD": "lm_head.decoder.weight",
    },
    pair_names("roberta_prelayernorm."),
)
_ROBERTA = _PRELN._replace(
    prefix="roberta.", masked="RobertaForMaskedLM", causal="RobertaForCausalLM", pair=pair_names("roberta.")
)
ALBERT = Layout(
    "albert.",
    "AlbertForMaskedLM",
    None,
    "AlbertForPreTraining",
    {
        "dense": "predictions.dense",
        "norm": "predictions.LayerNorm",
        "bias": "predictions.bias",
        "own_table_VD": "predictions.decoder.weight",
    },
    {"pooler": "albert.pooler", "classifier": "sop_classifier.classifier"},
    config="AlbertConfig",
    projection="encoder.embedding_hidden_mapping_in",
)
ELECTRA = Layout(
    "electra.",
    "ElectraForMaskedLM",
    "ElectraForCausalLM",
    None,
    {
        "dense": "generator_predictions.dense",
        "norm": "generator_predictions.LayerNorm",
        "bias": "generator_lm_head.bias",
        "own_table_VD": "generator_lm_head.weight",
    },
    pair_names("electra."),
    config="ElectraConfig",
    projection="embeddings_project",
)
ROFORMER = _BERT._replace(
    prefix="roformer.",
    masked="RoFormerForMaskedLM",
    causal="RoFormerForCausalLM",
    pretraining=None,
    pair=pair_names("roformer."),
    config="RoFormerConfig",
    projection="embeddings_project",
)
_ALBERT_PARTS = {  # in a layer: BERT's beginning of a name, and ALBERT's
    "attention.self.": "attention.",
    "attention.output.": "attention.",
    "intermediate.dense": "ffn",
    "output.dense": "ffn_output",
    "output.LayerNorm": "full_layer_layer_norm",
}


def layout_of(spec: Bert) -> Layout:
    """The layout of an encoder's checkpoint.

    One width is BERT's model. Narrow embeddings are ALBERT's if whole layers are shared and see both sides, else
    ELECTRA's. A change may bring a layout of its own. For pre-LN with narrow embeddings or a change `transformers`
    has no model: the names are those of pre-LN, with a projection.
    """
    if spec.family != "bert":
        return _PRELN if spec.norm == "pre" else _ROBERTA
    if brought := [change.layout for _, change in spec.sorted_changes if change.layout is not None]:
        return brought[0]
    if spec.table_width == spec.hidden:
        return _BERT
    # `transformers` forms groups in floating point, which agrees with ours for groups of equal size
    albert = spec.sharing == "all" and spec.layers % spec.groups == 0 and spec.attention == "full"
    return ALBERT if albert else ELECTRA


def tensor_names(spec: Bert, names: Iterable[str]) -> dict[str, str]:
    """{name in the backbone: name in `transformers`}; weights that layers share have one name in ALBERT."""
    layout = layout_of(spec)
    theirs: dict[str, str] = {}
    for name in names:
        inner = _albert_name(spec, name) if layout is ALBERT else name
        theirs[name] = layout.prefix + inner.replace("embeddings.projection", layout.projection)
    return theirs


def _albert_name(spec: Bert, name: str) -> str:
    """ALBERT has a stack of groups of layers, and its own names for what is in a layer."""
    match = re.fullmatch(r"encoder\.layer\.(\d+)\.(.*)", name)
    if match is None:
        return name
    layer, part = int(match[1]), match[2]
    for ours, theirs in _ALBERT_PARTS.items():
        if part.startswith(ours):
            part = theirs + part.removeprefix(ours)
            break
    else:  # a part of this layer alone, which a change has added
        return name
    return f"encoder.albert_layer_groups.{spec.group(layer)}.albert_layers.0.{part}"
