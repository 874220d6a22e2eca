"""`paribus power`: how many seeds a claim needs, before anything is run."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.core.arguments import Arguments, Flag, Option, Verb, number, path, whole
from paribus.core.errors import UserError
from paribus.verdict.power import MOST_ARMS

SD: Option[float | None] = Option("--sd", "standard deviation over seeds of the difference of two arms", None, number)
EFFECT = Option("--effect", "the true difference to detect", 0.0, number)
MARGIN = Option("--margin", "the smallest difference that matters", 0.0, number)
ARMS = Option("--arms", "how many arms; every arm but the first has a claim", 2, whole(2, most=MOST_ARMS))
UNPAIRED = Flag("--unpaired", "the arms share no seeds, and --sd is that of one arm")
FROM: Option[Path | None] = Option(
    "--from", "the table.json of a universe: the power of its claims by the spread of its A/A twin", None, path
)
SETTINGS = Option("--settings", "with --from: settings at the first look", 12, whole(3, most=1000))
MOST = Option(
    "--most",
    "with --from: settings at the last look; the same as --settings for a single look",
    20,
    whole(3, most=1000),
)
OF_ARMS, OF_TABLE = (SD, EFFECT, MARGIN, ARMS, UNPAIRED), (SETTINGS, MOST)


@click.command(
    cls=Verb,
    params=[*OF_ARMS, FROM, *OF_TABLE],
    example="paribus power --sd 0.8 --effect 1 --margin 0.5",
)
def power(given: Arguments) -> int:
    """Print how many seeds a claim needs, by the rules of our verdicts. All numbers are in the metric's unit. With
    --from, it prints what the settings of a universe can decide.
    \f
    Raises UserError for impossible values, and for a table that has no twin.
    """
    if (table := given[FROM]) is not None:
        from paribus.reports.margin_power import report_powers

        given.refuse(OF_ARMS, f"does not apply to {FROM.label}")
        if given[MOST] < given[SETTINGS]:
            raise UserError(f"{MOST.label} is below {SETTINGS.label}", f"give {MOST.label} {given[SETTINGS]} or more")
        print(report_powers(table, given[SETTINGS], given[MOST]), end="")
        return 0
    from paribus.verdict.power import plan_seeds

    given.refuse(OF_TABLE, f"applies to {FROM.label} alone")
    if (sd := given[SD]) is None:
        raise UserError(f"power needs {SD.label}", f"for example, {power.example}")
    print(plan_seeds(sd, given[EFFECT], given[MARGIN], given[ARMS], unpaired=given[UNPAIRED]), end="")
    return 0
