"""A run's name: hashes of what its settings mean and of its data. Neither places nor the layout of the code count.

A component counts as its public name, its `semantics` and its settings. The public name is the class attribute
`public_name`, by default the name of the class; for a class that is not part of this package it is the import path.
Three more class attributes, of components and of the plain groups in `core.settings`, say what else counts:

    ignored_settings: names of settings that change no result, or that only say where something is.
    unset_values: {setting: value}. At this value a setting counts as absent. A setting that is added later gets an
        entry here with the value at which it changes nothing, so that older runs keep their names.
    content(): plain data that identifies what an ignored place holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.build import ask, kind, public_name
from paribus.core.checksums import digest
from paribus.core.config import root_seed
from paribus.core.settings import GROUPS

SEMANTICS = 2  # raised when the meaning of a run changes as a whole

# Where the texts of a task are, and what they are called. The texts are fingerprinted.
_PLACES = frozenset({"path", "name", "hub", "cache"})
_PRETRAINING = ("input", "masking", "objective", "model", "optimizer", "lr_schedule", "batch", "trainer", "evaluation")


class Identity(NamedTuple):
    """signature: of the run; pretrain: of its pre-training alone; folder: where it lives; data, tasks: fingerprints."""

    signature: str
    pretrain: str
    folder: Path
    data: dict[str, Any]
    tasks: dict[str, str]


def identify(
    config: Mapping[str, Any],
    data: dict[str, Any],
    tasks: Mapping[str, str],
    mixed: Sequence[str] = (),
    before: str = "",
) -> Identity:
    """The names of a run.

    Args:
        config: of its last stage, resolved, as plain data.
        data: the fingerprint of its text and tokens.
        tasks: {task: fingerprint of its texts and labels}.
        mixed: the tasks that its pre-training reads.
        before: the name of the stage whose weights it starts from, if any.
    """
    from paribus.core import noise
    from paribus.corruption import examples

    task_hashes = {
        name: digest([fingerprint, meaning(config["tasks"][name], places=_PLACES)])
        for name, fingerprint in tasks.items()
    }
    parts = {part: meaning(config[part], GROUPS.get(part)) for part in _PRETRAINING}
    if config.get("mixture"):
        parts["mixture"] = {**meaning(config["mixture"]), "tasks": {name: task_hashes[name] for name in mixed}}
    if before:
        parts["before"] = {"semantics": kind(config["objective"]["_target_"]).stages, "pretrain": before}
    semantics = [SEMANTICS, noise.SEMANTICS, examples.SEMANTICS]
    pretrain = digest({"semantics": semantics, "seed": root_seed(config), "data": data, **parts})
    whole: dict[str, Any] = {"pretrain": pretrain, "tasks": task_hashes, "members": int(config.get("members", 1))}
    if task_hashes:
        whole["finetune"] = meaning(config["finetune"], GROUPS["finetune"])
    signature = digest(whole)
    name = Path(str(config["study"]), str(config["arm"]), f"seed{config['seed']}-{signature}")
    if config["run_dir"] is None:
        folder = Path(str(config["paths"]["runs"])) / name
    else:  # if it holds the run of another signature already, below it: nothing is lost
        given = Path(str(config["run_dir"]))
        marker = given / "signature"
        taken = marker.is_file() and marker.read_text(encoding="utf-8").strip() != signature
        folder = given / name if taken else given
    return Identity(signature, pretrain, folder, data, task_hashes)


def meaning(node: object, group: type | None = None, places: frozenset[str] = frozenset()) -> Any:
    """What a config node counts as; `group`: the class of a plain group; `places`: keys that count at no depth."""
    if isinstance(node, list):
        return [meaning(item, places=places) for item in node]
    if not isinstance(node, Mapping):
        return node
    component = kind(node["_target_"]) if "_target_" in node else None
    described = component or group
    ignored = {"_target_", *places, *getattr(described, "ignored_settings", ())}
    unset = getattr(described, "unset_values", {})
    kept = {
        key: meaning(value, places=places)
        for key, value in node.items()
        if key not in ignored and not (key in unset and value == unset[key])
    }
    if component is None:
        return kept
    if (content := ask(component, node, "content")) is not None:
        kept["content"] = content
    return {"component": public_name(component), "semantics": int(getattr(component, "semantics", 1)), **kept}
