"""The command `paribus VERB ...`. Each verb is imported when it is called, so that help is at hand at once."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from paribus import __version__
from paribus.core.errors import UserError

# verb -> (usage, what it does); the function VERB of the module paribus.commands.VERB runs it
VERBS: dict[str, tuple[str, str]] = {
    "train": ("[key=value ...] [-m]", "one run (Hydra application; -m: multirun)"),
    "show": ("[n=8 epoch=0 out=F text=S ...]", "draw corrupted examples, realised rates"),
    "plan": ("SWEEP [scale=...]", "runs, tokens, FLOPs and measured time, in advance"),
    "run": ("SWEEP [scale=...] [--until-decided]", "arms x seeds; finds finished runs"),
    "status": ("SWEEP [scale=...]", "arm x seed, or trials: done, running, failed"),
    "table": ("SWEEP [scale=...] [--check]", "the paper beside ours, with verdicts"),
    "flatness": ("SWEEP [scale=...] [task=...]", "the loss around tuned weights"),
    "audit": ("SWEEP [scale=...] | --reproduce RUN", "what stands behind a table"),
    "report": ("[out=FOLDER]", "a static site of all tables and verdicts"),
    "dashboard": ("SWEEP [scale=...] [--save]", "its W&B dashboards"),
    "published": ("[ID]", "the papers' own tables, with their sources"),
}  # fmt: skip

STOPPED = 130  # a shell's status for Ctrl-C


def usage() -> str:
    lines = ["Paribus: does this pre-training choice hold for me?", "", "usage: paribus VERB [ARGUMENT ...]", ""]
    lines += [f"  {verb:<10} {args:<34} {what}" for verb, (args, what) in VERBS.items()]
    lines += ["", "Arguments are Hydra's: key=value, group=choice. `paribus train --cfg job` prints every key."]
    lines += ["Example: paribus run roberta_table1 scale=smoke && paribus table roberta_table1 scale=smoke"]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Returns 0, the verb's own status, 2 for bad input (one line on stderr) or 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"paribus {__version__}")
        return 0
    try:
        return _verb(arguments[0])(_without_password(arguments[1:]))
    except UserError as error:
        print(f"paribus: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paribus: stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _without_password(arguments: list[str]) -> list[str]:
    """The arguments without a database's password; where the process title has it, the process starts again."""
    if not any("postgres" in text for text in arguments):
        return arguments
    from paribus.sweeps.search.storage import without_password

    title = [without_password(text) for text in sys.orig_argv]
    if title != sys.orig_argv:
        sys.stdout.flush()
        os.execv(sys.executable, title)
    return [without_password(text) for text in arguments]


def _verb(name: str) -> Callable[[list[str]], int]:
    if name not in VERBS:
        raise UserError(f"unknown verb '{name}'", f"known: {', '.join(VERBS)}")
    verb: Callable[[list[str]], int] = getattr(importlib.import_module(f"paribus.commands.{name}"), name)
    return verb
