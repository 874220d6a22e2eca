"""Bad input, damaged files and kills, far more of them than in `make test`: what ends otherwise than it should?

python analysis/chaos.py [--overrides 2000] [--commands 500] [--files 500] [--damages 200] [--kills 100] [--seed 1]

Cases are drawn by `tests/fuzzing.py`; the same seed gives the same cases. A fault is a traceback, a hang, or a message
of more than one line. A damage is one broken file of a finished run or of its cache, after which the same command must
give the same numbers. A kill is a SIGKILL to a run at a random moment; the run that is left must have the bits of one
that was never killed. `analysis/results/chaos.json` gets one entry per kind: {kind, seed, cases, faults: [what
happened]}.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from conftest import story  # noqa: E402
from fuzzing import (  # noqa: E402
    command_cases,
    data_cases,
    judge,
    override_cases,
    prepare_run,
    said_by,
    write_odd_sweeps,
)

from paribus.core.config import compose  # noqa: E402
from paribus.core.console import progress, say  # noqa: E402
from paribus.core.files import write_json  # noqa: E402

RESULTS = ROOT / "analysis" / "results" / "chaos.json"


def main() -> None:
    """Run every kind and write what was found."""
    parser = argparse.ArgumentParser()
    counts = {"overrides": 2000, "commands": 500, "files": 500, "damages": 200, "kills": 100}
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    given = vars(parser.parse_args())
    place = Path(tempfile.mkdtemp(prefix="paribus-chaos-"))
    os.chdir(place)
    os.environ["PARIBUS_CACHE"] = str(place / "configs")
    overrides = prepare(place)
    found = []
    for kind, attempt in KINDS.items():
        faults = [fault for fault in attempt(given["seed"], given[kind], place, overrides) if fault]
        found.append({"kind": kind, "seed": given["seed"], "cases": given[kind], "faults": faults})
        say(f"{kind}: {len(faults)} faults in {given[kind]} cases")
    write_json(RESULTS, found)
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
        yield _fault(judge(lambda own=own: prepare_run([*overrides, *own], place / "x")), own)  # type: ignore[misc]


def try_commands(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """Command lines of all verbs."""
    for argv in progress(command_cases(seed, count), "commands", count):
        yield _fault(said_by(argv), argv)


def try_files(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """Texts and task files."""
    (folder := place / "files").mkdir()
    for name, own in progress(data_cases(seed, count, folder), "files", count):
        kept = [text for text in overrides if not (own[0] == "corpus=text" and text.startswith("corpus"))]
        yield _fault(judge(lambda own=own, kept=kept: prepare_run([*kept, *own], place / "x")), name)  # type: ignore[misc]


def try_damages(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """One broken file, then the same command again."""
    from paribus.training.run import run

    config, draw = compose([*overrides, "trainer.max_steps=2", "finetune.epochs=1"]), random.Random(seed)
    folder = run(config) if count else place
    wanted = _numbers(folder) if count else {}
    for _ in progress(range(count), "damages", count):
        path = draw.choice(
            [path for root in (place / "cache", folder) for path in sorted(root.rglob("*")) if path.is_file()]
        )
        kind = _damage(path, draw)
        (folder / "result.json").unlink(missing_ok=draw.random() < 0.8)
        said = judge(lambda: run(config))
        if said.startswith("refused"):  # by name: what is named is removed, as the message says
            path.unlink(missing_ok=True)
            run(config)
        right = not said.startswith("fault") and _numbers(folder) == wanted
        yield "" if right else f"{kind} {path.relative_to(place)}: {said}"


def _numbers(folder: Path) -> dict[str, Any]:
    record = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return {key: record[key] for key in ("signature", "metrics", "task_runs", "realised")}


def _damage(path: Path, draw: random.Random) -> str:
    content = bytearray(path.read_bytes())
    path.unlink()  # it may be a link
    kind = draw.choice(("cut", "empty", "flip", "zero", "noise", "gone"))
    if kind == "flip" and content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    size = len(content)
    changed = {"cut": content[: size // 2], "empty": b"", "zero": bytes(size), "noise": draw.randbytes(size)}
    if kind != "gone":
        path.write_bytes(changed.get(kind, content))
    return kind


def try_kills(seed: int, count: int, place: Path, overrides: list[str]) -> Iterator[str]:
    """SIGKILL at random moments of a run, again and again; the bits that are left in the end."""
    draw, own = random.Random(seed), [*overrides, "trainer.max_steps=60", "profile.checkpoint_steps=3"]
    command = [sys.executable, "-m", "paribus", "train", *own]
    start = time.monotonic()
    if count:
        subprocess.run([*command, f"paths.runs={place / 'whole'}"], check=True, capture_output=True)
    took = time.monotonic() - start
    for _ in progress(range(count), "kills", count):
        process = subprocess.Popen([*command, f"paths.runs={place / 'killed'}"], stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)  # fmt: skip
        try:
            process.wait(draw.uniform(0.3, 1.0) * took)
            yield _compare(place)
            shutil.rmtree(place / "killed", ignore_errors=True)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if count:
        subprocess.run([*command, f"paths.runs={place / 'killed'}"], check=True, capture_output=True)
        yield _compare(place)


def _compare(place: Path) -> str:
    """What differs between the run that was killed and the one that was not."""
    (whole,), killed = (list((place / name).rglob("result.json")) for name in ("whole", "killed"))
    if len(killed) != 1:
        return f"{len(killed)} records"
    weights = [(path.parent / "model" / "model.safetensors").read_bytes() for path in (whole, killed[0])]
    same = _numbers(whole.parent) == _numbers(killed[0].parent) and weights[0] == weights[1]
    return "" if same else "a killed run has other bits"


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
