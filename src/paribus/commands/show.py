"""`paribus show`: draw corrupted examples, write them as rows, print the measured rates."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.core.arguments import Arguments, Option, Verb, path, text, whole
from paribus.core.errors import UserError
from paribus.core.files import check_room
from paribus.sweeps.request import CACHE, RUNS, SCALE

N = Option("n", "how many examples, starting with the first", 8, whole(1))
EPOCH = Option("epoch", "the pass over the text, counted from 0", 0, whole(0))
OUT: Option[Path | None] = Option("out", "Parquet file to write, one row per example", None, path)
TEXT: Option[str | None] = Option("text", "sentences to corrupt", None, text, shown="the training split")


@click.command(
    cls=Verb,
    params=[N, EPOCH, OUT, TEXT, SCALE, RUNS, CACHE],
    overrides=True,
    example="paribus show n=4 masking=geometric_span masking.rate=0.3",
)
def show(given: Arguments) -> int:
    """Draw the first corrupted examples of the training split, and print the measured rates as JSON.
    \f
    It draws in the terminal, or on stderr if stdout is not a terminal.
    """
    from paribus.core.config import compose
    from paribus.data.tokens.store import store_text
    from paribus.reports.examples import show_examples
    from paribus.training.description import Run
    from paribus.training.streams import training_examples

    if (out := given[OUT]) is not None and out.suffix != ".parquet":
        raise UserError(f"out={out} is not a Parquet file", f"write out={out.with_suffix('.parquet')}")
    run = Run.of(compose(given.config(SCALE, RUNS, CACHE)))
    if out is not None:
        check_room(out)
    data = run.data()
    if (sentences := given[TEXT]) is not None:
        if run.corpus.sentences is None:
            raise UserError("text= needs a corpus that splits sentences, and this one does not", "leave text= out")
        data.stores["train"] = store_text(sentences, data.tokenizer, run.corpus.sentences)
    examples = training_examples(run, data)
    n = min(given[N], examples.size(given[EPOCH])) if sentences else given[N]
    show_examples(examples, data.tokenizer, n, given[EPOCH], out)
    return 0
