"""A sweep's table from its sweep file and the records below some folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus.core.config import compose
from paribus.reporting.tables.build import Table, build
from paribus.reporting.tables.curves import summary
from paribus.reporting.tables.design import Design
from paribus.runs.store import Manifest, first_manifest, records
from paribus.sweeps.control import audit
from paribus.sweeps.sweep import Sweep, jobs
from paribus.sweeps.tune_arms import apply_tuning
from paribus.sweeps.tuning import Tuning
from paribus.verdict.sequential import Looks

RESULTS = Path("analysis/results")
REPORTS = Path("reports")


def made_of(sweep: Sweep, scale: str, study: str | None, roots: Sequence[Path]) -> Table:
    """The table of a sweep at a scale, with what was chosen for tuned arms, from what is kept below these roots."""
    manifest = first_manifest(roots, study or sweep.study, scale)
    return assemble(design_of(sweep, scale, study, tuning=manifest.tuning if manifest else {}), roots)


def assemble(design: Design, roots: Sequence[Path]) -> Table:
    """The table of the records below these roots; records that are not whole are named in its notes."""
    found = records(design.study, design.scale, roots)
    design = enrolled(design, first_manifest(roots, design.study, design.scale))
    made = build(design, found.records)
    made["notes"] += [f"Kept out: {why}." for why in found.left_out]
    made["tuned"] = tuned(design.tuning)
    made["curves"] = summary(found.records, tuple(design.arms), roots)
    return made


def enrolled(design: Design, manifest: Manifest | None) -> Design:
    """The design with the arms that no machine could run, with the search of tuned arms, and with the looks that were
    taken where seeds were added until its claims were decided.
    """
    if manifest is None:
        return design
    design = replace(design, absent=manifest.absent, tuning=manifest.tuning)
    if manifest.until is None:
        return design
    looks = Looks(int(manifest.until["first"]), int(manifest.until["most"]))
    return replace(design, looks=looks, seeds=tuple(manifest.until["seeds"]))


def tuned(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """{arm: {"trials", "chosen"}} of the arms that were searched."""
    return {
        arm: {"trials": len(found["trials"]), "chosen": dict(found["chosen"])}
        for arm, found in tuning.get("arms", {}).items()
    }


def design_of(
    sweep: Sweep,
    scale: str,
    study: str | None = None,
    audited: Mapping[str, Any] | None = None,
    tuning: Mapping[str, Any] = MappingProxyType({}),
) -> Design:
    """What a sweep file asks of a table at a scale.

    `audited`: what the control audit found; None: its arms, tuned ones with what the search chose (`tuning`), are
    audited once more as they compose now. Raises UserError for an unknown scale and for arms that differ in more than
    the sweep says.
    """
    seeds = sweep.seeds_at(scale)
    if audited is None:
        searched = apply_tuning(sweep, Tuning.from_json(tuning))
        configs = {job.arm: compose(job.overrides) for job in jobs(searched, scale, seeds=seeds[:1])}
        audited = audit(searched, configs)
    return Design(
        study=study or sweep.study,
        scale=scale,
        title=sweep.title,
        baseline=sweep.baseline,
        columns=sweep.columns,
        arms=sweep.arms,
        varies=sweep.varies,
        matched=sweep.matched,
        claims=sweep.claims,
        seeds=seeds,
        published=sweep.published,
        sweep_hash=sweep.hash(scale),
        audit=audited,
    )
