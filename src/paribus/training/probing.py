"""Probing instead of fine-tuning: the states of a task are computed once, and a probe reads each layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from paribus.core.errors import UserError
from paribus.finetuning.probe import SMALLEST, Probe, draw_control
from paribus.models.heads.choices import FirstToken, Pooled
from paribus.models.heads.wrappers import pool
from paribus.models.network import Batch, Network
from paribus.tasks.types.base import ProbeItems
from paribus.training.finetuner import Base, TaskWork, task_seed
from paribus.training.kept_states import FOLDER, keep_states

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.training.trainer import Setup

MOST = 4096  # states that a probe reads at once


def probe_once(base: Base, work: TaskWork, seed: int, setup: Setup) -> dict[str, float]:
    """{"accuracy_l0": ..., "control_accuracy_l0": ..., "selectivity_l0": ...}: the scores of a probe of each layer.

    There are the task's metrics, and for classes the share of right items, the same on the control task, and the first
    minus the second. Those of a further evaluation set end with its name. The states are kept in the run's folder, for
    all layers and seeds.
    """
    probe, task_type, device = base.run.finetune.probe, work.task_type, setup.profile.device
    items = {split: task_type.list_probed(rows, work.examples[split]) for split, rows in work.encoded.items()}
    states = find_states(base, work, items, setup)
    classes, drawn = len(task_type.classes), task_seed(base.run, work.name, seed)
    labels = {split: each.label_I for split, each in items.items()}
    random: dict[str, Array] = {}
    if classes and probe.control:
        random = draw_control({split: each.kinds for split, each in items.items()}, labels["train"], drawn)
    read_M = probe.sample(len(labels["train"]))
    if len(read_M) < 2:
        raise UserError(f"tasks.{work.name} has a single training item, from which no probe learns", "give it more")
    metrics: dict[str, float] = {}
    for place, layer in enumerate(probe.choose(base.encoder.depth)):
        arrays = {split: np.array(each[place]) for split, each in states.items()}
        arrays["train"] = arrays["train"][read_M]
        of_layer = standardize({split: torch.from_numpy(each).to(device) for split, each in arrays.items()})
        found = ask(probe, of_layer, labels["train"][read_M], classes, drawn)
        recited = ask(probe, of_layer, random["train"][read_M], classes, drawn) if random else {}
        for split, value_I in found.items():
            values = {}
            if classes:
                values["accuracy"] = float((value_I == labels[split]).mean())
            if recited:
                control = float((recited[split] == random[split]).mean())
                values |= {"control_accuracy": control, "selectivity": values["accuracy"] - control}
            predictions = task_type.predict_probed(value_I, work.encoded[split], work.examples[split])
            values |= task_type.score(predictions, work.examples[split])
            suffix = "" if split == "validation" else f"_{split}"
            metrics |= {f"{name}_l{layer}{suffix}": value for name, value in values.items()}
    if setup.tracked is not None:
        setup.tracked.log({f"{work.name}/seed{seed}/{name}": value for name, value in metrics.items()}, 0)
    return metrics


def ask(probe: Probe, states: dict[str, Tensor], label_M: Array, classes: int, seed: int) -> dict[str, Array]:
    """{evaluation set: the likeliest classes, or the values} by a probe that learns these labels of the training."""
    read = probe.fit(states["train"], torch.from_numpy(label_M).to(states["train"].device), classes, seed)
    answers = {}
    for split, state_ID in states.items():
        if split != "train":  # in parts: a wide hidden layer of all items would fill the memory
            outputs = torch.cat([read(state_MD) for state_MD in torch.split(state_ID, MOST)])
            answers[split] = (outputs.argmax(-1) if classes else outputs[:, 0]).cpu().numpy()
    return answers


def standardize(states: dict[str, Tensor]) -> dict[str, Tensor]:
    """The states of a layer, in single precision, with the mean 0 and the deviation 1 in training."""
    whole = {split: each.float() for split, each in states.items()}
    mean_D, spread_D = whole["train"].mean(0), whole["train"].std(0).clamp_min(SMALLEST)
    return {split: each.sub_(mean_D).div_(spread_D) for split, each in whole.items()}


def find_states(base: Base, work: TaskWork, items: dict[str, ProbeItems], setup: Setup) -> dict[str, Array]:
    """{set: float16 [K, I, D]}: what the probe reads of its K layers."""
    pooling = base.run.finetune.head.pooling

    def read(network: Network, state_BLD: Tensor, batch: Batch) -> Tensor:
        return work.task_type.read_probed(state_BLD, batch, partial(summarize, network, pooling, batch))

    files = {split: setup.folder / FOLDER / f"{work.name}-{split}.npy" for split in work.encoded}
    counts = {split: each.count_N for split, each in items.items()}
    layers = base.run.finetune.probe.choose(base.encoder.depth)
    return keep_states(files, work.encoded, counts, base.encoder, setup.profile.device, layers, read)


def summarize(network: Network, pooling: FirstToken, batch: Batch, state_BLD: Tensor) -> Tensor:
    """[B, D]: the summary of each row that a head with this pooling reads of the states of a layer."""
    if isinstance(pooling, Pooled):
        return pool(pooling.kind, state_BLD, batch["length_B"])
    if network.spec.pooling != "cls":
        return pool(network.spec.pooling, state_BLD, batch["length_B"])
    row_BD = network.summarize(state_BLD, batch)
    return state_BLD[:, 0] if row_BD is None else row_BD
