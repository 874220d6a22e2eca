"""Which layers of a network a head or a probe reads, as a config says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paribus.core.errors import UserError

ALL: Final = "all"


def number_layers(chosen: int | str | Sequence[int], depth: int, key: str) -> list[int]:
    """The chosen layers of a network of this depth, as numbers from 0 (the embeddings) to `depth`, in their order.

    Args:
        chosen: `all`, a number, or a list of numbers; -1 is the last layer, -2 the one below.
        key: of the setting.

    Raises UserError for a layer that the network lacks, and for one that is named twice.
    """
    if chosen == ALL:
        return list(range(depth + 1))
    listed = list(chosen) if isinstance(chosen, Sequence) and not isinstance(chosen, str) else [chosen]
    if not listed or not all(type(one) is int and -depth <= one <= depth for one in listed):
        shown = listed if isinstance(chosen, Sequence) and not isinstance(chosen, str) else chosen
        mend = f"give all, or numbers from 0 (embeddings) to {depth}, or -1 (the last) to -{depth}"
        raise UserError(f"{key}={shown} does not fit a model of {depth} layers", mend)
    numbers = [int(one) % (depth + 1) for one in listed]
    if twice := next((one for one in numbers if numbers.count(one) > 1), None):
        raise UserError(f"{key}={listed} names layer {twice} of {depth} twice", "name each layer once")
    return numbers
