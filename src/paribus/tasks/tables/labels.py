"""Which class a cell of a table means: the one whose name it spells, or the one at the place that its number gives."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from paribus.core.errors import UserError

ABSENT = frozenset(("NA", "N/A", "n/a", "#N/A", "<NA>", "nan", "NaN", "null", "NULL", "None"))
NO_LABEL = Decimal(-1)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?", re.ASCII)


class Cell(NamedTuple):
    """The value of a label or tag, and the row that it is in."""

    row: int
    value: object


class Meaning(NamedTuple):
    """The number of a class; `spelled`: by its name, otherwise by its place in the classes."""

    number: int
    spelled: bool


def spell(value: object) -> str:
    """A value as a text: `true` for a boolean, `1` for 1 and for 1.0, `0.5` for 0.5, a text as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def read_number(text: str) -> Decimal | None:
    """The number that a text spells, if it does."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def spell_classes(classes: Sequence[object], key: str) -> tuple[str, ...]:
    """The names of the classes of a task file, of which YAML reads some as numbers or booleans.

    Raises UserError, under the config key of the task, for a class that is no name.
    """
    for name in classes:
        if name is None or isinstance(name, list | dict):
            raise UserError(f"{key}.classes: {name!r} is not a name", 'quote it, as in classes: ["null", "other"]')
    return tuple(map(spell, classes))


class Classes:
    """The classes of a task, as the cells of a column mean them.

    A cell that spells the name of a class is that class, whatever its type: numbers are compared by their value,
    booleans in any case, other names without the blanks around them and in any composition of their letters (NFC or
    NFD). If it spells none, a number is a place in the classes, counted from 0.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._exact = {name: number for number, name in enumerate(names)}
        alike: dict[object, list[int]] = {}
        for number, name in enumerate(names):
            alike.setdefault(comparable(name), []).append(number)
        self._alike = {value: numbers[0] for value, numbers in alike.items() if len(numbers) == 1}

    def spelled(self, value: object) -> int | None:
        """The number of the class whose name the value spells."""
        text = spell(value)
        return self._exact.get(text, self._alike.get(comparable(text)))

    def mean(self, value: object) -> Meaning | None:
        """What the value means, if it means a class."""
        if value is None or value != value:  # NaN
            return None
        if (number := self.spelled(value)) is not None:
            return Meaning(number, spelled=True)
        place = None if isinstance(value, bool) else read_number(spell(value).strip())
        if place is None or place != place.to_integral_value() or not 0 <= place < len(self.names):
            return None
        return Meaning(int(place), spelled=False)

    def find_labeled(self, values: Sequence[object]) -> list[Cell]:
        """The cells of a column that hold a label.

        A row has none if the cell is empty or NaN, if it is -1 and no class has that name, or, in a column of numbers,
        if it is a text such as NA.
        """
        cells = [Cell(row, value) for row, value in enumerate(values) if not _is_empty(value)]
        texts = {spell(cell.value).strip() for cell in cells}
        numbers = all(text in ABSENT or read_number(text) is not None for text in texts)
        none = {text for text in texts if (numbers and text in ABSENT) or read_number(text) == NO_LABEL}
        none = {text for text in none if self.spelled(text) is None}
        return [cell for cell in cells if spell(cell.value).strip() not in none]

    def read(self, cells: Iterable[Cell], what: str, split: str, key: str) -> list[int]:
        """The number of the class that each cell means; `what` is `label` or `tag`.

        Raises UserError, under the config key of the task, for a cell that means no class, and for a column in which
        some cells are names of classes and others can only be places.
        """
        first: dict[bool, Cell] = {}  # that spells its class, and that gives its place
        known: dict[tuple[type, object], Meaning] = {}
        numbers = []
        for cell in cells:
            kind = type(cell.value), cell.value
            if (meaning := known.get(kind) or self.mean(cell.value)) is None:
                every = {"label": "classes", "tag": "tags"}[what]
                quoted = " (quote yes, no, on and off, which YAML reads as true and false)"
                raise UserError(
                    f"{key}.classes: row {cell.row} of {split} has the {what} {cell.value!r}",
                    f"add it to the {every}, now {', '.join(self.names)}"
                    + (quoted if {"true", "false"} & set(self.names) else ""),
                )
            known[kind] = meaning
            first.setdefault(meaning.spelled, cell)
            numbers.append(meaning.number)
        if len(first) == 2:
            raise refuse_mixed(f"{first[True].value!r} in row {first[True].row} of {split}",
                               f"{first[False].value!r} in row {first[False].row}", what, key)  # fmt: skip
        return numbers

    def check_splits(self, splits: Mapping[str, Iterable[object]], what: str, key: str) -> None:
        """Raise UserError if one split spells its classes and another gives places, though numbers are names too."""
        if all(read_number(name) is None for name in self.names):
            return
        first: dict[bool, str] = {}
        for split, values in splits.items():
            shown = {
                meaning.spelled: f"{value!r} in {split}"
                for value in values
                if not _is_empty(value) and (meaning := self.mean(value)) is not None
            }
            if len(shown) == 1:  # a split with both readings is refused with its rows
                first = {**shown, **first}
        if len(first) == 2:
            raise refuse_mixed(first[True], first[False], what, key)


def refuse_mixed(name: str, place: str, what: str, key: str) -> UserError:
    """The error for a column with two readings."""
    return UserError(
        f"{key}.classes: the {what} {name} is the name of a class, but {place} can only be a place in the classes",
        f"spell every {what} as in {key}.classes",
    )


def _is_empty(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str | bytes) and not value.strip())


def normalize_label(text: str) -> str:
    """The text without blanks around it, its letters composed (NFC)."""
    return unicodedata.normalize("NFC", text).strip()


def comparable(text: str) -> object:
    """What is the same for two texts that differ only in how a number or a boolean is written, in blanks around them
    and in the composition of letters.
    """
    text = normalize_label(text)
    number = read_number(text)
    if number is not None:
        return number
    return text.lower() if text.lower() in ("true", "false") else text
