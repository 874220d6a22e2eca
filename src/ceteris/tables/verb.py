"""`ceteris table SWEEP [scale=...] [--check]`: build a sweep's table from its records, or check one that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ceteris.config import SCALE, compose, split_overrides
from ceteris.console import say
from ceteris.errors import UserError
from ceteris.study.audit import audit
from ceteris.study.search import adopted
from ceteris.study.store import Roll, first_roll, records
from ceteris.study.sweep import Sweep, jobs, load
from ceteris.tables.build import Table, build
from ceteris.tables.curves import summary
from ceteris.tables.design import Design
from ceteris.tables.files import render, write
from ceteris.tables.markdown import markdown
from ceteris.verdict.sequential import Looks

RESULTS = Path("analysis/results")
REPORTS = Path("reports")
_RUNS = ("runs", "run_dir", "paths.runs")  # three names of one thing, as for `ceteris run`
FLAGS = {"table": "--check", "audit": "--reproduce RUN"}
_KEYS = ("scale", "study", "out", *_RUNS, "results")


class Request(NamedTuple):
    """What was asked for. `out`: where the files are written, or with `check` where they are compared."""

    sweep: str
    scale: str
    study: str | None  # the name that the runs were given instead of the sweep's
    check: bool
    out: Path | None
    runs: Path
    results: Path


def table(argv: list[str]) -> int:
    """Write and print a table; with `--check` rebuild the kept one from the kept records and compare bytes.

    Arguments: SWEEP, scale=, study= (where the runs were given another name), out= (folder of the files), paths.runs=
    (of new runs), results= (of kept ones). Returns 1 where a kept file differs. Raises UserError for bad input and for
    records that make no fair table.
    """
    request = parse(argv)
    roots = [request.results / request.scale] if request.check else [request.runs, request.results / request.scale]
    made = made_of(load(request.sweep), request.scale, request.study, roots)
    study = made["study"]
    if request.check:
        return check(request.out or request.results / request.scale / study, render(made))
    out = request.out or REPORTS / study / request.scale
    content = render(made)
    write(out, content)
    print(markdown(made), end="")
    say(f"written to {out}: {', '.join(sorted(content))}")
    return 0


def parse(argv: Sequence[str], verb: str = "table") -> Request:
    """The arguments of `table` or `audit`. Raises UserError for a missing sweep, an unknown flag or an unknown key."""
    flags = [text for text in argv if text.startswith("-")]
    names = [text for text in argv if "=" not in text and text not in flags]
    if unknown := [flag for flag in flags if flag != FLAGS[verb]]:
        raise UserError(f"{verb} does not know {unknown[0]}", f"its flag is {FLAGS[verb]}")
    if len(names) != 1:
        raise UserError(f"{verb} takes one sweep, got {len(names)}", f"ceteris {verb} roberta_table1 scale=smoke")
    values = split_overrides([text for text in argv if "=" in text and text not in flags])
    if wrong := [key for key in values if key not in _KEYS]:
        raise UserError(f"{verb} does not know '{wrong[0]}='", f"known: {', '.join(_KEYS)}")
    return Request(
        sweep=names[0],
        scale=values.get("scale", SCALE),
        study=values.get("study"),
        check="--check" in flags,
        out=Path(values["out"]) if "out" in values else None,
        runs=Path(next((values[key] for key in _RUNS if key in values), "runs")),
        results=Path(values.get("results", RESULTS)),
    )


def made_of(sweep: Sweep, scale: str, study: str | None, roots: Sequence[Path]) -> Table:
    """The table of a sweep at a scale, with what was chosen for tuned arms, from what is kept below these roots."""
    roll = first_roll(roots, study or sweep.study, scale)
    return assemble(design_of(sweep, scale, study, tuning=roll.tuning if roll else {}), roots)


def assemble(design: Design, roots: Sequence[Path]) -> Table:
    """The table of the records below these roots; records that are not whole are named in its notes."""
    found = records(design.study, design.scale, roots)
    design = enrolled(design, first_roll(roots, design.study, design.scale))
    made = build(design, found.records)
    made["notes"] += [f"Kept out: {why}." for why in found.left_out]
    made["tuned"] = tuned(design.tuning)
    made["curves"] = summary(found.records, tuple(design.arms), roots)
    return made


def enrolled(design: Design, roll: Roll | None) -> Design:
    """The design with the arms that no machine could run, with the search of tuned arms, and with the looks that were
    taken where seeds were added until its claims were decided.
    """
    if roll is None:
        return design
    design = replace(design, absent=roll.absent, tuning=roll.tuning)
    if roll.until is None:
        return design
    looks = Looks(int(roll.until["first"]), int(roll.until["most"]))
    return replace(design, looks=looks, seeds=tuple(roll.until["seeds"]))


def tuned(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """{arm: {"trials", "chosen"}} of the arms that were searched."""
    return {
        arm: {"trials": len(found["trials"]), "chosen": dict(found["chosen"])}
        for arm, found in tuning.get("arms", {}).items()
    }


def check(folder: Path, content: Mapping[str, bytes]) -> int:
    """Compare the files kept in a folder with what their records give; names each that differs."""
    differing = [name for name, new in sorted(content.items()) if _kept(folder / name) != new]
    for name in differing:
        print(f"{folder / name}: {'differs from its records' if (folder / name).is_file() else 'is missing'}")
    if not differing:
        print(f"{folder}: {len(content)} files follow from their records")
    return 1 if differing else 0


def _kept(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


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
        searched = adopted(sweep, tuning)
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
