"""The drawings of a table. Each is registered by its own module of this package, and appears wherever tables do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from paribus.core.registry import Registry
from paribus.reports.plots.panel import Panel
from paribus.reports.tables.schema import Table


class View(NamedTuple):
    """What can be drawn: a table; on the site also all tables of its study, and the content of its flatness.json."""

    table: Table
    siblings: Sequence[Table] = ()
    landscape: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Drawing:
    """Panels for a view. `name`: of its files; `title`: its heading, formatted with `view`; `rank`: its place."""

    name: str
    title: str
    panels: Callable[[View], Sequence[Panel]]
    rank: int = 100


DRAWINGS: Registry[Drawing] = Registry("paribus.reports.plots")


def draw_all(view: View) -> Iterator[tuple[Drawing, Sequence[Panel]]]:
    """Each drawing that has something to draw, with its panels."""
    for drawing in DRAWINGS.all():
        if panels := drawing.panels(view):
            yield drawing, panels
