"""The range of a number in a config, written beside the setting that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST = 10**15  # of whole numbers
HIGHEST = 3e38  # of others: what 32 bits hold
_KEY = "bounds"


def within(least: float, most: float) -> dict[str, tuple[float, float]]:
    """Metadata of a dataclass field: `rate: float = field(default=0.15, metadata=within(0, 1))`."""
    return {_KEY: (least, most)}


def bounds_of(component: Any) -> Mapping[str, tuple[float, float]]:
    """{setting: (least, most)} of a dataclass."""
    return {name: each.metadata[_KEY] for name, each in component.__dataclass_fields__.items() if _KEY in each.metadata}
