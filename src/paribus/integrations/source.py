"""Rows of numbers from another framework."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DONE = "done"
BLANKS = " \t\r\n"  # what is stripped around a cell; other white space is part of it


@dataclass(frozen=True)
class ForeignRow:
    """One run, or a part or a point of one.

    `place`: where it is in the source, such as `line 3`; `name`: of the run, if it has one; `status`: "done", or how it
    ended otherwise; `aliases`: other texts that tell which run it is, such as its folder; `settings`: {task: {key:
    value}} of an evaluation, which must be equal for its scores to be compared.
    """

    place: str
    values: Mapping[str, Any]
    name: str = ""
    status: str = DONE
    aliases: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignSource:
    """The rows of a file, a folder or a server.

    `higher`: {column: whether more is better}, if the source says so; `parts`: {column: the one whose mean holds it};
    `decimal`: the decimal mark of texts that can be read with either, or None if the source does not tell; `whole`:
    whether each row is a run of its own, not a point of one; `step`: the column of the step, if the source tells it;
    `notes`: for the reader of a table.
    """

    name: str
    rows: Sequence[ForeignRow]
    higher: Mapping[str, bool] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = "."
    whole: bool = False
    step: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order in which they appear."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row.values))


def flatten(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of each leaf."""
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def join(settings: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """Settings and results of a run; a name that both have becomes `config.NAME` and `summary.NAME`."""
    both = settings.keys() & results.keys()
    return {
        **{f"config.{key}" if key in both else key: value for key, value in settings.items()},
        **{f"summary.{key}" if key in both else key: value for key, value in results.items()},
    }
