"""`paribus table SWEEP [scale=...] [--check]`: build a sweep's table from its records, or check one that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from paribus.core.config import SCALE, split_overrides
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.reporting.tables.assemble import REPORTS, RESULTS, made_of
from paribus.reporting.tables.files import render, write
from paribus.reporting.tables.markdown import markdown
from paribus.sweeps.sweep import load

_RUNS = ("runs", "run_dir", "paths.runs")  # three names of one thing, as for `paribus run`
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
        raise UserError(f"{verb} takes one sweep, got {len(names)}", f"paribus {verb} roberta_table1 scale=smoke")
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
