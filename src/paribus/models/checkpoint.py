"""A trained network on disk: the layout of `transformers`, weights as safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers.utils import logging

from paribus.core.checksums import check_folder, seal_folder
from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.core.hub import HEADS, POOLING, WEIGHTS
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import Network, initialize


def save(
    network: Network,
    head: nn.Module | None,
    folder: Path,
    pair: nn.Module | None = None,
    pooler: Mapping[str, Tensor] | None = None,
) -> None:
    """Write `config.json` and `model.safetensors` under the names that the network gives.

    The class of `transformers` that the config names loads them: `AutoModelForMaskedLM` for an encoder,
    `AutoModelForCausalLM` if its attention is left-only, `T5ForConditionalGeneration` for an encoder-decoder. Weights
    for which `transformers` has no class (more than two kinds of pairs, one stack that writes) keep the nearest names.
    A `pooler` is kept if there is no head on pairs, whose own it would be. Raises UserError if a weight would be lost.
    """
    tensors = name_tensors(network, head, pair, pooler)
    folder.mkdir(parents=True, exist_ok=True)
    network.checkpoint_config(head, pair).save_pretrained(folder)
    save_file(_copy_to_cpu(tensors), folder / WEIGHTS, {"format": "pt"})
    if network.spec.pooling != "cls":
        (folder / POOLING).parent.mkdir(exist_ok=True)
        modes = {"word_embedding_dimension": network.width, f"pooling_mode_{network.spec.pooling}_tokens": True}
        write_json(folder / POOLING, modes)
    seal_folder(folder)


def name_tensors(
    network: Network,
    head: nn.Module | None = None,
    pair: nn.Module | None = None,
    pooler: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """{name in a checkpoint: weight} of what `save` writes. Raises UserError if a weight has no name of its own."""
    state = network.state_dict(keep_vars=True)
    backbone = network.backbone.state_dict(keep_vars=True)
    tensors = {theirs: backbone[ours] for ours, theirs in network.tensor_names().items()}
    tensors |= {theirs: state[ours] for ours, theirs in _name_outside(network).items()}
    for module, parts, prefix in ((head, network.head_parts, "head."), (pair, network.pair_parts, "pair.")):
        if module is not None:
            names = _name_weights(module, parts, prefix)
            weights = module.state_dict(keep_vars=True)
            tensors |= {names[ours]: weight for ours, weight in weights.items()}
            state |= {f"{prefix}{ours}": weight for ours, weight in weights.items()}
    if pair is None and pooler is not None:
        tensors |= {f"{network.pair_parts['pooler']}.{part}": tensor for part, tensor in pooler.items()}
    named = set(map(id, tensors.values()))
    if lost := [name for name, weight in state.items() if id(weight) not in named]:
        cause = f"a checkpoint of {type(network).__name__} would lose its weight {lost[0]}"
        raise UserError(cause, "give each weight its own name in tensor_names, head_parts and pair_parts")
    return tensors


def load(network: Network, folder: Path) -> None:
    """Load the weights that `save` wrote into the network; weights of heads are skipped.

    Raises UserError for a missing or broken file and for weights of another shape or sharing.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"no checkpoint at {path}", "name a folder with model.safetensors, or train it first")
    check_folder(folder)
    try:
        file, names, outside = load_file(path), network.tensor_names(), _name_outside(network)
        tensors = {ours: file[theirs] for ours, theirs in names.items() if theirs in file}
        # An unknown tensor of the backbone keeps its name, and does not fit
        unknown = {name for name in file if network.owns(name)} - set(names.values()) - set(outside.values())
        if missing := set(outside.values()) - file.keys():
            raise RuntimeError(f"without {min(missing)}")
        network.backbone.load_state_dict(tensors | {name: file[name] for name in unknown})
        network.load_state_dict({ours: file[theirs] for ours, theirs in outside.items()}, strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise _misfit(path, str(error)) from error
    loaded = network.backbone.state_dict()
    if odd := [name for name, tensor in tensors.items() if not torch.equal(tensor, loaded[name].to(tensor))]:
        raise _misfit(path, f"{odd[0]} differs from a layer that shares it")


def load_foreign(network: Network, folder: Path) -> None:
    """Fill a network with the weights of others, read by the `transformers` class of its backbone.

    Raises UserError for weights that are missing or have another shape.
    """
    logs: Any = logging
    level = logs.get_verbosity()
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    try:
        theirs, report = type(network.backbone).from_pretrained(
            str(folder), use_safetensors=True, local_files_only=True, output_loading_info=True
        )
        ours = network.backbone.state_dict()
        fixed = {name for name, parameter in network.backbone.named_parameters() if not parameter.requires_grad}
        # The class itself makes a table of sinusoids
        if missing := (ours.keys() - fixed) & set(report["missing_keys"]):
            raise RuntimeError(f"without {min(missing)}")
        weights = theirs.float().state_dict()
        network.backbone.load_state_dict({name: tensor for name, tensor in weights.items() if "pooler." not in name})
    except (OSError, ValueError, SafetensorError, RuntimeError) as error:
        raise _misfit(folder / WEIGHTS, str(error)) from error
    finally:
        logs.set_verbosity(level)


def load_head(network: Network, head: nn.Module, folder: Path) -> bool:
    """Fill the head on tokens with a checkpoint's weights; return False, and leave it as it is, if there are none.

    Raises UserError for those of a head of another shape.
    """
    names = _name_weights(head, network.head_parts, "head.")
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        # {name in today's `transformers`: name in the file}
        theirs = {
            name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): name
            for name in file.keys()  # noqa: SIM118 (no mapping)
        }
        if not names or not set(names.values()) <= theirs.keys():
            return False
        weights = {ours: file.get_tensor(theirs[name]).float() for ours, name in names.items()}
    for name, weight in head.state_dict().items():
        if weights[name].shape != weight.shape:
            found, wanted = list(weights[name].shape), list(weight.shape)
            cause = f"{folder / WEIGHTS} has a head on tokens whose {name} is {found}, not {wanted}"
            raise UserError(cause, "set objective= to the one that the checkpoint was trained with")
    head.load_state_dict(weights)
    return True


def read_token_head(network: Network, head: MaskedLMHead, folder: Path, needed: bool) -> dict[str, Tensor] | None:
    """The weights of the head on tokens of a checkpoint, if it has one. Raises UserError if a needed one is absent.

    Args:
        head: a head as that of the checkpoint, which is filled.
    """
    if not load_head(network, head, folder):
        if not needed:
            return None
        raise UserError(f"{folder / WEIGHTS} holds no head on tokens", "pre-train with objective=clm")
    return dict(head.state_dict())


def save_further(parts: Mapping[str, nn.Module], folder: Path) -> None:
    """Write further heads and networks of an objective beside the network, if there are any."""
    if parts:
        tensors = {f"{name}.{part}": t for name, module in parts.items() for part, t in module.state_dict().items()}
        save_file(_copy_to_cpu(tensors), folder / HEADS)
        seal_folder(folder)


def load_further(parts: Mapping[str, nn.Module], folder: Path) -> None:
    """Load the weights of further heads and networks that a checkpoint has under the same names; others stay as they
    are.

    Raises UserError for a different shape.
    """
    saved = load_file(folder / HEADS) if (folder / HEADS).is_file() else {}
    for name, module in parts.items():
        if weights := {part.removeprefix(f"{name}."): t for part, t in saved.items() if part.startswith(f"{name}.")}:
            try:
                module.load_state_dict(weights)
            except RuntimeError as error:
                raise _misfit(folder / HEADS, str(error)) from error


def find_pooler(network: Network, folder: Path) -> dict[str, Tensor] | None:
    """{"weight", "bias"} of the pooler of a checkpoint, ours or that of others, if it has one."""
    return _read_linear(network.pair_parts["pooler"], folder)


def load_pooler(network: Network, folder: Path) -> dict[str, Tensor]:
    """{"weight", "bias"} of the pooler that `save` wrote beside the network. Raises UserError if there is none."""
    if (pooler := find_pooler(network, folder)) is None:
        raise UserError(f"{folder / WEIGHTS} holds no pooler", "set finetune.head.pooler=fresh, or pre-train on pairs")
    return pooler


def fresh_pooler(network: Network, seed: int) -> dict[str, Tensor]:
    """{"weight", "bias"} of a pooler with initial weights."""
    linear = nn.Linear(network.width, network.width)
    initialize(linear, seed, network.spec.initializer_range)
    return {name: tensor.detach() for name, tensor in linear.state_dict().items()}


def load_pair_head(network: Network, head: nn.Module, folder: Path, classifier: bool) -> bool:
    """Fill the head on pairs with a checkpoint's pooler and, if asked, its classifier, as far as they are there.

    Returns whether all of the head was filled.
    """
    asked = ("pooler", "classifier") if classifier else ("pooler",)
    weights, filled = head.state_dict(), []
    for part in asked:
        tensors = _read_linear(network.pair_parts[part], folder)
        if tensors is not None and tensors["weight"].shape == weights[f"{part}.weight"].shape:
            weights |= {f"{part}.{name}": tensor for name, tensor in tensors.items()}
            filled.append(part)
    head.load_state_dict(weights)
    return filled == ["pooler", "classifier"]


def load_written_head(network: Network, folder: Path) -> dict[str, Tensor] | None:
    """{"weight": [V, D]} of the head of a network that writes; None if the head is tied to the table."""
    name = network.head_parts["weight"]
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        return {"weight": file.get_tensor(name)} if name in file.keys() else None  # noqa: SIM118 (no mapping)


def _read_linear(name: str, folder: Path) -> dict[str, Tensor] | None:
    """{"weight", "bias"} of a linear layer of a head; a checkpoint of the bare model has no prefix."""
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        for known in (name, name.partition(".")[2]):
            if f"{known}.weight" in file.keys():  # noqa: SIM118 (no mapping)
                return {part: file.get_tensor(f"{known}.{part}").float() for part in ("weight", "bias")}
    return None


def _misfit(path: Path, why: str) -> UserError:
    """The error for weights that are not those of the network."""
    return UserError(f"{path} does not fit the model ({' '.join(why.split())[:160]})", "use its own config")


def _name_outside(network: Network) -> dict[str, str]:
    """{name in the network: name in the file} of its weights outside the backbone."""
    return {name: f"network.{name}" for name in network.state_dict() if not name.startswith("backbone.")}


def _name_weights(head: nn.Module, parts: Mapping[str, str], prefix: str) -> dict[str, str]:
    """{name in the head: name in the file} of the head's weights."""
    split = {name: name.partition(".") for name in head.state_dict()}
    return {name: parts.get(part, prefix + part) + dot + rest for name, (part, dot, rest) in split.items()}


def _copy_to_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies that share no memory, as safetensors needs."""
    return {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
