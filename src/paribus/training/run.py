"""One run: find it done, or pre-train, evaluate, fine-tune and write its record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.console import say
from paribus.core.errors import permitted
from paribus.core.files import write_sealed, write_text
from paribus.core.processes import stoppable
from paribus.runs.folder import CURVES, FAILED, RECORD, STAGES, find_finished
from paribus.runs.record import SCHEMA
from paribus.runs.tracker import FINETUNE, PRETRAIN, TrackedStages, tell
from paribus.tasks.overlap import measure_overlap
from paribus.training.description import Run
from paribus.training.outlook import foresee
from paribus.training.sharing import locked, share_tuning, shared_pretraining

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.runs.tracker import Tracked
    from paribus.training.callbacks import Reporter
    from paribus.training.finetuner import Base
    from paribus.training.profile import Profile
    from paribus.training.stage import Stage

MEMBERS = "members"  # in a run's folder: what the members after the first have pre-trained


def run(cfg: Mapping[str, Any] | Run, reporter: Reporter | None = None) -> Path:
    """Do what is left of a run or of the run of a composed config, and return its folder.

    A finished run is skipped. An interrupted one, or one whose record is damaged, resumes from its last checkpoint.
    Raises UserError for bad input, before any training step, and Stopped if a signal asks the process to end: it then
    has written a checkpoint.
    """
    with permitted():
        described = cfg if isinstance(cfg, Run) else Run.of(cfg)
        identity = described.identity
        if (record := find_finished(identity.folder, identity.signature)) is not None:
            say(f"✓ {described.label} found ({identity.signature[:6]}), skipped")
            TrackedStages(described.config, described.logger, identity).tell_agent(record)
            return identity.folder
        with locked(identity.folder, described.label), stoppable():
            if find_finished(identity.folder, identity.signature) is None:
                _run(described, reporter)
    return identity.folder


def _run(run: Run, reporter: Reporter | None) -> None:
    from optuna import TrialPruned

    from paribus.training.callbacks import Diverged
    from paribus.training.profile import resolve

    identity, folder = run.identity, run.identity.folder
    write_text(folder / "signature", identity.signature + "\n")
    (folder / FAILED).unlink(missing_ok=True)  # of an earlier attempt
    profile, data = resolve(run.profile), run.data()
    write_text(folder / "config.yaml", _yaml(run))
    stages = TrackedStages(run.config, run.logger, identity)
    record = _frame(run, data, profile)
    try:
        record |= {"status": "done", **_stages(run, data, profile, stages, reporter)}
    except Diverged as error:
        say(f"✗ {run.label} diverged: {error}")
        nothing: dict[str, Any] = {"metrics": {}, "task_runs": [], "budget": {}, "speed": {}, "realised": {}}
        record |= {"status": "diverged", "error": str(error), **nothing}
    except TrialPruned as error:
        say(f"✂ {run.label} {error}")
        raise
    write_sealed(folder / RECORD, {**record, "wandb_id": stages.wandb_id})


def _stages(run: Run, data: Data, profile: Profile, stages: TrackedStages, reporter: Reporter | None) -> dict[str, Any]:
    """The pre-training of each member, then the tasks."""
    from paribus.training.evaluate import remember
    from paribus.training.finetune import add_seconds
    from paribus.training.finetuner import base_of
    from paribus.training.points import tune_points
    from paribus.training.pretraining_record import combine

    folder = run.identity.folder
    with stages.stage(PRETRAIN) as tracked:
        trained = [_pretrained(run, data, profile, folder, tracked, reporter)]
        for number in range(1, run.members):  # curves of further members are not logged elsewhere
            own = folder / MEMBERS / str(number)
            write_text(own / "config.yaml", _yaml(member := run.member(number)))
            trained.append(_pretrained(member, data, profile, own))
        part = combine(*zip(*trained, strict=True))
        tell(tracked, part, folder / CURVES)
    bases = [base_of(own.run, own.encoder, own.folder / "model", remember(own, each)) for own, each in trained]
    tuned = _finetuned(bases, data, profile, stages)
    points = tune_points(bases[0], data, profile, folder)
    return {
        **part,
        "metrics": {**part["metrics"], **task_means(tuned["task_runs"])},
        "baselines": {**part["baselines"], **tuned["baselines"]},
        "overlap": measure_overlaps(run, data) if part["budget"]["steps"] else {},
        "task_runs": tuned["task_runs"],
        "finetune_seconds": add_seconds(own.get("finetune_seconds") for own in (tuned, *points)),
        **({"task_points": points} if points else {}),
        "tuned": tuned["tuned"],
        "gold": tuned["gold"],
        "curves": {**part.get("curves", {}), **tuned["curves"]},
        **({"joint": tuned["joint"]} if "joint" in tuned else {}),
    }


def _pretrained(
    run: Run,
    data: Data,
    profile: Profile,
    folder: Path,
    tracked: Tracked | None = None,
    reporter: Reporter | None = None,
) -> tuple[Stage, dict[str, Any]]:
    """The stages of a run, each of which starts from the weights of the one before.

    Returns the last one with its part of the record, whose budget is that of all. One that another arm has done is
    shared. All are checked before the first step of any.
    """
    from paribus.training.open_stage import check_chain, open_stage
    from paribus.training.pretrain import pretrain
    from paribus.training.pretraining_record import in_sum

    opened: list[Stage] = []
    for own in run.chain[:-1]:
        place = folder / STAGES / own.stage
        write_text(place / "config.yaml", _yaml(own))
        opened.append(open_stage(own, own.data(), profile, place, opened))
    opened.append(open_stage(run, data, profile, folder, opened))
    check_chain(opened)
    if run.sweep_hash is None:  # a sweep has said it of all its runs
        _tell_outlook(opened)
    for before, stage in pairwise(opened):
        before.hands_on = stage.run.trainer.keep_optimizer
    opened[-1].reporter = reporter
    parts = []
    for stage in opened:
        with shared_pretraining(stage.run, stage.run.identity._replace(folder=stage.folder), stage.kept):
            parts.append(pretrain(stage, tracked if stage.run is run else None))
    return opened[-1], in_sum(opened, parts)


def _tell_outlook(opened: Sequence[Stage]) -> None:
    """Say before the first step if the run will probably stay on the plateau of a trivial model."""
    run, tokens = opened[-1].run, 0.0
    for stage in opened:
        own = stage.run.batch
        tokens += stage.steps * own.size * (1 if own.by == "tokens" else stage.run.input.length)
    if (outlook := foresee(run.config, tokens)) is not None:
        longer = f": {outlook.longer}" if outlook.longer else ""
        say(f"{run.label} {outlook}. Train {outlook.factor:.1f} times as long{longer}")


def _finetuned(bases: list[Base], data: Data, profile: Profile, stages: TrackedStages) -> dict[str, Any]:
    """The fine-tuning stage; without tasks, empty parts of the record."""
    from paribus.training.finetune import finetune

    if not bases[0].run.tuned_tasks:
        return finetune(bases, data, profile, stages.identity.folder)
    share_tuning(bases[0].run, profile)
    with stages.stage(FINETUNE) as tracked:
        tuned = finetune(bases, data, profile, stages.identity.folder, tracked)
        tell(tracked, {"metrics": task_means(tuned["task_runs"])})
    return tuned


def measure_overlaps(run: Run, data: Data) -> dict[str, float]:
    """{task: the share of its evaluation texts that occurs in what the run's pre-trainings read}."""
    stages = [*(own.data() for own in run.chain[:-1]), data]
    read_K = [np.asarray(stage.stores["train"].ids) for stage in stages]
    key = [[stage.fingerprint, own.trainer.train_tokens] for own, stage in zip(run.chain, stages, strict=True)]
    splitter = run.corpus.sentences
    assert splitter is not None  # the store could not have been built
    return {
        name: measure_overlap(task, run.cache, read_K, data.tokenizer, splitter, key)
        for name, task in run.tasks.items()
    }


def task_means(task_runs: list[dict[str, Any]]) -> dict[str, float]:
    """{"task/metric": mean over fine-tuning seeds}."""
    values: dict[str, list[float]] = defaultdict(list)
    for task_run in task_runs:
        for name, value in task_run["metrics"].items():
            values[f"{task_run['task']}/{name}"].append(value)
    return {name: sum(found) / len(found) for name, found in values.items()}


def _yaml(run: Run) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # four times as fast
    return str(yaml.dump(dict(run.config), Dumper=dumper, sort_keys=False, allow_unicode=True))


def _frame(run: Run, data: Data, profile: Profile) -> dict[str, Any]:
    """The part of the record that identifies the run, its data and its code."""
    from paribus.runs.provenance import git_state, versions

    identity = run.identity

    return {
        "schema": SCHEMA,
        "signature": identity.signature,
        "pretrain_signature": identity.pretrain,
        "study": run.study,
        "arm": run.arm,
        "seed": run.seed,
        "scale": run.scale,
        "sweep_hash": run.sweep_hash,
        "data": {"fingerprint": data.fingerprint["text"], **data.fingerprint, "tasks": identity.tasks},
        "profile": profile.record(),
        "versions": dict(versions()),
        "git": git_state(),
    }
