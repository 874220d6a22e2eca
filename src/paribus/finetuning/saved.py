"""Saves what a fine-tuning trained, separately from its backbone, and loads it onto the backbone again."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from paribus.core.build import build, kind
from paribus.core.errors import UserError
from paribus.core.files import replacing
from paribus.core.settings import FineTuning
from paribus.core.trust import check_tree
from paribus.finetuning.method import Method
from paribus.models.heads.choices import TaskHead
from paribus.models.heads.head import name_places
from paribus.models.network import Batch, Network, named_weights
from paribus.tasks.types.base import TaskType

MEND = "name a file that finetune.keep=true wrote"
LOSSES = ("label_smoothing", "focal")  # settings of a head's loss


class FineTuned(NamedTuple):
    """A task's model: an encoder whose untrained weights are those of the shared backbone, and the head."""

    encoder: Network
    head: Any
    task_type: TaskType

    def logits(self, batch: Batch) -> Tensor:
        """[B, classes], without dropout."""
        with torch.inference_mode():
            logits_BC: Tensor = self.head.logits(self.encoder(name_places([self.head], batch)), batch)
        return logits_BC


def fingerprint(encoder: Network) -> str:
    """The name of a backbone: the hash of its weights."""
    state = blake2b(digest_size=8)
    for name, parameter in sorted(encoder.named_parameters()):
        state.update(name.encode())
        state.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return state.hexdigest()


def trained(shaped: Network, backbone: Network) -> dict[str, Tensor]:
    """{name: weight} of what a method added or trained, and statistics that training moved."""
    before = named_weights(backbone)
    changed: dict[str, Tensor] = {}
    for name, weight in named_weights(shaped).items():
        old = before.get(name.replace("base_layer.", ""))  # as LoRA wraps a matrix
        if old is None or not torch.equal(old.to(weight.device), weight):
            changed[name] = weight
    return changed


def save(
    path: Path, shaped: Network, head: nn.Module, backbone: Network, finetune: Mapping[str, Any], task_type: TaskType
) -> None:
    """Write the head and what was trained; the file names the backbone that it belongs to.

    Args:
        finetune: the config of the fine-tuning, as plain data.
    """
    about = {
        "backbone": fingerprint(backbone),
        "finetuning": finetune["method"],
        "head": finetune["head"],
        "loss": {key: finetune[key] for key in LOSSES},
        "format": finetune.get("format", "bert"),
        "task_type": task_type.config(),
    }
    tensors = {f"encoder.{name}": tensor for name, tensor in trained(shaped, backbone).items()}
    tensors |= {f"head.{name}": tensor for name, tensor in head.state_dict().items()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as work:
        save_file(tensors, work, {"paribus": json.dumps(about)})


def load(path: Path, backbone: Network) -> FineTuned:
    """A saved fine-tuning on its backbone, whose weights it shares; several can be loaded onto one.

    Raises UserError for a file that is none of these, that names a class which is not trusted, or that belongs to
    another backbone.
    """
    if not path.is_file():
        raise UserError(f"no fine-tuning at {path}", MEND)
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["paribus"])
            check_tree(about)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not a saved fine-tuning", MEND) from error
    if about["backbone"] != fingerprint(backbone):
        raise UserError(f"{path} was trained on another backbone", "load the checkpoint that it was fine-tuned from")
    shaped = copy.deepcopy(backbone, {id(p): nn.Parameter(p.detach()) for p in backbone.parameters()})
    _build_part(about["finetuning"], Method, path).shape(shaped, 0)
    task_type: TaskType = _build_part(about["task_type"], TaskType, path)
    text_format = about.get("format", "bert")  # a file that was saved before the setting has none
    settings = FineTuning(head=_build_part(about["head"], TaskHead, path), format=text_format, **about["loss"])
    head: Any = task_type.make_head(settings, shaped, 0)
    head.load_state_dict({k.removeprefix("head."): t for k, t in tensors.items() if k.startswith("head.")})
    for name, tensor in tensors.items():
        if name.startswith("encoder."):  # a parameter of its own replaces the shared one
            module, _, parameter = name.removeprefix("encoder.").rpartition(".")
            is_buffer = parameter in dict(shaped.get_submodule(module).named_buffers(recurse=False))
            weight = tensor if is_buffer else nn.Parameter(tensor, requires_grad=False)
            setattr(shaped.get_submodule(module), parameter, weight)
    return FineTuned(shaped.eval(), head.eval(), task_type)


def _build_part(node: dict[str, Any], base: type, path: Path) -> Any:
    if not issubclass(kind(str(node.get("_target_"))), base):
        raise UserError(f"{path} names no {base.__name__.lower()}", MEND)
    return build(node)
