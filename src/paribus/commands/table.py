"""`paribus table`: build a sweep's table from its records, or check one that is committed."""

from __future__ import annotations

from pathlib import Path

from paribus.core.arguments import Arguments, Flag, Option, path, verb
from paribus.core.console import say
from paribus.sweeps.request import RESULTS, RUNS, SCALE, STUDY, SWEEP
from paribus.sweeps.sweep import load

OUT: Option[Path | None] = Option(
    "out", "folder of the table", None, path, shown="reports/<study>/<scale>; to check: <results>/<scale>/<study>"
)
CHECK = Flag("--check", "rebuild the committed table from the committed records and compare the bytes")


@verb(
    "Build a sweep's table from its records: the paper's numbers beside yours, with intervals and verdicts.",
    SWEEP, SCALE, STUDY, OUT, RUNS, RESULTS, CHECK,
    example="paribus table roberta_table1 scale=smoke",
)  # fmt: skip
def table(given: Arguments) -> int:
    """Write and print a table. Returns 1 if a checked file differs. Raises UserError if no fair table can be made."""
    from paribus.reporting.tables.assemble import REPORTS, make_table
    from paribus.reporting.tables.files import check, render_files, write_files
    from paribus.reporting.tables.markdown import render_markdown

    scale, committed = given[SCALE], given[RESULTS] / given[SCALE]
    roots = [committed] if given[CHECK] else [given[RUNS], committed]
    made = make_table(load(given[SWEEP]), scale, given[STUDY], roots)
    content = render_files(made)
    if given[CHECK]:
        folder = given[OUT] or committed / made.study
        differing = check(folder, content)
        print("\n".join(differing or [f"{folder}: {len(content)} files follow from their records"]))
        return 1 if differing else 0
    out = given[OUT] or REPORTS / made.study / scale
    write_files(out, content)
    print(render_markdown(made), end="")
    say(f"written to {out}: {', '.join(sorted(content))}")
    return 0
