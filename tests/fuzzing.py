"""Seeded bad input: overrides, command lines and files, and what Paribus makes of each."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from paribus.commands.cli import main
from paribus.core.config import choices, compose, conf_dir, flat
from paribus.core.errors import UserError

LIMIT = 20  # seconds until a case counts as a hang: the machine may be busy
VALUES = (
    "abc", "true", "false", "null", "-1", "0", "1", "2", "1.5", "-0.3", "1e30", "1e-30", "nan", "inf", "-inf", "''",
    "'a b'", "[]", "{}", "[1,2]", "[a]", "{a: 1}", "../x", "/", ".", "..", "\u00e9", "99999999999999999999999", "???",
    "'${x}'", "'${oc.env:HOME}'", "'\\\\'", "[[[[]]]]", "0x10", "1_000", "a=b", "a:b", "%s", "'\t'", "None", "True",
)  # fmt: skip


class Hang(BaseException):
    """A case took longer than LIMIT."""


def _late(number: int, frame: object) -> None:
    raise Hang


@contextlib.contextmanager
def limited(seconds: int = LIMIT) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge(case: Callable[[], object]) -> str:
    """`ok`, `refused: ...` for one line, or `fault: ...` for everything else."""
    try:
        with limited(), contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            case()
    except UserError as error:
        return f"refused: {error}" if len(str(error).splitlines()) == 1 else f"fault: {error}"
    except Hang:
        return "fault: hang"
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(str(error).split())[:120]
        return f"fault: {type(error).__name__}: {said} ({Path(last.filename).name}:{last.lineno})"
    return "ok"


def said_by(argv: Sequence[str]) -> str:
    """As `judge`, of a command line."""
    err = io.StringIO()

    def run() -> None:
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            status = main(list(argv))
        lines = [line for line in err.getvalue().splitlines() if line.startswith("paribus: ")]
        if status == 2 and len(lines) == 1:
            raise UserError(lines[0])
        if status not in (0, 1):
            raise RuntimeError(f"status {status}, {len(lines)} lines: {err.getvalue()[-200:]}")

    return judge(run)


def override_cases(seed: int, count: int) -> Iterator[list[str]]:
    """Overrides of `paribus train`: keys with values of every kind, choices, and texts that are no override."""
    draw = random.Random(seed)
    keys = [key for key in flat(_container()) if not key.startswith(("paths", "corpus.path", "run_dir", "profile"))]
    groups = sorted({path.parent.relative_to(conf_dir()).as_posix() for path in conf_dir().rglob("*.yaml")} - {"."})
    for _ in range(count):
        kind = draw.random()
        if kind < 0.7:
            yield [f"{draw.choice(keys)}={draw.choice(VALUES)}" for _ in range(draw.choice((1, 1, 2)))]
        elif kind < 0.85:
            group = draw.choice(groups)
            yield [f"{group}={draw.choice([*choices(group), *VALUES])}"]
        else:
            key = draw.choice([*keys, *groups, "no.such", "", "a b", "hydra.run.dir"])
            yield [draw.choice(("+", "++", "~", "")) + key + draw.choice(("", "=", "=" + draw.choice(VALUES)))]


def _container() -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(compose(["scale=test"]), resolve=False)


def prepare_run(overrides: Sequence[str], folder: Path) -> None:
    """All that `paribus train` does before the first step. Raises UserError for what it refuses."""
    from paribus.training.description import Run
    from paribus.training.pretrain import open_stage
    from paribus.training.trainer import resolve

    run = Run.of(compose(overrides))
    _ = run.identity
    open_stage(run, run.data(), resolve(run.profile), folder)
