"""`ceteris audit SWEEP [scale=...]`: what stands behind a table; `ceteris audit --reproduce RUN`: run it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ceteris.audit.facts import Facts, facts
from ceteris.audit.follow import differing, numbers
from ceteris.errors import UserError
from ceteris.study.store import first_roll, records
from ceteris.study.sweep import load
from ceteris.tables.design import Design
from ceteris.tables.verb import REPORTS, Request, assemble, design_of, enrolled, parse

TABLE = "table.json"
REPRODUCE = "--reproduce"
IN_ORDER = "✓ the records are whole, on one text, within the budget, and differ as declared"


def audit(argv: list[str]) -> int:
    """Print the audit. Returns 1 where something does not follow or is not controlled.

    Arguments: those of `ceteris table`, or --reproduce and the folder or signature of a run. Raises UserError for bad
    input, and for a sweep whose arms differ in more than it says.
    """
    if REPRODUCE in argv:
        from ceteris.audit.reproduce import reproduce

        return reproduce([text for text in argv if text != REPRODUCE])
    request = parse(argv, "audit")
    roots = [request.runs, request.results / request.scale]
    sweep = load(request.sweep)
    roll = first_roll(roots, request.study or sweep.study, request.scale)
    design = enrolled(design_of(sweep, request.scale, request.study, tuning=roll.tuning if roll else {}), roll)
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


def read(place: Path) -> dict[str, Any]:
    """A kept table. Raises UserError where it cannot be read."""
    try:
        table: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{place} is no table", "make it with `ceteris table`") from error
    return table


def unfollowed(kept: dict[str, Any], design: Design, roots: Sequence[Path]) -> tuple[list[str], int]:
    """(what of a kept table the records below the roots do not give, how many numbers it holds)."""
    return differing(kept, assemble(design, roots)), numbers(kept)


def text(design: Design, told: Facts, kept: Sequence[str]) -> str:
    """The audit for a terminal."""
    lines = [f"# Audit of {design.study} at {design.scale} scale"]
    for part in told.parts:
        lines += ["", f"## {part.heading}", *(f"- {line}" for line in part.lines or ["nothing is on record"])]
    lines += ["", "## Findings", *(f"✗ {finding}" for finding in told.findings)]
    lines += [] if told.findings else [IN_ORDER]
    return "\n".join([*lines, *(kept or ["- no table is kept yet: ceteris table writes one"])])
