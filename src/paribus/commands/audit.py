"""`paribus audit SWEEP [scale=...]`: what stands behind a table; `paribus audit --reproduce RUN`: run it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paribus.commands.table import Request, parse
from paribus.core.errors import UserError
from paribus.reporting.audit.facts import Facts, facts
from paribus.reporting.audit.follow import IN_ORDER, TABLE, read, unfollowed
from paribus.reporting.tables.assemble import REPORTS, design_of, enrolled
from paribus.reporting.tables.design import Design
from paribus.runs.store import first_manifest, records
from paribus.sweeps.sweep import load

REPRODUCE = "--reproduce"


def audit(argv: list[str]) -> int:
    """Print the audit. Returns 1 where something does not follow or is not controlled.

    Arguments: those of `paribus table`, or --reproduce and the folder or signature of a run. Raises UserError for bad
    input, and for a sweep whose arms differ in more than it says.
    """
    if REPRODUCE in argv:
        from paribus.reporting.audit.reproduce import reproduce

        return reproduce([text for text in argv if text != REPRODUCE])
    request = parse(argv, "audit")
    roots = [request.runs, request.results / request.scale]
    sweep = load(request.sweep)
    manifest = first_manifest(roots, request.study or sweep.study, request.scale)
    design = enrolled(
        design_of(sweep, request.scale, request.study, tuning=manifest.tuning if manifest else {}), manifest
    )
    found = records(design.study, design.scale, roots)
    told = facts(design, found, roots)
    kept = [line for place in places(request, design) for line in _kept(place, design, request)]
    findings = [*told.findings, *(line for line in kept if line.startswith("✗"))]
    print(text(design, told, kept))
    return 1 if findings else 0


def places(request: Request, design: Design) -> list[Path]:
    """The kept tables of a study and scale: that of out=, or those of the reports and of the committed results."""
    if request.out is not None:
        return [request.out / TABLE]
    both = (REPORTS / design.study / design.scale, request.results / design.scale / design.study)
    return [place / TABLE for place in both if (place / TABLE).is_file()]


def _kept(place: Path, design: Design, request: Request) -> list[str]:
    """Lines on one kept table: ✓ or ✗ and what differs."""
    committed = request.results / request.scale
    roots = [committed] if committed in place.parents else [request.runs, committed]
    try:
        odd, count = unfollowed(read(place), design, roots)
    except UserError as error:
        return [f"✗ {place}: {error}"]
    if not odd:
        return [f"✓ {place}: all {count} numbers follow from the records"]
    return [f"✗ {place}: {line}" for line in odd]


def text(design: Design, told: Facts, kept: Sequence[str]) -> str:
    """The audit for a terminal."""
    lines = [f"# Audit of {design.study} at {design.scale} scale"]
    for part in told.parts:
        lines += ["", f"## {part.heading}", *(f"- {line}" for line in part.lines or ["nothing is on record"])]
    lines += ["", "## Findings", *(f"✗ {finding}" for finding in told.findings)]
    lines += [] if told.findings else [IN_ORDER]
    return "\n".join([*lines, *(kept or ["- no table is kept yet: paribus table writes one"])])
