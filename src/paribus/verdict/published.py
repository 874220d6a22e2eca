"""Reading the atlas of published tables. Nothing is computed here: a number is what its paper prints, or null."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.config_names import sweeps_dir
from paribus.core.errors import UserError

FOLDER = sweeps_dir() / "published"


class PrintedNumber(float):
    """A number that is written as its paper prints it: 5.40 keeps its zero."""

    def __new__(cls, text: str) -> PrintedNumber:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __str__(self) -> str:
        return self.text


class PublishedMetric(NamedTuple):
    """A column of a published table, under the name that the atlas gives it."""

    name: str
    split: str
    higher_is_better: bool


@dataclass(frozen=True)
class PublishedRow:
    """A row as printed. `config`: columns that are not metrics; `flags`: cautions; None: no number."""

    arm: str
    values: Mapping[str, float | None]
    config: Mapping[str, Any]
    flags: tuple[str, ...]
    baseline: bool


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper. `flags`: misprints, single sources, numbers from memory; `verified`: where it was read."""

    id: str
    paper: str
    authors_year: str
    arxiv: str
    table: str
    claim: str
    setting: str
    metrics: tuple[PublishedMetric, ...]
    rows: tuple[PublishedRow, ...]
    notes: str
    flags: tuple[str, ...]
    verified: tuple[str, ...]

    @property
    def on_arxiv(self) -> bool:
        return not self.arxiv.startswith("none")

    @property
    def place(self) -> str:
        """Where it was published: "arXiv 1907.11692", or "OpenAI report, 2018" of "none (OpenAI report, 2018)"."""
        return f"arXiv {self.arxiv}" if self.on_arxiv else self.arxiv.removeprefix("none (").removesuffix(")")

    @property
    def source(self) -> str:
        """Such as "Liu et al. 2019, arXiv 1907.11692, Table 1"."""
        return f"{self.authors_year}, {self.place}, {self.table}"

    def row(self, name: str) -> PublishedRow:
        """The row of that name, or the only one that begins with it. Raises UserError naming the rows."""
        exact = [row for row in self.rows if row.arm == name]
        matching = exact or [row for row in self.rows if row.arm.lower().startswith(name.lower())]
        if len(matching) != 1:
            rows = "; ".join(row.arm for row in self.rows)
            cause = "has several rows" if matching else "has no row"
            raise UserError(f"published table {self.id} {cause} '{name}'", f"its rows: {rows}")
        return matching[0]


def ids() -> list[str]:
    """The names of all published tables, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def table(name: str) -> PublishedTable:
    """A published table. Raises UserError with near names if there is none of this name."""
    path = FOLDER / f"{name}.yaml"
    if name not in ids():
        near = difflib.get_close_matches(name, ids(), n=3, cutoff=0.4)
        mend = f"did you mean {' or '.join(near)}?" if near else "`paribus published` lists them"
        raise UserError(f"no published table '{name}'", mend)
    return _make_table(_load(path))


def value(name: str, row: str, metric: str) -> tuple[float | None, str]:
    """(the number as printed, or None if the paper gives none; the source). Raises UserError for unknown names."""
    entry = table(name)
    if metric not in (known := [column.name for column in entry.metrics]):
        raise UserError(f"published table {name} has no metric '{metric}'", f"its metrics: {', '.join(known)}")
    return entry.row(row).values[metric], entry.source


def _load(path: Path) -> dict[str, Any]:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Numbers keep their text."""

    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: PrintedNumber(loader.construct_scalar(node)))
    entry: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)
    return entry


def _make_table(entry: dict[str, Any]) -> PublishedTable:
    words = ("id", "paper", "authors_year", "arxiv", "table", "claim", "setting", "notes")
    rows = [
        PublishedRow(
            arm=row["arm"],
            values=row["values"],
            config=row.get("config", {}),
            flags=tuple(_row_flags(row)),
            baseline=bool(row.get("baseline", False)),
        )
        for row in entry["rows"]
    ]
    return PublishedTable(
        **{key: str(entry[key]) for key in words},
        metrics=tuple(PublishedMetric(**metric) for metric in entry["metrics"]),
        rows=tuple(rows),
        flags=tuple(entry["flags"]),
        verified=_listed(entry["verified"]),
    )


def _row_flags(entry: dict[str, Any]) -> list[str]:
    """Caveats about one row, in words."""
    said = {
        "do_not_use": "misprint, not to be used",
        "approximate": "approximate",
        "reference": "reported elsewhere, for reference",
    }
    flags = [text for key, text in said.items() if entry.get(key)]
    if entry.get("kind") == "standard_deviation":
        flags.append("standard deviations, no scores")
    if "source" in entry:
        flags.append(f"from {entry['source']}")
    if "from_table" in entry:
        flags.append(f"appears in Table {entry['from_table']}")
    if "sem" in entry:
        flags.append("standard error of " + ", ".join(f"{name} {error}" for name, error in entry["sem"].items()))
    if "verified" in entry:
        words = "; ".join(_listed(entry["verified"]))
        flags.append(f"from {words}" if words.startswith("memory") else f"read in: {words}")
    return flags


def _listed(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def numbers(entry: PublishedTable) -> tuple[list[str], list[list[str]], int]:
    """(header, rows as printed with marks of their flags, how many columns hold words)."""
    settings = list(dict.fromkeys(key for row in entry.rows for key in row.config))
    header = ["arm", *settings, *(f"{m.name} {'↑' if m.higher_is_better else '↓'}" for m in entry.metrics)]
    marks = {flag: at for at, flag in enumerate(row_flags(entry), 1)}
    lines = []
    for row in entry.rows:
        name = row.arm + (" (baseline)" if row.baseline else "") + "".join(f" [{marks[flag]}]" for flag in row.flags)
        config = [str(row.config.get(key, "")) for key in settings]
        values = [row.values[metric.name] for metric in entry.metrics]
        lines.append([name, *config, *("-" if value is None else f"{value}" for value in values)])
    return header, lines, 1 + len(settings)


def row_flags(entry: PublishedTable) -> list[str]:
    """The flags of single rows, each once, in the order of their marks."""
    return list(dict.fromkeys(flag for row in entry.rows for flag in row.flags))
