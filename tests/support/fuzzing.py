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
from paribus.core.config import compose, flat
from paribus.core.config_names import choices, conf_dir
from paribus.core.errors import UserError
from paribus.sweeps.launchers.forks import preload

preload()  # an import that is cut short by a limit would break all later cases

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
    from paribus.training.checks import check_run
    from paribus.training.description import Run
    from paribus.training.profile import resolve
    from paribus.training.stage import open_stage

    run = Run.of(compose(overrides))
    profile, _ = resolve(run.profile), run.identity
    check_run(run, profile)
    open_stage(run, run.data(), profile, folder)


VERBS = (
    "plan",
    "run",
    "status",
    "table",
    "audit",
    "report",
    "published",
    "show",
    "flatness",
    "dashboard",
    "completion",
)
SUBJECTS = (
    "roberta_table1", "optuna_lr", "no_such", "", "*", ".", "..", "/", "-", "--", "bad.yaml", "latin.yaml", "deep.yaml",
    "bytes.yaml", "empty.yaml", "list.yaml", "\u00e9", "x" * 300, "a\nb", "roberta_table1 ", "sweeps", "../x.yaml",
)  # fmt: skip
OPTIONS = (
    "scale", "study", "arms", "seeds", "slots", "runs", "results", "cache", "tune", "launcher", "max_seeds", "out", "n",
    "epoch", "task", "steps", "points", "rate", "launcher.partition", "optimizer.lr", "no.such", "family", "sweep",
)  # fmt: skip
TEXTS = (*VALUES, "range(0,99999999999)", "range(5,0)", "0,1,2", "-5", "99999999999999999999", "a,b", "*", "x" * 5000)
FLAGS = ("--until-decided", "--help", "--no-such", "-m", "--cfg", "--reproduce", "--check", "--save", "-", "--", "=")


def command_cases(seed: int, count: int) -> Iterator[list[str]]:
    """Command lines that no run can come of: the text that they name is not there."""
    draw = random.Random(seed)
    for _ in range(count):
        given = [draw.choice((*VERBS, *VERBS, "", "no_such", "help", "train"))]
        given += [draw.choice(SUBJECTS)] * (draw.random() < 0.8)
        given += [f"{draw.choice(OPTIONS)}={draw.choice(TEXTS)}" for _ in range(draw.choice((0, 1, 1, 2)))]
        given += [draw.choice(FLAGS)] * (draw.random() < 0.15)
        yield [
            *given,
            *(["corpus=text", "corpus.path=not/there"] if given[0] in ("plan", "run", "show", "train") else []),
        ]


def write_odd_sweeps(folder: Path) -> None:
    """The sweep files that SUBJECTS names."""
    (folder / "bad.yaml").write_text("study: [")
    (folder / "latin.yaml").write_bytes("study: \u00e9t\u00e9\n".encode("latin-1"))
    (folder / "deep.yaml").write_text("a: " + "[" * 3000)
    (folder / "bytes.yaml").write_bytes(bytes(range(256)) * 9)
    (folder / "empty.yaml").write_text("")
    (folder / "list.yaml").write_text("- a\n- 1\n")


LINES = (
    "", "null", "[]", "{}", '{"text": 3}', '{"text": null}', '{"text": "\\ud800"}', '{"sentence": "a", "label": "x"}',
    '{"text": "a", "label": 1e999}', "[" * 100_000, '{"text": ' + "9" * 5000 + "}", '{"text": "' + "x" * 5000 + '"}',
    '{"sentence": "a b", "label": 1}', '{"sentence": ["a"], "label": [1]}', '{"sentence": "a", "sentence": 2}', "\x00",
    "a\tb\tc", '"a', "sentence,label", "sentence\tlabel", "1,2,3,4", "\ufeff", "\r", "a,\"b\nc", "x" * 300_000,
)  # fmt: skip
SUFFIXES = ("txt", "jsonl", "parquet", "csv", "tsv", "conll")


def odd_content(draw: random.Random, suffix: str) -> bytes:
    """A file that is broken in some way, or only odd."""
    lines = [draw.choice(LINES) for _ in range(draw.randrange(6))]
    kind = draw.random()
    if suffix == "parquet" and kind < 0.7:
        content = bytearray(_parquet(draw))
        for _ in range(draw.choice((0, 1, 20))):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return bytes(content[: draw.choice((len(content), len(content), len(content) // 2, 5))])
    if kind < 0.85:
        return draw.choice(("\n", "\r\n", "\n\n")).join(lines).encode(draw.choice(("utf-8", "utf-16")), "surrogatepass")
    return draw.randbytes(draw.choice((0, 1, 3000)))


def _parquet(draw: random.Random) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: list[Any] = [
        pa.array(["a b", "c"]), pa.array([1, 0]), pa.array([None, "x"]), pa.array([[1], []]), pa.array([b"\xff", b"a"]),
        pa.array([float("nan"), 1.5]), pa.array([{"a": 1}, None]),
    ]  # fmt: skip
    names = [draw.choice(("text", "sentence", "label", "idx", "text")) for _ in range(draw.randrange(1, 4))]
    buffer = io.BytesIO()
    pq.write_table(pa.table([draw.choice(columns) for _ in names], names=names), buffer)
    return buffer.getvalue()


def data_cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """(what it is, overrides) of texts and task files; each is written into a folder of its own."""
    draw = random.Random(seed)
    for number in range(count):
        place, task = folder / f"{seed}-{number}", draw.random() < 0.5
        place.mkdir()
        suffix = draw.choice(SUFFIXES)
        content = odd_content(draw, suffix)
        for split in ("train", "validation"):
            (place / f"{split}.{suffix}").write_bytes(
                content if split == "train" or task else odd_content(draw, suffix)
            )
        name = f"{'task' if task else 'corpus'} {suffix} {content[:30]!r} of {len(content)}"
        yield name, ["task=sst2", f"tasks.sst2.path={place}"] if task else ["corpus=text", f"corpus.path={place}"]
