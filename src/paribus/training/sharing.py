"""What arms share: a pre-training, or if they differ in nothing, the fine-tunings as well."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core.console import say
from paribus.core.files import write_bytes, write_text
from paribus.core.hub import MODEL
from paribus.runs.folder import CURVES, GOLD, LOCK, POINTER, TUNING, RunFolder, find_finished, shelf_of
from paribus.runs.identity import Identity
from paribus.training.description import Run

if TYPE_CHECKING:
    from paribus.training.profile import ResolvedProfile


@contextmanager
def locked(folder: Path, label: str) -> Iterator[None]:
    """Hold a folder for this process; wait for another that does the same work."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"… waiting for {label}, which another process is training")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def shared_pretraining(run: Run, identity: Identity, kept: Sequence[str] = ()) -> Iterator[None]:
    """Let arms of one pre-training do it once: a finished one is linked into this run's folder before the block.

    A run with its own folder (`run_dir`) shares nothing. `kept`: files that are needed beside the checkpoint.
    """
    from paribus.training.pretrain import STAGE

    if run.run_dir is not None:
        yield
        return
    shelf, folder = shelf_of(Path(run.paths.runs), identity.pretrain), identity.folder.resolve()
    with locked(shelf, f"pre-training {identity.pretrain[:6]}"):
        pointer = shelf / POINTER
        source = folder
        if pointer.is_file():
            source = Path(pointer.read_text(encoding="utf-8", errors="replace").strip("\0\n"))
        if source != folder and not (folder / STAGE).is_file() and serves(source, run, kept):
            say(f"✓ pre-training found ({identity.pretrain[:6]}), shared by {run.label}")
            shutil.copytree(source / MODEL, folder / MODEL, copy_function=_link, dirs_exist_ok=True)
            for name in kept:
                _link(str(source / name), str(folder / name))
            shutil.copyfile(source / CURVES, folder / CURVES)
            write_text(folder / STAGE, (source / STAGE).read_text(encoding="utf-8"))  # last: it says that all is there
        yield
        write_text(pointer, f"{folder}\n")


def serves(folder: Path, run: Run, kept: Sequence[str]) -> bool:
    """Whether a folder's finished pre-training has what this run needs. Checkpoints during pre-training are never
    shared.
    """
    from paribus.training.pretrain import read_stage

    if (run.evaluation.task_points and not run.stage) or (part := read_stage(folder, run.identity)) is None:
        return False
    if not all((folder / name).is_file() for name in kept):
        return False
    return "own" in part or not part["budget"]["steps"] or not run.evaluation.own_points


def _link(source: str, target: str) -> None:
    Path(target).unlink(missing_ok=True)  # of a process that ended in between
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def share_tuning(run: Run, profile: ResolvedProfile) -> None:
    """Give a run the fine-tunings of a finished one of its study that differs in nothing but the arm's name.

    An arm without pre-training and the anchor `from_scratch` may be such. A run with its own folder (`run_dir`) shares
    nothing, nor do runs of different precisions or of different settings of what they keep.
    """
    from paribus.training.finetune import DONE, KEPT
    from paribus.training.joint import ABOUT, FOLDER

    folder = run.identity.folder
    if run.run_dir is not None or (folder / DONE).is_file():
        return
    others = sorted(folder.parent.parent.glob(f"*/{folder.name}"))
    if (source := next((other for other in others if has_tuning(other, run, profile)), None)) is None:
        return
    say(f"✓ fine-tuning runs found ({run.identity.signature[:6]}), shared by {run.label}")
    for name in (KEPT, FOLDER, ABOUT, GOLD, TUNING, DONE):
        if (path := source / name).is_dir():
            shutil.copytree(path, folder / name, copy_function=_link, dirs_exist_ok=True)
        elif path.is_file():
            write_bytes(folder / name, path.read_bytes())


def has_tuning(folder: Path, run: Run, profile: ResolvedProfile) -> bool:
    """Whether a folder has fine-tunings that are those of a run."""
    record = find_finished(folder, run.identity.signature)
    if record is None or not record.done or record.precision != profile.precision:
        return False
    theirs = (RunFolder(folder).read_config() or {}).get("finetune") or {}  # an older config may lack a setting
    return all(theirs.get(name) == getattr(run.finetune, name) for name in run.finetune.ignored_settings)
