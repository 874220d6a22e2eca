"""The module that calls a network and its heads, and sums their losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from paribus.models.heads.head import Head, TokenHead, name_places
from paribus.models.heads.rows import PairHead
from paribus.models.network import Batch, Network, Outputs, State


class Objective(nn.Module):
    """Calls the network once and every head on its states. A subclass may call it twice, or own further networks.

    Args:
        heads: by the name of their loss.
        weights: of the losses in the sum; 1 for those without one.
        tasks: {head: the task that it belongs to}. If a batch names its task as `batch["task"]`, the heads of other
            tasks are skipped; a head that is missing here serves every batch.

    Attributes:
        writes: whether the network reads another batch than it is given, the one that `write` returns.
    """

    writes: ClassVar[bool] = False

    def __init__(
        self,
        heads: Mapping[str, Head],
        weights: Mapping[str, float] | None = None,
        tasks: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.heads = nn.ModuleDict(dict(heads))
        self.weights = {**dict.fromkeys(heads, 1.0), **(weights or {})}
        self.tasks = dict(tasks or {})

    @property
    def named_heads(self) -> dict[str, Head]:
        return {name: cast(Head, head) for name, head in self.heads.items()}

    @property
    def token_head_name(self) -> str | None:
        """The head that the held-out evaluation uses and the checkpoint keeps: the first that predicts tokens."""
        return next((name for name, head in self.heads.items() if isinstance(head, TokenHead)), None)

    @property
    def token_head(self) -> TokenHead | None:
        return next((head for head in self.heads.values() if isinstance(head, TokenHead)), None)

    @property
    def own_head_name(self) -> str | None:
        """The head whose loss shows what the network has learned from its own noise."""
        return self.token_head_name

    @property
    def pair_head(self) -> PairHead | None:
        """The head on pairs, if any."""
        return next((head for head in self.heads.values() if isinstance(head, PairHead)), None)

    @property
    def further_parts(self) -> dict[str, nn.Module]:
        """{name: module} of all that has weights beside the heads on tokens and on pairs: further heads and networks,
        which a checkpoint keeps and a later stage takes over.
        """
        kept = (self.heads, self.token_head, self.pair_head)
        parts = {**dict(self.named_heads), **dict(self.named_children())}
        return {name: part for name, part in parts.items() if part not in kept and part.state_dict()}

    def take_over(self, folder: Path) -> None:
        """Load the initial weights of further networks from the checkpoint of the stage before."""

    def while_training(self, network: Network) -> AbstractContextManager[None]:
        """A context around all steps, in which weights of the network may be computed from those of other networks."""
        return nullcontext()

    def begin_step(self, done: float) -> None:
        """Called before each step with the share of the steps that are done, at least 0 and below 1."""

    def finish(self, network: Network) -> None:
        """Called once when the trained network has been evaluated, before it is saved."""

    def write(self, network: nn.Module, batch: Batch) -> Batch:
        """The batch as the network reads it."""
        return batch

    def forward(self, network: nn.Module, batch: Batch, state: State = None) -> tuple[dict[str, Tensor], Any]:
        """({head: sum of losses}, what the network carries to the next step); losses that the batch does not have are
        missing.
        """
        heads = self.heads_of(batch)
        outputs: Outputs = network(name_places(heads.values(), batch), state=state)
        return {name: head(outputs, batch) for name, head in heads.items()}, outputs.state

    def heads_of(self, batch: Batch) -> dict[str, Head]:
        """The heads of the batch's task, and those of every task."""
        task = batch.get("task")
        return {name: head for name, head in self.named_heads.items() if self.tasks.get(name, task) == task}

    def penalty(self, batch: Batch) -> Tensor | None:
        """The sum of what the heads of the batch add to the loss of a step once, if any does."""
        penalties = [each for head in self.heads_of(batch).values() if (each := head.penalty()) is not None]
        return torch.stack(penalties).sum() if penalties else None

    def denominators(self) -> dict[str, str]:
        """{head: name of its count}; counts of a task have its name before theirs, as in "sst2/rows"."""
        return {
            name: f"{self.tasks[name]}/{head.denominator}" if name in self.tasks else head.denominator
            for name, head in self.named_heads.items()
        }

    def divisors(self, counts: Mapping[str, int]) -> dict[str, int]:
        """{head: what its sum over a step of these counts is divided by}, at least 1."""
        extra = {name: head.extra_count for name, head in self.named_heads.items()}
        return {name: max(1, counts[key] + extra.get(name, 0)) for name, key in self.denominators().items()}

    def std(self, heads: float) -> Callable[[str], float]:
        """Standard deviation of the initial weights by name: `heads`, or those of a further network."""
        further = {f"{name}.": part for name, part in self.named_modules() if isinstance(part, Network)}

        def std(name: str) -> float:
            for prefix, network in further.items():
                if name.startswith(prefix):
                    return network.std(name.removeprefix(prefix))
            return heads

        return std
