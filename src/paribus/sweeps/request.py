"""What `paribus run`, `status` and `plan` are asked for: SWEEP and Hydra-style key=value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.config import SCALE, split_overrides
from paribus.core.errors import UserError
from paribus.sweeps.sweep import Sweep, load, names
from paribus.sweeps.tuning import Tune
from paribus.verdict.sequential import FIRST, MOST

UNTIL_DECIDED = "--until-decided"


class Request(NamedTuple):
    """`overrides`: the user's own, for every arm; `slots` None: as the machine has; `arms`, `seeds` None: all.

    `runs`: root of the runs' folders; `results`: where finished records are looked for; `keep`: whether new ones are
    copied there; `study`: a name instead of the sweep's; `tune`: whether a sweep that tunes its arms does so; `most`:
    seeds at most, where they are added until the claims are decided; `until`: as in the manifest; `launcher`: overrides of
    `conf/run.yaml`.
    """

    sweep: Sweep
    scale: str = SCALE
    overrides: tuple[str, ...] = ()
    slots: int | None = None
    arms: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    runs: Path = Path("runs")
    results: Path = Path("analysis/results")
    keep: bool = False
    study: str | None = None
    tune: bool = True
    most: int | None = None
    until: dict[str, Any] | None = None
    launcher: tuple[str, ...] = ()

    @property
    def tuned(self) -> Tune | None:
        """The search of every arm, or None where there is none."""
        return self.sweep.tune_at(self.scale) if self.tune else None

    @property
    def named(self) -> str:
        """The study that the runs belong to."""
        return self.study or self.sweep.study

    @property
    def roots(self) -> list[Path]:
        """Where the records of this study and scale are."""
        return [self.runs, self.results / self.scale]


def parse(verb: str, argv: Sequence[str]) -> Request:
    """Read the arguments of a verb.

    Own keys: scale=, slots=, arms=, seeds= (0,1,2 or range(0,5)), runs= (or run_dir=, paths.runs=), results=, study=,
    tune=false (the values of the sweep file instead of a search), launcher= and launcher.*=; for `run` the flag
    --until-decided with max_seeds=; every other key is an override of all arms.

    Raises:
        UserError: without a sweep, for an unknown one (naming the known) and for values that cannot be read.
    """
    flags = [text for text in argv if text.startswith("-")]
    if unknown := [flag for flag in flags if verb != "run" or flag != UNTIL_DECIDED]:
        raise UserError(f"{verb} does not know {unknown[0]}", f"write paribus {verb} SWEEP scale=smoke key=value")
    swept = [text for text in argv if "=" not in text and not text.startswith("~") and text not in flags]
    if len(swept) != 1:
        cause = f"{verb} takes one sweep, got {' and '.join(swept)}" if swept else f"{verb} needs a sweep"
        raise UserError(cause, f"known: {', '.join(names()) or 'none'}")
    given = split_overrides([text for text in argv if text not in (*swept, *flags)])
    most = _most(bool(flags), given)
    own = {field: _read(key, given.pop(key), read) for key, (field, read) in _OWN.items() if key in given}
    launcher = tuple(f"{key}={given.pop(key)}" for key in list(given) if re.match(r"\+{0,2}launcher(\.|$)", key))
    keep = any(text.startswith("results=") for text in argv)
    if refused := [key for key in given if key in _REFUSED]:
        raise UserError(f"{refused[0]}= belongs to the sweep file", "copy it and change the copy")
    overrides = tuple(key if key.startswith("~") and not value else f"{key}={value}" for key, value in given.items())
    return Request(load(swept[0]), **own, overrides=overrides, keep=keep, most=most, launcher=launcher)


def _most(until_decided: bool, given: dict[str, str]) -> int | None:
    """Take max_seeds= out of what was given. Raises UserError for what does not go together."""
    text = given.pop("max_seeds", None)
    if not until_decided:
        if text is not None:
            raise UserError("max_seeds= goes with --until-decided", f"add {UNTIL_DECIDED}, or give seeds=")
        return None
    if clash := [key for key in ("seed", "seeds", "arm", "arms") if key in given]:
        raise UserError(f"{clash[0]}= and {UNTIL_DECIDED} exclude each other", "it takes all arms, and seeds as needed")
    if text is not None and (not text.isdecimal() or int(text) < FIRST):
        raise UserError(f"max_seeds={text} cannot be read", f"give a number from {FIRST}, where the first look is")
    return MOST if text is None else int(text)


def _read(key: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise UserError(f"{key}={text} cannot be read", str(error)) from error


def _slots(text: str) -> int | None:
    if text in ("auto", "null"):
        return None
    if not text.isdecimal():
        raise ValueError("write slots=2 or slots=auto")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in re.split(r"[\[\],\s]+", text) if name)


def _seeds(text: str) -> tuple[int, ...]:
    if found := re.fullmatch(r"range\((\d+),\s*(\d+)\)", text):
        return tuple(range(int(found[1]), int(found[2])))
    numbers = _names(text)
    if not numbers or not all(number.isdecimal() for number in numbers):
        raise ValueError("write seeds=0,1,2 or seeds=range(0,5)")
    return tuple(dict.fromkeys(map(int, numbers)))


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("write tune=false or tune=true")
    return text.lower() == "true"


def _path(text: str) -> Path:
    return Path(text).expanduser()


_OWN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "scale": ("scale", str),
    "slots": ("slots", _slots),
    "arm": ("arms", _names),
    "arms": ("arms", _names),
    "seed": ("seeds", _seeds),
    "seeds": ("seeds", _seeds),
    "paths.runs": ("runs", _path),
    "run_dir": ("runs", _path),
    "runs": ("runs", _path),
    "results": ("results", _path),
    "study": ("study", str),
    "tune": ("tune", _flag),
}
_REFUSED = ("family", "recipe", "experiment", "debug", "sweep", "sweep_hash")
