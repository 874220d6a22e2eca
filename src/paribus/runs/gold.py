"""How likely a run's fine-tunings found each right answer: `gold.npz` beside its record.

The file holds two arrays for every fine-tuning and evaluation set, such as `docs_package/seed0/gold` and
`docs_package/seed0/right`; a further set has its name behind that of the task, as in `mnli_mismatched/seed0/gold`.
Examples are in the task's order, so that those of two runs on the same data can be compared one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.checksums import hash_file
from paribus.core.errors import UserError
from paribus.core.files import DAMAGED, write_bytes
from paribus.runs.folder import GOLD

_LEAST = 2.0**-25  # half of the smallest float16 above 0


class Gold(NamedTuple):
    """Of N evaluation examples: `gold`, float16 [N], the probability of the right answer, and `right`, bool [N],
    whether it was the one that the model gave.
    """

    gold: NDArray[np.float16]
    right: NDArray[np.bool_]

    @property
    def log_loss(self) -> float:
        """The mean negative log-probability of the right answers, in nats; at most 17.3 for each."""
        return float(-np.log(np.maximum(self.gold.astype(np.float64), _LEAST)).mean())


def read_gold(folder: Path) -> dict[str, Gold]:
    """{task/seed<k>: its answers} of a run; empty if it has none."""
    path = folder / GOLD
    if not path.is_file():
        return {}
    try:
        with np.load(path) as arrays:
            names = dict.fromkeys(key.rpartition("/")[0] for key in arrays.files)
            return {name: Gold(*(arrays[f"{name}/{part}"] for part in Gold._fields)) for name in names}
    except DAMAGED as error:
        raise UserError(f"{path} is damaged ({error})", "remove it and task_runs.jsonl, then run it again") from error


def write_gold(folder: Path, answers: Mapping[str, Gold]) -> None:
    """Write what `read_gold` reads, atomically; the same answers give the same bytes."""
    arrays: dict[str, Any] = {
        f"{name}/{part}": array for name, gold in answers.items() for part, array in gold._asdict().items()
    }
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_bytes(folder / GOLD, buffer.getvalue())


def hash_answers(answers: Mapping[str, Gold]) -> dict[str, str]:
    """{task/seed<k>: the hash of its answers}."""
    return {
        name: blake2b(gold.gold.tobytes() + gold.right.tobytes(), digest_size=16).hexdigest()
        for name, gold in answers.items()
    }


def describe_gold(folder: Path) -> dict[str, Any]:
    """What the record says of the file: its name and hash, and as a diagnostic `log_loss` {task/seed<k>: nats}; empty
    if there is no file.
    """
    if not (answers := read_gold(folder)):
        return {}
    return {
        "file": GOLD,
        "hash": hash_file(folder / GOLD),
        "log_loss": {name: gold.log_loss for name, gold in answers.items()},
    }
