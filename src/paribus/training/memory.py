"""The memory of networks: what a training step leaves to the next one, in the run and in its checkpoints."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from paribus.core.errors import UserError
from paribus.models.network import Batch, Network, State

CLASS = "__class__"  # in a checkpoint, the key of the class of a NamedTuple or dataclass
PLAIN = (type(None), bool, int, float, str)


class Memory:
    """What each microbatch of a step leaves to the same microbatch of the next step, detached.

    It passes only to batches that say where rows begin (`begins_B`).

    Args:
        networks: whose states are carried. NamedTuples and dataclasses among these are found if their class stands in
            the module of a network, or if the network names it in `state_classes`.
    """

    def __init__(self, networks: Iterable[Network]) -> None:
        self.classes: dict[str, type] = {}
        for network in networks:
            for base in type(network).__mro__:
                if issubclass(base, Network):
                    defined = vars(sys.modules[base.__module__]).values()
                    self.classes |= {each.__name__: each for each in defined if _is_record(each)}
            self.classes |= {each.__name__: each for each in network.state_classes}
        self._carried: dict[int, tuple[int, State]] = {}  # by microbatch: rows, and what they left

    def recall(self, index: int, batch: Batch) -> State:
        """What the microbatch of this number left in the step before; None if there is nothing to continue.

        Raises UserError if it had another number of rows: they would not be those that continue.
        """
        if "begins_B" not in batch or index not in self._carried:
            return None
        (before, state), rows = self._carried[index], len(batch["begins_B"])
        if state is None or before == rows:
            return state
        if batch["begins_B"].all():
            return None
        raise UserError(
            f"the network carries memory from row to row, but a batch of {before} rows is followed by one of {rows}",
            "set batch.by=sequences, let the order of the input format give every step as many rows, and resume with "
            "profile.ranks and profile.microbatch as before",
        )

    def keep(self, index: int, batch: Batch, state: State) -> None:
        """Keep what a microbatch leaves. Raises UserError for a state of a class that is not known."""
        self._carried.pop(index, None)
        if "begins_B" in batch and state is not None:
            self._carried[index] = len(batch["begins_B"]), change_tensors(state, Tensor.detach, self.classes.values())

    def to_checkpoint(self) -> dict[int, Any]:
        """Plain containers of tensors on the processor, which load without any class."""
        return {
            index: (rows, change_tensors(self._pack(state), Tensor.cpu))
            for index, (rows, state) in self._carried.items()
        }

    def from_checkpoint(self, saved: dict[int, Any], device: Any) -> None:
        """Take over what `to_checkpoint` gave, on this device."""
        moved = change_tensors(saved, lambda tensor: tensor.to(device))
        self._carried = {index: (rows, self._unpack(packed)) for index, (rows, packed) in moved.items()}

    def _pack(self, state: State) -> Any:
        if type(state) in self.classes.values():
            return {CLASS: type(state).__name__} | {name: self._pack(value) for name, value in fields_of(state).items()}
        if isinstance(state, dict):
            return {key: self._pack(value) for key, value in state.items()}
        return type(state)(map(self._pack, state)) if isinstance(state, list | tuple) else state

    def _unpack(self, packed: Any) -> State:
        if isinstance(packed, dict):
            values = {key: self._unpack(value) for key, value in packed.items() if key != CLASS}
            return self.classes[packed[CLASS]](**values) if CLASS in packed else values
        return type(packed)(map(self._unpack, packed)) if isinstance(packed, list | tuple) else packed


def _is_record(value: object) -> bool:
    """Whether it is the class of a NamedTuple or a dataclass."""
    return isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


def change_tensors(state: State, change: Callable[[Tensor], Tensor], classes: Iterable[type] = ()) -> Any:
    """A nested state whose tensors are changed: dicts, lists, tuples, and NamedTuples and dataclasses of `classes`.

    Raises UserError for a value of another class, which could hold a tensor that stays as it is.
    """
    if isinstance(state, Tensor):
        return change(state)
    if type(state) in PLAIN:
        return state
    if type(state) in classes:
        return type(state)(**{key: change_tensors(value, change, classes) for key, value in fields_of(state).items()})
    if type(state) is dict:
        return {key: change_tensors(value, change, classes) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(change_tensors(value, change, classes) for value in state)
    name = type(state).__name__
    mend = "use tensors in dicts, lists or tuples"
    if _is_record(type(state)):
        mend = f"define {name} in the module of the network, or set state_classes = ({name},) in the network"
    raise UserError(f"a state of class {name} cannot be carried to the next step", mend)


def fields_of(state: Any) -> dict[str, Any]:
    """{field: value} of a NamedTuple or a dataclass; fields that its constructor does not take are left out."""
    if isinstance(state, tuple):
        named: Any = state
        return dict(named._asdict())
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state) if field.init}
