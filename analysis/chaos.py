"""Bad input, damaged files and kills, far more of them than in `make test`: what ends otherwise than it should?

python analysis/chaos.py [--overrides 2000] [--commands 500] [--files 500] [--damages 1000] [--kills 100] [--seed 1]

Cases are drawn by `tests/support/fuzzing.py`; the same seed gives the same cases. A fault is a traceback, a hang, or a
message of more than one line. A damage is one broken file of a finished run or of its cache, after which the same
command must give the same numbers. A kill is a SIGKILL to a sweep or its processes at a random moment; what it has in
the end must have the bits of one that was never killed, and no finished run may be done again.
`analysis/results/chaos.json` gets one entry per kind: {kind, seed, cases, faults: [what
happened], git}. A kind with 0 cases is left out and keeps its entry.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from fuzzing import (  # noqa: E402
    command_cases,
    data_cases,
    judge,
    override_cases,
    prepare_run,
    said_by,
    write_odd_sweeps,
)
from stories import story  # noqa: E402

from paribus.core.config import compose  # noqa: E402
from paribus.core.console import progress, say  # noqa: E402
from paribus.core.files import write_json  # noqa: E402
from paribus.runs.provenance import git_state  # noqa: E402

RESULTS = ROOT / "analysis" / "results" / "chaos.json"
SWEEP = {  # a sweep of seconds; its runs have processes of their own, which those of scale=test have not
    "study": "short",
    "base": [
        "objective=mlm",
        "trainer.max_steps=12",
        "trainer.max_epochs=null",
        "trainer.max_tokens=null",
        "profile.checkpoint_steps=3",
        "finetune.epochs=1",
        "finetune.length=32",
        "input.length=64",
        "batch.size=8",
    ],
    "varies": ["masking.rate"],
    "matched": "tokens",
    "arms": {"r15": ["masking.rate=0.15"], "r40": ["masking.rate=0.4"]},
    "baseline": "r15",
    "columns": ["mlm_loss", "sst2/accuracy"],
}


def main() -> None:
    """Run every kind and write what was found."""
    parser = argparse.ArgumentParser()
    counts = {"overrides": 2000, "commands": 500, "files": 500, "damages": 1000, "kills": 100}
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    given = vars(parser.parse_args())
    place = Path(tempfile.mkdtemp(prefix="paribus-chaos-"))
    os.chdir(place)
    os.environ["PARIBUS_CACHE"] = str(place / "configs")
    overrides = prepare(place)
    found = {entry["kind"]: entry for entry in json.loads(RESULTS.read_text())} if RESULTS.is_file() else {}
    for kind, attempt in KINDS.items():
        if not given[kind]:
            continue
        faults = []
        for fault in filter(None, attempt(given["seed"], given[kind], place, overrides)):
            say(f"{kind}: {fault}")
            faults.append(fault)
        found[kind] = {"kind": kind, "seed": given["seed"], "cases": given[kind], "faults": faults, "git": git_state()}
        say(f"{kind}: {len(faults)} faults in {given[kind]} cases")
        write_json(RESULTS, list(found.values()))
    shutil.rmtree(place, ignore_errors=True)


def prepare(place: Path) -> list[str]:
    """A small text and task; the overrides of a run of seconds on them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for folder in ("text", "sst2"):
        (place / folder).mkdir()
    for split, first, count in (("train", 0, 60), ("validation", 100, 12)):
        numbers = range(first, first + count)
        (place / "text" / f"{split}.txt").write_text("\n\n".join(map(story, numbers)) + "\n")
        rows = [{"sentence": f"{('dull', 'bright')[n % 2]} {story(n, 1)}", "label": n % 2} for n in numbers]
        pq.write_table(pa.Table.from_pylist(rows), place / "sst2" / f"{split}.parquet")
    write_odd_sweeps(place)
    return [
        "scale=test", "corpus=text", f"corpus.path={place / 'text'}", "tokenizer.vocab_size=150", "logger=none",
        f"paths.cache={place / 'cache'}", f"paths.runs={place / 'runs'}", "profile.threads=1",
        "profile.precision=32-true", "task=sst2", f"tasks.sst2.path={place / 'sst2'}",
    ]  # fmt: skip


def _fault(said: str, case: object) -> str:
    return f"{said} {case}"[:400] if said.startswith("fault") else ""


def try_overrides(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """Everything before the first step."""
    for own in progress(override_cases(seed, count), "overrides", count):
        yield _fault(judge(lambda own=own: prepare_run([*overrides, *own], place / "x")), own)


def try_commands(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """Command lines of all verbs."""
    for argv in progress(command_cases(seed, count), "commands", count):
        yield _fault(said_by(argv), argv)


def try_files(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """Texts and task files."""
    (folder := place / "files").mkdir()
    for name, own in progress(data_cases(seed, count, folder), "files", count):
        kept = [text for text in overrides if not (own[0] == "corpus=text" and text.startswith("corpus"))]
        yield _fault(judge(lambda own=own, kept=kept: prepare_run([*kept, *own], place / "x")), name)


def try_damages(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """One broken file, then the same command again."""
    from paribus.training.run import run

    short, draw = [*overrides, "trainer.max_steps=2", "finetune.epochs=1"], random.Random(seed)
    config = compose(short)
    folder, other = run(config), run(compose([*short, "seed=1", "tokenizer.vocab_size=140"]))
    record, wanted = folder / "result.json", _numbers(folder)
    for _ in progress(range(count), "damages", count):
        path = draw.choice(
            [path for root in (place / "cache", folder) for path in sorted(root.rglob("*")) if path.is_file()]
        )
        kind = _damage(path, draw, folder, other)
        if path != record and draw.random() < 0.8:
            record.unlink()
        said = judge(lambda: run(config))
        if (named := re.search(r"^refused: (/\S+)", said)) is not None:  # it is removed, as the message says
            Path(named[1]).unlink(missing_ok=True)
            said = judge(lambda: run(config))
        right = not said.startswith("fault") and _numbers(folder) == wanted
        yield "" if right else f"{kind} {path.relative_to(place)}: {said}"
        if not right:
            shutil.rmtree(folder)
            run(config)


def _numbers(folder: Path) -> dict[str, Any]:
    record = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return {key: record[key] for key in ("signature", "metrics", "task_runs", "realised")}


def _damage(path: Path, draw: random.Random, folder: Path, other: Path) -> str:
    """Break a file of a run or of the cache; `other` is the folder of another run."""
    content = bytearray(path.read_bytes())
    kind = draw.choice(("cut", "empty", "flip", "zero", "noise", "gone", "swap", "version"))
    if kind == "flip" and content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    size = len(content)
    changed: dict[str, bytes | bytearray] = {
        "cut": content[: size // 2],
        "empty": b"",
        "zero": bytes(size),
        "noise": draw.randbytes(size),
    }
    changed["version"] = re.sub(rb'("(?:schema|version|semantics)": ?)(\d+)', rb"\g<1>9\g<2>", content)
    if kind == "swap":
        changed["swap"] = _counterpart(path, draw, folder, other).read_bytes()
    path.unlink()  # it may be a link
    if kind != "gone":
        path.write_bytes(changed.get(kind, content))
    return kind


def _counterpart(path: Path, draw: random.Random, folder: Path, other: Path) -> Path:
    """A file that another run or another part of the cache has in the place of this one."""
    if path.is_relative_to(folder):
        alike = [other / path.relative_to(folder)]
    else:
        alike = [found for found in sorted(path.parents[1].rglob(path.name)) if found != path]
    return draw.choice([found for found in alike if found.is_file()] or [other / "config.yaml"])


def try_kills(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """SIGKILL to a sweep, to one of its processes or to all of them, at random moments from its first import to its
    table; then the same command again, until it ends by itself.
    """
    draw, own = random.Random(seed), at_smoke(overrides)
    (place / "sweep.yaml").write_text(json.dumps(SWEEP))
    start = time.monotonic()
    _start(place / "whole", own).wait()
    took, wanted = time.monotonic() - start, _outcome(place / "whole")
    for at in progress(range(count), "kills", count):
        done = _records(place / "killed")
        process, victim = _start(place / "killed", own), draw.choice(("sweep", "child", "all"))
        try:
            process.wait(draw.uniform(0.02, 0.9) * took)
        except psutil.TimeoutExpired:
            fault = _kill(process, victim, draw)
            again = any(_records(place / "killed").get(name) != content for name, content in done.items())
            yield fault or (f"kill {at}: a finished run was done again" if again else "")
            continue
        yield _compare(place, wanted)
        shutil.rmtree(place / "killed")
    while _start(place / "killed", own).wait():
        pass
    yield _compare(place, wanted)


def at_smoke(overrides: Sequence[str]) -> list[str]:
    """The overrides of `prepare` for `SWEEP`, whose folders are set by other arguments."""
    return ["scale=smoke", *(text for text in overrides if not text.startswith(("paths.", "scale=")))]


def _start(folder: Path, overrides: list[str]) -> psutil.Popen:
    """The sweep and its table in one process, with a cache, runs and temporary files below `folder`."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    sweep, runs = str(folder.parent / "sweep.yaml"), f"runs={folder / 'runs'}"
    run = ["run", sweep, *overrides, runs, f"paths.cache={folder / 'cache'}", "seeds=0,1", "slots=2"]
    table = ["table", sweep, "scale=smoke", runs, f"out={folder / 'table'}"]
    code = f"import sys; from paribus.commands.cli import main; sys.exit(main({run}) or main({table}))"
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with (folder.parent / "kills.log").open("a") as log:
        return psutil.Popen([sys.executable, "-c", code], stdout=log, stderr=log, env=environment)


def _kill(process: psutil.Popen, victim: str, draw: random.Random) -> str:
    """Kill and wait for the family to end; returns what is wrong if it does not."""
    family = process.children(recursive=True)
    hit = {"sweep": [process], "child": [draw.choice(family or [process])], "all": [process, *family]}[victim]
    for own in hit:
        with suppress(psutil.NoSuchProcess):
            own.kill()
    if victim == "child":  # the sweep finishes its other runs and says what failed
        process.wait()
    _, alive = psutil.wait_procs([process, *family], timeout=20)
    for own in alive:
        own.kill()
    return f"{len(alive)} processes outlive their sweep" if alive else ""


def _records(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "runs").rglob("result.json")}


def _outcome(folder: Path) -> dict[str, Any]:
    """The numbers and weights of every run of a sweep, its table, and the temporary files that are left."""
    found: dict[str, Any] = {}
    for path in sorted((folder / "runs").rglob("result.json")):
        weights = (path.parent / "model" / "model.safetensors").read_bytes()
        found[str(path.parent.relative_to(folder))] = [_numbers(path.parent), hashlib.sha256(weights).hexdigest()]
    found["table"] = (folder / "table" / "table.csv").read_text(encoding="utf-8")
    found["temporary"] = sorted(str(path.relative_to(folder)) for path in (folder / "tmp").rglob("*"))
    return found


def _compare(place: Path, wanted: dict[str, Any]) -> str:
    """What differs between the sweep that was killed and the one that was not."""
    found = _outcome(place / "killed")
    wrong = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    wrong += [] if wanted["temporary"] == found["temporary"] else found["temporary"]
    return f"other than without kills: {', '.join(wrong)}" if wrong else ""


Attempt = Callable[[int, int, Path, list[str]], Iterator[str]]
KINDS: dict[str, Attempt] = {
    "overrides": try_overrides,
    "commands": try_commands,
    "files": try_files,
    "damages": try_damages,
    "kills": try_kills,
}

if __name__ == "__main__":
    main()
