"""`paribus dashboard`: a W&B workspace and report for a sweep."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.core.arguments import Arguments, Flag, Option, Verb, path, text
from paribus.core.console import say
from paribus.sweeps.request import SCALE, STUDY, SWEEP
from paribus.sweeps.sweep_file import load

PROJECT = Option("project", "W&B project", "paribus", text)
ENTITY: Option[str | None] = Option("entity", "W&B entity", None, text, shown="your own")
OUT: Option[Path | None] = Option("out", "folder of the JSON files", None, path, shown="reports/<study>/<scale>")
SAVE = Flag("--save", "upload both to W&B")


@click.command(
    cls=Verb,
    params=[SWEEP, SCALE, STUDY, PROJECT, ENTITY, OUT, SAVE],
    example="paribus dashboard roberta_table1 scale=cpu --save",
)
def dashboard(given: Arguments) -> int:
    """Build a W&B workspace and report for a sweep. They are JSON files; --save uploads them."""
    from paribus.integrations.wandb.dashboard import Board, save_dashboard, write_dashboard
    from paribus.reports.tables.build import REPORTS

    sweep, scale = load(given[SWEEP]).at(given[SCALE]), given[SCALE]
    sweep.seeds_at(scale)  # refuses an unknown scale
    board = Board(sweep, scale, given[STUDY] or sweep.study, given[PROJECT], given[ENTITY] or "")
    write_dashboard(board, given[OUT] or REPORTS / board.study / scale)
    if given[SAVE]:
        print("\n".join(save_dashboard(board)))
    else:
        say(f"nothing was uploaded; add {SAVE.label} to upload")
    return 0
