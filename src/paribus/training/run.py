"""One run: resolve its config, check it, prepare its text, pre-train, evaluate, fine-tune, and write its record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from paribus.core.console import say
from paribus.core.errors import permitted
from paribus.core.files import write_sealed, write_text
from paribus.core.processes import stoppable
from paribus.runs.folder import CURVES, FAILED, RECORD, STAGES, find_finished
from paribus.runs.record import SCHEMA
from paribus.runs.wandb_tracker import FINETUNE, PRETRAIN, TrackedStages, tell
from paribus.tasks.overlap import measure_overlap
from paribus.training.description import Run
from paribus.training.outlook import foresee
from paribus.training.sharing import locked, share_tuning, shared_pretraining

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.runs.wandb_tracker import Tracked
    from paribus.training.callbacks import Reporter
    from paribus.training.finetuner import Base
    from paribus.training.profile import ResolvedProfile
    from paribus.training.stage import Stage

MEMBERS = "members"  # in a run's folder: what the members after the first have pre-trained


def run(cfg: Mapping[str, Any] | Run, reporter: Reporter | None = None) -> Path:
    """Do what is left of a run or of the run of a composed config, and return its folder.

    A finished run is skipped. An interrupted one, or one whose record is damaged, resumes from its last checkpoint.
    Raises UserError for bad input, before any training step, and Stopped if a signal asks the process to end; a step in
    progress has three seconds to write a checkpoint.
    """
    with permitted():
        described = cfg if isinstance(cfg, Run) else Run.of(cfg)
        folder, signature = described.identity.folder, described.identity.signature
        if (record := find_finished(folder, signature)) is not None:
            say(f"✓ {described.label} found ({signature[:6]}), skipped")
            TrackedStages(described.config, described.logger, described.identity).tell_agent(record)
            return folder
        with locked(folder, described.label), stoppable():
            if find_finished(folder, signature) is None:  # another process may have finished it while this one waited
                train(described, reporter)
    return folder


def train(run: Run, reporter: Reporter | None) -> None:
    """The work of a run from its first line to its record, which is written last."""
    from optuna import TrialPruned

    from paribus.training.callbacks import Diverged
    from paribus.training.checks import check_run
    from paribus.training.profile import resolve

    folder = run.identity.folder
    profile = resolve(run.profile)
    check_run(run, profile)
    write_text(folder / "signature", run.identity.signature + "\n")
    (folder / FAILED).unlink(missing_ok=True)  # of an earlier attempt
    data = run.data()
    write_config(run, folder)
    about = describe_run(run, data, profile)  # now: the code may be edited while it trains
    tracker = TrackedStages(run.config, run.logger, run.identity)
    try:
        pretrained, part = pretrain_members(run, data, profile, tracker, reporter)
        tuned = finetune_tasks(pretrained, data, profile, tracker)
        results = {"status": "done", **join_results(run, data, part, tuned)}
    except Diverged as error:
        say(f"✗ {run.label} diverged: {error}")
        nothing: dict[str, Any] = {"metrics": {}, "task_runs": [], "budget": {}, "speed": {}, "realised": {}}
        results = {"status": "diverged", "error": str(error), **nothing}
    except TrialPruned as error:
        say(f"✂ {run.label} {error}")
        raise
    write_sealed(folder / RECORD, {**about, **results, "wandb_id": tracker.wandb_id})


def pretrain_members(
    run: Run, data: Data, profile: ResolvedProfile, tracker: TrackedStages, reporter: Reporter | None
) -> tuple[list[Base], dict[str, Any]]:
    """Pre-train and evaluate each member of a run's ensemble; without one the run is its only member.

    Returns the models that are fine-tuned, and their part of the record.
    """
    from paribus.training.evaluate import remember
    from paribus.training.finetuner import base_of
    from paribus.training.pretraining_record import join_members

    folder = run.identity.folder
    with tracker.stage(PRETRAIN) as tracked:
        trained = [pretrain_stages(run, data, profile, folder, tracked, reporter)]
        for number in range(1, run.members):  # curves of further members are not logged elsewhere
            place, member = folder / MEMBERS / str(number), run.member(number)
            write_config(member, place)
            trained.append(pretrain_stages(member, data, profile, place))
        part = join_members(*zip(*trained, strict=True))
        tell(tracked, part, folder / CURVES)
    bases = [base_of(one.run, one.encoder, one.folder / "model", remember(one, each)) for one, each in trained]
    return bases, part


def pretrain_stages(
    run: Run,
    data: Data,
    profile: ResolvedProfile,
    folder: Path,
    tracked: Tracked | None = None,
    reporter: Reporter | None = None,
) -> tuple[Stage, dict[str, Any]]:
    """Pre-train and evaluate the stages of a run, each of which starts from the weights of the one before.

    All are opened and checked before the first step of any. One that another arm has done is shared. Returns the last
    one with its part of the record, whose budget is that of all.
    """
    from paribus.training.checks import check_chain
    from paribus.training.pretrain import pretrain
    from paribus.training.pretraining_record import join_stages
    from paribus.training.stage import open_stage

    opened: list[Stage] = []
    for one in run.chain[:-1]:
        place = folder / STAGES / one.stage
        write_config(one, place)
        opened.append(open_stage(one, one.data(), profile, place, opened))
    opened.append(open_stage(run, data, profile, folder, opened))
    check_chain(opened)
    if run.sweep_hash is None:  # a sweep has said it of all its runs
        warn_of_plateau(opened)
    for before, stage in pairwise(opened):
        before.hands_on = stage.run.trainer.keep_optimizer
    opened[-1].reporter = reporter
    parts = []
    for stage in opened:
        with shared_pretraining(stage.run, stage.run.identity._replace(folder=stage.folder), stage.kept):
            parts.append(pretrain(stage, tracked if stage.run is run else None))
    return opened[-1], join_stages(opened, parts)


def warn_of_plateau(stages: Sequence[Stage]) -> None:
    """Say before the first step if the run will probably stay on the plateau of a trivial model."""
    run, tokens = stages[-1].run, 0.0
    for stage in stages:
        batch = stage.run.batch
        tokens += stage.steps * batch.size * (1 if batch.by == "tokens" else stage.run.input.length)
    if (outlook := foresee(run.config, tokens)) is not None:
        longer = f": {outlook.longer}" if outlook.longer else ""
        say(f"{run.label} {outlook}. Train {outlook.factor:.1f} times as long{longer}")


def finetune_tasks(
    bases: Sequence[Base], data: Data, profile: ResolvedProfile, tracker: TrackedStages
) -> dict[str, Any]:
    """Fine-tune and score every task at the end of pre-training, and at the points on the way that the config sets.

    Returns their parts of the record, empty ones without tasks.
    """
    from paribus.training.finetune import add_seconds, finetune, tune_points

    run, folder = bases[0].run, tracker.identity.folder
    if run.tuned_tasks:
        share_tuning(run, profile)
        with tracker.stage(FINETUNE) as tracked:
            tuned = finetune(bases, data, profile, folder, tracked)
            tell(tracked, {"metrics": task_means(tuned["task_runs"])})
    else:
        tuned = finetune(bases, data, profile, folder)
    points = tune_points(bases[0], data, profile, folder)
    tuned["finetune_seconds"] = add_seconds(one.get("finetune_seconds") for one in (tuned, *points))
    return {**tuned, **({"task_points": points} if points else {})}


def task_means(task_runs: list[dict[str, Any]]) -> dict[str, float]:
    """{"task/metric": mean over fine-tuning seeds}."""
    values: dict[str, list[float]] = defaultdict(list)
    for task_run in task_runs:
        for name, value in task_run["metrics"].items():
            values[f"{task_run['task']}/{name}"].append(value)
    return {name: sum(each) / len(each) for name, each in values.items()}


def join_results(run: Run, data: Data, pretrained: Mapping[str, Any], tuned: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured, from the parts of the record that pre-training and fine-tuning left."""
    return {
        **pretrained,
        **tuned,
        "metrics": {**pretrained["metrics"], **task_means(tuned["task_runs"])},
        "baselines": {**pretrained["baselines"], **tuned["baselines"]},
        "curves": {**pretrained.get("curves", {}), **tuned["curves"]},
        "overlap": measure_overlaps(run, data) if pretrained["budget"]["steps"] else {},
        "task_examples": count_examples(run),
    }


def count_examples(run: Run) -> dict[str, dict[str, dict[str, int]]]:
    """{task: its examples in each set, and how many of each evaluation set are also in train}."""
    summaries = {name: task.summary(run.cache) for name, task in run.tasks.items()}
    return {name: {part: summary[part] for part in ("examples", "leaked")} for name, summary in summaries.items()}


def measure_overlaps(run: Run, data: Data) -> dict[str, float]:
    """{task: the share of its evaluation texts that occurs in what the run's pre-trainings read}."""
    texts = [*(stage.data() for stage in run.chain[:-1]), data]
    read_K = [np.asarray(text.stores["train"].ids) for text in texts]
    key = [[text.fingerprint, stage.trainer.train_tokens] for stage, text in zip(run.chain, texts, strict=True)]
    splitter = run.corpus.sentences
    assert splitter is not None  # the store could not have been built
    return {
        name: measure_overlap(task, run.cache, read_K, data.tokenizer, splitter, key)
        for name, task in run.tasks.items()
    }


def describe_run(run: Run, data: Data, profile: ResolvedProfile) -> dict[str, Any]:
    """The part of the record that identifies the run, its data and its code."""
    from paribus.models.pretrained import Pretrained
    from paribus.runs.provenance import git_state, versions

    model = run.chain[0].model
    weights = model.content()["weights"] if isinstance(model, Pretrained) else None
    return {
        "schema": SCHEMA,
        "signature": run.identity.signature,
        "pretrain_signature": run.identity.pretrain,
        **({"checkpoint": weights} if weights else {}),
        "study": run.study,
        "arm": run.arm,
        "seed": run.seed,
        "scale": run.scale,
        "sweep_hash": run.sweep_hash,
        "data": {"fingerprint": data.fingerprint["text"], **data.fingerprint, "tasks": run.identity.tasks},
        "profile": profile.record(),
        "versions": dict(versions()),
        "git": git_state(),
    }


def write_config(run: Run, folder: Path) -> None:
    """The resolved config, from which the run can be repeated and its helper processes start."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # four times as fast
    text = yaml.dump(dict(run.config), Dumper=dumper, sort_keys=False, allow_unicode=True)
    write_text(folder / "config.yaml", str(text))
