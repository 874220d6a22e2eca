"""The request behind `paribus run`, `status` and `plan`: their arguments, and the typed request made from them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from paribus.core.arguments import Arguments, Flag, Option, Positional, Verb, folder, names, switch, text, whole
from paribus.core.arguments import parse as parse_arguments
from paribus.core.config import compose_whole, plain
from paribus.core.config_names import PRESETS, choices
from paribus.core.errors import UserError
from paribus.core.files import read_name
from paribus.core.recipes import SCALE as USUAL_SCALE
from paribus.runs import store
from paribus.sweeps import sweep_file
from paribus.sweeps.search.settings import check_settings
from paribus.sweeps.search.storage import STUDY as STUDY_FILE
from paribus.sweeps.sweep import Sweep
from paribus.sweeps.tuning import Tune
from paribus.verdict.power import MOST_SEEDS
from paribus.verdict.sequential import FIRST, MOST

MOST_LOOKS = 100  # seeds at the last look: the levels of more take minutes


def _read_seeds(value: str) -> tuple[int, ...]:
    if span := re.fullmatch(r"range\((\d+),\s*(\d+)\)", value):
        seeds: Sequence[int] = range(int(span[1]), int(span[2]))
    else:
        seeds = list(dict.fromkeys(int(seed) if seed.isdecimal() else -1 for seed in names(value)))
    if seeds[MOST_SEEDS:]:
        raise ValueError(f"give at most {MOST_SEEDS} seeds")
    if not seeds or min(seeds) < 0:
        raise ValueError("write seeds=0,1,2 or seeds=range(0,5)")
    return tuple(seeds)


def scales() -> list[str]:
    """The scales of every family."""
    return sorted({recipe.rpartition("/")[2] for recipe in choices("recipe") if "/" in recipe})


SWEEP = Positional(
    "SWEEP", "a sweep by name (`paribus run --help` lists them), or the path of a sweep file", choices=sweep_file.names
)
SWEEP_OR_SEARCH = Positional(
    SWEEP.label,
    "a sweep or a search by name, or the path of a sweep file",
    choices=lambda: [*sweep_file.names(), *sweep_file.search_names()],
)
SCALE = Option(
    "scale", "size of model and data: test, smoke, cpu, gpu or paper", USUAL_SCALE, read_name, choices=scales
)
STUDY: Option[str | None] = Option(
    "study", "name of the runs' study, if it is not the sweep's own", None, read_name, shown="the sweep's study"
)
ARMS: Option[tuple[str, ...] | None] = Option("arms", "only these arms: a,b", None, names, shown="all", config="arm")
SEEDS: Option[tuple[int, ...] | None] = Option(
    "seeds", "only these seeds: 0,1,2 or range(0,5)", None, _read_seeds, shown="those of the scale", config="seed"
)
SLOTS: Option[int | None] = Option(
    "slots",
    "how many runs train at once",
    None,
    lambda value: None if value in ("auto", "null") else whole(1)(value),
    shown="auto",
    choices=lambda: ["auto"],
)
RUNS = Option("runs", "folder of the runs", Path("runs"), folder, config="paths.runs", old=("run_dir",))
RESULTS = Option("results", "folder of committed results, which count as finished runs", store.RESULTS, folder)
CACHE: Option[Path | None] = Option(
    "cache", "folder of prepared text and tokenizers", None, folder, shown="~/.cache/paribus", config="paths.cache"
)
TUNE = Option(
    "tune",
    "false: skip the search of a sweep that tunes its arms, and use the values in its file",
    True,
    switch,
    shown="true",
    choices=lambda: ["true", "false"],
)
LAUNCHER = Option(
    "launcher",
    "where the runs train: local, slurm or ray; launcher.KEY= configures it",
    "local",
    text,
    choices=lambda: choices("launcher"),
)
UNTIL_DECIDED = Flag(
    "--until-decided", "add seeds to the arms of open claims until every claim is decided, at a controlled error rate"
)
MAX_SEEDS = Option("max_seeds", "at most this many seeds with --until-decided", MOST, whole(FIRST, most=MOST_LOOKS))
OPTIONS = (SCALE, ARMS, SEEDS, SLOTS, RUNS, RESULTS, CACHE, STUDY, TUNE, LAUNCHER)
UNTIL = (UNTIL_DECIDED, MAX_SEEDS)
CONFIRM = Flag("--confirm", "run a frozen sweep: its seeds alone, exactly as its lock says (see `paribus freeze`)")


class Request(NamedTuple):
    """A sweep at a scale, and how to run it.

    overrides: the user's own, for every arm.
    slots: None for as many as the machine has room for.
    arms, seeds: None for all.
    runs: root of the run folders. results: folder in which finished records are looked up.
    keep: whether new records are copied to `results`.
    study: a name instead of the sweep's.
    tune: whether a sweep that tunes its arms does so.
    most: with --until-decided, how many seeds at most.
    until: the looks taken so far, as in the manifest.
    launcher: overrides of `conf/run.yaml`.
    lock: of a frozen sweep that the runs confirm, as in the manifest.
    """

    sweep: Sweep
    scale: str = USUAL_SCALE
    overrides: tuple[str, ...] = ()
    slots: int | None = None
    arms: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    runs: Path = RUNS.default
    results: Path = store.RESULTS
    keep: bool = False
    study: str | None = None
    tune: bool = True
    most: int | None = None
    until: dict[str, Any] | None = None
    launcher: tuple[str, ...] = ()
    lock: Mapping[str, Any] = MappingProxyType({})

    @property
    def tuned(self) -> Tune | None:
        """The search of every arm, or None."""
        return self.sweep.tune_at(self.scale) if self.tune else None

    @property
    def study_name(self) -> str:
        """The study that the runs belong to."""
        return self.study or self.sweep.study

    def command(self, verb: str) -> str:
        """A verb's command line for this sweep, its scale and its folders, as a user types it."""
        name = self.sweep.path.stem if self.sweep.path.stem in sweep_file.names() else str(self.sweep.path)
        study = "" if self.study is None else f" study={self.study}"
        runs = "" if self.runs == RUNS.default else f" runs={self.runs}"
        results = "" if self.results == RESULTS.default or verb == "run" else f" results={self.results}"
        return f"paribus {verb} {name} scale={self.scale}{study}{runs}{results}"

    @property
    def roots(self) -> list[Path]:
        """Where the records of this study and scale are."""
        return [self.runs, self.results / self.scale]


def parse(verb: str, argv: Sequence[str]) -> Request:
    """The request of an argv. Raises UserError for arguments that are not valid, and as `request_of` does."""
    declared = Verb(verb, params=[SWEEP, *OPTIONS, *UNTIL], example=f"paribus {verb} SWEEP", overrides=True)
    return request_of(parse_arguments(declared, argv))


def request_of(given: Arguments, sweep: str | None = None) -> Request:
    """The request of a verb's arguments; `sweep` is for a verb without SWEEP.

    Raises UserError for an unknown sweep, and for arguments that belong to the sweep file or exclude each other.
    """
    if refused := [key for key in given.overrides if key in (*PRESETS, "sweep", "sweep_hash")]:
        raise UserError(f"{refused[0]}= belongs to the sweep file", "copy the file and change the copy")
    for argument in given.argv:
        if single := re.fullmatch(r"seeds=([1-9]\d*)", argument):
            mend = f"write seed={single[1]} for the seed {single[1]} alone, or seeds=range(0,{single[1]}) for that many"
            raise UserError(f"seeds={single[1]} can be read in two ways", mend)
    config = given.config(CACHE, LAUNCHER)
    launcher = [override for override in config if re.match(r"\+{0,2}launcher[.=]", override)]
    chosen = sweep_file.load(sweep or given[SWEEP]).at(given[SCALE])
    most = None
    if given[UNTIL_DECIDED]:
        given.refuse([SEEDS], f"and {UNTIL_DECIDED.label} exclude each other", "it adds seeds as needed")
        most = given[MAX_SEEDS]
    else:
        given.refuse([MAX_SEEDS], f"needs {UNTIL_DECIDED.label}", f"add {UNTIL_DECIDED.label}, or give seeds=")
    return Request(
        sweep=chosen,
        scale=given[SCALE],
        overrides=tuple(override for override in config if override not in launcher),
        slots=given[SLOTS],
        arms=given[ARMS],
        seeds=given[SEEDS],
        runs=given[RUNS],
        results=given[RESULTS],
        keep=RESULTS in given,
        study=given[STUDY],
        tune=given[TUNE],
        most=most,
        launcher=tuple(launcher),
    )


class SearchRequest(NamedTuple):
    """`name` in conf/search, or None for a folder. `folder` of the study. `slots`: None for as many as fit. `settings`:
    the keys of `hydra.sweeper`.
    """

    name: str | None
    folder: Path
    overrides: tuple[str, ...] = ()
    slots: int | None = 1
    settings: Mapping[str, Any] = MappingProxyType({})


def search_request_of(given: Arguments, folders: bool = False) -> SearchRequest | None:
    """The search that the user named, or None if the name is not a search; `folders`: the folder of a study counts too.

    Raises UserError for arguments that only a sweep has, and for keys that the search does not know or cannot use.
    """
    from paribus.core.plugins import check_hydra  # it imports Hydra

    name = given[SWEEP]
    if folders and os.path.isfile(Path(name) / STUDY_FILE):  # unlike Path.is_file, for every name
        return SearchRequest(None, Path(name))
    if name not in sweep_file.search_names():
        return None
    only_sweeps = [ARMS, SEEDS, RESULTS, TUNE, LAUNCHER, *UNTIL, CONFIRM]
    given.refuse(only_sweeps, f"does not apply to the search {name}", "a search has the keys hydra.sweeper.*")
    overrides = tuple(given.config(SCALE, STUDY, RUNS, CACHE))
    config = compose_whole([f"search={name}", *overrides])
    check_hydra(config.hydra)
    settings: Any = plain(config.hydra.sweeper)
    check_settings(settings)
    if (folder := settings["folder"]) is None:
        raise UserError(f"search={name} has no hydra.sweeper.folder", "set hydra.sweeper.folder=PATH")
    slots: int | None = 1
    if SLOTS in given:
        slots = given[SLOTS]  # None for `auto`
    return SearchRequest(name, Path(str(folder)), overrides, slots, settings)
