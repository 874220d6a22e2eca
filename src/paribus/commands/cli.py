"""The command `paribus VERB ...`. Verbs import their work when they run, so that help and completion are immediate."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from paribus import __version__
from paribus.core.arguments import Verb
from paribus.core.errors import UserError, permitted, suggest
from paribus.core.processes import Stopped, collect_rarely, stoppable

# the object VERB of the module paribus.commands.VERB, in the order of the help
VERBS = (
    "init", "train", "show", "plan", "freeze", "run", "adapt", "status", "table", "flatness", "audit", "report",
    "dashboard", "published", "judge", "compare", "power", "completion",
)  # fmt: skip
COMPLETE = "__complete"  # what the scripts of `paribus completion` call: the words so far, the last one unfinished


def load(name: str) -> Verb:
    """Raises UserError for an unknown verb."""
    if name not in VERBS:
        raise UserError(f"unknown verb '{name}'", suggest(name, VERBS))
    verb: Verb = getattr(importlib.import_module(f"paribus.commands.{name}"), name)
    return verb


class Verbs(click.Group):
    """The verbs; the module of one is imported when the user names it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> Verb:
        return load(name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names alone: click would import every verb for its help."""
        names = [CompletionItem(name) for name in VERBS if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "ignore_unknown_options": True},
    options_metavar="",
    subcommand_metavar="VERB [ARGUMENT ...]",
    epilog="""`paribus VERB --help` lists the arguments of a verb.

    \b
    Example: paribus run roberta_table1 scale=smoke && paribus table roberta_table1 scale=smoke""",
)
@click.version_option(__version__, "-V", "--version", message="paribus %(version)s")
def cli() -> None:
    """Paribus: does this pre-training choice hold for me?"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Returns its exit status: 2 for bad input (one line on stderr), 128 plus the signal's number if a
    signal stopped it, such as 130 after Ctrl-C.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    collect_rarely()
    try:
        with stoppable(), permitted():
            # not `cli.main`, since click has exit statuses of its own for signals and closed pipes
            if arguments[:1] == [COMPLETE]:
                from paribus.commands.completion import complete

                print("\n".join(complete(arguments[1:])))
                return 0
            with cli.make_context("paribus", _without_password(_help_alone(arguments))) as context:
                status: int = cli.invoke(context)
            return status
    except click.exceptions.Exit as ended:  # after a page of help
        return ended.exit_code
    except UserError as error:
        print(f"paribus: {error}", file=sys.stderr)
        return 2
    except click.UsageError as error:  # of `paribus` itself; those of a verb are UserErrors
        print(f"paribus: {error.format_message().rstrip('.')}: see `paribus --help`", file=sys.stderr)
        return 2
    except Stopped as error:
        print(f"paribus: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _help_alone(arguments: list[str]) -> list[str]:
    """Help and the version are printed whatever else is typed; `help VERB` is `VERB --help`."""
    first, *rest = arguments or ["help"]
    if "--version" in rest:
        return ["--version"]
    if first == "help":
        return [*rest[:1], "--help"]
    return arguments if {"-h", "--help"}.isdisjoint(rest) else [first, "--help"]


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
