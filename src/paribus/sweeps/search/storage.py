"""The storage of a study: a journal file, SQLite or PostgreSQL, with the mutex and the leases of its workers."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from paribus.core.errors import UserError
from paribus.core.files import write_json

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

STUDY = "study.json"  # in the folder of a search
JOURNAL, SQLITE, POSTGRES = "journal:", "sqlite:///", ("postgresql", "postgres:")
RENEWED, STALE = 4.0, 20.0  # seconds between renewals of a lease; seconds after which an unchanged one has expired
_CHUNK = 1 << 16  # bytes of a journal's end that are read at once
_LOGIN = re.compile(r"(?P<head>postgres\w*(?:\+\w+)?://[^:/?\s]*):(?P<secret>[^?\s]*)(?P<tail>@)")
_QUERY = re.compile(r"(?P<head>postgres\w*(?:\+\w+)?://\S*[?&])password=(?P<secret>[^&\s'\"]*)(?P<tail>&?)")


class StudyFile(NamedTuple):
    """Where the trials of a search are: what STUDY in its folder holds."""

    storage: str
    study: str
    trials: int
    retries: int
    objective: list[str]

    def write(self, folder: Path) -> None:
        write_json(folder / STUDY, self._asdict())

    @classmethod
    def read(cls, folder: Path) -> StudyFile | None:
        """None before the search has started. Raises UserError for a file that cannot be read."""
        try:
            return cls(**json.loads((folder / STUDY).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{folder / STUDY} cannot be read", "start the search again to rewrite it") from error


def without_password(text: str) -> str:
    """A URL, or a text with one, without its password, so that it may be logged and recorded.

    The password moves to the environment variable PGPASSWORD, which libpq and child processes read.
    """
    for pattern in (_LOGIN, _QUERY):
        if match := pattern.search(text):
            os.environ["PGPASSWORD"] = unquote(match["secret"])
            text = pattern.sub(r"\g<head>\g<tail>", text)
    return text


def open_storage(url: str) -> BaseStorage:
    """Open the storage that a URL names: `journal:FILE`, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`.

    Raises UserError for another scheme, and if the server cannot be reached.
    """
    if url.startswith(JOURNAL):
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        path = Path(url.removeprefix(JOURNAL))
        path.parent.mkdir(parents=True, exist_ok=True)
        lock: Any = JournalLock(path)
        lock.acquire()  # mends the file before the first reading
        lock.release()
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    if url.startswith(SQLITE):
        Path(url.removeprefix(SQLITE)).parent.mkdir(parents=True, exist_ok=True)
        return _open_database(url, {"connect_args": {"timeout": 60}})
    if url.startswith(POSTGRES):
        url = re.sub(r"^postgres(ql)?(\+\w+)?:", "postgresql+psycopg:", without_password(url))
        return _open_database(url, {"pool_pre_ping": True})
    scheme = url.partition("://")[0]  # the rest may hold a password
    raise UserError(f"storage={scheme}://... is not supported", "use journal:FILE, sqlite:///FILE or postgresql://...")


def local_file(url: str) -> Path | None:
    """The file of a journal or of SQLite; None for a server."""
    scheme = next((scheme for scheme in (JOURNAL, SQLITE) if url.startswith(scheme)), None)
    return None if scheme is None else Path(url.removeprefix(scheme))


def _open_database(url: str, engine: dict[str, Any]) -> BaseStorage:
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    try:
        with _alone_creating(url):
            return RDBStorage(url, engine_kwargs=engine)
    except ImportError as error:
        raise UserError("the driver of PostgreSQL is not installed", "pip install 'paribus[postgres]'") from error
    except SQLAlchemyError as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        cause = f"storage={url} cannot be opened ({' '.join(str(reason).split())[:200]})"
        raise UserError(cause, "check the server, the database name and PGPASSWORD") from error


@contextmanager
def _alone_creating(url: str) -> Iterator[None]:
    """Lock a database, so that workers that start together do not create its tables twice."""
    if url.startswith(SQLITE):
        with _locked(Path(url.removeprefix(SQLITE) + ".asking")):
            yield
        return
    from sqlalchemy import create_engine, text

    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text("select pg_advisory_xact_lock(hashtext('paribus'))"))
            yield
    finally:
        engine.dispose()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


class FileLock:
    """A lock of Optuna's journal that the system releases when its process dies, even by kill -9."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: IO[str] | None = None

    def acquire(self) -> bool:
        """Wait for the lock."""
        handle = self.path.open("w")
        fcntl.flock(handle, fcntl.LOCK_EX)
        self._handle = handle
        return True

    def release(self) -> None:
        """Let the next one in."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


class JournalLock(FileLock):
    """The lock of those who write a journal. Whoever takes it first cuts off a line that another one left half-written,
    because its disk was full or it was killed; no reader could pass that line.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(journal.with_name(journal.name + ".writing"))
        self.journal = journal

    def acquire(self) -> bool:
        super().acquire()
        with suppress(FileNotFoundError), self.journal.open("r+b") as file:
            size = end = file.seek(0, os.SEEK_END)
            while end:
                start = max(0, end - _CHUNK)
                file.seek(start)
                if (at := file.read(end - start).rfind(b"\n")) >= 0:
                    end = start + at + 1
                    break
                end = start
            if end < size:
                file.truncate(end)
        return True


def this_worker() -> str:
    """A name that no other process on any machine has: machine, process number, start time."""
    return f"{_machine()}:{os.getpid()}:{_started(os.getpid())}"


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    identity = boot.read_text(encoding="ascii").strip()[:8] if boot.is_file() else ""
    space = os.readlink("/proc/self/ns/pid") if os.path.exists("/proc/self/ns/pid") else ""
    return f"{socket.gethostname()}-{identity}-{re.sub(r'[^0-9]', '', space)}"


def _started(pid: int) -> str | None:
    """When a process of this machine started, in clock ticks after the boot; None if there is no such process."""
    try:
        parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if parts[0] == "Z" else parts[19]


@dataclass
class StudyStorage:
    """The storage of a study as its workers share it. `url` holds no password; `backend`: what Optuna reads from."""

    url: str
    study: str
    backend: BaseStorage
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)

    @contextmanager
    def mutex(self) -> Iterator[None]:
        """Only one worker on all machines holds it; the system releases it if the holder dies."""
        if (file := local_file(self.url)) is not None:
            with _locked(file.with_name(file.name + ".asking")):
                yield
            return
        from sqlalchemy import text

        with self.backend.engine.begin() as connection:  # type: ignore[attr-defined]
            connection.execute(text("select pg_advisory_xact_lock(hashtext(:name))"), {"name": self.study})
            yield

    def renew(self, worker: str) -> None:
        """Renew the lease of a worker: it says that the worker lives."""
        if (file := local_file(self.url)) is None:
            study_id = self.backend.get_study_id_from_name(self.study)
            self.backend.set_study_user_attr(study_id, f"lease:{worker}", time.time())
            return
        folder = file.with_name(file.name + ".leases")
        folder.mkdir(exist_ok=True)
        (folder / worker).write_text(f"{time.time()}\n", encoding="ascii")

    def alive(self, worker: str) -> bool:
        """Whether a worker lives: on this machine its process exists; elsewhere its lease changed within STALE seconds.

        Clocks of different machines are never compared.
        """
        machine, pid, start = worker.rsplit(":", 2)
        if machine == _machine():
            return _started(int(pid)) == start
        if (file := local_file(self.url)) is None:
            study_id = self.backend.get_study_id_from_name(self.study)
            lease = str(self.backend.get_study_user_attrs(study_id).get(f"lease:{worker}"))
        else:
            path = file.with_name(file.name + ".leases") / worker
            lease = path.read_text(encoding="ascii") if path.is_file() else ""
        now = time.monotonic()
        before, since = self._seen.get(worker, ("", now))
        if worker not in self._seen or lease != before:
            self._seen[worker] = (lease, now)
            return True
        return now - since < STALE
