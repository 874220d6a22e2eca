"""`paribus compare`: two finished models on the same examples, one by one."""

from __future__ import annotations

import click

from paribus.core.arguments import Arguments, Option, Positional, Verb, choice, names, repeated, setting, text
from paribus.integrations.numbers import MARKS

FIRST = Positional(
    "A",
    "the folder of a finished run, such as runs/STUDY/ARM/seed0, or of an arm with all its seeds, a CSV or JSONL file, "
    "or a folder of lm-eval samples",
)
SECOND = Positional("B", "the same for the other model")
METRIC: Option[tuple[str, ...]] = Option("--metric", "the columns to compare", (), names, shown="all that both have")
ID: Option[str | None] = Option(
    "--id", "the column that identifies an example of a file", None, text,
    shown="id, doc_id, example_id, example or index",
)  # fmt: skip
SEED: Option[str | None] = Option(
    "--seed", "the column of the seed, if a file has the rows of several runs", None, text, shown="none"
)
WHERE = repeated("--where", "use only rows of a file with COLUMN=VALUE; repeat it for more", setting, shown="all")
DECIMAL: Option[str | None] = Option(
    "--decimal", "the decimal mark of all numbers: . or ,", None, choice(MARKS), shown="by the numbers"
)


@click.command(
    cls=Verb,
    params=[FIRST, SECOND, METRIC, ID, SEED, WHERE, DECIMAL],
    example="paribus compare A.jsonl B.jsonl --metric acc",
)
def compare(given: Arguments) -> int:
    """Compare two finished models on the same examples, one by one: McNemar's test, or a paired interval. Two arms of
    several seeds are compared over seeds and examples together.
    \f
    Raises UserError if the examples are not the same.
    """
    from paribus.reports.compare import FileOptions, compare_runs

    options = FileOptions(given[ID], given[SEED], dict(given[WHERE]), given[DECIMAL])
    print(compare_runs(given[FIRST], given[SECOND], given[METRIC], options), end="")
    return 0
