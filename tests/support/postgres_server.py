"""A PostgreSQL server of its own for a test: `with server(folder) as url`. As root it is started as user postgres."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET = "open-sesame"


def _tool(name: str) -> str | None:
    own = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(own[-1]) if own else shutil.which(name)


def missing() -> str | None:
    """Why no server can be started, or None."""
    return None if _tool("initdb") and _tool("pg_ctl") else "PostgreSQL is not installed (apt install postgresql)"


def _unprivileged(*command: str) -> None:
    before = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*before, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def server() -> Iterator[str]:
    """Yields the URL of an empty database, with its password; the server ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="paribus-postgres-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret, data = folder / "secret", folder / "data"
    secret.write_text(SECRET)
    secret.chmod(0o644)
    _unprivileged(
        _tool("initdb") or "", "-D", str(data), "-U", "searcher", "-A", "scram-sha-256", f"--pwfile={secret}", "-N"
    )
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    _unprivileged(
        _tool("pg_ctl") or "", "-D", str(data), "-w", "-t", "60", "-l", str(folder / "log"), "-o", options, "start"
    )
    try:
        yield f"postgresql://searcher:{SECRET}@127.0.0.1:{port}/postgres"
    finally:
        _unprivileged(_tool("pg_ctl") or "", "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)
