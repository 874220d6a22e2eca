"""Lightning, imported without torchmetrics, of which it needs the names of two classes.

torchmetrics takes half of the time: it imports SciPy, matplotlib and CLIP. We give Lightning none of its metrics, and
our own metrics import the real one when a task is evaluated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


@contextmanager
def _standing_in(name: str, *classes: str) -> Iterator[None]:
    """A module of empty classes in place of one that is not imported yet."""
    if name in sys.modules:
        yield
        return
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    for each in classes:
        setattr(module, each, type(each, (), {}))
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]


with _standing_in("torchmetrics", "Metric", "MetricCollection"):
    import pytorch_lightning as pl

__all__ = ["pl"]
