"""`launcher=slurm`: a job a run, in one array, by submitit (https://github.com/facebookincubator/submitit)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.sweeps.launchers.job import LOST, Remote
from paribus.sweeps.launchers.launcher import Demand, Events
from paribus.sweeps.pool import Ended, Work

TICKET = "slurm.job"  # in a run's folder: the job that was last given to it
GONE = 2  # looks at the queue without a job before it counts as over: files may come late from another node


@dataclass(frozen=True)
class Slurm:
    """Settings of the jobs; what is None is left to the cluster."""

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
    elsewhere: ClassVar[bool] = True

    def open(self, demand: Demand) -> Jobs:
        """Raises UserError without submitit, without Slurm's commands, and for a number of slots below 1."""
        size = demand.size()
        try:
            from submitit import SlurmExecutor
        except ImportError as error:
            raise UserError("launcher=slurm needs submitit", "pip install 'paribus[slurm]'") from error
        try:
            executor = SlurmExecutor(demand.folder.resolve() / "jobs", max_num_timeout=self.timeouts)
        except RuntimeError as error:
            raise UserError("launcher=slurm, but there is no srun", "run it where jobs are submitted") from error
        executor.update_parameters(**self._parameters(size))
        return Jobs(executor, size, self.cpus, self.poll_seconds)

    def _parameters(self, size: int) -> dict[str, Any]:
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
        return {
            **{key: value for key, value in given.items() if value is not None},
            "job_name": "paribus",
            "time": int(self.minutes),
            "array_parallelism": size,
            "additional_parameters": {"requeue": True, **self.options},
        }


@dataclass(frozen=True)
class Run(Remote):
    """What a job does."""

    def checkpoint(self) -> Any:
        """What submitit queues after a preemption or at the end of a job's time: the same run, which resumes."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass
class _Job:
    """A job under way. `seen`: when it was first seen to run; `gone`: looks in which the queue had none of it."""

    work: Work
    job: Any
    start: float
    seen: float | None = None
    gone: int = 0

    def status(self) -> int | None:
        """What the job returned; None before it has."""
        if not self.job.paths.result_pickle.is_file():
            return None
        try:
            return int(self.job.result())
        except Exception:  # submitit's account of a job that did not even start; the log has it
            return 1

    def ended(self, status: int) -> Ended:
        return Ended(
            self.work._replace(log=self.job.paths.stderr), status, time.monotonic() - (self.seen or self.start)
        )


class Jobs:
    """The jobs of a sweep. They outlive this process: the next one finds them in the queue by their tickets."""

    def __init__(self, executor: Any, size: int, threads: int | None, poll: float) -> None:
        self.executor, self.size, self.threads, self.poll = executor, size, threads, poll

    def run(self, queue: Sequence[Work], events: Events) -> None:
        """Submit what the queue of the cluster does not hold yet, and wait for all of it."""
        under_way = self._adopted(queue)
        under_way |= self._submitted([work for work in queue if work.label not in under_way])
        try:
            while under_way:
                self._look(under_way, events)
                events.idle()
                if under_way:
                    time.sleep(self.poll)
        except KeyboardInterrupt:
            say(f"{len(under_way)} jobs stay in the queue (scancel ends them); the same command watches them again")
            raise

    def _adopted(self, queue: Sequence[Work]) -> dict[str, _Job]:
        """The jobs that an earlier command has submitted and the cluster still has."""
        from submitit import SlurmJob

        states = queue_states() or {}
        tickets = {work.label: _ticket(work) for work in queue}
        found = {}
        for work in queue:
            if (number := tickets[work.label]) in states:
                found[work.label] = _Job(work, SlurmJob(self.executor.folder, number), time.monotonic())
        if found:
            say(f"{len(found)} jobs are in the queue already")
        return found

    def _submitted(self, queue: Sequence[Work]) -> dict[str, _Job]:
        if not queue:
            return {}
        try:
            with self.executor.batch():
                jobs = [self.executor.submit(Run(work.label, work.config)) for work in queue]
        except Exception as error:  # submitit passes on what sbatch says
            raise UserError("sbatch refused the jobs", " ".join(str(error).split())[-300:]) from error
        for work, job in zip(queue, jobs, strict=True):
            work.log.parent.mkdir(parents=True, exist_ok=True)
            write_text(work.log.parent / TICKET, f"{job.job_id}\n")
        say(f"{len(jobs)} jobs submitted: {jobs[0].job_id.partition('_')[0]}, logs in {self.executor.folder}")
        return {work.label: _Job(work, job, time.monotonic()) for work, job in zip(queue, jobs, strict=True)}

    def _look(self, under_way: dict[str, _Job], events: Events) -> None:
        states = queue_states()
        for label, each in list(under_way.items()):
            if (status := _over(each, states)) is not None:
                del under_way[label]
                events.ended(each.ended(status))
            elif states is not None:
                _follow(each, states.get(each.job.job_id), events)


def _ticket(work: Work) -> str | None:
    path = work.log.parent / TICKET
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def _over(each: _Job, states: Mapping[str, str] | None) -> int | None:
    """The status of a job that is over, or None.

    A job that is being preempted may fail before it is queued again: a failure counts once the queue has let it go.
    """
    status = each.status()
    if status == 0:
        return 0
    if states is None or each.job.job_id in states:
        each.gone = 0
        return None
    each.gone += 1
    if each.gone < GONE:
        return None
    return LOST if status is None else status


def _follow(each: _Job, state: str | None, events: Events) -> None:
    """Tell when a job starts, and when it is back in the queue."""
    if state == "RUNNING" and each.seen is None:
        each.seen = time.monotonic()
        events.started(each.work, f"Slurm job {each.job.job_id}")
    elif state not in (None, "RUNNING", "COMPLETING") and each.seen is not None:
        each.seen = None
        events.waiting(each.work)


def queue_states() -> dict[str, str] | None:
    """{job: its state} of this user's jobs that are not over; None where Slurm does not answer."""
    command = ["squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i|%T"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if found.returncode:
        return None
    pairs = (line.strip().partition("|") for line in found.stdout.splitlines())
    return {number: state for number, _, state in pairs}
