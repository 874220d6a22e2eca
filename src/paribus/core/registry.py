"""A registry of choices of one kind, such as plots; each choice is registered in one place."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Generic, Protocol, TypeVar


class Registered(Protocol):
    """What can be registered. `rank`: its place among the others, low first."""

    @property
    def name(self) -> str: ...

    @property
    def rank(self) -> int: ...


Item = TypeVar("Item", bound=Registered)


class Registry(Generic[Item]):
    """The choices that the modules of a package add; a new choice is one new file in that package."""

    def __init__(self, package: str) -> None:
        self.package = package
        self._items: dict[str, Item] = {}
        self._searched: tuple[str, ...] = ()

    def add(self, item: Item) -> Item:
        """Register a choice; one of the same name is replaced."""
        added = self._items | {item.name: item}
        self._items = dict(sorted(added.items(), key=lambda pair: (pair[1].rank, pair[0])))
        return item

    def remove(self, name: str) -> None:
        """Forget a choice."""
        del self._items[name]

    def all(self) -> list[Item]:
        """Every choice, by rank and name."""
        self._search()
        return list(self._items.values())

    def get(self, name: str) -> Item | None:
        self._search()
        return self._items.get(name)

    def _search(self) -> None:
        """Import the modules of the package, again if its path has changed."""
        path = tuple(import_module(self.package).__path__)
        if path != self._searched:
            self._searched = path
            for module in pkgutil.iter_modules(path):
                import_module(f"{self.package}.{module.name}")
