"""A Slurm cluster of one node for a test: `with server(cpus=2)`; the block's environment points the commands at it.

Debian's slurmctld, slurmd and munged on free ports with a folder of their own, as root and without systemd.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

PARTITION = "debug"
_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "srun")
_SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin"

_CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
MinJobAge=300
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName={partition} Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why no cluster can be started, or None."""
    if lacking := [name for name in _NEEDED if shutil.which(name, path=_SBIN) is None]:
        return f"{lacking[0]} is not installed (apt install slurm-wlm munge)"
    return None if os.geteuid() == 0 else "slurmd starts jobs as root only"


@contextmanager
def server(cpus: int = 2) -> Iterator[Path]:
    """Yields the cluster's folder with its logs; all daemons end with the block."""
    folder = Path(tempfile.mkdtemp(prefix="paribus-slurm-", dir="/tmp"))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    controller, daemon = _free_ports(2)
    config = folder / "slurm.conf"
    host = socket.gethostname().split(".")[0]
    config.write_text(
        _CONFIG.format(host=host, controller=controller, daemon=daemon, folder=folder, cpus=cpus, partition=PARTITION)
    )
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    with mock.patch.dict(os.environ, {**own, "SLURM_CONF": str(config), "PATH": _SBIN}, clear=True):
        daemons = [
            _daemon(folder, "munged", "--foreground", "--force", *_munge_files(folder)),
            _daemon(folder, "slurmctld", "-D", "-f", str(config)),
            _daemon(folder, "slurmd", "-D", "-f", str(config), "-N", host),
        ]
        try:
            _wait_for_the_node(folder)
            yield folder
        finally:
            _clear_the_queue()
            _end(daemons)
            _kill_steps(config)
            shutil.rmtree(folder, ignore_errors=True)


def _munge_files(folder: Path) -> list[str]:
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
    return [f"--{option}={folder / name}" for option, name in {**files, "log-file": "munge.log"}.items()]


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _daemon(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    with (folder / f"{command[0]}.out").open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, process_group=0)


def _wait_for_the_node(folder: Path, seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = subprocess.run(["sinfo", "--noheader", "-o", "%T"], capture_output=True, text=True)
        if found.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    logs = "\n".join(
        path.read_text(errors="replace")[-1500:] for path in (*folder.glob("*.log"), *folder.glob("*.out"))
    )
    raise RuntimeError(f"the cluster did not come up\n{logs}")


def _clear_the_queue(seconds: float = 15.0) -> None:
    subprocess.run(["scancel", f"--user={os.getuid()}"], capture_output=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end and subprocess.run(["squeue", "--noheader"], capture_output=True).stdout.strip():
        time.sleep(0.5)


def _kill_steps(config: Path) -> None:
    """What still runs of this cluster's jobs: steps wait for a controller that is gone."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            own = f"SLURM_CONF={config}".encode() in (process / "environ").read_bytes().split(b"\0")
            if own and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)


def _end(daemons: list[subprocess.Popen[bytes]]) -> None:
    """End the daemons, the node's before the key's; what a job left behind ends with its step."""
    for each in reversed(daemons):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if each.poll() is None:
                os.killpg(each.pid, number)
                try:
                    each.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    continue
