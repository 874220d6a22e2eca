"""`paribus power`: how many seeds a claim needs, before anything is run."""

from __future__ import annotations

import click

from paribus.core.arguments import REQUIRED, Arguments, Flag, Option, Verb, number, whole
from paribus.verdict.power import MOST_ARMS

SD: Option[float] = Option("--sd", "standard deviation over seeds of the difference between two arms", REQUIRED, number)
EFFECT = Option("--effect", "the true difference to detect", 0.0, number)
MARGIN = Option("--margin", "the smallest difference that matters", 0.0, number)
ARMS = Option("--arms", "how many arms; every arm but the first has a claim", 2, whole(2, most=MOST_ARMS))

UNPAIRED = Flag("--unpaired", "the arms share no seeds, and --sd is that of one arm")


@click.command(
    cls=Verb,
    params=[SD, EFFECT, MARGIN, ARMS, UNPAIRED],
    example="paribus power --sd 0.8 --effect 1 --margin 0.5",
)
def power(given: Arguments) -> int:
    """Print how many seeds a claim needs, by the rules of our verdicts. All numbers are in the metric's unit.
    \f
    Raises UserError for impossible values.
    """
    from paribus.verdict.power import plan_seeds

    print(plan_seeds(given[SD], given[EFFECT], given[MARGIN], given[ARMS], unpaired=given[UNPAIRED]), end="")
    return 0
