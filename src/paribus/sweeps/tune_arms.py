"""Tuning before the table: every arm gets the same trials over the same space, on seeds that the table does not use.

A trial is an ordinary run, `<study>.tune/<arm>.trial<k>/seed<s>-<signature>`, so it is found again, resumed and run in
slots. The result goes into the study's manifest, from which tables are built. Tuning serves a sweep file's arms; the
free search of `conf/search` is in `sweeps/search`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from paribus.core.checksums import digest
from paribus.core.config import compose
from paribus.core.errors import UserError, located
from paribus.runs import store
from paribus.runs.manifest import find_manifest, read_manifest
from paribus.runs.record import Record
from paribus.sweeps.expand import Expanded, user_overrides
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, Job, Sweep, arm_overrides, merge
from paribus.sweeps.tuning import ArmTuning, Trial, TrialRun, Tune, Tuning, trial_name, value_overrides
from paribus.verdict.metrics import is_task, lower_is_better

Train = Callable[[Expanded], Mapping[str, Record | None]]  # does the runs; {label: record, None after a failure}


def check_tuning(expanded: Expanded, tune: Tune) -> None:
    """Raises UserError, before any compute, if these arms or this request do not allow the tuning."""
    request = expanded.request
    given = {text.partition("=")[0].lstrip("+~") for text in request.overrides}
    if taken := [key for key in tune.space if key in given]:
        raise UserError(f"{taken[0]}= is tuned for each arm", "remove it, or add tune=false to set it yourself")
    if request.seeds is not None and (both := set(tune.seeds) & set(request.seeds)):
        raise UserError(f"seed {min(both)} is a seed of the tuning", "remove it from seeds=")
    baseline = expanded.configs[request.sweep.baseline]
    if is_task(tune.on) and (task := tune.on.split("/")[0]) not in baseline.tasks:
        raise UserError(f"tune.on={tune.on} needs the task {task}, which these runs do not have", f"add task={task}")
    with located(f"{request.sweep.path}: tune.space"):
        first = next(tune.rounds(0))[0]
        compose([*arm_overrides(request.sweep, request.scale, request.sweep.baseline), *value_overrides(first)])


def tune_arms(expanded: Expanded, tune: Tune, train: Train) -> Tuning:
    """Tune every requested arm; the others keep what an earlier tuning found.

    Raises UserError if no trial of an arm has a value.
    """
    request, sweep = expanded.request, expanded.request.sweep
    before = read_tuning(request, tune)
    requested = {sweep.baseline if job.arm == SCRATCH else job.arm for job in expanded.jobs}
    arms = [arm for arm in sweep.arms if arm in requested]
    tried: dict[str, list[Trial]] = {arm: [] for arm in arms}
    rounds = {arm: tune.rounds(seed=int(digest([sweep.study, arm, "tune"], 8), 16)) for arm in arms}
    batches = {arm: next(rounds[arm]) for arm in arms}
    while batches:
        trials = {
            arm: [Trial(len(tried[arm]) + at, values) for at, values in enumerate(batch)]
            for arm, batch in batches.items()
        }
        batches = {}
        for arm, done in _run_trials(expanded, tune, trials, before, train).items():
            tried[arm] += done
            with suppress(StopIteration):
                batches[arm] = rounds[arm].send([_loss(tune, trial) for trial in done])
    tuned = dict(before.arms)
    for arm, trials_of_arm in tried.items():
        best = min(trials_of_arm, key=lambda trial: _loss(tune, trial))
        if best.value is None:
            raise UserError(f"no trial of {arm} ended with {tune.on}", "fix what failed, or change tune.space")
        tuned[arm] = ArmTuning(best.values, trials_of_arm)
    return Tuning(tune.to_json(), {arm: tuned[arm] for arm in sweep.arms if arm in tuned})


def _run_trials(
    expanded: Expanded, tune: Tune, trials: Mapping[str, Sequence[Trial]], before: Tuning, train: Train
) -> dict[str, list[Trial]]:
    """Run the new trials of {arm: trials}; returns the trials with their runs and values."""
    opened = expand_trials(expanded, tune, trials)
    signatures = {job: opened.identity(job).signature for job in opened.jobs}
    earlier = (run for tuned in before.arms.values() for trial in tuned.trials for run in trial.runs)
    known = {run.signature: run for run in earlier if run.status != "failed"}
    left = [job for job in opened.jobs if signatures[job] not in known]
    records = train(replace(opened, jobs=left)) if left else {}

    def read_run(job: Job) -> TrialRun:
        if (run := known.get(signatures[job])) is not None:
            return run
        record = records.get(job.label)
        status = "failed" if record is None else record.status
        value = record.metrics.get(tune.on) if record is not None and status == "done" else None
        finite = isinstance(value, int | float) and math.isfinite(value)
        return TrialRun(job.seed, signatures[job], status, value if finite else None)

    def finish(arm: str, trial: Trial) -> Trial:
        runs = [read_run(job) for job in opened.jobs if job.arm == trial_name(arm, trial.number)]
        values = [run.value for run in runs if run.value is not None]
        mean = math.fsum(values) / len(values) if len(values) == len(runs) else None
        return replace(trial, runs=runs, value=mean)

    return {arm: [finish(arm, trial) for trial in batch] for arm, batch in trials.items()}


def _loss(tune: Tune, trial: Trial) -> float:
    """What the sampler minimizes; a trial without a value is the worst."""
    if trial.value is None:
        return math.inf
    return trial.value if lower_is_better(tune.on) else -trial.value


def expand_trials(expanded: Expanded, tune: Tune, trials: Mapping[str, Sequence[Trial]]) -> Expanded:
    """The runs of {arm: trials}, composed; without tasks unless the tuned column is a task's."""
    study = store.trial_study(expanded.request.study_name)
    request = expanded.request._replace(study=study, keep=False, until=None)
    overrides, tasks = user_overrides(expanded.request), () if is_task(tune.on) else ("task=none",)
    settings = {
        (name := trial_name(arm, trial.number)): merge(
            arm_overrides(request.sweep, request.scale, arm, overrides),
            value_overrides(trial.values),
            tasks,
            (f"study={study}", f"arm={name}"),
        )
        for arm, batch in trials.items()
        for trial in batch
    }
    jobs = [
        Job(study, name, seed, (*of_trial, f"seed={seed}"))
        for seed in tune.seeds
        for name, of_trial in settings.items()
    ]
    configs = {name: compose(of_trial) for name, of_trial in settings.items()}
    return Expanded(request, jobs, configs, {}, jobs, {})


def read_tuning(request: Request, tune: Tune) -> Tuning:
    """The last tuning of this study, if it has the same spec and overrides; else an empty one."""
    spec, overrides = tune.to_json(), store.portable_overrides(request.overrides)
    for root in request.roots:
        manifest = read_manifest(root, request.study_name, request.scale)
        if manifest is None or store.portable_overrides(manifest.overrides) != overrides:
            continue
        if (tuning := Tuning.from_json(manifest.tuning)).spec == spec:
            return tuning
    return Tuning()


def apply_tuning(sweep: Sweep, tuning: Tuning) -> Sweep:
    """The sweep with the values that its tuning chose for the arms."""
    return replace(sweep, chosen=tuning.overrides())


def apply_recorded_tuning(request: Request) -> Request:
    """The request with the values of its last tuning. Raises UserError if an arm is yet to be tuned."""
    if request.tuned is None:
        return request
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    sweep = apply_tuning(request.sweep, read_tuning(request, request.tuned))
    settled = {SCRATCH, *sweep.chosen, *(manifest.absent if manifest else ())}
    if missing := [arm for arm in request.arms or sweep.arms if arm not in settled]:
        cause = f"{request.study_name} tunes its arms and {missing[0]} is not tuned yet"
        raise UserError(cause, f"run `paribus run {request.study_name} scale={request.scale}` first, or add tune=false")
    return request._replace(sweep=sweep)
