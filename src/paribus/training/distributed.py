"""One run on several processes: the first is the run, the others only help it to pre-train.

Each has the whole model (DDP) or a shard of it (FSDP, arXiv 2304.11277). Rank r reads every `size`-th sequence of each
step. Losses are sums over counts of the whole step, so that adding up the gradients of all ranks gives that of one
process; nothing else is shared. Every rank has its own draws of dropout. Under FSDP torch's `fully_shard` gathers the
weights of a layer when it runs and adds its gradients up into shards; evaluations and the end of the training get whole
weights in modules of the first process, and checkpoints are those of one process.

`paribus.training.helper` is the program of the others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from pytorch_lightning.strategies import DDPStrategy, ModelParallelStrategy, ParallelStrategy
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from paribus.core.console import say
from paribus.core.processes import SIGNALS, THREADS

if TYPE_CHECKING:
    from paribus.training.profile import ResolvedProfile

HELPER = "paribus.training.helper"
WAIT = timedelta(hours=2)  # for a rank that evaluates while the others wait


class RankGroup(NamedTuple):
    """The rank of this process among `size`, and the `port` at which they meet."""

    rank: int = 0
    size: int = 1
    port: int = 0


class Meeting(ClusterEnvironment):
    """A group on this machine, in the form that Lightning expects; its processes are started by `helpers`."""

    creates_processes_externally = True
    main_address = "127.0.0.1"
    main_port = 0

    def __init__(self, group: RankGroup) -> None:
        super().__init__()
        self.group, self.main_port = group, group.port

    @staticmethod
    def detect() -> bool:
        return False

    def world_size(self) -> int:
        return self.group.size

    def global_rank(self) -> int:
        return self.group.rank

    def local_rank(self) -> int:
        return self.group.rank

    def node_rank(self) -> int:
        return 0

    def set_world_size(self, size: int) -> None:
        """Does nothing: the group knows its size."""

    def set_global_rank(self, rank: int) -> None:
        """Does nothing: the group knows its rank."""


def trainer_settings(group: RankGroup, strategy: str) -> dict[str, Any]:
    """The settings of Lightning's Trainer for several processes. A job of Slurm is queued again by its launcher."""
    if group.size == 1:
        slurm = [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []
        return {"devices": 1, "plugins": slurm}
    parallel = Sharded(group.size, WAIT) if strategy == "fsdp" else DDPStrategy(timeout=WAIT, broadcast_buffers=False)
    return {"devices": group.size, "plugins": [Meeting(group)], "strategy": parallel}


@contextmanager
def helpers(folder: Path, profile: ResolvedProfile) -> Iterator[RankGroup]:
    """Start the other processes of a run, whose resolved config is in its folder.

    None outlives the block: when the first process has trained, nothing is left for the others. Nor does the number of
    threads in the environment, which a later run of this process would take for the user's.
    """
    if profile.ranks == 1:
        yield RankGroup()
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = os.environ.get(THREADS)
    os.environ.setdefault(THREADS, str(profile.threads))  # else Lightning divides the cores itself
    started = [
        subprocess.Popen(
            [sys.executable, "-m", HELPER, str(folder), str(rank), str(profile.ranks), str(port)],
            stdin=subprocess.DEVNULL,
        )
        for rank in range(1, profile.ranks)
    ]
    over = threading.Event()

    def watch() -> None:
        """End this process if a helper failed; the others would wait for it in a collective and ignore signals."""
        while not over.wait(1.0):
            if any(process.poll() for process in started):  # a status that is not 0
                for process in started:
                    process.kill()
                say("paribus: a helper process of this run failed; run the same command again to resume")
                os._exit(2)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield RankGroup(0, profile.ranks, port)
    finally:
        over.set()
        if given is None:
            os.environ.pop(THREADS, None)
        for process in started:
            process.kill()
            process.wait()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def obey_the_first() -> None:
    """End with the run, and not by signals that are meant for it."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def counts_of_all(trainer: pl.Trainer, counts: Counter[str]) -> Counter[str]:
    """The counts of a step over all ranks."""
    if trainer.world_size == 1:
        return counts
    per_rank: list[Any] = [None] * trainer.world_size
    torch.distributed.all_gather_object(per_rank, dict(counts))
    whole: Counter[str] = Counter()
    for of_rank in per_rank:
        whole.update(of_rank)
    return whole


def merge_of_all(trainer: pl.Trainer, kept: dict[int, Any]) -> dict[int, Any]:
    """What each process keeps under numbers of its own, together."""
    if trainer.world_size == 1:
        return kept
    of_rank: list[dict[int, Any] | None] = [None] * trainer.world_size
    torch.distributed.all_gather_object(of_rank, kept)
    return {number: value for part in of_rank for number, value in (part or {}).items()}


def unshared(trainer: pl.Trainer) -> Any:
    """A context in which a backward pass leaves whole gradients as they are: `add_up` adds them once a step."""
    strategy = trainer.strategy
    return strategy.block_backward_sync() if isinstance(strategy, DDPStrategy) else contextlib.nullcontext()


def add_up(trainer: pl.Trainer, parameters: Iterable[torch.nn.Parameter], losses: Mapping[str, Tensor]) -> None:
    """Sum losses and whole gradients over all ranks, in place; what no rank has a gradient for keeps none.

    The order of 2, 4, 8, ... ranks is that of one process with the same microbatches. Gradients of shards are sums
    already.
    """
    if trainer.world_size == 1:
        return
    if isinstance(trainer.strategy, Sharded):
        for loss in losses.values():
            torch.distributed.all_reduce(loss)
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    device = trained[0].device
    has_P = torch.tensor([parameter.grad is not None for parameter in trained], dtype=torch.int32, device=device)
    torch.distributed.all_reduce(has_P)
    shared = [parameter for parameter, ranks in zip(trained, has_P.tolist(), strict=True) if ranks]
    for parameter in shared:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    parts = [grad for parameter in shared if (grad := parameter.grad) is not None] + list(losses.values())
    flat = torch.cat([part.reshape(-1).float() for part in parts])
    _sum_in_order(flat)
    for part, summed in zip(parts, torch.split(flat, [part.numel() for part in parts]), strict=True):
        part.copy_(summed.view_as(part))


def _sum_in_order(flat: Tensor) -> None:
    """Sum over all ranks, in place. For a power of two: first pairs half the ranks apart, last neighbors."""
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    if size & (size - 1):
        torch.distributed.all_reduce(flat)
        return
    received, distance = torch.empty_like(flat), size // 2
    while distance:
        exchange = [
            torch.distributed.P2POp(torch.distributed.isend, flat, rank ^ distance),
            torch.distributed.P2POp(torch.distributed.irecv, received, rank ^ distance),
        ]
        for work in torch.distributed.batch_isend_irecv(exchange):
            work.wait()
        flat += received
        distance //= 2


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

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The optimizer's state as in one process, on the first rank; the others help to gather it."""
        state = optimizer.state_dict()
        gathered = {
            number: {name: whole(value) for name, value in moments.items()}
            for number, moments in state["state"].items()
        }
        return {**state, "state": gathered} if self.is_global_zero else {}

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Give every rank its shards."""
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            shards = {
                number: {name: _take_shard(value, parameters[number]) for name, value in moments.items()}
                for number, moments in state["state"].items()
            }
            optimizer.load_state_dict({**state, "state": shards})


def whole(value: object) -> Any:
    """A sharded tensor put together, on the CPU; all ranks must call this. Anything else as it is."""
    return value.full_tensor().cpu() if isinstance(value, DTensor) else value


def _take_shard(value: object, parameter: Tensor) -> Any:
    """This rank's part of what is kept for every weight of a parameter; anything else as it is."""
    if not (isinstance(parameter, DTensor) and isinstance(value, Tensor) and value.shape == parameter.shape):
        return value
    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)


def shard(module: nn.Module, mesh: DeviceMesh) -> None:
    """Cut a module in place: every layer by itself, the rest together. Gradients are sums over the ranks.

    Layers are the modules of the outermost lists. One that shares weights with another belongs to the rest.
    """
    lists: list[nn.ModuleList] = []
    for part in module.modules():
        if isinstance(part, nn.ModuleList) and not any(part in set(outer.modules()) for outer in lists):
            lists.append(part)
    layers = [layer for each in lists for layer in each]
    users = Counter(parameter for layer in layers for parameter in layer.parameters())
    alone = [layer for layer in layers if all(users[parameter] == 1 for parameter in layer.parameters())]
    for part in [*alone, module]:
        sharded: FSDPModule = fully_shard(part, mesh=mesh)
        sharded.set_gradient_divide_factor(1.0)
        sharded.set_force_sum_reduction_for_comms(True)  # else a factor of 1 is not taken for a plain sum


class GatherShards(pl.Callback):
    """Puts the weights of all ranks together in plain modules of the first, after the steps `at` and at the end.

    Args:
        plain: {the learner's name of a part: the module that gets its weights}.
    """

    def __init__(self, plain: Mapping[str, nn.Module], at: Collection[int]) -> None:
        self.plain, self.at = plain, at

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        if trainer.global_step in self.at:
            self._fill(trainer, trainer.strategy.root_device)

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._fill(trainer, torch.device("cpu"))

    def _fill(self, trainer: pl.Trainer, device: torch.device) -> None:
        weights = trainer.strategy.lightning_module_state_dict()
        if not trainer.is_global_zero:
            return
        for part, plain in self.plain.items():
            prefix = f"{part}."
            plain.load_state_dict(
                {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
            )
            plain.to(device)
