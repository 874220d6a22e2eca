"""The command `paribus VERB ...`. Verbs import their work when they run, so that help and completion are immediate."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from textwrap import fill

from paribus import __version__
from paribus.commands.verbs import VERBS, load
from paribus.core.arguments import HELP, VERSION, WIDTH
from paribus.core.errors import UserError, permitted
from paribus.core.processes import Stopped, collect_rarely, stoppable

COMPLETE = "__complete"  # what the scripts of `paribus completion` call: the words so far, the last one unfinished


def usage() -> str:
    """The page of `paribus --help`."""
    lines = ["Paribus: does this pre-training choice hold for me?", "", "usage: paribus VERB [ARGUMENT ...]", ""]
    told = {name: load(name).what.partition(". ")[0].removesuffix(".") for name in VERBS}
    lines += [fill(f"  {name:<11} {what}", WIDTH, subsequent_indent=" " * 14) for name, what in told.items()]
    lines += ["", "`paribus VERB --help` lists the arguments of a verb; `paribus --version` prints the version."]
    lines += ["Example: paribus run roberta_table1 scale=smoke && paribus table roberta_table1 scale=smoke"]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Returns its exit status: 2 for bad input (one line on stderr), 128 plus the signal's number if a
    signal stopped it, such as 130 after Ctrl-C.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    collect_rarely()
    try:
        with stoppable(), permitted():
            return _dispatch(arguments)
    except UserError as error:
        print(f"paribus: {error}", file=sys.stderr)
        return 2
    except Stopped as error:
        print(f"paribus: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _dispatch(arguments: list[str]) -> int:
    name, *rest = arguments or HELP[1:]
    if name == "help":
        name, rest = (rest[0], [HELP[1]]) if rest else (HELP[1], [])
    if name in HELP:
        print(usage())
    elif name in VERSION:
        print(f"paribus {__version__}")
    elif name == COMPLETE:
        from paribus.commands.completion import complete

        print("\n".join(complete(rest)))
    elif VERSION[1] in rest:
        print(f"paribus {__version__}")
    elif any(text in HELP for text in rest):
        print(load(name).help())
    else:
        return load(name)(_without_password(rest))
    return 0


def _without_password(arguments: list[str]) -> list[str]:
    """The arguments without a database's password; if the process title shows it, the process starts again."""
    if not any("postgres" in text for text in arguments):
        return arguments
    from paribus.sweeps.search.storage import without_password

    title = [without_password(text) for text in sys.orig_argv]
    if title != sys.orig_argv:
        sys.stdout.flush()
        os.execv(sys.executable, title)
    return [without_password(text) for text in arguments]
