"""What happened to a study after its first results: generations of runs, changes of its sweep file.

Memory forgets what was run before; version control does not. A generation is a set of runs whose numbers stood
together. A new one begins with the commit that brings other numbers, of another sweep file, for an arm and seed that
was there. Generations are read from the commits of a study's folder and kept beside its table: a copy of it has none.
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.core.git import ask_git
from paribus.runs.archive import RECORDS_FILE
from paribus.runs.folder import RECORD, load_yaml
from paribus.sweeps.control import list_settings

HISTORY = "history.json"
GENERATION = "Generation"
_SHOWN = 6  # changes in a line
_NOT_SETTINGS = ("defaults", "overrides", "seeds", "table_seeds", "exit_tokens", "scale")  # of a recipe


class Generation(NamedTuple):
    """Runs of a study whose numbers stood together.

    `seeds`: of its runs. `first`, `last`: days on which they were committed. `commit`: of the code, the sweep file and
    the recipe that the first ones followed. `again`: how many runs were trained more than once from the same sweep
    file. `changed`: what of the two files differs from the generation before. `later`: what of the claims and columns
    was changed after its first numbers.
    """

    runs: int
    seeds: tuple[int, ...]
    first: str
    last: str
    commit: str
    again: int = 0
    changed: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


@dataclass
class _Runs:
    """A generation while commits are read. `metrics`: {(arm, seed): its metrics}."""

    commit: str
    sweep_hash: str | None
    metrics: dict[tuple[str, int], str] = field(default_factory=dict)
    days: list[str] = field(default_factory=list)
    again: set[tuple[str, int]] = field(default_factory=set)


def read_history(folder: Path) -> tuple[Generation, ...]:
    """The generations that are kept beside a table; none for one. Raises UserError if they cannot be read."""
    place = folder / HISTORY
    if not place.is_file():
        return ()
    try:
        kept: Any = json.loads(place.read_text(encoding="utf-8"))
        return tuple(Generation(**{key: _freeze(value) for key, value in one.items()}) for one in kept)
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{place} is not a history", "write it again: `paribus audit SWEEP --history`") from error


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def write_history(folder: Path, history: Sequence[Generation]) -> None:
    """Keep the generations beside the table, if there is something to say."""
    if describe_history(history):
        write_json(folder / HISTORY, [one._asdict() for one in history])
    else:
        (folder / HISTORY).unlink(missing_ok=True)


def describe_history(history: Sequence[Generation]) -> list[str]:
    """A line for each generation, oldest first; none if a study was run once, from a file that stayed as it was."""
    if len(history) < 2 and not any(one.later for one in history):
        return []
    lines = []
    for number, one in enumerate(history, 1):
        days = one.first if one.first == one.last else f"{one.first} to {one.last}"
        line = f"{GENERATION} {number} of {len(history)}: {one.runs} runs, {days}"
        line += f"; {one.again} of them trained again" if one.again else ""
        line += f"; changed before it: {_list_some(one.changed)}" if one.changed else ""
        line += f"; changed after its first numbers: {_list_some(one.later)}" if one.later else ""
        lines.append(f"{line}.")
    return lines


def derive_history(folder: Path, sweep: Path, recipe: Path, scale: str) -> tuple[Generation, ...] | None:
    """The generations of a study, from the commits of its folder; None if they are not there.

    Args:
        folder: that of its committed table.
        sweep: its sweep file.
        recipe: the file of the scale's recipe.
    """
    if ask_git(folder, "rev-parse", "--is-shallow-repository") != b"false\n":
        return None
    generations: list[_Runs] = []
    for commit, day, files in _list_commits(folder):
        records = [record for name in files for record in _read_records(folder, f"{commit}:{name}")]
        if not records:
            continue
        metrics = {(one["arm"], one["seed"]): json.dumps(one["metrics"], sort_keys=True) for one in records}
        known = generations[-1].metrics if generations else {}
        other = {run for run, value in metrics.items() if known.get(run, value) != value}
        sweep_hash = records[0].get("sweep_hash")
        if not generations or (other and generations[-1].sweep_hash != sweep_hash):
            ran = (records[0].get("git") or {}).get("commit", commit)
            known_commit = ran if ask_git(folder, "cat-file", "-e", ran) is not None else commit
            generations.append(_Runs(known_commit, sweep_hash))
            other = set()
        current = generations[-1]
        if metrics.keys() - current.metrics or other:
            current.days.append(day)
        current.sweep_hash = sweep_hash  # the same numbers under another hash are the same runs
        current.again |= other
        current.metrics |= metrics
    settings = [_read_settings(one.commit, sweep, recipe, scale) for one in generations]
    history = []
    for at, (one, own) in enumerate(zip(generations, settings, strict=True)):
        changed = _compare(settings[at - 1], own) if at and settings[at - 1] and own else []
        now = _read_settings("HEAD", sweep, recipe, scale)
        later = _compare(_only_rules(own), _only_rules(now)) if own and now else []
        rules = tuple(later if at + 1 == len(generations) else ())
        history.append(
            Generation(
                len(one.metrics),
                tuple(sorted({seed for _, seed in one.metrics})),
                one.days[0],
                one.days[-1],
                one.commit[:12],
                len(one.again),
                tuple(changed),
                rules,
            )
        )
    return tuple(history)


def _list_commits(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(commit, its day, the records that it brought or changed), oldest first."""
    command = ("log", "--reverse", "--no-renames", "--diff-filter=AM", "--name-only", "--format=%x00%H %cs", "--", ".")
    for part in (ask_git(folder, *command) or b"").decode().split("\0")[1:]:
        head, *names = part.splitlines()
        commit, day = head.split()
        yield commit, day, [name for name in names if PurePosixPath(name).name in (RECORD, RECORDS_FILE)]


def _read_records(folder: Path, blob: str) -> Iterator[dict[str, Any]]:
    content = ask_git(folder, "show", blob) or b""
    lines = gzip.decompress(content).splitlines() if blob.endswith(RECORDS_FILE) else [content]
    for record in map(json.loads, lines):
        if record.get("metrics"):
            yield record


def _read_settings(commit: str, sweep: Path, recipe: Path, scale: str) -> dict[str, Any]:
    """What decides at a scale, as the files of a commit say it: {a setting or a part of the sweep file: its value};
    empty if the sweep file was not there yet.
    """
    whole = _load(commit, sweep)
    if not whole:
        return {}
    own = (whole.get("scales") or {}).get(scale) or {}
    of_scale = _load(commit, recipe) or _load(commit, recipe.parent.parent / recipe.name)
    settings = list_settings(of_scale, _NOT_SETTINGS)
    choices = [f"{key.split('/', 1)[1]}={value}" for one in of_scale.get("defaults", ()) for key, value in one.items()]
    for text in _flatten([choices, of_scale.get("overrides"), whole.get("base"), own.get("overrides")]):
        key, _, value = text.partition("=")
        settings[key.lstrip("+")] = _read_value(value)
    arms = {arm: _flatten([text, (own.get("arms") or {}).get(arm)]) for arm, text in (whole.get("arms") or {}).items()}
    claims = [one.get("claim") if isinstance(one, dict) else one for one in whole.get("claims") or ()]
    parts = {
        key: own.get(key, whole.get(key))
        for key in ("baseline", "matched", "seeds", "universe", "tune", "columns", "design", "folded", "generators")
    }
    refined = own.get("factors") or {}
    factors = {f"factor {name}": [levels, refined.get(name)] for name, levels in (whole.get("factors") or {}).items()}
    return settings | {f"arm {arm}": texts for arm, texts in arms.items()} | factors | parts | {"claims": claims}


def _only_rules(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: settings[key] for key in ("claims", "columns") if key in settings}


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two files' settings, in words."""
    found = []
    for key in (*after, *(key for key in before if key not in after)):
        one, other = before.get(key), after.get(key)
        if one == other:
            continue
        if key == "claims":
            new = [claim for claim in other or () if claim not in (one or ())]
            found.append(f"claims ({len(new)} new or changed, {len(one or ()) + len(new) - len(other or ())} gone)")
        elif isinstance(one, list | dict) or isinstance(other, list | dict):
            found.append(key if key in before and key in after else f"{key} ({'new' if key in after else 'gone'})")
        else:
            found.append(f"{key} from {_say(one)} to {_say(other)}")
    return found


def _say(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"{value:,.0f}"
    return "its default" if value is None else f"{value}"


def _list_some(changes: Sequence[str]) -> str:
    more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return ", ".join(changes[:_SHOWN]) + more


def _flatten(texts: Any) -> list[str]:
    """The overrides of a list that holds lists, as YAML's anchors make them."""
    if texts is None:
        return []
    return [str(texts)] if not isinstance(texts, list) else [text for part in texts for text in _flatten(part)]


def _read_value(text: str) -> Any:
    """The value of an override; YAML takes 2e-3 for a word."""
    try:
        return float(text)
    except ValueError:
        return load_yaml(text.encode())


def _load(commit: str, path: Path) -> dict[str, Any]:
    """The mapping that a YAML file held at a commit, also under an earlier name; empty if it was not there."""
    content = ask_git(path.parent, "show", f"{commit}:./{path.name}")
    if content is None:
        shown = (ask_git(path.parent, "show", f"{commit}:{name}") for name in _find_earlier_names(path))
        content = next((one for one in shown if one is not None), None)
    loaded = load_yaml(content) if content else None
    return loaded if isinstance(loaded, dict) else {}


def _find_earlier_names(path: Path) -> list[str]:
    """What a file was called before it was renamed, from the top of its repository; not what it is a copy of."""
    listed = ask_git(path.parent, "log", "--follow", "--name-status", "--format=", "--", path.name) or b""
    changes = [line.split("\t") for line in listed.decode().splitlines() if line]
    own = itertools.takewhile(lambda change: not change[0].startswith("C"), changes)
    return [names[0] for kind, *names in own if kind.startswith("R")]
