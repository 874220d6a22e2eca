"""The audit of a sweep's table, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paribus.core.errors import UserError
from paribus.reporting.audit import IN_ORDER, TABLE, Report, audit_records, find_unfollowed, read_table
from paribus.reporting.tables.assemble import REPORTS
from paribus.reporting.tables.design import Design, make_design
from paribus.runs.manifest import find_manifest
from paribus.runs.store import find_records
from paribus.sweeps.sweep import Sweep


def summarize(sweep: Sweep, scale: str, study: str, runs: Path, results: Path, out: Path | None) -> tuple[str, bool]:
    """(the audit, whether nothing is wrong).

    Args:
        runs, results: folders with the records.
        out: the folder of the table to check; None for those of the reports and of the committed results.

    Raises:
        UserError: for a sweep whose arms differ in more than it declares, and if there is no record.
    """
    roots = [runs, results / scale]
    design = make_design(sweep, scale, study, find_manifest(roots, study, scale))
    found = find_records(study, scale, roots)
    if not found.records and not found.left_out:
        mend = f"run `paribus run {sweep.path.stem} scale={scale}` first, or give runs="
        raise UserError(f"no run of {study} at scale={scale} to audit", mend)
    checked = audit_records(design, found, roots)
    if out is None:
        places = [place for place in (REPORTS / study / scale, results / scale / study) if (place / TABLE).is_file()]
    else:
        places = [out]
    kept = [line for place in places for line in _check(place / TABLE, design, runs, results / scale)]
    right = not checked.findings and not any(line.startswith("✗") for line in kept)
    return _text(design, checked, kept), right


def _check(table: Path, design: Design, runs: Path, committed: Path) -> list[str]:
    """Lines on one table that was written: ✓ or ✗ and what differs."""
    roots = [committed] if committed in table.parents else [runs, committed]
    try:
        differing, count = find_unfollowed(read_table(table), design, roots)
    except UserError as error:
        return [f"✗ {table}: {error}"]
    if not differing:
        return [f"✓ {table}: all {count} numbers match the records"]
    return [f"✗ {table}: {line}" for line in differing]


def _text(design: Design, checked: Report, kept: Sequence[str]) -> str:
    lines = [f"# Audit of {design.study} at {design.scale} scale"]
    for part in checked.sections:
        lines += ["", f"## {part.heading}", *(f"- {line}" for line in part.lines or ["nothing is recorded"])]
    lines += ["", "## Findings", *(f"✗ {finding}" for finding in checked.findings)]
    lines += [] if checked.findings else [IN_ORDER]
    return "\n".join([*lines, *(kept or ["- there is no table yet: `paribus table` writes one"])])
