"""What the benches share: sides that take turns in processes of their own, and rows of results.

A side is a function that measures once and returns a number; its process stays alive and idle while the others have
their turn, so that a machine that gets slower slows all of them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Measure = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """A measured value beside its target: `most` if it must not be exceeded, `least` if it must be reached."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """None without a target."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def target(self) -> str:
        return f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}" if self.most is not None else ""

    def json(self) -> dict[str, Any]:
        return {**{k: v for k, v in asdict(self).items() if v not in (None, "")}, "holds": self.holds}


class Side:
    """A function `measure(*arguments)` of a bench in its own process, with the sources of `root` if one is given."""

    def __init__(self, bench: str, name: str, *arguments: object, root: Path | None = None) -> None:
        paths = [HERE, *([] if root is None else [root / "src"])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*paths[1:], *paths[:1]]))}
        environment["THP_MEM_ALLOC_ENABLE"] = "1"  # as `paribus` sets it
        command = [sys.executable, str(HERE / "turns.py"), bench, name, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, bufsize=1
        )

    def turn(self) -> float:
        """Measure once. Raises RuntimeError if the process ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("value "):
                return float(line.removeprefix("value "))
        raise RuntimeError(f"a side ended with status {self.process.wait()}: {self.process.args!r}")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def take_turns(sides: Mapping[str, Side], rounds: int) -> dict[str, float]:
    """The median of each side over the rounds; the first turn of each only warms it up."""
    try:
        for side in sides.values():
            side.turn()
        found = [{name: side.turn() for name, side in sides.items()} for _ in range(rounds)]
    finally:
        for side in sides.values():
            side.close()
    medians = {name: statistics.median(values[name] for values in found) for name in sides}
    print("    " + ", ".join(f"{name} {value:,.0f}" for name, value in medians.items()), flush=True)
    return medians


def show(rows: Sequence[Row]) -> None:
    """One line per row."""
    for row in rows:
        mark = {None: " ", True: "✓", False: "✗"}[row.holds]
        print(f"{mark} {row.name:<64}{row.value:>10.3g} {row.unit:<12}{row.target:<10}{row.note}", flush=True)


def main(rows: Callable[..., list[Row]], document: str | None, **options: Any) -> int:
    """The command line of a bench: its options, and `--json FILE` for its rows."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in options.items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    given = vars(parser.parse_args())
    target: Path | None = given.pop("json")
    start = time.perf_counter()
    found = rows(**given)
    show(found)
    if target is not None:
        kept = {"seconds": round(time.perf_counter() - start, 1), "rows": [row.json() for row in found]}
        target.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _serve(bench: str, name: str, *arguments: str) -> None:
    """Measure once for every line that comes in."""
    measure: Measure = getattr(importlib.import_module(bench), name)(*arguments)
    for _ in sys.stdin:
        print(f"value {measure()}", flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
