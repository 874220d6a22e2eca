"""The training data as optimizer steps: item s is step s, a pure function of s and the config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytorch_lightning as pl
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from paribus.corruption.examples import Stream, marked_batch
from paribus.data.order import Order
from paribus.data.sequences import Array
from paribus.models.network import Batch, as_batch
from paribus.tasks.rows import TaskRows, order

Step = list[Batch]  # the microbatches of one optimizer step
MULTIPLE = 8  # rows are padded to a multiple of this number of tokens


class PretrainingSteps:
    """Steps in the given order of examples, each cut into microbatches of at most `microbatch` sequences.

    `share` is (rank, size) of this process: it reads every `size`-th microbatch of a step that is cut into at least as
    many as there are processes. If processes must be `even` in the number of microbatches, one that has fewer than the
    first gets idle ones, which count for nothing.
    """

    def __init__(
        self,
        order: Order[Stream],
        total: int,
        microbatch: int | None,
        share: tuple[int, int] = (0, 1),
        even: bool = False,
    ) -> None:
        self.order, self.total, self.microbatch, self.share, self.even = order, total, microbatch, share, even

    def __getitem__(self, step: int) -> Step:
        rank, size = self.share
        most = None if self.microbatch is None else max(1, self.microbatch // self.order.examples.readings)
        of_all: list[tuple[int, Array]] = []  # the microbatches of all processes: a pass over the text, rows
        for epoch, rows in self.order.blocks(step):
            share = -(-len(rows) // size)
            pieces = self.order.split(epoch, rows, share if most is None else min(most, share))
            of_all += [(epoch, piece) for piece in pieces]
        of_rank = of_all[rank::size]
        batches = [self._batch(epoch, rows) for epoch, rows in of_rank]
        if self.even:
            for epoch, rows in of_all[::size][len(of_rank) :]:  # microbatches of the first process that this one lacks
                batches.append({**self._batch(epoch, rows[:1]), "idle": True, "counts": {}})
        return batches

    def _batch(self, epoch: int, rows: Array) -> Batch:
        return as_batch(marked_batch(self.order, epoch, rows))


class TaskSteps:
    """Steps of fine-tuning: `epochs` passes over the encoded examples, or over `most` random rows of them, bucketed by
    length.
    """

    def __init__(self, encoded: TaskRows, batch_size: int, epochs: int, seed: int, most: int | None = None) -> None:
        self.encoded, self.batch_size, self.epochs, self.seed, self.most = encoded, batch_size, epochs, seed, most
        rows = len(encoded.length_N)
        self.per_epoch = -(-min(rows, most or rows) // batch_size)
        self.total = self.per_epoch * epochs
        self._passes: dict[int, tuple[TaskRows, list[Array]]] = {}

    def __getitem__(self, step: int) -> Step:
        epoch, at = divmod(step, self.per_epoch)
        if epoch not in self._passes:
            batches = order(self.encoded.length_N, self.batch_size, self.seed, epoch, shuffle=True)
            self._passes = {epoch: (self.encoded.drawn(self.seed, epoch), batches)}
        encoded, batches = self._passes[epoch]
        return [task_batch(encoded, rows) for rows in encoded.split(batches[at])]


def task_batch(encoded: TaskRows, rows: Array) -> Batch:
    return as_batch(encoded.batch(rows, MULTIPLE))


class _Stream(IterableDataset[Step]):
    """Steps first..total in order; with several workers each makes every n-th, which the loader puts in order again."""

    def __init__(self, steps: Steps, first: int) -> None:
        self.steps, self.first = steps, first

    def __iter__(self) -> Iterator[Step]:
        worker = get_worker_info()
        offset, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        for step in range(self.first + offset, self.steps.total, stride):
            yield self.steps[step]


class Steps(Protocol):
    """The optimizer steps of a training: item s is step s."""

    total: int

    def __getitem__(self, step: int) -> Step: ...


class StepData(pl.LightningDataModule):
    """The training data for Lightning: the steps from `first` on, where a resumed training begins.

    With several `workers` each prepares every n-th step, and the loader puts them in order again.
    """

    def __init__(self, steps: Steps, first: int, workers: int) -> None:
        super().__init__()
        self.steps, self.first, self.workers = steps, first, workers

    def train_dataloader(self) -> DataLoader[Step]:
        return DataLoader(
            _Stream(self.steps, self.first), batch_size=None, num_workers=self.workers, persistent_workers=False
        )
