"""A frozen sweep: what its confirming runs may not change, written before the first of them.

The lock stands beside the sweep file, as `NAME.SCALE.lock.json`, and is committed. It fixes the resolved arms, the
text, the claims with their margins, the columns, the rules of the verdicts, and seeds that no record of the study has
used. `paribus run SWEEP --confirm` trains these seeds, as a study of its own, and refuses any difference. After runs
have been seen, a changed sweep can be frozen again, with seeds that are new again: that is its next generation.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from paribus import __version__
from paribus.core.checksums import digest, parse, seal, verify
from paribus.core.config import plain
from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.core.git import ask_git, is_ancestor
from paribus.runs.archive import open_stores
from paribus.runs.manifest import Manifest, find_manifest
from paribus.runs.provenance import CHECKOUT, git_state
from paribus.runs.record import Record
from paribus.runs.store import trial_study
from paribus.sweeps.control import NAMES, list_settings
from paribus.sweeps.expand import expand, name_cell
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import Sweep
from paribus.sweeps.tuning import Tune
from paribus.sweeps.until import find_first_look
from paribus.verdict.rules import VERSION as RULES
from paribus.verdict.sequential import Looks

CONFIRMED, EXPLORATORY = STAGES = ("confirmed", "exploratory")  # of a verdict
_STUDY = "_confirmed"  # after the name of a sweep's study: its confirming runs
_PLACES = ("paths", "profile", "logger", "run_dir")  # settings that decide nothing
_HARMLESS = ("paths.", "profile.", "logger")  # beginnings of overrides that decide nothing
_SHOWN = 4  # differences in a line


class Lock(NamedTuple):
    """What is frozen. `fixed`: all that a run must not change. `before`: {frozen, seeds, changed: what the next one
    changed} of earlier generations.

    `pretrainings`: {arm/seed<k>: the signature of its pre-training}; empty if a search will choose settings of arms.
    """

    generation: int
    frozen: str
    commit: str | None
    seeds: tuple[int, ...]
    looks: Looks | None
    fixed: Mapping[str, Any]
    pretrainings: Mapping[str, str]
    before: tuple[Mapping[str, Any], ...] = ()

    @property
    def hash(self) -> str:
        """Of everything in it."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**self._asdict(), "looks": None if self.looks is None else asdict(self.looks)}


def place_of(sweep: Path, scale: str) -> Path:
    """The lock of a sweep file at a scale."""
    return sweep.with_name(f"{sweep.stem}.{scale}.lock.json")


def confirmed_study(study: str) -> str:
    """The study that the confirming runs of a study belong to."""
    return f"{study}{_STUDY}"


def read_lock(sweep: Path, scale: str) -> Lock | None:
    """The lock of a sweep file at a scale, or None. Raises UserError if it was changed or cannot be read."""
    place = place_of(sweep, scale)
    if not place.is_file():
        return None
    try:
        fields = parse(place.read_text(encoding="utf-8"))
        if not verify(fields):
            raise ValueError("its checksum does not match")
        del fields["checksum"]
        looks = None if fields["looks"] is None else Looks(**fields["looks"])
        return Lock(**{**fields, "seeds": tuple(fields["seeds"]), "looks": looks, "before": tuple(fields["before"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{place} was changed by hand or is damaged: {error}", f"type `git checkout {place}`"
        ) from error


def freeze(request: Request, known: Collection[int] = ()) -> tuple[Lock, bool]:
    """Write the lock of a sweep; (the lock, whether it is new).

    A lock that still holds stays as it is, unless other seeds or looks are asked for. One without records is replaced.
    After records, the new one is the next generation.

    Args:
        request: its seeds are those to lock, or None for as many new ones as the scale has; `most` for looks.
        known: seeds that earlier records of the study had, of which nothing but the history is left.

    Raises:
        UserError: as `expand` does, for a sweep without claims, for seeds that a record of the study has used, and if
            there are confirming runs whose lock is gone: a new one would hide their generation.
    """
    sweep, scale = request.sweep, request.scale
    if not sweep.claims:
        raise UserError(f"{sweep.path} has no claims to freeze", "add a claim to the file")
    old = read_lock(sweep.path, scale)
    same_looks = old is not None and request.most in (None, old.looks.most if old.looks else None)
    if old is not None and same_looks and request.seeds is None and not find_changes(old, request):
        return old, False
    held = [*list_records(request.roots)]
    seen = any(record.study == confirmed_study(sweep.study) and record.scale == scale for record in held)
    if old is None and seen:
        place = place_of(sweep.path, scale)
        cause = f"{confirmed_study(sweep.study)} has runs at scale={scale}, and their lock {place} is gone"
        mend = f"bring it back with `git checkout COMMIT -- {place}`; `git log -- {place}` lists its commits"
        raise UserError(cause, mend)
    studies = {sweep.study, confirmed_study(sweep.study)}
    trials = {trial_study(study) for study in studies}
    used = {record.seed for record in held if record.study in studies | trials} | {*known}
    if request.tuned is not None:
        used |= {*request.tuned.seeds}
    seeds = _choose_seeds(request, used, {record.pretraining for record in held})
    looks = None if request.most is None else Looks(find_first_look(request, request.most), request.most)
    fixed, pretrainings = _fix(request, seeds, looks)
    generation, before = (1, ()) if old is None else (old.generation, old.before)
    if old is not None and seen:
        generation += 1
        before = (*before, {"frozen": old.frozen, "seeds": list(old.seeds), "changed": _compare(old.fixed, fixed)})
    state = git_state()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lock = Lock(
        generation, today, state["commit"] if state else None, tuple(seeds), looks, fixed, pretrainings, tuple(before)
    )
    write_json(place_of(sweep.path, scale), seal(lock.to_json()))
    return lock, True


def require_lock(request: Request) -> tuple[Lock, str]:
    """(the lock that a request's confirming runs must follow, the commit that brought it).

    Raises:
        UserError: if there is none, if it is not committed, if the code or the sweep has changed since, or if a record
            that has a locked pre-training is older than the lock.
    """
    sweep, scale = request.sweep, request.scale
    lock, place = read_lock(sweep.path, scale), place_of(sweep.path, scale)
    if lock is None:
        mend = f"type `paribus freeze {sweep.path.stem} scale={scale}`, and commit {place.name}"
        raise UserError(f"{sweep.path.name} is not frozen at scale={scale}", mend)
    commit = find_commit(place)
    if commit is None:
        in_git = ask_git(place.parent, "rev-parse", "--git-dir") is not None
        mend = f"type `{'' if in_git else 'git init && '}git add {place} && git commit -m frozen`"
        raise UserError(f"{place} is not committed, so nothing shows that it came before its runs", mend)
    state = git_state()
    if state is not None and state["dirty"]:
        raise UserError(
            f"the code in {CHECKOUT} has uncommitted changes, so no commit says what ran", "commit or undo them"
        )
    if changes := find_changes(lock, request):
        more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        mend = f"undo that, or freeze it again with `paribus freeze {sweep.path.stem} scale={scale}`"
        what = f"{sweep.path.name} is not what was frozen on {lock.frozen}: {'; '.join(changes[:_SHOWN])}{more}"
        raise UserError(what, mend)
    if early := find_early(lock, commit, place.parent, confirmed_study(sweep.study), list_records(request.roots)):
        mend = f"freeze other seeds: `paribus freeze {sweep.path.stem} scale={scale} seeds=...`"
        runs = ", ".join(early[:_SHOWN])
        raise UserError(f"no commit says that these runs with its pre-training came after the lock: {runs}", mend)
    return lock, commit


def confirm(request: Request) -> Request:
    """The request for the confirming runs of a frozen sweep. Raises UserError as `require_lock` does, and for settings
    of the user's own.
    """
    own = [text for text in request.overrides if not text.lstrip("+").startswith(_HARMLESS)]
    if own:
        raise UserError(f"{own[0]} and --confirm exclude each other", "the lock decides")
    lock, commit = require_lock(request)
    about = {"hash": lock.hash, "commit": commit, "generation": lock.generation, "seeds": list(lock.seeds)}
    return request._replace(
        seeds=lock.seeds,
        study=confirmed_study(request.sweep.study),
        most=None if lock.looks is None else lock.looks.most,
        lock=about,
    )


def refuse_confirmed(request: Request) -> None:
    """Raises UserError if runs that follow no lock would join those of a study that confirms one."""
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    if manifest is not None and manifest.lock:
        cause = f"{request.study_name} has the runs that confirm a lock at scale={request.scale}"
        raise UserError(cause, "add --confirm and leave study= out, or choose another study=")


def find_stage(sweep: Sweep, scale: str, manifest: Manifest | None) -> tuple[str, list[str]]:
    """(whether the runs of a manifest confirm what was frozen, or explore; what a reader should know about it)."""
    if manifest is None or not manifest.lock:
        return EXPLORATORY, []
    lock, seeds = read_lock(sweep.path, scale), {int(label.rpartition("/seed")[2]) for label in manifest.runs}
    if lock is None or lock.hash != manifest.lock["hash"]:
        return EXPLORATORY, ["Its lock is gone or was replaced after these runs, so that they confirm nothing."]
    if lock.fixed["file"] != sweep.hash(scale) or lock.fixed["rules"] != RULES or not seeds <= {*lock.seeds}:
        return EXPLORATORY, [f"The sweep file or the rules were changed after it was frozen on {lock.frozen}."]
    said = [f"Frozen on {lock.frozen}, before its first run, with seeds that no record of the study had."]
    for number, one in enumerate(lock.before, 1):
        changed = ", ".join(one["changed"]) or "nothing but the seeds"
        said.append(
            f"Generation {number} was frozen on {one['frozen']}; after its runs, the next one changed {changed}."
        )
    return CONFIRMED, said


def find_commit(place: Path) -> str | None:
    """The commit that brought a file as it is; None if it is not committed so."""
    if ask_git(place.parent, "status", "--porcelain", "--", place.name) != b"":
        return None
    found = ask_git(place.parent, "log", "-1", "--format=%H", "--", place.name)
    return found.decode().strip() or None if found is not None else None


def find_changes(lock: Lock, request: Request) -> list[str]:
    """What of a sweep, its settings, its text or the rules is not as it was frozen."""
    fixed, pretrainings = _fix(request, lock.seeds, lock.looks)
    changes = _compare(lock.fixed, fixed)
    if not changes and pretrainings != lock.pretrainings:
        changes.append("the text, or what the code does with the same settings")
    return changes


def find_early(lock: Lock, commit: str, folder: Path, own: str, records: Iterable[Record]) -> list[str]:
    """The records that have a locked pre-training and do not come after the commit of the lock.

    Args:
        folder: in the repository of the lock. Where the code is of another one, no commit says which came first.
        own: the study of the confirming runs; only its runs may leave that open.
    """
    locked, early = {*lock.pretrainings.values()}, []
    for record in (record for record in records if record.pretraining in locked):
        after = None if record.git is None else is_ancestor(folder, commit, record.git.commit)
        if after is False or (after is None and record.study != own):
            early.append(f"{record.study}/{record.label}")
    return early


def _fix(request: Request, seeds: Sequence[int], looks: Looks | None) -> tuple[dict[str, Any], dict[str, str]]:
    """(what the lock of these seeds fixes, the signatures of their pre-trainings)."""
    sweep, scale = request.sweep, request.scale
    expanded = expand(request._replace(seeds=tuple(seeds), study=confirmed_study(sweep.study)))
    number = None if sweep.universe_at(scale) is None else seeds[0]  # arms differ alike in all settings: show the first
    configs = {arm: expanded.configs[name_cell(arm, number)] for arm in expanded.arms}
    settings = {arm: list_settings(plain(config), (*NAMES, *_PLACES)) for arm, config in configs.items()}
    base = settings[sweep.baseline]
    tune = request.tuned
    fixed = {
        "sweep": sweep.path.name,
        "scale": scale,
        "package": __version__,
        "rules": RULES,
        "file": sweep.hash(scale),
        "baseline": sweep.baseline,
        "settings": base,
        "arms": {
            arm: {key: own.get(key) for key in sorted(base.keys() | own.keys()) if own.get(key) != base.get(key)}
            for arm, own in settings.items()
            if arm != sweep.baseline
        },
        "columns": list(sweep.columns),
        "claims": list(sweep.claims),
        "universe": {number: dict(setting) for number, setting in expanded.settings.items() if int(number) in seeds},
        "tune": None if tune is None else _describe_search(tune),
    }
    pretrainings = {}
    if tune is None:
        pretrainings = {job.label: expanded.identity(job).pretrain for job in expanded.jobs}
    whole: dict[str, Any] = json.loads(json.dumps(fixed))
    return whole, pretrainings


def _describe_search(tune: Tune) -> dict[str, Any]:
    kept = {"trials": tune.trials, "on": tune.on, "seeds": list(tune.seeds), "sampler": tune.sampler}
    return {**kept, "space": dict(tune.texts)}


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two locks."""
    changes = []
    for key in (*after, *(key for key in before if key not in after)):
        one, other = before.get(key), after.get(key)
        if one == other:
            continue
        if key in ("settings", "arms") and isinstance(one, dict) and isinstance(other, dict):
            names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
            word = "" if key == "settings" else "the arm "
            changes += [f"{word}{name}" for name in names]
        else:
            changes.append({"file": "the sweep file", "rules": "the rules of the verdicts"}.get(key, key))
    return changes


def _choose_seeds(request: Request, used: Collection[int], held: Collection[str | None]) -> list[int]:
    """The seeds to lock. Raises UserError if the user's own were used."""
    sweep, scale = request.sweep, request.scale
    if request.seeds is not None:
        if spent := [seed for seed in request.seeds if seed in used]:
            raise UserError(f"seed {spent[0]} has a record in {sweep.study}", "give others, or leave seeds= out")
        return list(request.seeds)
    count = request.most or len(sweep.seeds_at(scale))
    first = 0 if sweep.universe_at(scale) is not None else max(sweep.seeds_at(scale)) + 1  # settings begin at 0
    unused = (seed for seed in itertools.count(first) if seed not in used)
    while True:
        seeds = list(itertools.islice(unused, count))
        if request.tuned is not None or not {*_fix(request, seeds, None)[1].values()} & {*held}:
            return seeds


def list_records(roots: Sequence[Path]) -> Iterator[Record]:
    """The records of all studies below the roots."""
    for root in roots:
        for folder in sorted(path for path in root.glob("*") if path.is_dir()) if root.is_dir() else ():
            for store in open_stores(root, folder.name):
                for run in store.list_runs():
                    record, _ = run.read_record()
                    if record is not None:
                        yield record
