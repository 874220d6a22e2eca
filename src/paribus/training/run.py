"""One run: find it done, or pre-train, evaluate, fine-tune and write its record."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.config import plain
from paribus.core.console import say
from paribus.core.files import write_json, write_text
from paribus.runs.identity import Identity, identify
from paribus.runs.stages import FINETUNE, PRETRAIN, Stages, tell
from paribus.training.members import FOLDER, member, members

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.training.callbacks import Reporter
    from paribus.training.execution import Profile
    from paribus.training.finetune import Base
    from paribus.training.pretrain import Stage

SCHEMA = 1
RECORD = "result.json"
CURVES = "metrics.jsonl"


def run(cfg: Any, reporter: Reporter | None = None) -> Path:
    """Do what is left of a run and return its folder.

    The same config again finds the finished run; an interrupted one goes on from its last checkpoint. Raises
    UserError for bad input, before any training step.
    """
    identity = identify(cfg)
    label = f"{cfg.arm}/seed{cfg.seed}"
    if finished(identity):
        say(f"✓ {label} found ({identity.signature[:6]}), skipped")
        return identity.folder
    with locked(identity.folder, label):
        if not finished(identity):
            _run(cfg, identity, reporter)
    return identity.folder


def finished(identity: Identity) -> bool:
    """Whether the folder holds the whole record of this very run."""
    path = identity.folder / RECORD
    return path.is_file() and bool(json.loads(path.read_text(encoding="utf-8"))["signature"] == identity.signature)


def _run(cfg: Any, identity: Identity, reporter: Reporter | None) -> None:
    from optuna import TrialPruned

    from paribus.training.budget import data_of
    from paribus.training.callbacks import Diverged
    from paribus.training.execution import resolve

    folder = identity.folder
    write_text(folder / "signature", identity.signature + "\n")
    profile, data = resolve(cfg.profile), data_of(cfg)
    write_text(folder / "config.yaml", _resolved(cfg))
    stages = Stages(cfg, identity)
    record = _frame(cfg, identity, data, profile)
    try:
        record |= {"status": "done", **_stages(cfg, identity, data, profile, stages, reporter)}
    except Diverged as error:
        say(f"✗ {cfg.arm}/seed{cfg.seed} diverged: {error}")
        record |= {"status": "diverged", "error": str(error)}
    except TrialPruned as error:
        say(f"✂ {cfg.arm}/seed{cfg.seed} {error}")
        raise
    from paribus.runs.store import seal

    write_json(folder / RECORD, seal({**record, "wandb_id": stages.wandb_id}))


def _stages(
    cfg: Any, identity: Identity, data: Data, profile: Profile, stages: Stages, reporter: Reporter | None
) -> dict[str, Any]:
    """Pre-training (or one that another arm has done) of each member, then the tasks."""
    from paribus.training.ensemble import together
    from paribus.training.finetune import base_of
    from paribus.training.pretrain import open_stage, pretrain

    stage = open_stage(cfg, data, profile, identity.folder)
    stage.reporter = reporter
    with stages.stage(PRETRAIN) as tracked:
        with shared_pretraining(cfg, identity):
            trained = [(stage, pretrain(stage, tracked))]
        trained += [_member(cfg, identity, number, data, profile) for number in range(1, members(cfg))]
        part = together(*zip(*trained, strict=True))
        tell(tracked, part, identity.folder / CURVES)
    bases = [base_of(own.cfg, own.encoder, own.folder / "model") for own, _ in trained]
    tuned = _finetuned(bases, data, profile, stages)
    return {
        **part,
        "metrics": {**part["metrics"], **task_means(tuned["task_runs"])},
        "baselines": {**part["baselines"], **tuned["baselines"]},
        "task_runs": tuned["task_runs"],
        "tuned": tuned["tuned"],
    }


def _member(cfg: Any, identity: Identity, number: int, data: Data, profile: Profile) -> tuple[Stage, dict[str, Any]]:
    """The pre-training of a further member, in a folder of its own; its curves are not logged elsewhere."""
    from paribus.training.pretrain import open_stage, pretrain

    own, folder = member(cfg, number), identity.folder / FOLDER / str(number)
    write_text(folder / "config.yaml", _resolved(own))
    stage = open_stage(own, data, profile, folder)
    with shared_pretraining(own, identify(own)._replace(folder=folder)):
        return stage, pretrain(stage)


def _finetuned(bases: list[Base], data: Data, profile: Profile, stages: Stages) -> dict[str, Any]:
    """The fine-tuning stage; without tasks nothing but empty parts of the record."""
    from paribus.training.finetune import finetune

    if not bases[0].cfg.tasks:
        return finetune(bases, data, profile, stages.identity.folder)
    with stages.stage(FINETUNE) as tracked:
        tuned = finetune(bases, data, profile, stages.identity.folder, tracked)
        tell(tracked, {"metrics": task_means(tuned["task_runs"])})
    return tuned


def task_means(task_runs: list[dict[str, Any]]) -> dict[str, float]:
    """{"task/metric": mean over fine-tuning seeds}."""
    values: dict[str, list[float]] = defaultdict(list)
    for task_run in task_runs:
        for name, value in task_run["metrics"].items():
            values[f"{task_run['task']}/{name}"].append(value)
    return {name: sum(found) / len(found) for name, found in values.items()}


@contextmanager
def locked(folder: Path, label: str) -> Iterator[None]:
    """Hold a folder for this process; wait for another that does the same work."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"… {label} is under way in another process, waiting")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def shared_pretraining(cfg: Any, identity: Identity) -> Iterator[None]:
    """Let arms of one pre-training do it once: a finished one is linked into this run's folder before the block.

    A run with a folder of its own (`run_dir`) shares nothing.
    """
    from paribus.training.pretrain import STAGE

    if cfg.run_dir is not None:
        yield
        return
    shelf = Path(cfg.paths.runs) / ".pretrained" / identity.pretrain
    with locked(shelf, f"pre-training {identity.pretrain[:6]}"):
        pointer, own = shelf / "folder", identity.folder.resolve()
        source = Path(pointer.read_text(encoding="utf-8").strip()) if pointer.is_file() else own
        if source != own and (source / STAGE).is_file() and not (own / STAGE).is_file():
            say(f"✓ pre-training found ({identity.pretrain[:6]}), shared by {cfg.arm}/seed{cfg.seed}")
            _adopt(source, own)
        yield
        write_text(pointer, f"{own}\n")


def _adopt(source: Path, own: Path) -> None:
    from paribus.training.callbacks import keep_lines
    from paribus.training.pretrain import STAGE

    shutil.copytree(source / "model", own / "model", copy_function=_link, dirs_exist_ok=True)
    shutil.copyfile(source / "metrics.jsonl", own / "metrics.jsonl")
    keep_lines(own / "metrics.jsonl", json.loads((source / STAGE).read_text())["budget"]["steps"])
    write_text(own / STAGE, (source / STAGE).read_text(encoding="utf-8"))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _resolved(cfg: Any) -> str:
    import yaml

    return str(yaml.safe_dump(plain(cfg), sort_keys=False, allow_unicode=True))


def _frame(cfg: Any, identity: Identity, data: Data, profile: Profile) -> dict[str, Any]:
    """The record's part that says what was run, on what and by which code."""
    from paribus.runs.provenance import git_state, versions

    return {
        "schema": SCHEMA,
        "signature": identity.signature,
        "pretrain_signature": identity.pretrain,
        "study": cfg.study,
        "arm": cfg.arm,
        "seed": cfg.seed,
        "scale": cfg.scale,
        "sweep_hash": cfg.sweep_hash,
        "data": {"fingerprint": data.fingerprint["text"], **data.fingerprint, "tasks": identity.tasks},
        "profile": profile.record(),
        "versions": versions(),
        "git": git_state(),
    }
