"""One run whose weights, gradients and moments lie in shards on several devices (FSDP, arXiv 2304.11277).

Torch's `fully_shard` gathers the weights of a layer when it runs and adds its gradients up into shards. Evaluations and
the end of the training get whole weights in modules of the first process; checkpoints are those of one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies import ModelParallelStrategy, ParallelStrategy
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


class Sharded(ModelParallelStrategy):
    """Lightning's strategy for sharded modules, over `size` processes; writes and reads the checkpoint of one."""

    lightning_restore_optimizer = True

    def __init__(self, size: int, timeout: timedelta) -> None:
        super().__init__(size, 1, save_distributed_checkpoint=False, timeout=timeout)

    def load_checkpoint(self, checkpoint_path: str | Path, weights_only: bool | None = None) -> dict[str, Any]:
        """The whole checkpoint, on every rank."""
        return ParallelStrategy.load_checkpoint(self, checkpoint_path, weights_only)

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        """Give every rank its shards."""
        assert self.lightning_module is not None
        options = StateDictOptions(full_state_dict=True, strict=strict)
        set_model_state_dict(self.lightning_module, checkpoint["state_dict"], options=options)

    def optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        """The optimizer's state as in one process, on the first rank; the others help to gather it."""
        state = optimizer.state_dict()
        gathered = {
            number: {name: whole(value) for name, value in own.items()} for number, own in state["state"].items()
        }
        return {**state, "state": gathered} if self.is_global_zero else {}

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Give every rank its shards."""
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            cut = {
                number: {name: _cut(value, parameters[number]) for name, value in own.items()}
                for number, own in state["state"].items()
            }
            optimizer.load_state_dict({**state, "state": cut})


def whole(value: Any) -> Any:
    """A sharded tensor put together, in memory of the processor; all ranks must ask. Anything else as it is."""
    return value.full_tensor().cpu() if isinstance(value, DTensor) else value


def _cut(value: Any, parameter: Tensor) -> Any:
    """This rank's part of what is kept for every weight of a parameter; anything else as it is."""
    if not (isinstance(parameter, DTensor) and isinstance(value, Tensor) and value.shape == parameter.shape):
        return value
    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)


def shard(module: nn.Module, mesh: Any) -> None:
    """Cut a module in place: every layer by itself, the rest together. Gradients are sums over the ranks."""
    for part in [*_layers(module), module]:
        sharded: FSDPModule = fully_shard(part, mesh=mesh)
        sharded.set_gradient_divide_factor(1.0)
        sharded.set_force_sum_reduction_for_comms(True)  # else a factor of 1 is not taken for a plain sum


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The modules of the outermost lists, but those that share weights with others."""
    lists: list[nn.ModuleList] = []
    for part in module.modules():
        if isinstance(part, nn.ModuleList) and not any(part in set(outer.modules()) for outer in lists):
            lists.append(part)
    layers = [layer for each in lists for layer in each]
    users = Counter(parameter for layer in layers for parameter in layer.parameters())
    return (layer for layer in layers if all(users[parameter] == 1 for parameter in layer.parameters()))


class Gathering(pl.Callback):
    """Puts the weights of all ranks together in plain modules of the first, after the steps `at` and at the end.

    Args:
        plain: {the learner's name of a part: the module that gets its weights}.
    """

    def __init__(self, plain: Mapping[str, nn.Module], at: Collection[int]) -> None:
        self.plain, self.at = plain, at

    def on_train_batch_end(self, trainer: pl.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step in self.at:
            self._fill(trainer, trainer.strategy.root_device)

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._fill(trainer, torch.device("cpu"))

    def _fill(self, trainer: pl.Trainer, device: torch.device) -> None:
        weights = trainer.strategy.lightning_module_state_dict()
        if not trainer.is_global_zero:
            return
        for part, plain in self.plain.items():
            own = {name: value for name, value in weights.items() if name.startswith(f"{part}.")}
            plain.load_state_dict({name.removeprefix(f"{part}."): value for name, value in own.items()})
            plain.to(device)
