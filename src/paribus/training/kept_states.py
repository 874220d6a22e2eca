"""The states of a frozen network, computed once for each set of a task and kept in a file of half precision."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.core.files import replacing
from paribus.data.sequences import concatenate_ranges
from paribus.models.network import Batch, Network, Outputs, State, find_real
from paribus.objectives.evaluation import evaluating, on_device
from paribus.tasks.rows import TaskRows, order
from paribus.training.evaluate import placed
from paribus.training.steps import task_batch

if TYPE_CHECKING:
    from paribus.data.sequences import Array, Arrays

FOLDER = "states"  # in a run's folder, while its tasks are trained
ROWS = 64  # of a forward pass
KEPT = "kept_KBLD"  # in a batch: float16 [K, B, L, D], the states of K layers


def keep_states(
    files: Mapping[str, Path],
    encoded: Mapping[str, TaskRows],
    counts: Mapping[str, Array],
    network: Network,
    device: str,
    layers: Sequence[int],
    read: Callable[[Network, Tensor, Batch], Tensor],
) -> dict[str, Array]:
    """{set: float16 [K, I, D]}: what is read of these K layers, memory-mapped.

    A file is written whole or not at all, and one that is there is not written again.

    Args:
        files: {set: its file}.
        counts: {set: int64 [N], how many items each of its rows has}.
        read: from the network, the states [B, L, D] of a layer and their batch to the states [I, D] of its items.

    Raises:
        UserError: if a state is too large for float16.
    """
    if missing := [split for split, path in files.items() if not path.is_file()]:
        network = copy.deepcopy(network)  # not compiled, if the model is
        with placed(device, network), evaluating(network):
            for split in missing:
                with replacing(files[split]) as file:
                    _write(file, encoded[split], counts[split], network, layers, read)
    return {split: np.load(path, mmap_mode="r") for split, path in files.items()}


def _write(
    file: Path,
    rows: TaskRows,
    count_N: Array,
    network: Network,
    layers: Sequence[int],
    read: Callable[[Network, Tensor, Batch], Tensor],
) -> None:
    first_N, kept = count_N.cumsum() - count_N, None
    for row_B in (part for rows_B in order(rows.length_N, ROWS, 0, 0, shuffle=False) for part in rows.split(rows_B)):
        batch = on_device(task_batch(rows, row_B), network)
        states, at_I = network.states(batch), concatenate_ranges(first_N[row_B], count_N[row_B])
        for place, layer in enumerate(layers):
            state_ID = read(network, states[layer], batch).half().cpu().numpy()
            if not np.isfinite(state_ID).all():
                cause = f"states of layer {layer} exceed 65,504, the most that a file of states holds"
                raise UserError(cause, "leave the layer out, or set finetune.method.cached=false finetune/probe=none")
            if kept is None:
                shape = (len(layers), int(count_N.sum()), state_ID.shape[-1])
                kept = np.lib.format.open_memmap(file, "w+", np.float16, shape)
            kept[place, at_I] = state_ID
    assert kept is not None
    kept.flush()


class KeptRows(TaskRows):
    """Rows whose batches hold the states at every real place.

    Args:
        rows: as the task type encodes them.
        state_KTD: float16, the states of the real places of row 0, then those of row 1, and so on.
    """

    def __init__(self, rows: TaskRows, state_KTD: Array) -> None:
        self.rows, self.state_KTD, self.length_N = rows, state_KTD, rows.length_N
        self.first_N = self.length_N.cumsum() - self.length_N

    @property
    def plain(self) -> TaskRows:
        return self.rows

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Also `KEPT`."""
        arrays = self.rows.batch(row_B, multiple)
        real_BL = np.arange(arrays["ids_BL"].shape[1]) < arrays["length_B"][:, None]
        kept_KBLD = np.zeros((len(self.state_KTD), *real_BL.shape, self.state_KTD.shape[-1]), np.float16)
        kept_KBLD[:, real_BL] = self.state_KTD[:, concatenate_ranges(self.first_N[row_B], self.length_N[row_B])]
        return {**arrays, KEPT: kept_KBLD}

    def split(self, row_B: Array) -> list[Array]:
        return self.rows.split(row_B)


class KeptNetwork(Network):
    """A frozen network that reads its states from the batch, if that has them, and else computes them.

    Args:
        layers: those that batches have.
    """

    gives_layers = True

    def __init__(self, network: Network, layers: Sequence[int]) -> None:
        super().__init__(network.spec, network.vocabulary, network.width, network.depth)
        self.network, self.layers = network, tuple(layers)
        self.norm_eps, self.head_activation = network.norm_eps, network.head_activation
        self.head_unbiased = network.head_unbiased

    @property
    def table_VD(self) -> nn.Parameter:
        return self.network.table_VD

    def forward(self, batch: Batch, state: State = None) -> Outputs:
        """Of layers that are not kept there are no states: an empty tensor."""
        if KEPT not in batch:
            outputs: Outputs = self.network(batch, state)
            return outputs
        kept_KBLD = batch[KEPT].float()
        at = {layer: kept_KBLD[place] for place, layer in enumerate(self.layers)}
        layers = tuple(at.get(layer, kept_KBLD.new_empty(0)) for layer in range(self.depth + 1))
        summary_BD = self.summarize(layers[-1], batch) if self.depth in at else None
        return Outputs(layers[-1], state, summary_BD, layers=layers, summarize=self.summarize)

    def summarize(self, hidden_BLD: Tensor, batch: Batch) -> Tensor | None:
        return self.network.summarize(hidden_BLD, batch)

    def depth_of(self, parameter: str) -> int:
        return self.network.depth_of(parameter.removeprefix("network."))


def keep_rows(
    network: Network, encoded: Mapping[str, TaskRows], layers: Sequence[int], folder: Path, task: str, device: str
) -> dict[str, TaskRows]:
    """The rows of each set with the states of these layers at every real place, which files in a run's folder hold."""

    def read(_: Network, state_BLD: Tensor, batch: Batch) -> Tensor:
        return state_BLD[find_real(batch["length_B"], state_BLD.shape[1])]

    files = {split: folder / FOLDER / f"{task}-{split}-tokens.npy" for split in encoded}
    counts = {split: rows.length_N for split, rows in encoded.items()}
    kept = keep_states(files, encoded, counts, network, device, layers, read)
    return {split: KeptRows(encoded[split], state_KTD) for split, state_KTD in kept.items()}
