"""A sweep's table from its sweep file and the records below some folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paribus.reports.tables.build import build_table
from paribus.reports.tables.curves import average_curves, average_effects, collect_curves
from paribus.reports.tables.design import Design, make_design
from paribus.reports.tables.evidence import gather
from paribus.reports.tables.facts import find_facts
from paribus.reports.tables.schema import Table, Tuned
from paribus.runs.manifest import find_manifest
from paribus.runs.store import find_records
from paribus.sweeps.sweep import Sweep
from paribus.sweeps.tuning import Tuning

REPORTS = Path("reports")


def make_table(sweep: Sweep, scale: str, study: str | None, roots: Sequence[Path]) -> Table:
    """The table of a sweep at a scale from the records below these roots."""
    manifest = find_manifest(roots, study or sweep.study, scale)
    return assemble(make_design(sweep, scale, study, manifest), roots)


def assemble(design: Design, roots: Sequence[Path]) -> Table:
    """The table of the records below these roots; incomplete records are named in its notes."""
    manifest = find_manifest(roots, design.study, design.scale)
    design = design.apply(manifest)
    stored = find_records(design.study, design.scale, roots)
    table, arms = build_table(design, stored.records), tuple(design.arms)
    curves = collect_curves(stored.records, arms, roots, gather(design, stored.records).find_averaged())
    return replace(
        table,
        notes=(*table.notes, *(f"Left out: {why}." for why in stored.left_out)),
        tuned=count_trials(design.tuning),
        facts=find_facts(arms, stored.records, roots, manifest.overrides if manifest else ()),
        curves=average_curves(curves, arms) | average_effects(curves, arms, design.baseline),
    )


def count_trials(tuning: Tuning) -> dict[str, Tuned]:
    """{arm: how it was tuned}."""
    return {arm: Tuned(len(tuned.trials), tuned.chosen) for arm, tuned in tuning.arms.items()}
