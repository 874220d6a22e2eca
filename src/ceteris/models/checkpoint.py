"""A trained encoder on disk: the layout of `transformers`, weights as safetensors."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ceteris.errors import UserError
from ceteris.models.encoder import Encoder

WEIGHTS = "model.safetensors"

# our names -> the names in `transformers`, by norm: (backbone, {parameter of the masked-LM head: name})
_NAMES = {
    "post": (
        "bert.",
        {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "bias": "cls.predictions.bias",
        },
    ),
    "pre": (
        "roberta_prelayernorm.",
        {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "bias": "lm_head.bias"},
    ),
}
_CLASS = {
    ("post", "full"): "BertForMaskedLM",
    ("post", "left"): "BertLMHeadModel",
    ("pre", "full"): "RobertaPreLayerNormForMaskedLM",
    ("pre", "left"): "RobertaPreLayerNormForCausalLM",
}
_POOLER = "pooler."  # of a pair head; stands beside the backbone's weights, as in `transformers`


def save(encoder: Encoder, head: nn.Module | None, folder: Path, pair: nn.Module | None = None) -> None:
    """Write `config.json` and `model.safetensors` such that `AutoModelForMaskedLM.from_pretrained` loads them, or
    `AutoModelForCausalLM.from_pretrained` where attention is left-only.

    With a `pair` head `BertForPreTraining` loads all of it; where `transformers` has no such class (pre-LN) the head is
    kept under the same names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prefix, names = _NAMES[encoder.spec.norm]
    tensors = {prefix + name: tensor for name, tensor in encoder.backbone.state_dict().items()}
    pair_names = {"pooler": f"{prefix}{_POOLER}dense", "classifier": "cls.seq_relationship"}
    tensors |= _named(head, names) | _named(pair, pair_names)
    whole = pair is not None and encoder.spec.norm == "post"
    encoder.backbone.config.architectures = [
        "BertForPreTraining" if whole else _CLASS[encoder.spec.norm, encoder.spec.attention]
    ]
    encoder.backbone.config.save_pretrained(folder)
    save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, folder / WEIGHTS, {"format": "pt"})


def _named(head: nn.Module | None, names: dict[str, str]) -> dict[str, Tensor]:
    found = {}
    for name, tensor in head.state_dict().items() if head is not None else ():
        part, _, rest = name.partition(".")
        found[names[part] + (f".{rest}" if rest else "")] = tensor
    return found


def load(encoder: Encoder, folder: Path) -> None:
    """Fill the encoder with the weights that `save` wrote.

    Raises UserError for a missing or broken file and for weights of another shape.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"no checkpoint at {path}", "name a folder with model.safetensors, or train it first")
    prefix, _ = _NAMES[encoder.spec.norm]
    try:
        tensors: dict[str, Tensor] = {
            k.removeprefix(prefix): t for k, t in load_file(path).items() if k.startswith(prefix)
        }
        encoder.backbone.load_state_dict({k: t for k, t in tensors.items() if not k.startswith(_POOLER)})
    except (SafetensorError, RuntimeError) as error:
        raise UserError(
            f"{path} does not fit the model ({' '.join(str(error).split())[:160]})", "use its own config"
        ) from error
