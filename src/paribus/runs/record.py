"""The record of a run: what `result.json` holds, sealed with a checksum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.core.checksums import parse, verify
from paribus.core.files import is_name
from paribus.core.jsonable import OMITTED, REST, from_json

SCHEMA = 1
STATUSES = ("done", "failed", "diverged")

_Kind = type | tuple[type, ...]
_FIELDS: dict[str, _Kind] = {
    "schema": int, "signature": str, "study": str, "arm": str, "seed": int, "scale": (str, type(None)), "status": str,
}  # fmt: skip
_DONE: dict[str, _Kind] = {"metrics": dict, "task_runs": list, "budget": dict, "data": dict}


@dataclass(frozen=True)
class TaskRun:
    """The scores of one fine-tuning on one task."""

    task: str
    seed: int
    metrics: Mapping[str, float | None]


@dataclass(frozen=True)
class TaskPoint:
    """The scores of fine-tunings from a checkpoint during pre-training, and their seconds (None if not recorded)."""

    step: int
    tokens: int
    task_runs: tuple[TaskRun, ...]
    finetune_seconds: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class Git:
    """The commit that the code was at; `dirty` if files had changed since."""

    commit: str
    dirty: bool = False


@dataclass(frozen=True, kw_only=True)
class Record:
    """A run that ended: what was run, what it spent, and what was measured.

    `metrics`: {column: value}; `baselines`: {column: {anchor: value}}, which need no neural model; `targets`: {held-out
    loss: {what: the name of the set of places that it is a mean over, places: how many}}; `budget`: what was really
    used, by name; `finetune_seconds`: of all fine-tunings, those of `task_points` included, None if not
    recorded; `task_points`: scores of tasks during pre-training; `realised`: statistics of what was really masked;
    `overlap`: {task: the share of its evaluation texts that occurs in the pre-training text}; `task_examples`: {task:
    {examples: {set: how many}, leaked: {evaluation set: how many of its texts are also in train}}}, None in earlier
    records; `gold`: the file with the probability of each right answer, its hash and the log-losses (see `runs.gold`);
    `own`: the loss on the run's own noise beside its trivial floor (see `training.in_distribution`); `curves`: {file of
    learning curves: its hash}; `error`: why a run failed or diverged.
    """

    signature: str
    study: str
    arm: str
    seed: int
    status: str
    scale: str | None = None
    schema: int = SCHEMA
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, metadata=OMITTED)
    task_runs: tuple[TaskRun, ...] = ()
    task_points: tuple[TaskPoint, ...] = field(default=(), metadata=OMITTED)
    budget: Mapping[str, float] = field(default_factory=dict)
    finetune_seconds: float | None = field(default=None, metadata=OMITTED)
    data: Mapping[str, Any] = field(default_factory=dict)
    realised: Mapping[str, Any] = field(default_factory=dict)
    overlap: Mapping[str, float] | None = field(default=None, metadata=OMITTED)
    task_examples: Mapping[str, Mapping[str, Mapping[str, int]]] | None = field(default=None, metadata=OMITTED)
    gold: Mapping[str, Any] | None = field(default=None, metadata=OMITTED)
    own: Mapping[str, Any] = field(default_factory=dict, metadata=OMITTED)
    curves: Mapping[str, str] = field(default_factory=dict, metadata=OMITTED)
    speed: Mapping[str, float] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict, metadata=OMITTED)
    versions: Mapping[str, str] = field(default_factory=dict)
    git: Git | None = None
    sweep_hash: str | None = field(default=None, metadata=OMITTED)
    wandb_id: str | None = None
    error: str | None = field(default=None, metadata=OMITTED)
    further: Mapping[str, Any] = field(default_factory=dict, metadata=REST)

    @property
    def label(self) -> str:
        """Such as `dynamic/seed0`."""
        return f"{self.arm}/seed{self.seed}"

    @property
    def done(self) -> bool:
        """Whether the run finished and has numbers."""
        return self.status == "done"

    @property
    def pretrained(self) -> bool:
        """Whether the run itself pre-trained its model; others start from a checkpoint or from scratch."""
        return bool(self.budget.get("steps", 1) > 0)

    @property
    def pretraining(self) -> str | None:
        """The signature of its pre-training alone; None in records of other frameworks."""
        signature: str | None = self.further.get("pretrain_signature")
        return signature

    @property
    def changed(self) -> bool:
        """Whether it was made from a tree with uncommitted changes, so that its commit does not say what ran."""
        return self.git is not None and self.git.dirty

    @property
    def text(self) -> str | None:
        """The fingerprint of the text that it was trained on."""
        fingerprint: str | None = self.data.get("fingerprint")
        return fingerprint

    @property
    def precision(self) -> str | None:
        """The precision that it was trained in, such as `bf16-mixed`."""
        precision: str | None = self.profile.get("precision")
        return precision


def read_record(path: Path) -> tuple[Record | None, str]:
    """(a whole record, "") or (None, why it is not one)."""
    try:
        return parse_record(path.read_bytes())
    except PermissionError as error:
        return None, f"not readable ({error.strerror})"
    except OSError:
        return None, "half-written or no record"


def parse_record(content: bytes) -> tuple[Record | None, str]:
    """As `read_record`, for what a file holds."""
    try:
        fields = parse(content.decode("utf-8"))
    except ValueError:
        return None, "half-written or no record"
    why = _find_fault(fields)
    return (None, why) if why else (from_json(Record, fields), "")


def _find_fault(content: object) -> str:
    if not isinstance(content, dict) or "schema" not in content:
        return "not the record of a run"
    if content["schema"] != SCHEMA:
        return f"schema {content['schema']}, not {SCHEMA}"
    if odd := _find_odd(content, _FIELDS) or (_find_odd(content, _DONE) if content["status"] == "done" else ""):
        return f"'{odd}' is missing or of the wrong type"
    if odd := next((name for name in ("signature", "study", "arm") if not is_name(content[name])), ""):
        return f"'{odd}' cannot name a folder"
    if content["status"] not in STATUSES:
        return f"status {content['status']} is unknown"
    return "" if verify(content) else "edited after the run (checksum)"


def _find_odd(content: Mapping[str, Any], kinds: Mapping[str, _Kind]) -> str:
    return next((name for name, kind in kinds.items() if not isinstance(content.get(name, ...), kind)), "")
