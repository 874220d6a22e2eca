"""`launcher=slurm`: one job per run in one array, through submitit (https://github.com/facebookincubator/submitit)."""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.sweeps.launchers.base import LOST, ClusterPool, Demand, Events, Launcher, RemoteRun, Submitted, Work

if TYPE_CHECKING:
    from submitit import SlurmExecutor
    from submitit.helpers import DelayedSubmission

TICKET = "slurm.job"  # in a run's folder: the number of the last job that was submitted for it
GONE = 2  # polls without the job before it counts as ended: files from another node may arrive late


@dataclass(frozen=True)
class Slurm(Launcher):
    """Settings of the jobs; None leaves a setting to the cluster."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    minutes: int = 240
    timeouts: int = 20
    cpus: int | None = None
    gpus: int | None = None
    memory_gb: float | None = None
    setup: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    poll_seconds: float = 5.0
    remote: ClassVar[bool] = True

    def open(self, demand: Demand) -> SlurmPool:
        """Raises UserError if submitit or Slurm's commands are missing, or `slots` is below 1."""
        size = demand.size()
        try:
            from submitit import SlurmExecutor
        except ImportError as error:
            raise UserError("launcher=slurm needs submitit", "pip install 'paribus[slurm]'") from error
        try:
            executor = SlurmExecutor(demand.folder.resolve() / "jobs", max_num_timeout=self.timeouts)
        except RuntimeError as error:
            cause = "launcher=slurm, but the command srun is missing"
            raise UserError(cause, "run this on a node that submits Slurm jobs") from error
        given = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
            "cpus_per_task": self.cpus,
            "gpus_per_node": self.gpus,
            "mem": None if self.memory_gb is None else f"{round(self.memory_gb * 1024)}MB",
            "setup": list(self.setup) or None,
        }
        executor.update_parameters(
            **{key: value for key, value in given.items() if value is not None},
            job_name="paribus",
            time=int(self.minutes),
            array_parallelism=size,
            additional_parameters={"requeue": True, **self.options},
        )
        return SlurmPool(executor, size, self.cpus, self.poll_seconds)


@dataclass(frozen=True)
class _SlurmRun(RemoteRun):
    def checkpoint(self) -> DelayedSubmission:
        """What submitit queues after a preemption or a timeout: the same run, which resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass
class _Job(Submitted):
    """`gone`: polls since the queue last listed the job."""

    gone: int = 0

    def result(self) -> int | None:
        """What the job returned, or None if it has not."""
        if not self.handle.paths.result_pickle.is_file():
            return None
        try:
            return int(self.handle.result())
        except Exception:  # submitit's report of a job that did not even start; the log has it
            return 1

    def final_status(self, states: Mapping[str, str] | None) -> int | None:
        """The status of the job if it has ended, else None.

        A preempted job may fail before it is requeued, so a failure counts only after the job left the queue.
        """
        result = self.result()
        if result == 0:
            return 0
        if states is None or self.handle.job_id in states:
            self.gone = 0
            return None
        self.gone += 1
        if self.gone < GONE:
            return None
        return LOST if result is None else result

    def follow(self, state: str | None, events: Events) -> None:
        """Report that the job has started or is back in the queue."""
        if state == "RUNNING" and self.started is None:
            self.started = time.monotonic()
            events.started(self.work, f"Slurm job {self.handle.job_id}")
        elif state not in (None, "RUNNING", "COMPLETING") and self.started is not None:
            self.started = None
            events.requeued(self.work)


class SlurmPool(ClusterPool):
    """The jobs of a sweep. They outlive this process: the next command finds them by the tickets in their folders."""

    def __init__(self, executor: SlurmExecutor, size: int, threads: int | None, poll_seconds: float) -> None:
        super().__init__(size, threads, poll_seconds)
        self.executor = executor

    def submit(self, waiting: deque[Work], running: int) -> list[Submitted]:
        """All runs at once, since the array limits how many are active; jobs that are still queued are kept."""
        if not waiting:
            return []
        queue = list(waiting)
        waiting.clear()
        known = self._find_queued(queue)
        new = [work for work in queue if work.label not in known]
        if not new:
            return list(known.values())
        try:
            with self.executor.batch():
                jobs = [self.executor.submit(_SlurmRun(work.label, work.config or {})) for work in new]
        except Exception as error:  # submitit passes on what sbatch says
            raise UserError("sbatch refused the jobs", " ".join(str(error).split())[-300:]) from error
        for work, job in zip(new, jobs, strict=True):
            work.log.parent.mkdir(parents=True, exist_ok=True)
            write_text(work.log.parent / TICKET, f"{job.job_id}\n")
        say(f"{len(jobs)} jobs submitted: {jobs[0].job_id.partition('_')[0]}, logs in {self.executor.folder}")
        return [*known.values(), *(_Job(work, job) for work, job in zip(new, jobs, strict=True))]

    def _find_queued(self, queue: Sequence[Work]) -> dict[str, Submitted]:
        """{label: job} of the jobs that an earlier command submitted and that have not ended.

        Raises UserError if Slurm does not say which these are, since they would run twice.
        """
        from submitit import SlurmJob

        tickets: dict[str, str] = {}
        for work in queue:
            with suppress(OSError):
                tickets[work.label] = (work.log.parent / TICKET).read_text(encoding="utf-8").strip()
        states = queue_states()
        if states is None and any(tickets.values()):
            raise UserError("squeue does not answer, but jobs may be queued", "run the same command again later")
        queued: dict[str, Submitted] = {
            work.label: _Job(work, SlurmJob(self.executor.folder, number))
            for work in queue
            if (number := tickets.get(work.label)) is not None and number in (states or {})
        }
        if queued:
            say(f"{len(queued)} jobs are already in the queue")
        return queued

    def poll(self, running: list[Submitted], events: Events) -> list[Submitted]:
        states = queue_states()
        left = list[Submitted]()
        for job in running:
            assert isinstance(job, _Job)
            if (status := job.final_status(states)) is not None:
                events.ended(job.end(status, job.handle.paths.stderr))
                continue
            left.append(job)
            if states is not None:
                job.follow(states.get(job.handle.job_id), events)
        return left

    def close(self, running: list[Submitted]) -> None:
        if running:
            jobs = f"{len(running)} jobs stay in the queue (end them with scancel)"
            say(f"{jobs}; run the same command again to follow them")


def queue_states() -> dict[str, str] | None:
    """{job: its state} of this user's jobs that have not ended; None if Slurm does not answer."""
    command = ["squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i|%T"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    pairs = (line.strip().partition("|") for line in done.stdout.splitlines())
    return {number: state for number, _, state in pairs}
