"""The state of every run of a sweep, read from the folders alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from paribus.core.processes import Stopped
from paribus.runs.archive import open_archive
from paribus.runs.folder import RECORD, read_last_step, read_scale, read_state
from paribus.runs.manifest import Manifest, find_manifest
from paribus.runs.record import Record
from paribus.runs.store import trial_study
from paribus.sweeps.request import Request
from paribus.sweeps.status_table import RunCell, StatusTable, SweepStatus, choose_values, read_live
from paribus.sweeps.sweep import SCRATCH, Job, jobs
from paribus.sweeps.tuning import Tuning, trial_name


def print_status(read: Callable[[], StatusTable]) -> None:
    """Print a table once; if stdout is a terminal, read it again until nothing is running."""
    if not sys.stdout.isatty():
        print(read().text())
        return
    with read_live(read, sys.stdout) as read_again, suppress(Stopped):
        while read_again().count("running"):
            time.sleep(0.2)


def read_status(request: Request) -> SweepStatus:
    """The state of a sweep: the runs of the last command's manifest if there is one, else the newest folders."""
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    absent = manifest.absent if manifest else {}
    trials_manifest, trials = None, dict[Job, RunCell]()
    if request.tuned is not None:
        trials_manifest = find_manifest(request.roots, trial_study(request.study_name), request.scale)
        trials = _list_trials(request, trials_manifest, Tuning.from_json(manifest.tuning if manifest else {}))
    listed = [*trials, *(job for job in _list_jobs(request, manifest) if job.arm not in absent)]
    status = SweepStatus(
        f"{request.study_name} at scale={request.scale}", listed, request.sweep.claimed_columns, absent=absent
    )
    status.cells |= {job.label: cell for job, cell in trials.items()}
    for job in listed:
        _read_run(request, status, job, trials_manifest if job in trials else manifest)
    status.slots = max(1, status.count("running"))
    return status


def ran_older_file(request: Request) -> bool:
    """Whether the last command ran another version of the sweep file."""
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    return manifest is not None and manifest.sweep_hash != request.sweep.hash(request.scale)


def _list_trials(request: Request, manifest: Manifest | None, tuning: Tuning) -> dict[Job, RunCell]:
    """The trials of the search: those that its own manifest lists, and those that the study's manifest recorded."""
    study, column = trial_study(request.study_name), request.tuned.on if request.tuned is not None else ""
    trials = {
        Job(study, trial_name(arm, trial.number), run.seed, ()): RunCell(
            run.status, 1.0, {} if run.value is None else {column: run.value}
        )
        for arm, tuned in tuning.arms.items()
        for trial in tuned.trials
        for run in trial.runs
    }
    for label in manifest.runs if manifest else {}:
        arm, _, seed = label.rpartition("/seed")
        trials.setdefault(Job(study, arm, int(seed), ()), RunCell())
    return trials


def _list_jobs(request: Request, manifest: Manifest | None) -> list[Job]:
    """The runs of the sweep, and further ones of the last command."""
    runs = manifest.runs if manifest else {}
    sweep, arms, seeds = request.sweep, request.arms, request.seeds
    anchor = any(label.startswith(f"{SCRATCH}/") for label in runs)
    listed = jobs(sweep, request.scale, arms=arms, seeds=seeds, study=request.study, anchor=anchor)
    if arms is None and seeds is None:
        parts = [label.rpartition("/seed") for label in runs.keys() - {job.label for job in listed}]
        further = [
            Job(request.study_name, arm, int(seed), ()) for arm, _, seed in parts if arm in (*sweep.arms, SCRATCH)
        ]
        listed += sorted(further, key=lambda job: (job.seed, job.arm))
    return listed


def _read_run(request: Request, status: SweepStatus, job: Job, manifest: Manifest | None) -> None:
    """Fill the cell of one run: from the newest folder that holds something of it, else from an archive."""
    signature = manifest.runs.get(job.label) if manifest else None
    steps = manifest.steps.get(job.arm) if manifest else None
    cells = []
    for folder in _find_folders(request, job, signature):
        state, record = read_state(folder)
        if manifest is None:  # which says which runs are of this scale
            scale = read_scale(folder) if record is None else record.scale
            if scale != request.scale:
                continue
        share = min(1.0, read_last_step(folder) / steps) if steps else 0.0
        cells.append(RunCell(state, share, choose_values(record.metrics if record else {}, status.columns)))
        start, ended = _modified(folder / "signature"), _modified(folder / RECORD)
        if start is not None and ended is not None and ended > start:
            status.durations.setdefault(job.label, ended - start)
        if start and state == "running":
            status.begun.setdefault(job.label, (start, 0.0))
    archived = _find_archived(request, job, signature)
    cells += [RunCell(record.status, 1.0, choose_values(record.metrics, status.columns)) for record in archived]
    status.cells[job.label] = next((cell for cell in cells if cell.state != "missing"), status.cell(job))


def _find_folders(request: Request, job: Job, signature: str | None) -> Iterator[Path]:
    """The folders of a run, the newest first."""
    for root in request.roots:
        folders = (root / job.study / job.arm).glob(f"seed{job.seed}-{signature or '*'}")
        yield from sorted(folders, key=lambda folder: (-folder.stat().st_mtime, folder.name))


def _find_archived(request: Request, job: Job, signature: str | None) -> Iterator[Record]:
    """The records of a run in archives."""
    for archive in (archive for root in request.roots if (archive := open_archive(root / job.study))):
        for run in archive.list_runs():
            if run.key.arm == job.arm and run.key.name.startswith(f"seed{job.seed}-{signature or ''}"):
                record, _ = run.read_record()
                if record is not None and record.scale == request.scale:
                    yield record


def _modified(path: Path) -> float | None:
    """When a file was written, in seconds since the epoch; None if there is none. A run starts by its `signature`."""
    return path.stat().st_mtime if path.is_file() else None
