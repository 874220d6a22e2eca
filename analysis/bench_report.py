"""How long a table of 1,000 runs and a site of 30 tables and 3,000 runs take, and how large the site is.

The records are synthetic (their numbers mean nothing), the corpus is a small text, everything else is the real command.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from turns import Row, main

from paribus.core.checksums import seal
from paribus.core.config import compose
from paribus.training.description import Run

RATES = (0.1, 0.15, 0.2, 0.3, 0.4)
LINES = 125  # of metrics.jsonl
WORDS = ["one", "small", "quiet", "river", "ran", "under", "the", "old", "house", "and", "a", "captain", "wrote"]


def rows() -> list[Row]:
    """Processor seconds of both, and the size of the site."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text").mkdir()
        (folder / "text" / "train.txt").write_text(prose(0, 400))
        (folder / "text" / "validation.txt").write_text(prose(1, 40))
        study(folder, "study0", seeds=200)
        _, table = command(folder, "table", "study0")
        shutil.rmtree(folder / "runs")
        for number in range(30):
            study(folder, f"study{number}", seeds=20)
            command(folder, "table", f"study{number}")
        _, site = command(folder, "report", scale=False)
        size = sum(path.stat().st_size for path in (folder / "reports/site").rglob("*") if path.is_file())
    return [
        Row("a table of 1,000 runs, processor time", table, "s", most=3.0),
        Row("a site of 30 tables and 3,000 runs, processor time", site, "s", most=30.0),
        Row("the size of that site", size / 1e6, "MB", most=20.0),
    ]


def command(folder: Path, verb: str, name: str = "", scale: bool = True) -> tuple[float, float]:
    """(wall-clock seconds, processor seconds) of one command in the folder."""
    arguments = [verb, *([name, "scale=smoke"] if scale else [f"paths.cache={folder / 'cache'}"])]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "paribus", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(time.perf_counter() - start, 2), round(cpu, 2)


def prose(seed: int, documents: int) -> str:
    noise = random.Random(seed)
    return "\n\n".join(" ".join(noise.choices(WORDS, k=60)).capitalize() + "." for _ in range(documents)) + "\n"


def study(folder: Path, name: str, seeds: int) -> None:
    """A sweep file and its finished runs."""
    arms = {f"r{round(100 * rate)}": [f"masking.rate={rate}"] for rate in RATES}
    corpus = ["corpus=text", f"corpus.path={folder / 'text'}", "tokenizer.vocab_size=70"]
    sweep = {
        "study": name, "varies": ["masking.rate"], "matched": "tokens", "arms": arms, "baseline": "r15",
        "base": corpus, "columns": ["docs_package/accuracy", "mlm_loss"], "seeds": list(range(seeds)),
        "claims": ["r40 > r15, margin 0.5 points", "r20 >= r15, margin 0.5 points", "best is r40"],
    }  # fmt: skip
    (folder / "sweeps").mkdir(exist_ok=True)
    (folder / "sweeps" / f"{name}.yaml").write_text(f"# {name}\n" + yaml.safe_dump(sweep))
    for at, (arm, overrides) in enumerate(arms.items()):
        cache = f"paths.cache={folder / 'cache'}"
        described = Run.of(compose(["scale=smoke", *corpus, *overrides, f"study={name}", f"arm={arm}", cache]))
        data = described.data().fingerprint
        for seed in range(seeds):
            run(folder / "runs", {**described.config, "seed": seed}, data, quality=0.4 + 0.01 * at)


def run(root: Path, values: dict[str, Any], data: dict[str, Any], quality: float) -> None:
    noise = random.Random(f"{values['study']}{values['arm']}{values['seed']}")
    signature = f"{noise.getrandbits(48):012x}"
    place = root / values["study"] / values["arm"] / f"seed{values['seed']}-{signature}"
    place.mkdir(parents=True)
    (place / "config.yaml").write_text(yaml.dump(values, Dumper=yaml.CSafeDumper, sort_keys=False))
    lines = [
        {"step": 50 * n, "train/mlm_loss": 9 / n**0.2 + noise.gauss(0, 0.1), "train/tokens": 40_000 * n,
         "train/lr": 0.001, "train/grad_norm": 1.0} for n in range(1, LINES + 1)
    ]  # fmt: skip
    (place / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    score = quality + noise.gauss(0, 0.01)
    record = {
        "schema": 1, "signature": signature, "study": values["study"], "arm": values["arm"], "seed": values["seed"],
        "scale": "smoke", "status": "done", "metrics": {"docs_package/accuracy": score, "mlm_loss": 5 - score},
        "baselines": {}, "budget": {"input_tokens": 5_000_000, "flops": 2e13, "train_seconds": 250.0, "steps": 6250},
        "task_runs": [{"task": "docs_package", "seed": k, "metrics": {"accuracy": score}} for k in (0, 1)],
        "data": {"fingerprint": data["text"], **data, "tasks": {}}, "versions": {"python": "3"}, "sweep_hash": None,
    }  # fmt: skip
    (place / "result.json").write_text(json.dumps(seal(record)))


if __name__ == "__main__":
    sys.exit(main(rows, __doc__))
