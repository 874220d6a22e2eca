"""`paribus init`: turns your text, your task and a comparison into a sweep that is ready to run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from paribus.core.arguments import Arguments, Flag, Option, Verb, names, text
from paribus.core.console import say
from paribus.core.errors import UserError, located
from paribus.core.files import read_name
from paribus.sweeps.request import CACHE, RUNS, SCALE, Request

if TYPE_CHECKING:
    from paribus.sweeps.init import InitRequest

TEXT: Option[str | None] = Option("--text", "your text: a file, a folder or a glob", None, text)
TASK: Option[str | None] = Option("--task", "your task: a file, or a folder with one per split", None, text)
COMPARE: Option[str | None] = Option("--compare", "what to compare: KEY=A,B", None, text)
NAME: Option[str | None] = Option("name", "name of the sweep", None, read_name, shown="that of the text and the task")
COLUMNS: Option[tuple[str, ...] | None] = Option(
    "columns",
    "the task's columns: TEXT,LABEL or TEXT,PAIR,LABEL or WORDS,TAGS",
    None,
    names,
    shown="guessed from their names",
)
UNIVERSE = Flag("--universe", "ask whether it holds in other settings: draw them around the recipe of the scale")
SHOWN = 3  # examples
Read = TypeVar("Read")


@click.command(
    cls=Verb,
    params=[TEXT, TASK, COMPARE, NAME, COLUMNS, UNIVERSE, SCALE, RUNS, CACHE],
    overrides=True,
    example="paribus init --text my/books --task my/trec --compare masking.rate=0.15,0.4",
)
def init(given: Arguments) -> int:
    """Write your first sweep: asks for your text, your task and what to compare, writes one sweep file and one task
    file, and shows corrupted examples and the cost. In a terminal, it asks for whatever you leave out.
    \f
    Raises UserError, and leaves no file, if the sweep cannot run.
    """
    from paribus.sweeps.init import find_wrapped, say_power, write_files
    from paribus.sweeps.plan import report
    from paribus.sweeps.sweep_file import load
    from paribus.tasks.tables.guess import show_examples

    question = ask(given)
    examples = show_examples(question.labeled, question.task)
    with write_files(question) as files:
        cache = () if given[CACHE] is None else (f"paths.cache={given[CACHE]}",)
        request = Request(load(question.name), given[SCALE], cache, runs=given[RUNS])
        print(f"Examples of {question.task}, as they are read:", *(f"  {line}" for line in examples), sep="\n")
        draw_baseline(request)
        print(report(request), say_power(request), sep="\n")
    for line in (*question.labeled.notes, *find_wrapped(question.text)):
        say(line)
    if question.universe is None:
        say(f"To ask whether it also holds in other settings, add {UNIVERSE.label} and name=NAME.")
    print(f"\nWritten: {files.sweep} and {files.task}. Look at them, then run\n\n  {request.command('run')}")
    return 0


def ask(given: Arguments) -> InitRequest:
    """The question, from arguments and from answers in a terminal. Raises UserError for what is missing or wrong."""
    from paribus.data.corpus.text_files import find
    from paribus.sweeps.init import USUAL, InitRequest, name_of, name_task, split_compared
    from paribus.tasks.tables.guess import guess_task

    texts, _ = _answer(given, TEXT, "Your text (a file, a folder or a glob): ", lambda path: find(path, TEXT.label))
    asked = "Your task (a .jsonl, .csv, .parquet or .conll file, or a folder with one per split): "
    task, labeled = _answer(given, TASK, asked, lambda path: guess_task(path, given[COLUMNS]))
    menu = "".join(f"\n  {at}. {words}: {usual}" for at, (usual, words) in enumerate(USUAL.items(), 1))
    usual = {str(at): one for at, one in enumerate(USUAL, 1)}
    asked = f"What to compare, as a number or KEY=A,B:{menu}\n> "
    _, (key, values) = _answer(given, COMPARE, asked, lambda one: split_compared(usual.get(one, one)))
    name = given[NAME] or f"{name_of(texts)}_{name_task(task)}"
    compared = f"{key}={','.join(values)}"
    universe = given[SCALE] if given[UNIVERSE] else None
    return InitRequest(name, texts, name_task(task), labeled, compared, tuple(given.config()), universe)


def _answer(given: Arguments, option: Option[str | None], asked: str, read: Callable[[str], Read]) -> tuple[str, Read]:
    """The argument, and what `read` returns for it. In a terminal, ask until the answer can be read.

    Raises UserError if there is neither an argument nor an answer, and as `read` does for an argument.
    """
    value = given[option]
    while value is None and sys.stdin.isatty():
        try:
            answer = input(asked).strip()
            return answer, read(answer or _miss(option))
        except UserError as error:
            say(str(error))
        except EOFError:
            break
    return value or "", read(value or _miss(option))


def _miss(option: Option[str | None]) -> NoReturn:
    """Raises the UserError for an argument that is missing."""
    raise UserError(f"init needs {option.label}", f"for example, {init.example}")


def draw_baseline(request: Request) -> None:
    """Draw examples of the baseline on stderr. Raises UserError if an arm cannot run."""
    from paribus.reports.examples import draw_examples
    from paribus.sweeps.expand import expand
    from paribus.training.streams import training_examples

    expanded = expand(request)
    for cell in expanded.configs:
        with located(f"arm {cell}"):
            expanded.run(cell)
    run = expanded.run_of(next(job for job in expanded.jobs if job.arm == request.sweep.baseline))
    data = run.data()
    say(f"\n{SHOWN} examples of the arm {request.sweep.baseline}:")
    draw_examples(training_examples(run, data), data.tokenizer, SHOWN)
