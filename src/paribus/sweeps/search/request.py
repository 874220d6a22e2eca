"""`paribus run` and `paribus status` of a plain search: one of conf/search, or the folder of a study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paribus.core.config import conf_dir, explained, split_overrides
from paribus.core.console import say
from paribus.core.errors import UserError

if TYPE_CHECKING:
    from paribus.sweeps.launchers.base import Work
    from paribus.sweeps.search.trial_board import TrialBoard

NONE = "none"  # the choice of conf/search that is no search


class Asked(NamedTuple):
    """`name` of conf/search, None where a folder is given; `folder` of the study; `slots` None: as the machine has."""

    name: str | None
    folder: Path
    overrides: tuple[str, ...] = ()
    slots: int | None = 1


def names() -> list[str]:
    """The searches that are shipped, and those of the working directory's own `conf`."""
    roots = (conf_dir(), Path.cwd() / "conf")
    return sorted({path.stem for root in roots for path in (root / "search").glob("*.yaml")} - {NONE})


def parse(verb: str, argv: Sequence[str]) -> Asked | None:
    """What is asked for; None where it is no search. slots= is the verb's own key, runs= is short for paths.runs=.

    Raises UserError for keys that the search does not know.
    """
    from paribus.sweeps.search.storage import STUDY

    named = [text for text in argv if "=" not in text and not text.startswith(("-", "~"))]
    if len(named) != 1:
        return None
    if verb == "status" and (Path(named[0]) / STUDY).is_file():
        return Asked(None, Path(named[0]))
    if named[0] not in names():
        return None
    given = split_overrides([text for text in argv if text != named[0]])
    slots = given.pop("slots", "1")
    if "runs" in given:
        given["paths.runs"] = given.pop("runs")
    if slots not in ("auto", "null") and not slots.isdecimal():
        raise UserError(f"slots={slots} cannot be read", "write slots=2 or slots=auto")
    overrides = tuple(f"{key}={value}" for key, value in given.items())
    count = None if slots in ("auto", "null") else int(slots)
    return Asked(named[0], _folder(named[0], overrides), overrides, count)


def _folder(name: str, overrides: Sequence[str]) -> Path:
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with explained(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = compose("train", overrides=[f"search={name}", *overrides], return_hydra_config=True)
    if cfg.hydra.sweeper.folder is None:
        raise UserError(f"search={name} names no hydra.sweeper.folder", "give hydra.sweeper.folder=PATH")
    return Path(str(cfg.hydra.sweeper.folder))


def look(asked: Asked) -> Callable[[], TrialBoard]:
    """What looks at the trials."""
    from paribus.sweeps.search.trial_board import watch

    return watch(asked.folder)


def run(asked: Asked) -> int:
    """Search with one worker a slot, all on one study. Returns 1 where a worker failed.

    Raises UserError for a number of slots below 1, KeyboardInterrupt on a stop; the same command goes on from there.
    """
    from paribus.sweeps.board import watch_sheet
    from paribus.sweeps.launchers.base import Ended, Events, failure_reason
    from paribus.sweeps.launchers.local import Slots, machine_slots

    trials, slots = look(asked), machine_slots(sys.maxsize, asked.slots)
    work = [_worker(asked, at, len(slot.cores)) for at, slot in enumerate(slots)]
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
    """One worker: a process that searches beside the others until the study is over."""
    from paribus.sweeps.launchers.base import Work

    own = [] if any(text.startswith("profile.threads=") for text in asked.overrides) else [f"profile.threads={threads}"]
    command = (sys.executable, "-m", "paribus", "train", "-m", f"search={asked.name}", *asked.overrides, *own)
    return Work(f"worker {at + 1}", command, asked.folder / f"worker{at + 1}.log")
