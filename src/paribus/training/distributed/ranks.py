"""One run on several processes: the first is the run, the others only help it to pre-train.

Each has the whole model (DDP) or a shard of it (FSDP, `sharded.py`). Rank r reads every `size`-th sequence of each
step. Losses are sums over counts of the whole step, so that adding up the gradients of all ranks gives that of one
process; nothing else is shared. Dropout has draws of its own on every rank.
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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from pytorch_lightning.strategies import DDPStrategy
from torch import Tensor

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.processes import terminable
from paribus.training.distributed.sharded import Sharded
from paribus.training.execution import Profile

if TYPE_CHECKING:
    from paribus.training.description import Run

HELPER = "paribus.training.distributed.helper"
WAIT = timedelta(hours=2)  # for a rank that evaluates while the others wait


class Group(NamedTuple):
    """This process' place among `size`; `port`: where they meet."""

    rank: int = 0
    size: int = 1
    port: int = 0


class Meeting(ClusterEnvironment):
    """A group on this machine, as Lightning asks for it; its processes are started by `helpers`."""

    creates_processes_externally = True
    main_address = "127.0.0.1"
    main_port = 0

    def __init__(self, group: Group) -> None:
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
        """It is known."""

    def set_global_rank(self, rank: int) -> None:
        """It is known."""


def trainer_settings(group: Group, strategy: str) -> dict[str, Any]:
    """What Lightning's Trainer is told: how several processes share. A job of Slurm is queued again by its launcher."""
    if group.size == 1:
        slurm = [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []
        return {"devices": 1, "plugins": slurm}
    shared = Sharded(group.size, WAIT) if strategy == "fsdp" else DDPStrategy(timeout=WAIT, broadcast_buffers=False)
    return {"devices": group.size, "plugins": [Meeting(group)], "strategy": shared}


def check(run: Run, profile: Profile) -> None:
    """Raise UserError where a run cannot be trained on so many processes."""
    ranks = profile.ranks
    if ranks < 1:
        raise UserError(f"profile.ranks={ranks} is below 1", "give a number of processes")
    if ranks == 1:
        return
    if profile.accelerator == "gpu" and ranks > (there := torch.cuda.device_count()):
        raise UserError(f"profile.ranks={ranks}, but there are {there} GPUs", "give at most as many")
    if run.trial is not None or _in_multirun():
        raise UserError(
            f"profile.ranks={ranks} inside a Hydra multirun", "start each run by itself, or the sweep by paribus run"
        )
    if profile.sharded:
        _check_shards(run, profile)
    if run.trainer.noise_every is not None:
        raise UserError(f"trainer.noise_every with profile.ranks={ranks}", "measure it with profile.ranks=1")


def _check_shards(run: Run, profile: Profile) -> None:
    if profile.compile:
        raise UserError("profile.compile=true with profile.strategy=fsdp", "leave it false, or take trainer=ddp")
    if not run.optimizer.shards:
        name = type(run.optimizer).__name__.lower()
        raise UserError(
            f"optimizer={name} with profile.strategy=fsdp needs whole matrices", "take optimizer=adamw, or trainer=ddp"
        )


def _in_multirun() -> bool:
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


@contextmanager
def helpers(folder: Path, profile: Profile) -> Iterator[Group]:
    """Start the other processes of a run, whose resolved config is in its folder.

    None outlives the block: when the first process has trained, nothing is left for the others.
    """
    if profile.ranks == 1:
        yield Group()
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.setdefault("OMP_NUM_THREADS", str(profile.threads))  # else Lightning divides the cores itself
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "paribus.training.distributed.helper",
                str(folder),
                str(rank),
                str(profile.ranks),
                str(port),
            ],
            stdin=subprocess.DEVNULL,
        )
        for rank in range(1, profile.ranks)
    ]
    over = threading.Event()
    threading.Thread(target=_guard, args=(started, over), daemon=True).start()
    try:
        with terminable():
            yield Group(0, profile.ranks, port)
    finally:
        over.set()
        for process in started:
            process.kill()
            process.wait()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _guard(started: list[subprocess.Popen[bytes]], over: threading.Event) -> None:
    """End this process where a helper failed: the others would wait for it inside of a collective, deaf to signals."""
    while not over.wait(1.0):
        if any(process.poll() for process in started):  # a status that is not 0
            for process in started:
                process.kill()
            say("paribus: a process that helped this run failed; the same command goes on from the last checkpoint")
            os._exit(2)


def obey_the_first() -> None:
    """End with the run, and not by signals that are meant for it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def counts_of_all(trainer: Any, counts: Counter[str]) -> Counter[str]:
    """The counts of a step over all ranks."""
    if trainer.world_size == 1:
        return counts
    per_rank: list[Any] = [None] * trainer.world_size
    torch.distributed.all_gather_object(per_rank, dict(counts))
    whole: Counter[str] = Counter()
    for own in per_rank:
        whole.update(own)
    return whole


def unshared(trainer: Any) -> Any:
    """A context in which a backward pass leaves whole gradients as they are: `add_up` adds them once a step."""
    whole = isinstance(trainer.strategy, DDPStrategy)
    return trainer.strategy.block_backward_sync() if whole else contextlib.nullcontext()


def add_up(trainer: Any, parameters: Iterable[torch.nn.Parameter], losses: Mapping[str, Tensor]) -> None:
    """Sum losses and whole gradients over all ranks, in place; what no rank has a gradient for keeps none.

    Gradients of shards are sums already.
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
    torch.distributed.all_reduce(flat)
    for part, summed in zip(parts, torch.split(flat, [part.numel() for part in parts]), strict=True):
        part.copy_(summed.view_as(part))
