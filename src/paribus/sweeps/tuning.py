"""The search before the table: every arm is tuned with the same trials over the same space, on seeds of its own.

A trial is an ordinary run, `<study>.tune/<arm>.trial<k>/seed<s>-<signature>`: found again, resumed, run in slots. What
a search found goes into the study's manifest, from which tables are built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.core.hashing import digest
from paribus.runs import store
from paribus.runs.store import trial_study
from paribus.sweeps.expand import Expanded, own_overrides
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, Job, Sweep, arm_overrides, merged
from paribus.sweeps.tune import Tune, Values
from paribus.verdict.metrics import is_task, lower_is_better

Tuning = Mapping[str, Any]  # {"spec": of the search, "arms": {arm: {"chosen": Values, "trials": [...]}}}
Do = Callable[[Expanded], Mapping[str, store.Record | None]]  # trains what is asked for; {label: record or None}


class Trial(NamedTuple):
    """One set of values for an arm, on every seed of the search."""

    arm: str
    number: int
    values: Values

    @property
    def name(self) -> str:
        return f"{self.arm}.trial{self.number}"


def check(expanded: Expanded, tune: Tune) -> None:
    """Raises UserError, before any compute, for a search that cannot be made with these arms and this request."""
    request = expanded.request
    given = {text.partition("=")[0].lstrip("+~") for text in request.overrides}
    if taken := [key for key in tune.space if key in given]:
        raise UserError(f"{taken[0]}= is searched for each arm", "add tune=false to give it by hand")
    if request.seeds is not None and (both := set(tune.seeds) & set(request.seeds)):
        raise UserError(f"seed {min(both)} is a seed of the search", "leave it out of seeds=")
    baseline = expanded.configs[request.sweep.baseline]
    if is_task(tune.on) and (task := tune.on.split("/")[0]) not in baseline.tasks:
        raise UserError(f"tune.on={tune.on} needs the task {task}, which is not run", f"add task={task}")
    try:
        first = next(tune.rounds(0))[0]
        compose([*arm_overrides(request.sweep, request.scale, request.sweep.baseline), *_texts(first)])
    except UserError as error:
        raise UserError(f"{request.sweep.path}: tune.space: {error}") from error


def search(expanded: Expanded, tune: Tune, do: Do) -> Tuning:
    """Search every arm that is asked for; the others keep what was found before.

    Raises UserError where no trial of an arm ended with a number.
    """
    request = expanded.request
    before = recorded(request, tune)
    arms = [arm for arm in request.sweep.arms if arm in _searched(expanded)]
    tried: dict[str, list[dict[str, Any]]] = {arm: [] for arm in arms}
    asking = {arm: tune.rounds(_sampler_seed(request.sweep, arm)) for arm in arms}
    batches = {arm: next(rounds) for arm, rounds in asking.items()}
    while batches:
        trials = [
            Trial(arm, len(tried[arm]) + at, values)
            for arm, batch in batches.items()
            for at, values in enumerate(batch)
        ]
        for trial, entry in zip(trials, _tried(expanded, tune, trials, before, do), strict=True):
            tried[trial.arm].append(entry)
        losses = {arm: [_loss(tune, entry) for entry in tried[arm][-len(batch) :]] for arm, batch in batches.items()}
        batches = {arm: batch for arm in batches if (batch := _next(asking[arm], losses[arm]))}
    found = {**before.get("arms", {}), **{arm: _chosen(tune, arm, entries) for arm, entries in tried.items()}}
    return {"spec": tune.record(), "arms": {arm: found[arm] for arm in request.sweep.arms if arm in found}}


def _searched(expanded: Expanded) -> set[str]:
    """The arms that the jobs stand on."""
    return {expanded.request.sweep.baseline if job.arm == SCRATCH else job.arm for job in expanded.jobs}


def _sampler_seed(sweep: Sweep, arm: str) -> int:
    return int(digest([sweep.study, arm, "tune"], 8), 16)


def _next(rounds: Any, losses: Sequence[float]) -> list[Values] | None:
    try:
        batch: list[Values] = rounds.send(losses)
    except StopIteration:
        return None
    return batch


def _tried(expanded: Expanded, tune: Tune, trials: Sequence[Trial], before: Tuning, do: Do) -> list[dict[str, Any]]:
    """Run what was not run before; one entry a trial: its values, its runs, and the mean of the column."""
    opened = opened_trials(expanded, tune, trials)
    signatures = {job.label: opened.identity(job).signature for job in opened.jobs}
    known = {run["signature"]: run for entry in _entries(before) for run in entry["runs"] if run["status"] != "failed"}
    left = [job for job in opened.jobs if signatures[job.label] not in known]
    records = do(replace(opened, jobs=left)) if left else {}

    def run(job: Job) -> dict[str, Any]:
        return known.get(signatures[job.label]) or _run(job, signatures[job.label], records.get(job.label), tune.on)

    entries = []
    for trial in trials:
        runs = [run(job) for job in opened.jobs if job.arm == trial.name]
        values = [made["value"] for made in runs]
        mean = None if None in values else math.fsum(values) / len(values)
        entries.append({"number": trial.number, "values": trial.values, "runs": runs, "value": mean})
    return entries


def _entries(tuning: Tuning) -> list[dict[str, Any]]:
    return [entry for found in tuning.get("arms", {}).values() for entry in found["trials"]]


def _run(job: Job, signature: str, record: store.Record | None, on: str) -> dict[str, Any]:
    status = "failed" if record is None else record["status"]
    value = record["metrics"].get(on) if record is not None and status == "done" else None
    finite = isinstance(value, int | float) and math.isfinite(value)
    return {"seed": job.seed, "signature": signature, "status": status, "value": value if finite else None}


def opened_trials(expanded: Expanded, tune: Tune, trials: Sequence[Trial]) -> Expanded:
    """The runs of these trials, composed; without the tasks where the column is none of theirs."""
    request = expanded.request._replace(study=trial_study(expanded.request.named), keep=False, until=None)
    own = own_overrides(expanded.request)
    tasks = () if is_task(tune.on) else ("task=none",)
    settings = {
        trial.name: merged(
            arm_overrides(request.sweep, request.scale, trial.arm, own),
            _texts(trial.values),
            tasks,
            _named(request, trial),
        )
        for trial in trials
    }
    configs = {name: compose(overrides) for name, overrides in settings.items()}
    listed = [
        Job(request.named, name, seed, (*overrides, f"seed={seed}"))
        for seed in tune.seeds
        for name, overrides in settings.items()
    ]
    return Expanded(request, listed, configs, {}, listed, {})


def _named(request: Request, trial: Trial) -> tuple[str, str]:
    return f"study={request.named}", f"arm={trial.name}"


def _texts(values: Values) -> tuple[str, ...]:
    return tuple(f"{key}={text}" for key, text in values.items())


def _loss(tune: Tune, entry: Mapping[str, Any]) -> float:
    """What the search makes small; a trial without a number is the worst."""
    value = entry["value"]
    return math.inf if value is None else float(value if lower_is_better(tune.on) else -value)


def _chosen(tune: Tune, arm: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    best = min(entries, key=lambda entry: _loss(tune, entry))
    if best["value"] is None:
        raise UserError(f"no trial of {arm} ended with a {tune.on}", "mend what failed, or change tune.space")
    return {"chosen": best["values"], "trials": entries}


def recorded(request: Request, tune: Tune) -> Tuning:
    """The last search of this study with the same overrides, where it is this very search; else {}."""
    spec, overrides = tune.record(), store.portable_overrides(request.overrides)
    for root in request.roots:
        manifest = store.read_manifest(root, request.named, request.scale)
        if (
            manifest
            and manifest.tuning.get("spec") == spec
            and store.portable_overrides(manifest.overrides) == overrides
        ):
            return manifest.tuning
    return {}


def adopted(sweep: Sweep, tuning: Mapping[str, Any]) -> Sweep:
    """The sweep with what a search chose for its arms."""
    return replace(sweep, chosen={arm: _texts(found["chosen"]) for arm, found in tuning.get("arms", {}).items()})


def with_recorded(request: Request) -> Request:
    """The request with what its last search chose. Raises UserError for a tuned sweep that was not searched yet."""
    if request.tuned is None:
        return request
    manifest = store.first_manifest(request.roots, request.named, request.scale)
    sweep = adopted(request.sweep, recorded(request, request.tuned))
    settled = {SCRATCH, *sweep.chosen, *(manifest.absent if manifest else ())}
    if missing := [arm for arm in request.arms or sweep.arms if arm not in settled]:
        cause = f"{request.named} tunes its arms and {missing[0]} was not searched"
        raise UserError(cause, f"search with `paribus run {request.named} scale={request.scale}`, or give tune=false")
    return request._replace(sweep=sweep)
