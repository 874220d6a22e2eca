"""Stand-ins for modules that a library imports but does not need for our use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


@contextmanager
def stand_in(name: str, *classes: type) -> Iterator[None]:
    """A module of these classes in place of the one called `name`, unless that one is imported already."""
    if name in sys.modules:
        yield
        return
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    for each in classes:
        setattr(module, each.__name__, each)
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]
