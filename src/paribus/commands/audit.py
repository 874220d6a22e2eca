"""`paribus audit`: checks what is behind a table, or whether a run can be reproduced bit for bit."""

from __future__ import annotations

import click

from paribus.commands.table import OUT
from paribus.core.arguments import Arguments, Flag, Positional, Verb
from paribus.sweeps import sweep_file
from paribus.sweeps.request import CACHE, RESULTS, RUNS, SCALE, STUDY

SUBJECT = Positional("SWEEP|RUN", "a sweep; with --reproduce a run's folder or signature", choices=sweep_file.names)
REPRODUCE = Flag("--reproduce", "train a finished run again and compare it bit for bit: --reproduce RUN")

HISTORY = Flag("--history", "keep what was run and changed before, as the commits say it, beside the committed table")


@click.command(
    cls=Verb,
    params=[SUBJECT, SCALE, STUDY, OUT, RUNS, RESULTS, CACHE, HISTORY, REPRODUCE],
    example="paribus audit roberta_table1 scale=cpu",
)
def audit(given: Arguments) -> int:
    """Check the configs, budgets, texts and numbers behind a sweep's table. The exit status is 1 if something is
    wrong.
    """
    if given[REPRODUCE]:
        from paribus.training.reproduce import reproduce

        given.refuse([SCALE, STUDY, OUT, HISTORY], "does not apply to --reproduce", "name only the run")
        text, right = reproduce(given[SUBJECT], [given[RUNS], given[RESULTS]], given[CACHE])
    else:
        from paribus.reports.audit import summarize

        given.refuse([CACHE], "applies only to --reproduce")
        sweep = sweep_file.load(given[SUBJECT])
        study = given[STUDY] or sweep.study
        folders = given[RUNS], given[RESULTS], given[OUT]
        text, right = summarize(sweep, given[SCALE], study, *folders, keep_history=given[HISTORY])
    print(text)
    return 0 if right else 1
