"""`paribus run` and `paribus status` of a search without a sweep: a choice of conf/search, or the folder of a study."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from paribus.core.arguments import Arguments, Positional
from paribus.core.config import compose_whole
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.sweeps.request import ARMS, CACHE, LAUNCHER, RESULTS, RUNS, SCALE, SEEDS, SLOTS, STUDY, SWEEP, TUNE, UNTIL
from paribus.sweeps.search.storage import STUDY as STUDY_FILE
from paribus.sweeps.sweep_file import names, search_names

SWEEP_OR_SEARCH = Positional(
    SWEEP.label,
    "a sweep or a search by name, or the path of a sweep file",
    choices=lambda: [*names(), *search_names()],
)


class SearchRequest(NamedTuple):
    """`name` in conf/search, or None for a folder. `folder` of the study. `slots`: None for as many as fit."""

    name: str | None
    folder: Path
    overrides: tuple[str, ...] = ()
    slots: int | None = 1


def search_request_of(given: Arguments, folders: bool = False) -> SearchRequest | None:
    """The search that the user named, or None if the name is not a search; `folders`: the folder of a study counts too.

    Raises UserError for arguments that only a sweep has, and for keys that the search does not know.
    """
    name = given[SWEEP]
    if folders and os.path.isfile(Path(name) / STUDY_FILE):  # unlike Path.is_file, for every name
        return SearchRequest(None, Path(name))
    if name not in search_names():
        return None
    only_sweeps = [ARMS, SEEDS, RESULTS, TUNE, LAUNCHER, *UNTIL]
    given.refuse(only_sweeps, f"does not apply to the search {name}", "a search has the keys hydra.sweeper.*")
    overrides = tuple(given.config(SCALE, STUDY, RUNS, CACHE))
    folder = compose_whole([f"search={name}", *overrides]).hydra.sweeper.folder
    if folder is None:
        raise UserError(f"search={name} has no hydra.sweeper.folder", "set hydra.sweeper.folder=PATH")
    slots: int | None = 1
    if SLOTS in given:
        slots = given[SLOTS]  # None for `auto`
    return SearchRequest(name, Path(str(folder)), overrides, slots)


def run_search(request: SearchRequest) -> int:
    """Search with one worker per slot, all on one study. Returns 1 if a worker failed.

    Raises Stopped if the user stops it; the same command resumes the search.
    """
    from paribus.sweeps.launchers.base import Ended, Events, Work, failure_reason
    from paribus.sweeps.launchers.local import Slots, machine_slots
    from paribus.sweeps.search.status import status_reader
    from paribus.sweeps.status import read_live

    read, slots = status_reader(request.folder), machine_slots(sys.maxsize, request.slots)
    search = (sys.executable, "-m", "paribus", "train", "-m", f"search={request.name}", *request.overrides)
    own_threads = any(text.startswith("profile.threads=") for text in request.overrides)
    workers = []
    for number, slot in enumerate(slots, 1):  # each runs trials until the study is complete
        command = search if own_threads else (*search, f"profile.threads={slot.threads}")
        workers.append(Work(f"worker {number}", command, request.folder / f"worker{number}.log"))
    ended: list[Ended] = []
    if sys.stderr.isatty():
        with read_live(read, sys.stderr) as read_again:
            Slots(slots).run(workers, Events(ended=ended.append, idle=read_again))
    else:
        events = Events(lambda begun, place: say(f"▶ {begun.label}, log: {begun.log}"), ended=ended.append)
        Slots(slots).run(workers, events)
    for end in ended:
        if end.status:
            say(f"✗ {end.work.label} failed: {failure_reason(end)} (log: {end.work.log})")
    print(read().text())
    return 1 if any(end.status for end in ended) else 0
