"""`paribus run` and `paribus status` of a search without a sweep: a choice of conf/search, or the folder of a study."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paribus.core.arguments import Arguments, Positional
from paribus.core.config import compose_whole, conf_dir
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.sweeps.request import ARMS, CACHE, LAUNCHER, RESULTS, RUNS, SCALE, SEEDS, SLOTS, STUDY, SWEEP, TUNE, UNTIL
from paribus.sweeps.sweep import names as sweeps

if TYPE_CHECKING:
    from paribus.sweeps.launchers.base import Work
    from paribus.sweeps.search.status import TrialBoard

SWEEP_OR_SEARCH = Positional(
    SWEEP.label,
    "a sweep or a search by name, or the path of a sweep file",
    choices=lambda: [*sweeps(), *names()],
)
NONE = "none"  # the choice of conf/search that searches nothing


class Asked(NamedTuple):
    """`name` in conf/search, or None for a folder. `folder` of the study. `slots`: None for as many as fit."""

    name: str | None
    folder: Path
    overrides: tuple[str, ...] = ()
    slots: int | None = 1


def names() -> list[str]:
    """Our searches, and those in the working directory's `conf`."""
    roots = (conf_dir(), Path.cwd() / "conf")
    return sorted({path.stem for root in roots for path in (root / "search").glob("*.yaml")} - {NONE})


def request_of(given: Arguments, folders: bool = False) -> Asked | None:
    """The search that the user named, or None if the name is not a search; `folders`: the folder of a study counts too.

    Raises UserError for arguments that only a sweep has, and for keys that the search does not know.
    """
    from paribus.sweeps.search.storage import STUDY as STUDY_FILE

    name = given[SWEEP]
    if folders and os.path.isfile(Path(name) / STUDY_FILE):  # unlike Path.is_file, for every name
        return Asked(None, Path(name))
    if name not in names():
        return None
    surplus = [ARMS, SEEDS, RESULTS, TUNE, LAUNCHER, *UNTIL]
    given.refuse(surplus, f"does not apply to the search {name}", "a search has the keys hydra.sweeper.*")
    overrides = tuple(given.config(SCALE, STUDY, RUNS, CACHE))
    slots: int | None = 1
    if SLOTS in given:
        slots = given[SLOTS]  # None for `auto`
    return Asked(name, _folder(name, overrides), overrides, slots)


def _folder(name: str, overrides: Sequence[str]) -> Path:
    cfg = compose_whole([f"search={name}", *overrides])
    if cfg.hydra.sweeper.folder is None:
        raise UserError(f"search={name} has no hydra.sweeper.folder", "set hydra.sweeper.folder=PATH")
    return Path(str(cfg.hydra.sweeper.folder))


def look(asked: Asked) -> Callable[[], TrialBoard]:
    """A function that reads the state of all trials."""
    from paribus.sweeps.search.status import watch

    return watch(asked.folder)


def run(asked: Asked) -> int:
    """Search with one worker per slot, all on one study. Returns 1 if a worker failed.

    Raises Stopped if the user stops it; the same command resumes the search.
    """
    from paribus.sweeps.launchers.base import Ended, Events, failure_reason
    from paribus.sweeps.launchers.local import Slots, machine_slots
    from paribus.sweeps.status import watch_sheet

    trials, slots = look(asked), machine_slots(sys.maxsize, asked.slots)
    work = [_worker(asked, at, slot.threads) for at, slot in enumerate(slots)]
    over: list[Ended] = []
    if sys.stderr.isatty():
        with watch_sheet(trials, sys.stderr) as again:
            Slots(slots).run(work, Events(ended=over.append, idle=again))
    else:
        events = Events(lambda begun, place: say(f"▶ {begun.label}, log: {begun.log}"), ended=over.append)
        Slots(slots).run(work, events)
    for end in over:
        if end.status:
            say(f"✗ {end.work.label} failed: {failure_reason(end)} (log: {end.work.log})")
    print(trials().text())
    return 1 if any(end.status for end in over) else 0


def _worker(asked: Asked, at: int, threads: int) -> Work:
    """One worker: a process that runs trials until the study is complete."""
    from paribus.sweeps.launchers.base import Work

    own = [] if any(text.startswith("profile.threads=") for text in asked.overrides) else [f"profile.threads={threads}"]
    command = (sys.executable, "-m", "paribus", "train", "-m", f"search={asked.name}", *asked.overrides, *own)
    return Work(f"worker {at + 1}", command, asked.folder / f"worker{at + 1}.log")
