"""`paribus judge`: tables and verdicts for runs of another framework."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.core.arguments import (
    REQUIRED,
    Arguments,
    Option,
    Positional,
    Verb,
    choice,
    names,
    path,
    repeated,
    setting,
    text,
)
from paribus.core.console import say
from paribus.core.files import read_name
from paribus.integrations.numbers import MARKS

RUNS_OF = Positional(
    "RUNS",
    "a CSV, JSON or JSONL file, wandb:entity/project, or a folder of W&B (offline), MLflow, Lightning or lm-eval",
)
ARM: Option[tuple[str, ...]] = Option("--arm", "the columns that name an arm: A,B", ("arm",), names, shown="arm")
SEED = Option("--seed", "the column of the seed; none if the runs share no seeds", "seed", text)
METRIC: Option[tuple[str, ...]] = Option(
    "--metric", "the columns to judge, or a metric of all tasks such as acc; mean is the mean over tasks",
    REQUIRED, names,
)  # fmt: skip
BASELINE: Option[str] = Option("--baseline", "the arm that the others are compared with", REQUIRED, text)
CLAIM = repeated("--claim", "a claim such as 'A > B, margin 0.5 points'; repeat it for more", text, shown="none")
LOWER: Option[tuple[str, ...]] = Option(
    "--lower", "metrics for which lower is better", (), names, shown="by their names"
)
HIGHER: Option[tuple[str, ...]] = Option(
    "--higher", "metrics for which higher is better", (), names, shown="the others"
)
STEP: Option[str | None] = Option(
    "--step", "which row of a log counts: last, best or a step such as 1000; or its column: COLUMN or COLUMN=last",
    None, text, shown="last, if the rows of a run differ",
)  # fmt: skip
GROUP: Option[str | None] = Option("--group", "a column whose values are judged apart, as GROUP/METRIC", None, text)
DECIMAL: Option[str | None] = Option(
    "--decimal", "the decimal mark of all numbers: . or ,", None, choice(MARKS), shown="by the numbers"
)
WHERE = repeated("--where", "use only rows with COLUMN=VALUE; repeat it for more", setting, shown="all")
NAME: Option[str | None] = Option(
    "--name", "read columns from the run names, as '{arm}-s{seed}'", None, text, shown="no"
)
STUDY: Option[str | None] = Option("study", "name of the table", None, read_name, shown="that of the file or folder")
OUT: Option[Path | None] = Option("out", "folder of the table", None, path, shown="reports/judged/<study>")


@click.command(
    cls=Verb,
    params=[RUNS_OF, ARM, SEED, METRIC, BASELINE, CLAIM, LOWER, HIGHER, STEP, GROUP, WHERE, NAME, DECIMAL, STUDY, OUT],
    example="paribus judge runs.csv --metric acc --baseline A --claim 'B > A, margin 0.5 points'",
)
def judge(given: Arguments) -> int:
    """Judge runs of any framework: intervals, verdicts, seeds needed, plots and LaTeX, as for runs of Paribus.
    \f
    Raises UserError for unknown columns and arms, and claims that cannot be read.
    """
    from paribus.integrations.foreign_records import JudgeOptions
    from paribus.integrations.readers import open_source
    from paribus.reports.judge import judge as judge_runs
    from paribus.reports.tables.build import REPORTS
    from paribus.reports.tables.files import write_files

    options = JudgeOptions(
        metrics=given[METRIC],
        baseline=given[BASELINE],
        claims=given[CLAIM],
        arm=given[ARM],
        seed=given[SEED],
        lower=given[LOWER],
        higher=given[HIGHER],
        step=given[STEP],
        where=dict(given[WHERE]),
        pattern=given[NAME],
        group=given[GROUP],
        decimal=given[DECIMAL],
    )
    judged = judge_runs(open_source(given[RUNS_OF]), options, given[STUDY])
    out = given[OUT] or REPORTS / "judged" / judged.table.study
    write_files(out, judged.files)
    print(judged, end="")
    say(f"written to {out}: {', '.join(sorted(judged.files))}")
    return 0
