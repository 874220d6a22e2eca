"""`paribus table`: build a sweep's table from its records, or check one that is committed."""

from __future__ import annotations

import sys
from pathlib import Path

from paribus.core.arguments import Arguments, Flag, Option, Positional, choice, path, verb
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.reporting.tables.styles import BOTH, STYLES
from paribus.sweeps import sweep as sweeps
from paribus.sweeps.request import RESULTS, RUNS, SCALE, STUDY, Request

OUT: Option[Path | None] = Option(
    "out", "folder of the table", None, path, shown="reports/<study>/<scale>; to check: <results>/<scale>/<study>"
)
FROM: Option[Path | None] = Option(
    "--from", "a folder of runs without a sweep, such as those of a multirun", None, path
)
SWEEP = Positional("SWEEP", "a sweep by name, or the path of a sweep file", "", choices=sweeps.names, required=False)
STYLE = Option(
    "style", "what follows a mean in table.tex: both, sd or interval", BOTH, choice(STYLES), choices=lambda: STYLES
)
PDF = Flag("--pdf", "also write each figure as PDF, without its title")
BRIEF = Flag("--brief", "print one screen: the results, the claims, and what to type next")
CHECK = Flag("--check", "rebuild the committed table from its records and compare it byte for byte")


@verb(
    "Build a sweep's table from its records: the paper's numbers beside yours, with intervals and verdicts. With "
    "--from, it groups the runs of a folder by the settings that differ.",
    SWEEP, SCALE, STUDY, OUT, RUNS, RESULTS, CHECK, FROM, STYLE, PDF, BRIEF,
    example="paribus table roberta_table1 scale=smoke",
)  # fmt: skip
def table(given: Arguments) -> int:
    """Write and print a table. Returns 1 if a checked file differs. Raises UserError if no fair table can be made."""
    from paribus.reporting.next_step import next_step
    from paribus.reporting.tables.assemble import REPORTS, make_table
    from paribus.reporting.tables.brief import print_brief
    from paribus.reporting.tables.files import check, render_files, write_files
    from paribus.reporting.tables.markdown import render_markdown
    from paribus.reporting.tables.terminal import print_table

    if (folder := given[FROM]) is not None:
        from paribus.reporting.multirun import find_runs, tabulate

        given.refuse(
            [SWEEP, SCALE, STUDY, OUT, RUNS, RESULTS, CHECK, STYLE, PDF, BRIEF], f"does not apply to {FROM.name}"
        )
        print(tabulate(find_runs([folder])))
        return 0
    if SWEEP not in given:
        raise UserError("table needs a SWEEP", f"for example, {table.example}; {FROM.name} FOLDER takes any runs")
    if given[CHECK]:
        given.refuse([STYLE, PDF, BRIEF], f"does not apply to {CHECK.name}")
    scale, committed = given[SCALE], given[RESULTS] / given[SCALE]
    roots = [committed] if given[CHECK] else [given[RUNS], committed]
    sweep = sweeps.load(given[SWEEP])
    if given[CHECK] and not (folder := committed / (given[STUDY] or sweep.study)).is_dir():
        raise UserError(f"no committed results in {folder}", f"give {RESULTS.name}= their folder, or no {CHECK.name}")
    made = make_table(sweep, scale, given[STUDY], roots)
    content = render_files(made, given[STYLE], given[PDF])
    if given[CHECK]:
        folder = given[OUT] or committed / made.study
        differing = check(folder, content)
        print("\n".join(differing or [f"{folder}: {len(content)} files match their records"]))
        return 1 if differing else 0
    out = given[OUT] or REPORTS / made.study / scale
    write_files(out, content)
    step = next_step(made, Request(sweep, scale, runs=given[RUNS], results=given[RESULTS], study=given[STUDY]))
    if given[BRIEF]:
        print_brief(made, out, step)
        return 0
    if sys.stdout.isatty():
        print_table(made)
    else:
        print(render_markdown(made), end="")
    say(f"written to {out}: {', '.join(sorted(content))}")
    if step is not None:
        say(f"next: {step}")
    return 0
