"""Every bench, one after the other, and one file of results with the machine that they were measured on.

Ratios are of sides that take turns in one run; absolute values belong to this machine. `--before COMMIT` also compares
BERT-tiny with the code of a commit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from turns import HERE

from paribus.runs.provenance import git_state

BENCHES = (
    "training", "positions", "electra", "t5", "finetuning", "masking", "corruption", "start", "search", "report",
    "pruning", "long_rows", "changes", "memory", "vectors",
)  # fmt: skip
RESULTS = HERE / "results" / "bench"


def machine() -> dict[str, Any]:
    """The processor, its cores, the memory and the versions that decide speed."""
    from importlib.metadata import version

    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(model name|flags)\s*: (.*)$", lines, re.MULTILINE))
    units = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in fields.get("flags", "").split()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": fields.get("model name", ""),
        "cores": len(os.sched_getaffinity(0)),
        "vector_units": units,
        "memory_gib": round(memory, 1),
        "versions": {name: version(name) for name in ("torch", "transformers", "pytorch-lightning", "numpy")},
        "python": sys.version.split()[0],
    }


def speeds() -> dict[str, float]:
    """The bare matrix products of this machine in GFLOP/s, all cores and one."""
    code = (
        "from paribus.core.settings import Profile\n"
        "from paribus.training.profile import PRECISIONS, matrix_peak, resolve\n"
        "for threads in (None, 1):\n"
        " for precision in PRECISIONS:\n"
        "  own = resolve(Profile(threads=threads, accelerator='cpu', precision=precision))\n"
        "  print(precision, own.threads, max(matrix_peak(own) for _ in range(5)) / 1e9)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    parts = (line.split() for line in printed.splitlines())
    return {f"{precision}, {threads} threads": round(float(value), 1) for precision, threads, value in parts}


def run(name: str, options: list[str]) -> dict[str, Any]:
    """{seconds, rows} of one bench. Raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "rows.json"
        subprocess.run([sys.executable, str(HERE / f"bench_{name}.py"), "--json", str(target), *options], check=True)
        found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help=f"some of {', '.join(BENCHES)}; all by default")
    parser.add_argument("--before", default="", help="a commit to compare BERT-tiny with")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the file of results")
    given = parser.parse_args()
    if unknown := set(given.only) - set(BENCHES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(BENCHES)}")
    here = machine()
    name = re.sub(r"[^a-z0-9]+", "-", f"{here['processor']} {here['cores']} cores".lower()).strip("-")
    path = given.out / f"{name}.json"
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"benches": {}}
    kept |= {
        "machine": here,
        "git": git_state(),
        "matrix_gflops": speeds(),
        "day": datetime.now(UTC).date().isoformat(),
    }
    start = time.perf_counter()
    for bench in given.only or BENCHES:
        print(f"== {bench}", flush=True)
        before = ["--before", given.before] if given.before and bench == "training" else []
        kept["benches"][bench] = run(bench, before)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    rows = [row for bench in kept["benches"].values() for row in bench["rows"]]
    missed = [row["name"] for row in rows if row["holds"] is False]
    print(f"{time.perf_counter() - start:.0f} s; {sum(row['holds'] is True for row in rows)} targets hold, "
          f"{len(missed)} are missed{': ' + '; '.join(missed) if missed else ''}. Written to {path}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
