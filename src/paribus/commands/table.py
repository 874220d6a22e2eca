"""`paribus table`: build a sweep's table from its records, or check one that is committed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paribus.core.arguments import Arguments, Flag, Option, Positional, Verb, choice, path
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.reports.tables.schema import BOTH, STYLES
from paribus.runs.archive import CONFIGS_FILE, CURVES_FILE, RECORDS_FILE
from paribus.sweeps import sweep_file
from paribus.sweeps.request import RESULTS, RUNS, SCALE, STUDY, Request

if TYPE_CHECKING:
    from paribus.reports.tables.schema import Table

OUT: Option[Path | None] = Option(
    "out", "folder of the table", None, path, shown="reports/<study>/<scale>; to check: <results>/<scale>/<study>"
)
FROM: Option[Path | None] = Option(
    "--from", "a folder of runs without a sweep, such as those of a multirun", None, path
)
SWEEP = Positional("SWEEP", "a sweep by name, or the path of a sweep file", choices=sweep_file.names, required=False)
STYLE = Option(
    "style", "what follows a mean in table.tex: both, sd or interval", BOTH, choice(STYLES), choices=lambda: STYLES
)
PDF = Flag("--pdf", "also write each figure as PDF, without its title")
BRIEF = Flag("--brief", "print one screen: the results, the claims, and what to type next")
ARCHIVE = Flag("--archive", "put the table and all its runs below results= into a few files for version control")
CHECK = Flag("--check", "rebuild the committed table from its records and compare it byte for byte")
UNFINISHED = ("missing", "partial", "failed")  # states of an arm


@click.command(
    cls=Verb,
    params=[SWEEP, SCALE, STUDY, OUT, RUNS, RESULTS, CHECK, ARCHIVE, FROM, STYLE, PDF, BRIEF],
    example="paribus table roberta_table1 scale=smoke",
)
def table(given: Arguments) -> int:
    """Build a sweep's table from its records: the paper's numbers beside yours, with intervals and verdicts. With
    --from, it groups the runs of a folder by the settings that differ.
    \f
    Returns 1 if a checked file differs. Raises UserError if no fair table can be made.
    """
    if (folder := given[FROM]) is not None:
        from paribus.reports.multirun import find_runs, tabulate

        given.refuse([one for one in table.params if one is not FROM], f"does not apply to {FROM.label}")
        print(tabulate(find_runs([folder])))
        return 0
    if SWEEP not in given:
        raise UserError("table needs a SWEEP", f"for example, {table.example}; {FROM.label} FOLDER takes any runs")
    if given[CHECK]:
        given.refuse([ARCHIVE, STYLE, PDF, BRIEF], f"does not apply to {CHECK.label}")
        return check_committed(given)
    if given[ARCHIVE]:
        given.refuse([OUT, RUNS, STYLE, PDF, BRIEF], f"does not apply to {ARCHIVE.label}")
        return archive_runs(given)
    return write_table(given)


def check_committed(given: Arguments) -> int:
    """Compare the committed files of a table with what its records give."""
    from paribus.reports.tables.files import check, render_committed

    made = _tabulate_committed(given)
    folder, content = given[OUT] or given[RESULTS] / given[SCALE] / made.study, render_committed(made)
    differing = check(folder, content)
    print("\n".join(differing or [f"{folder}: {' and '.join(content)} match their records"]))
    return 1 if differing else 0


def archive_runs(given: Arguments) -> int:
    """Write the table beside its committed runs, and move the runs into an archive if none is missing."""
    from paribus.reports.tables.files import render_committed, write_files
    from paribus.runs.store import archive

    made, root = _tabulate_committed(given), given[RESULTS] / given[SCALE]
    folder = root / made.study
    write_files(folder, render_committed(made))
    if unfinished := [f"{arm.name} ({arm.status})" for arm in made.arms if arm.status in UNFINISHED]:
        say(f"{folder}: the runs stay in their folders until all are done: {', '.join(unfinished)}")
        return 0
    say(f"{folder}: {archive(root, made.study, made.scale)} runs in {RECORDS_FILE}, {CONFIGS_FILE} and {CURVES_FILE}")
    return 0


def _tabulate_committed(given: Arguments) -> Table:
    """The table of the records below `results=` alone."""
    from paribus.reports.tables.build import make_table
    from paribus.reports.tables.design import name_runs

    sweep, root = sweep_file.load(given[SWEEP]), given[RESULTS] / given[SCALE]
    if not (folder := root / (given[STUDY] or sweep.study)).is_dir():
        run = f"paribus run {name_runs(sweep, given[STUDY])} scale={given[SCALE]} {RESULTS.label}{given[RESULTS]}"
        mend = f"give {RESULTS.label} their folder, or type `{run}`, which copies finished runs there"
        raise UserError(f"no committed results in {folder}", mend)
    return make_table(sweep, given[SCALE], given[STUDY], [root])


def write_table(given: Arguments) -> int:
    """Write all files of a table, and print it."""
    from paribus.reports.answers import next_step
    from paribus.reports.tables.build import REPORTS, make_table
    from paribus.reports.tables.files import render_files, write_files
    from paribus.reports.tables.markdown import render_markdown
    from paribus.reports.tables.terminal import print_brief, print_table

    scale, sweep = given[SCALE], sweep_file.load(given[SWEEP])
    made = make_table(sweep, scale, given[STUDY], [given[RUNS], given[RESULTS] / scale])
    content, out = render_files(made, given[STYLE], given[PDF]), given[OUT] or REPORTS / made.study / scale
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
