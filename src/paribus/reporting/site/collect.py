"""What the site shows: every table that was made, its records, its sweep; and the sweeps without any table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.reporting.audit.facts import Facts, facts
from paribus.reporting.audit.follow import TABLE, unfollowed
from paribus.reporting.plots import landscape
from paribus.reporting.tables.assemble import design_of, enrolled
from paribus.reporting.tables.build import Table
from paribus.reporting.tables.design import Design
from paribus.runs.store import Found, Manifest, first_manifest, records
from paribus.sweeps.sweep import Sweep, load, names

SCALES = ("test", "smoke", "cpu", "gpu", "paper")


@dataclass(frozen=True)
class Entry:
    """A table with what it follows from. `folder`: where it is kept; `sweep`: its file, where it is known."""

    table: Table
    folder: Path
    roots: tuple[Path, ...]
    sweep: Sweep | None

    @property
    def study(self) -> str:
        return str(self.table["study"])

    @property
    def scale(self) -> str:
        return str(self.table["scale"])

    @property
    def place(self) -> str:
        """The folder of its pages in the site."""
        return f"{self.study}/{self.scale}"

    @property
    def order(self) -> tuple[str, int, str]:
        """By study, and small scales first."""
        return self.study, SCALES.index(self.scale) if self.scale in SCALES else len(SCALES), self.scale

    @cached_property
    def found(self) -> Found:
        return records(self.study, self.scale, self.roots)

    @cached_property
    def manifest(self) -> Manifest | None:
        return first_manifest(self.roots, self.study, self.scale)

    @cached_property
    def design(self) -> Design | None:
        """As the sweep file has it now; the arms as they were audited when the table was made."""
        if self.sweep is None:
            return None
        audited = {key: value for key, value in self.table["audit"].items() if key != "varies"}
        return enrolled(design_of(self.sweep, self.scale, self.study, audited), self.manifest)

    @cached_property
    def facts(self) -> Facts | None:
        return None if self.design is None else facts(self.design, self.found, self.roots)

    @cached_property
    def landscape(self) -> landscape.Measured | None:
        """The loss around its fine-tuned weights, where `paribus flatness` has measured it.

        Raises UserError for a file that cannot be read.
        """
        path = self.folder / landscape.FILE
        return _object(path, {"places", "arms", "task"}, "paribus flatness") if path.is_file() else None

    def follows(self) -> tuple[list[str], int]:
        """(what of the table its records do not give, how many numbers it holds). Raises UserError as `build`."""
        if self.design is None:
            raise UserError("the sweep file is not here", "so the table cannot be made again")
        return unfollowed(self.table, self.design, self.roots)


def collect(reports: Path, runs: Path, results: Path) -> list[Entry]:
    """Every table below `reports` (study/scale) and `results` (scale/study); of one that is in both that of `reports`.

    Raises UserError for a table.json that cannot be read.
    """
    sweeps = known()
    found: dict[tuple[str, str], Entry] = {}
    for root in (reports, results):
        for path in sorted(root.glob(f"*/*/{TABLE}")):
            table = _object(path, {"study", "scale", "arms", "claims", "columns"}, "paribus table")
            scale = results / str(table["scale"])
            roots = (scale,) if root == results else (runs, scale)
            entry = Entry(table, path.parent, roots, _sweep(table, roots, sweeps))
            found.setdefault((entry.study, entry.scale), entry)
    return sorted(found.values(), key=lambda entry: entry.order)


def untabled(entries: Sequence[Entry], runs: Path, results: Path) -> list[tuple[str, str]]:
    """(study, scale) of sweeps that were run but of which no table was made; trials of searches are none."""
    roots = [runs, *(folder for folder in sorted(results.glob("*")) if folder.is_dir())]
    scales = {(path.parent.name, path.stem) for root in roots for path in root.glob("*/*.json") if path.stem in SCALES}
    tabled = {(entry.study, entry.scale) for entry in entries}
    return sorted(pair for pair in scales - tabled if not pair[0].endswith(".tune"))


def known() -> dict[str, Sweep]:
    """{name: sweep} of all sweep files that can be read."""
    sweeps = {}
    for name in names():
        try:
            sweeps[name] = load(name)
        except UserError:
            continue
    return sweeps


def _object(path: Path, keys: set[str], verb: str) -> dict[str, Any]:
    """The file's object with at least these keys, which `verb` writes."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not keys <= found.keys():
            raise ValueError
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{path} cannot be read", f"make it again with `{verb}`, or remove it") from error
    return found


def _sweep(table: Table, roots: Sequence[Path], sweeps: dict[str, Sweep]) -> Sweep | None:
    """The sweep of the table's study, or the one that its runs were made from under another name."""
    own = next((sweep for sweep in sweeps.values() if sweep.study == table["study"]), None)
    manifest = first_manifest(roots, table["study"], table["scale"])
    if own is not None or manifest is None:
        return own
    return next((sweep for sweep in sweeps.values() if sweep.hash(table["scale"]) == manifest.sweep_hash), None)
