"""The state of every run of a sweep, read from the folders alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paribus.runs import store
from paribus.runs.record import Record
from paribus.runs.store import trial_study
from paribus.runs.stored import RECORD, open_archive
from paribus.sweeps.board import Board, Cell, choose_values
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, Job, jobs
from paribus.sweeps.tuning import Tuning, trial_name


def survey(request: Request) -> Board:
    """The board of a sweep: the runs of the last command's manifest if there is one, else the newest folders."""
    manifest = store.find_manifest(request.roots, request.named, request.scale)
    trials = store.find_manifest(request.roots, trial_study(request.named), request.scale) if request.tuned else None
    searched = _trials(request, trials, Tuning.from_json(manifest.tuning if manifest else {})) if request.tuned else {}
    absent = manifest.absent if manifest else {}
    listed = [*searched, *(job for job in _jobs(request, manifest) if job.arm not in absent)]
    board = Board(f"{request.named} at scale={request.scale}", listed, request.sweep.asked, absent=absent)
    board.cells |= {job.label: cell for job, cell in searched.items()}
    for job in listed:
        _survey(request, board, job, trials if job in searched else manifest)
    board.slots = max(1, board.count("running"))
    return board


def is_older(request: Request) -> bool:
    """Whether the last command ran another version of the sweep file."""
    manifest = store.find_manifest(request.roots, request.named, request.scale)
    return manifest is not None and manifest.sweep_hash != request.sweep.hash(request.scale)


def _survey(request: Request, board: Board, job: Job, manifest: store.Manifest | None) -> None:
    found = {folder: store.read_state(folder) for folder in _folders(request, job, manifest)}
    if manifest is None:  # which says which runs are of this scale
        found = {folder: own for folder, own in found.items() if _read_scale(folder, own[1]) == request.scale}
    steps = (manifest.steps if manifest else {}).get(job.arm)
    cells = [_cell(request, folder, *own, steps) for folder, own in found.items()]
    columns = request.sweep.asked
    cells += [
        Cell(one.status, 1.0, choose_values(one.metrics, columns)) for one in _find_archived(request, job, manifest)
    ]
    known = board.cells.get(job.label, Cell())
    board.cells[job.label] = next((cell for cell in cells if cell.state != "missing"), known)
    durations = [seconds for folder in found if (seconds := _seconds(folder))]
    board.durations |= {job.label: durations[0]} if durations else {}
    begun = [start for folder, (state, _) in found.items() if state == "running" and (start := _start(folder))]
    board.begun |= {job.label: (begun[0], 0.0)} if begun else {}


def _trials(request: Request, manifest: store.Manifest | None, tuning: Tuning) -> dict[Job, Cell]:
    """The trials of the search: those that its own manifest lists, and those that the study's manifest recorded."""
    study, tuned = trial_study(request.named), request.tuned
    column = tuned.on if tuned is not None else ""
    kept = {
        Job(study, trial_name(arm, trial.number), run.seed, ()): Cell(
            run.status, 1.0, {} if run.value is None else {column: run.value}
        )
        for arm, found in tuning.arms.items()
        for trial in found.trials
        for run in trial.runs
    }
    parts = [label.rpartition("/seed") for label in (manifest.runs if manifest else {})]
    return kept | {job: Cell() for arm, _, seed in parts if (job := Job(study, arm, int(seed), ())) not in kept}


def _jobs(request: Request, manifest: store.Manifest | None) -> list[Job]:
    """The runs of the sweep, and further ones of the last command."""
    runs = manifest.runs if manifest else {}
    sweep, arms, seeds = request.sweep, request.arms, request.seeds
    anchor = any(label.startswith(f"{SCRATCH}/") for label in runs)
    listed = jobs(sweep, request.scale, arms=arms, seeds=seeds, study=request.study, anchor=anchor)
    if arms is None and seeds is None:
        parts = [label.rpartition("/seed") for label in runs.keys() - {job.label for job in listed}]
        beside = [Job(request.named, arm, int(seed), ()) for arm, _, seed in parts if arm in (*sweep.arms, SCRATCH)]
        listed += sorted(beside, key=lambda job: (job.seed, job.arm))
    return listed


def _folders(request: Request, job: Job, manifest: store.Manifest | None) -> Iterator[Path]:
    signature = manifest.runs.get(job.label) if manifest else None
    for root in request.roots:
        found = (root / job.study / job.arm).glob(f"seed{job.seed}-{signature or '*'}")
        yield from sorted(found, key=lambda folder: (-folder.stat().st_mtime, folder.name))


def _find_archived(request: Request, job: Job, manifest: store.Manifest | None) -> Iterator[Record]:
    """The records of a run in archives."""
    signature = manifest.runs.get(job.label) if manifest else None
    for archive in (found for root in request.roots if (found := open_archive(root / job.study))):
        for run in archive.list_runs():
            if run.key.arm == job.arm and run.key.name.startswith(f"seed{job.seed}-{signature or ''}"):
                record, _ = store.read_stored(run)
                if record is not None and record.scale == request.scale:
                    yield record


def _cell(request: Request, folder: Path, state: str, record: Record | None, steps: int | None) -> Cell:
    share = min(1.0, store.read_last_step(folder) / steps) if steps else 0.0
    return Cell(state, share, choose_values(record.metrics if record else {}, request.sweep.asked))


def _read_scale(folder: Path, record: Record | None) -> str | None:
    return store.read_scale(folder) if record is None else record.scale


def _start(folder: Path) -> float | None:
    """When a run last started here, in seconds since the epoch."""
    marker = folder / "signature"
    return marker.stat().st_mtime if marker.is_file() else None


def _seconds(folder: Path) -> float | None:
    """Wall-clock seconds that a finished run took, from its last start to its record."""
    start, record = _start(folder), folder / RECORD
    return max(0.0, record.stat().st_mtime - start) if start is not None and record.is_file() else None
