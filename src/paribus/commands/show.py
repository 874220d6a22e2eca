"""`paribus show`: draw corrupted examples, write them as rows, print the realised rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paribus.core.errors import UserError
from paribus.data.tokens.sample import store_text
from paribus.reporting.examples import show_examples


def show(argv: Sequence[str]) -> int:
    """`paribus show [n=8] [epoch=0] [out=FILE.parquet] [text=SENTENCES] [key=value ...]`.

    Draws the first n examples of the training split, or of the text that is given, on the terminal or else on stderr,
    and ends with one JSON object on stdout. Raises UserError for bad input.
    """
    own, overrides = _own(argv)
    n, epoch = _count("n", own["n"], 1), _count("epoch", own["epoch"], 0)
    from paribus.core.config import compose
    from paribus.training.description import Run
    from paribus.training.streams import training_examples

    run = Run.of(compose(overrides))
    data = run.data()
    if own["text"] and run.corpus.sentences is not None:
        data.stores["train"] = store_text(own["text"], data.tokenizer, run.corpus.sentences)
    examples = training_examples(run, data)
    n = min(n, examples.size(epoch)) if own["text"] else n
    show_examples(examples, data.tokenizer, n, epoch, Path(own["out"]) if own["out"] else None)
    return 0


def _own(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The verb's own settings, and the overrides of the config."""
    own, overrides = {"n": "8", "epoch": "0", "out": "", "text": ""}, []
    for text in argv:
        key, equals, value = text.partition("=")
        if equals and key in own:
            own[key] = value
        else:
            overrides.append(text)
    return own, overrides


def _count(name: str, text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise UserError(f"{name}={text}", f"give a whole number, at least {least}")
    return int(text)
