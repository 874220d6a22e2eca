"""A trained model on disk: the layout of `transformers`, weights as safetensors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AlbertConfig, ElectraConfig, T5Config
from transformers.utils import logging

from paribus.core.errors import UserError
from paribus.core.sources import WEIGHTS
from paribus.models.encoder import KINDS, Encoder
from paribus.models.text_to_text import TextToText

Model = Encoder | TextToText
EMBEDDINGS = "embed_tokens.weight"  # of a T5 stack: the table that both share, under its second name


class _Layout(NamedTuple):
    """Names in `transformers`. head, pair: {our part: its name}; masked, causal, pretraining: the classes with a head
    on tokens, the same left to right, and with both heads, if any.
    """

    prefix: str
    masked: str
    causal: str | None
    pretraining: str | None
    head: dict[str, str]
    pair: dict[str, str]


def _pair(prefix: str) -> dict[str, str]:
    return {"pooler": f"{prefix}pooler.dense", "classifier": "cls.seq_relationship"}


_BERT = _Layout(
    "bert.",
    "BertForMaskedLM",
    "BertLMHeadModel",
    "BertForPreTraining",
    {
        "dense": "cls.predictions.transform.dense",
        "norm": "cls.predictions.transform.LayerNorm",
        "bias": "cls.predictions.bias",
    },
    _pair("bert."),
)
_PRELN = _Layout(
    "roberta_prelayernorm.",
    "RobertaPreLayerNormForMaskedLM",
    "RobertaPreLayerNormForCausalLM",
    None,
    {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"},
    _pair("roberta_prelayernorm."),
)
_ROBERTA = _PRELN._replace(
    prefix="roberta.", masked="RobertaForMaskedLM", causal="RobertaForCausalLM", pair=_pair("roberta.")
)
_ALBERT = _Layout(
    "albert.",
    "AlbertForMaskedLM",
    None,
    "AlbertForPreTraining",
    {"dense": "predictions.dense", "norm": "predictions.LayerNorm", "bias": "predictions.bias"},
    {"pooler": "albert.pooler", "classifier": "sop_classifier.classifier"},
)
_ELECTRA = _Layout(
    "electra.",
    "ElectraForMaskedLM",
    "ElectraForCausalLM",
    None,
    {
        "dense": "generator_predictions.dense",
        "norm": "generator_predictions.LayerNorm",
        "bias": "generator_lm_head.bias",
    },
    _pair("electra."),
)
_ALBERT_PARTS = {
    "attention.self.": "attention.",
    "attention.output.": "attention.",
    "intermediate.dense": "ffn",
    "output.dense": "ffn_output",
    "output.LayerNorm": "full_layer_layer_norm",
}
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.*)")
_LM_HEAD = "lm_head."  # of a T5 model whose head has a matrix of its own
_POOLER = "pooler."  # of a pair head; stands beside the backbone's weights, as in `transformers`


def save(model: Model, head: nn.Module | None, folder: Path, pair: nn.Module | None = None) -> None:
    """Write `config.json` and `model.safetensors` as `encoder_files` and `text_to_text_files` say."""
    config, tensors = (
        encoder_files(model, head, pair) if isinstance(model, Encoder) else text_to_text_files(model, head)
    )
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    kept = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    save_file(kept, folder / WEIGHTS, {"format": "pt"})


def text_to_text_files(model: TextToText, head: nn.Module | None) -> tuple[Any, dict[str, Tensor]]:
    """(config, {name: weight}) such that `T5ForConditionalGeneration.from_pretrained` loads them; weights that encoder
    and decoder share are written for both. Of a single stack, or with a separate head, `transformers` has no model: the
    names are those of the decoder and of `lm_head`.
    """
    config = T5Config(**model.spec.config(model.vocabulary))
    tensors = {name: t for name, t in model.backbone.state_dict().items() if not name.endswith(EMBEDDINGS)}
    if head is not None:
        tensors |= {f"{_LM_HEAD}{name}": t for name, t in head.state_dict().items()}
    config.architectures = None if model.spec.single else ["T5ForConditionalGeneration"]
    return config, tensors


def encoder_files(encoder: Encoder, head: nn.Module | None, pair: nn.Module | None) -> tuple[Any, dict[str, Tensor]]:
    """(config, {name: weight}) such that `AutoModelForMaskedLM.from_pretrained` loads them, or
    `AutoModelForCausalLM.from_pretrained` where attention is left-only.

    With a 2-way `pair` head `BertForPreTraining` or `AlbertForPreTraining` loads all of it; where `transformers` has
    no such class (pre-LN, more kinds of pairs) the head is kept under BERT's names. One width is BERT's model, narrow
    embeddings are ALBERT's where whole layers are shared and see both sides, else ELECTRA's; weights that layers
    share are written once for ALBERT, else once a layer. Of pre-LN with narrow embeddings `transformers` has no
    model: the names are those of pre-LN with a projection.
    """
    layout = _layout(encoder.spec)
    tensors = {layout.prefix + _name(encoder, ours): t for ours, t in encoder.backbone.state_dict().items()}
    pair_tensors = _named(pair, layout.pair)
    tensors |= _named(head, layout.head) | pair_tensors
    config = _config(encoder, layout)
    whole = len(pair_tensors.get(f"{layout.pair['classifier']}.bias", ())) == 2
    single = layout.causal if encoder.left else layout.masked
    config.architectures = [(layout.pretraining if whole else None) or single]
    return config, tensors


def _layout(spec: Any) -> _Layout:
    if spec.family != "bert":
        return _PRELN if spec.norm == "pre" else _ROBERTA
    if spec.table_width == spec.hidden:
        return _BERT
    # `transformers` forms groups in floating point, which agrees with ours for groups of equal size
    albert = spec.sharing == "all" and spec.layers % spec.groups == 0 and spec.attention == "full"
    return _ALBERT if albert else _ELECTRA


def _config(encoder: Encoder, layout: _Layout) -> Any:
    shape = {**encoder.shape, "embedding_size": encoder.spec.table_width}
    if layout is _ALBERT:
        return AlbertConfig(**shape, num_hidden_groups=encoder.spec.groups, hidden_act="gelu")
    return ElectraConfig(**shape) if layout is _ELECTRA else encoder.backbone.config


def _name(encoder: Encoder, ours: str) -> str:
    """The name in `transformers` of a weight of the backbone."""
    layout = _layout(encoder.spec)
    if layout is _ELECTRA:
        return ours.replace("embeddings.projection", "embeddings_project")
    if layout is not _ALBERT:
        return ours
    if not (found := _LAYER.fullmatch(ours)):
        return ours.replace("embeddings.projection", "encoder.embedding_hidden_mapping_in")
    part = found[2]
    for prefix, theirs in _ALBERT_PARTS.items():
        if part.startswith(prefix):
            part = theirs + part.removeprefix(prefix)
            break
    return f"encoder.albert_layer_groups.{encoder.spec.group(int(found[1]))}.albert_layers.0.{part}"


def _named(head: nn.Module | None, names: dict[str, str]) -> dict[str, Tensor]:
    found = {}
    for name, tensor in head.state_dict().items() if head is not None else ():
        part, _, rest = name.partition(".")
        found[names[part] + (f".{rest}" if rest else "")] = tensor
    return found


def load(model: Model, folder: Path) -> None:
    """Fill the model with the weights that `save` wrote; those of heads are left.

    Raises UserError for a missing or broken file and for weights of another shape or sharing.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"no checkpoint at {path}", "name a folder with model.safetensors, or train it first")
    try:
        file = load_file(path)
        tensors = _ours(model, file) if isinstance(model, Encoder) else _own(model, file)
        model.backbone.load_state_dict(tensors)
    except (SafetensorError, RuntimeError) as error:
        raise _unfit(path, str(error)) from error
    loaded = model.backbone.state_dict()
    if odd := [name for name, tensor in tensors.items() if not torch.equal(tensor, loaded[name].to(tensor))]:
        raise _unfit(path, f"{odd[0]} differs from a layer that shares it")


def _ours(encoder: Encoder, file: dict[str, Tensor]) -> dict[str, Tensor]:
    """{our name: tensor} of the backbone; what has no name of ours keeps its own, and does not fit."""
    prefix = _layout(encoder.spec).prefix
    theirs = {k.removeprefix(prefix): t for k, t in file.items() if k.startswith(prefix)}
    names = {ours: _name(encoder, ours) for ours in encoder.backbone.state_dict()}
    rest = theirs.keys() - set(names.values())
    known = {ours: theirs[name] for ours, name in names.items() if name in theirs}
    return known | {name: theirs[name] for name in rest if not name.startswith(_POOLER)}


def _own(model: TextToText, file: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a file without those of the head, the table under all of its names."""
    shared = {name: file["shared.weight"] for name in model.backbone.state_dict() if name.endswith(EMBEDDINGS)}
    return shared | {name: tensor for name, tensor in file.items() if not name.startswith(_LM_HEAD)}


def _unfit(path: Path, why: str) -> UserError:
    return UserError(f"{path} does not fit the model ({' '.join(why.split())[:160]})", "use its own config")


def load_pooler(encoder: Encoder, folder: Path) -> dict[str, Tensor]:
    """{"weight", "bias"} of the pooler of the head on pairs that `save` wrote beside the encoder.

    Raises UserError where there is none.
    """
    name, path = _layout(encoder.spec).pair["pooler"], folder / WEIGHTS
    with safe_open(path, framework="pt") as file:
        if f"{name}.weight" not in file.keys():  # noqa: SIM118 (no mapping)
            raise UserError(f"{path} holds no pooler", "set finetune.pooler=fresh, or pre-train with a head on pairs")
        return {part: file.get_tensor(f"{name}.{part}") for part in ("weight", "bias")}


def load_written_head(folder: Path) -> dict[str, Tensor] | None:
    """{"weight": [V, D]} of the head of a text-to-text model that `save` wrote; None where it is tied to the table."""
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        name = f"{_LM_HEAD}weight"
        return {"weight": file.get_tensor(name)} if name in file.keys() else None  # noqa: SIM118 (no mapping)


def load_foreign(encoder: Encoder, folder: Path) -> None:
    """Fill an encoder with the weights of others, read by the class of `transformers` that they belong to.

    Raises UserError for weights that are missing or have another shape.
    """
    quiet: Any = logging
    level = quiet.get_verbosity()
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    try:
        theirs, report = KINDS[encoder.spec.family][1].from_pretrained(
            str(folder), add_pooling_layer=False, use_safetensors=True, local_files_only=True, output_loading_info=True
        )
        if report["missing_keys"]:
            raise RuntimeError(f"without {min(report['missing_keys'])}")
        encoder.backbone.load_state_dict(theirs.float().state_dict())
    except (OSError, ValueError, SafetensorError, RuntimeError) as error:
        raise _unfit(folder / WEIGHTS, str(error)) from error
    finally:
        quiet.set_verbosity(level)


def load_head(model: Model, head: nn.Module, folder: Path) -> bool:
    """Fill the head on tokens with a checkpoint's; False, and it stays as it is, where the file has no such head."""
    names = _head_names(model, head)
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        theirs = {_modern(name): name for name in file.keys()}  # noqa: SIM118 (no mapping)
        if not names or not set(names.values()) <= theirs.keys():
            return False
        head.load_state_dict({ours: file.get_tensor(theirs[name]).float() for ours, name in names.items()})
    return True


def _head_names(model: Model, head: nn.Module) -> dict[str, str]:
    """{our name: the file's} of the weights of a head on tokens."""
    if isinstance(model, TextToText):
        return {name: f"lm_head.{name}" for name in head.state_dict()}
    names = _layout(model.spec).head
    split = {name: name.partition(".") for name in head.state_dict()}
    return {ours: names[part] + dot + rest for ours, (part, dot, rest) in split.items() if part in names}


def _modern(name: str) -> str:
    """The name of a weight in today's `transformers`."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
