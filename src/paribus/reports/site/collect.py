"""What the site shows: every table with its records and its sweep, and the sweeps without a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.core.files import is_name
from paribus.core.jsonable import from_json
from paribus.reports.audit import TABLE, Report, audit_records, find_unfollowed
from paribus.reports.effects import SCALES, rank_scale
from paribus.reports.plots import landscape
from paribus.reports.tables.curves import Curve, read_curves
from paribus.reports.tables.design import Design, make_design
from paribus.reports.tables.evidence import gather
from paribus.reports.tables.schema import Table
from paribus.runs.manifest import Manifest, find_manifest
from paribus.runs.record import Record
from paribus.runs.store import StudyRecords, find_records, find_stored
from paribus.sweeps.sweep import Sweep
from paribus.sweeps.sweep_file import load, names


@dataclass(frozen=True)
class Entry:
    """A table with its sources.

    `content`: the table.json in `folder`; `roots`: where its records are; `sweep`: its file, None if it is not known;
    `committed`: whether it is below the folder of committed results, as those that come with Paribus are.
    """

    table: Table
    content: Mapping[str, Any]
    folder: Path
    roots: tuple[Path, ...]
    sweep: Sweep | None
    committed: bool

    @property
    def study(self) -> str:
        return self.table.study

    @property
    def scale(self) -> str:
        return self.table.scale

    @property
    def place(self) -> str:
        """The folder of its pages in the site."""
        return f"{self.study}/{self.scale}"

    @property
    def order(self) -> tuple[str, int, str]:
        """By study, and small scales first."""
        return self.study, rank_scale(self.scale), self.scale

    @cached_property
    def stored(self) -> StudyRecords:
        """Its records, and which were left out."""
        return find_records(self.study, self.scale, self.roots)

    @property
    def records(self) -> list[Record]:
        """Those of its runs that have ended."""
        return self.stored.records

    @property
    def finished(self) -> list[Record]:
        """The records of runs that are done."""
        return [record for record in self.records if record.done]

    @cached_property
    def curves(self) -> dict[tuple[str, int], dict[str, Curve]]:
        """{(arm, seed): {metric: curve}} of the runs that are here."""
        averaged = () if self.design is None else gather(self.design, self.records).find_averaged()
        return {
            (record.arm, record.seed): read_curves(run, record, averaged)
            for record in self.records
            if (run := find_stored(record, self.roots)) is not None
        }

    @cached_property
    def takes_points(self) -> bool:
        """Whether all arms could be fine-tuned during pre-training (see `training.checks.check_points`)."""
        runs = (find_stored(record, self.roots) for record in {one.arm: one for one in self.records}.values())
        for config in ((run.read_config() if run is not None else None) or {} for run in runs):
            tuning = config.get("finetune", {})
            if config.get("members", 1) > 1 or tuning.get("ensemble", 1) > 1 or tuning.get("encoder"):
                return False
        return True

    @cached_property
    def manifest(self) -> Manifest | None:
        return find_manifest(self.roots, self.study, self.scale)

    @cached_property
    def design(self) -> Design | None:
        """As the sweep file has it now; the arms as they were audited when the table was made."""
        if self.sweep is None:
            return None
        audited = {key: value for key, value in self.content["audit"].items() if key != "varies"}
        return make_design(self.sweep, self.scale, self.study, self.manifest, audited)

    @cached_property
    def report(self) -> Report | None:
        """The audit of its records."""
        return None if self.design is None else audit_records(self.design, self.stored, self.roots)

    @cached_property
    def landscape(self) -> landscape.Measured | None:
        """The loss around its fine-tuned weights, if `paribus flatness` has measured it.

        Raises UserError for a file that cannot be read.
        """
        path = self.folder / landscape.FILE
        return _read_object(path, {"places", "arms", "task"}, "paribus flatness") if path.is_file() else None

    def check(self) -> tuple[list[str], int]:
        """(what of the table its records do not give, how many numbers it holds). Raises UserError as `build_table`."""
        if self.design is None:
            raise UserError("the sweep file is missing", "run this in the folder that has it")
        return find_unfollowed(self.content, self.design, self.roots)


def collect(reports: Path, runs: Path, results: Path) -> list[Entry]:
    """Every table below `reports` (study/scale) and `results` (scale/study); of one that is in both that of `reports`.

    Those of `paribus judge` have no scale, no runs of ours and a page of their own: they are left out.
    Raises UserError for a table.json that cannot be read.
    """
    sweeps = load_sweeps()
    entries: dict[tuple[str, str], Entry] = {}
    for root in (reports, results):
        for path in sorted(root.glob(f"*/*/{TABLE}")):
            content = _read_object(path, {"study", "scale", "arms", "claims", "columns"}, "paribus table")
            if not content["scale"]:
                continue
            table = _parse_table(path, content)
            scale = results / table.scale
            roots = (scale,) if root == results else (runs, scale)
            committed = (scale / table.study / TABLE).is_file()
            manifest = find_manifest(roots, table.study, table.scale)
            sweep = next((one for one in sweeps.values() if one.study == table.study), None)
            if sweep is None and manifest is not None:  # made under another name
                made = (one for one in sweeps.values() if one.hash(table.scale) == manifest.sweep_hash)
                sweep = next(made, None)
            entry = Entry(table, content, path.parent, roots, sweep, committed)
            entries.setdefault((entry.study, entry.scale), entry)
    return sorted(entries.values(), key=lambda entry: entry.order)


def _parse_table(path: Path, content: Mapping[str, Any]) -> Table:
    """The table. Raises UserError if one of its names, which become names of pages, leads out of its folder."""
    try:
        table = from_json(Table, content)
    except TypeError as error:
        raise UserError(f"{path} cannot be read", "make it again with `paribus table`, or remove it") from error
    for name in (table.study, table.scale, *(arm.name for arm in table.arms)):
        if not is_name(name):
            raise UserError(f"{path} names '{name}', which cannot name a study, a scale or an arm", "remove the file")
    return table


def find_untabled(entries: Sequence[Entry], runs: Path, results: Path) -> list[tuple[str, str]]:
    """(study, scale) of sweeps that were run but of which no table was made; trials of searches are none."""
    roots = [runs, *(folder for folder in sorted(results.glob("*")) if folder.is_dir())]
    scales = {(path.parent.name, path.stem) for root in roots for path in root.glob("*/*.json") if path.stem in SCALES}
    tabled = {(entry.study, entry.scale) for entry in entries}
    return sorted(pair for pair in scales - tabled if not pair[0].endswith(".tune"))


def load_sweeps() -> dict[str, Sweep]:
    """{name: sweep} of all sweep files that can be read."""
    sweeps = {}
    for name in names():
        try:
            sweeps[name] = load(name)
        except UserError:
            continue
    return sweeps


def _read_object(path: Path, keys: set[str], verb: str) -> dict[str, Any]:
    """The file's object with at least these keys, which `verb` writes."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not keys <= content.keys():
            raise ValueError
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{path} cannot be read", f"make it again with `{verb}`, or remove it") from error
    return content
