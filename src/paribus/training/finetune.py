"""The fine-tuning stage: every task, every fine-tuning seed, from the checkpoint at the end of pre-training or
from those on the way.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytorch_lightning as pl

from paribus.core.checksums import hash_file, read_sealed, seal, verify
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_sealed, write_text
from paribus.data.tokens.prepare import Data
from paribus.finetuning import saved
from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble
from paribus.models.network import Network
from paribus.objectives.evaluation import evaluating, on_device
from paribus.runs.folder import GOLD, TUNING, read_lines
from paribus.runs.gold import Gold, describe_gold, hash_answers, read_gold, write_gold
from paribus.runs.wandb_tracker import Tracked
from paribus.tasks.baselines import measure_baselines
from paribus.tasks.rows import TaskRows, order
from paribus.tasks.types.base import Probable, TaskType
from paribus.tasks.unknown_words import measure_unknown
from paribus.training.callbacks import Bar, StepCallback, TaskCurve, TuningCurve, append_line, evaluation_steps
from paribus.training.costs import GIGA, count_tuning_flops, measuring
from paribus.training.description import Run
from paribus.training.evaluate import placed
from paribus.training.finetuner import (
    Base,
    TaskWork,
    base_of,
    encode_training,
    finetuner,
    joint_finetuner,
    joint_start,
    joint_tasks,
    task_seed,
    task_steps,
    work_of,
)
from paribus.training.joint import FOLDER, describe_joint, is_whole, joint_path, train_joint
from paribus.training.kept_states import FOLDER as STATES
from paribus.training.kept_states import keep_rows
from paribus.training.learner import Finetuning, Learner
from paribus.training.probing import probe_once
from paribus.training.profile import ResolvedProfile
from paribus.training.replay import Replay, read_text
from paribus.training.steps import StepData, task_batch
from paribus.training.trainer import Setup, trainer

if TYPE_CHECKING:
    from paribus.training.stage import Stage

POINTS = "points"  # in a run's folder, one folder for each number of steps
POINT = "point.json"

KEPT = "tuned"
DONE = "task_runs.jsonl"
ROWS = 128  # a forward pass of the evaluation


def finetune(
    bases: Sequence[Base], data: Data, profile: ResolvedProfile, folder: Path, tracked: Tracked | None = None
) -> dict[str, Any]:
    """{"task_runs": [{task, seed, metrics}], "baselines": {column: {name: value}}, "tuned": {name: value}, "gold":
    what `describe_gold` says, "curves": {file: its hash}, "finetune_seconds": of training and evaluation}, and `joint`
    if tasks are trained together first.

    Finished fine-tunings are not repeated. Those of several models, or several of one model, answer together. Seconds
    of work that was interrupted and repeated are not counted.
    """
    run, setup = bases[0].run, Setup(profile, folder, tracked)
    owner = run.identity.signature
    done = read_done(folder / DONE, owner)
    mark = time.perf_counter()
    if run.finetune.joint:
        finetune_together(bases[0], data, setup, done)
    together = time.perf_counter() - mark if run.finetune.joint else 0.0  # counted with the next fine-tuning
    baselines: dict[str, dict[str, float]] = {}
    for name, task in run.tuned_tasks.items():
        layers = run.finetune.probe.choose(bases[0].encoder.depth) if run.finetune.probe else []
        for metric, values in measure_baselines(task, run.cache).items():
            columns = [f"{name}/{metric}_l{layer}" for layer in layers] or [f"{name}/{metric}"]
            baselines |= dict.fromkeys(columns, values)
        missing = [seed for seed in run.finetune.seeds if (name, seed) not in done]
        if not missing:
            continue
        work = work_of(run, data, name)
        unknown: dict[str, float] = {}
        if run.chain[0].model.shape.static:
            unknown["unknown_words"] = measure_unknown(name, work.encoded["validation"], data.vocabulary)
        task_bases = [base._replace(run=base.run.tuned_for(name)) for base in bases]
        mark = time.perf_counter()
        if run.finetune.method.cached and work.task_type.trained and not run.finetune.probe:
            layers = task_bases[0].run.finetune.head.layers.find(bases[0].encoder.depth)
            rows = keep_rows(bases[0].encoder, work.encoded, layers, folder, name, profile.device)
            work = work._replace(encoded=rows)
            together += time.perf_counter() - mark
        for seed in missing:
            mark = time.perf_counter()
            answers: dict[str, str] = {}  # of a probe none are kept
            if run.finetune.probe:
                metrics = probe_once(task_bases[0], work, seed, setup)
            else:
                metrics, answers = finetune_once(task_bases, work, seed, setup)
            metrics = {**metrics, **unknown}
            spent, together = time.perf_counter() - mark + together, 0.0
            line = {"task": name, "seed": seed, "metrics": metrics, "owner": owner, "seconds": spent}
            done[name, seed] = {**line, "gold": answers}
            lines = [json.dumps(seal(line)) for line in done.values()]
            write_text(folder / DONE, "\n".join(lines) + "\n")
            if not run.finetune.keep:
                shutil.rmtree(folder / KEPT, ignore_errors=True)
        if not run.finetune.keep:
            shutil.rmtree(folder / STATES, ignore_errors=True)
    if not run.finetune.keep:
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
    return {
        "task_runs": [{key: line[key] for key in ("task", "seed", "metrics")} for line in done.values()],
        "baselines": baselines,
        "tuned": trained_share(bases) if run.tuned_tasks and not run.finetune.probe else {},
        "gold": describe_gold(folder),
        "finetune_seconds": add_seconds(line.get("seconds") for line in done.values()),
        "curves": {TUNING: hash_file(folder / TUNING)} if (folder / TUNING).is_file() else {},
        **describe_joint(folder),
    }


def finetune_together(base: Base, data: Data, setup: Setup, done: Collection[tuple[str, int]]) -> None:
    """Train the tasks of a joint training for each seed with which a task is still to be fine-tuned."""
    run = base.run
    seeds = [seed for seed in run.finetune.seeds if any((name, seed) not in done for name in run.tuned_tasks)]
    missing = [seed for seed in seeds if not is_whole(joint_path(setup.folder, seed))]
    encoded = {name: encode_training(run, data, name) for name in joint_tasks(run)} if missing else {}
    for seed in missing:
        learner, steps = joint_finetuner(base, encoded, seed)
        train_joint(learner, steps, setup, run.profile, seed)


def finetune_once(
    bases: Sequence[Base], work: TaskWork, seed: int, setup: Setup
) -> tuple[dict[str, float], dict[str, str]]:
    """The scores of a fine-tuning, and the hashes of its answers by their names in `gold.npz`."""
    spent: dict[str, float] = {}

    def spending(what: str) -> AbstractContextManager[None]:
        return measuring(spent, what, setup.profile.device) if bases[0].run.finetune.costs else nullcontext()

    with spending("tuning"):
        model, head, rehearsed = train_models(bases, work, seed, setup)
    metrics = {} if bases[0].run.finetune.covers is None else {"length": float(work.length)}
    answers: dict[str, Gold] = {}
    with placed(setup.profile.device, model, head):
        for split, rows in work.encoded.items():
            if split != "train":
                suffix = "" if split == "validation" else f"_{split}"
                with spending("answering") if split == "validation" else nullcontext():
                    values, gold = judge_answers(model, head, work.task_type, rows, work.examples[split])
                metrics |= {f"{name}{suffix}": value for name, value in values.items()}
                answers |= {f"{work.name}{suffix}/seed{seed}": gold} if gold else {}
        if isinstance(model, Network):
            metrics |= head.report()
        if bases[0].memory and bases[0].run.finetune.forgetting and isinstance(model, Network):
            metrics |= bases[0].memory.ask(model, setup.profile.device, rehearsed)
    if spent:
        metrics |= describe_costs(spent, bases[0].run, work)
    if answers:
        write_gold(setup.folder, read_gold(setup.folder) | answers)
    if setup.tracked is not None:
        total = task_steps(bases[0].run, work.encoded["train"], work.task_type, 0).total
        setup.tracked.log({f"{work.name}/seed{seed}/{name}": value for name, value in metrics.items()}, total)
    return metrics, hash_answers(answers)


def describe_costs(spent: Mapping[str, float], run: Run, work: TaskWork) -> dict[str, float]:
    """What a fine-tuning cost as metrics of its task; of the answers the milliseconds of each text."""
    found = {name: value for name, value in spent.items() if name != "answering_seconds"}
    found["answering_milliseconds"] = 1000 * spent["answering_seconds"] / len(work.examples["validation"])
    rows, most = work.encoded["train"], run.finetune.max_examples
    passes = run.finetune.epochs * min(1.0, (most or math.inf) / len(rows.length_N))
    flops = count_tuning_flops(run.model.shape, rows, passes)
    return found | ({} if flops is None else {"tuning_gigaflops": flops / GIGA})


def train_models(bases: Sequence[Base], work: TaskWork, seed: int, setup: Setup) -> tuple[Network | Ensemble, Any, Any]:
    """A fine-tuned model, its head and that of a further loss, or an ensemble, of which what is done is kept until all
    are.
    """
    each = [(base, turn) for base in bases for turn in range(base.run.finetune.ensemble)]
    if len(each) == 1:
        learner = train_model(bases[0], work, seed, setup)
        if bases[0].run.finetune.keep:
            _save(tuned_path(setup.folder, work.name, seed), learner, bases[0], work)
        return learner.encoder, _head(learner), learner.objective.token_head if bases[0].run.finetune.replay else None
    pairs = []
    for number, (base, turn) in enumerate(each):
        path = tuned_path(setup.folder, work.name, seed, f"-model{number}")
        if not path.is_file():
            _save(path, train_model(base, work, seed, setup, turn, f"/model{number}"), base, work)
        pairs.append(saved.load(path, base.encoder)[:2])
    ensemble = Ensemble(pairs)
    return ensemble, ensemble, None


def train_model(base: Base, work: TaskWork, seed: int, setup: Setup, turn: int = 0, model: str = "") -> Finetuning:
    """A fine-tuning of a model; of an ensemble it is the one called `model`, without a learning curve."""
    replay = None
    if base.run.finetune.replay and base.memory is not None:
        text = read_text(base.run, work.name)
        replay = Replay(text, base.memory.encoder, base.memory.head, base.run.finetune.replay)
    learner, steps = finetuner(
        base.run,
        base.encoder,
        work.encoded["train"],
        work.task_type,
        task_seed(base.run, work.name, seed, turn),
        base.weights_for(work.task_type),
        replay,
        joint_start(base.run, work.name, seed, setup.folder),
    )
    name, total = f"{work.name}/seed{seed}{model}", steps.total
    rows, examples = work.encoded["validation"], work.examples["validation"]
    curve = TuningCurve(
        lambda: judge_answers(learner.encoder, _head(learner), work.task_type, rows, examples)[0],
        0 if model else base.run.finetune.points,
        total,
    )
    if total:
        callbacks = [Bar(f"{base.run.label} fine-tuning {name}", total), TaskCurve(name, total), curve]
        trainer(setup.profile, total, callbacks, setup.tracked).fit(learner, StepData(steps, 0, setup.profile.workers))
    for line in curve.lines:
        append_line(setup.folder / TUNING, {"task": work.name, "seed": seed, **line})
    return learner


def judge_answers(
    model: Network | Ensemble, head: Any, task_type: TaskType, encoded: TaskRows, examples: Sequence[Any]
) -> tuple[dict[str, float], Gold | None]:
    """Metrics over all examples, in full precision, and how likely each right answer was if answers have probabilities;
    an ensemble is its own head.
    """
    answers: dict[int, Any] = {}  # by row
    gold_N = np.zeros(len(encoded.length_N), np.float16)
    with evaluating(model, head):
        batches = order(encoded.length_N, ROWS, 0, 0, shuffle=False)
        for row_B in (part for rows in batches for part in encoded.split(rows)):
            batch = on_device(task_batch(encoded, row_B), model)
            outputs = task_type.infer(model, head, batch)
            answers |= zip(row_B.tolist(), outputs, strict=True)
            if isinstance(task_type, Probable):
                gold_N[row_B] = task_type.find_gold(model, head, batch, outputs)
    predictions = task_type.predict([answers[row] for row in range(len(answers))], encoded.plain, examples)
    metrics = task_type.score(predictions, examples)
    if isinstance(task_type, Probable):
        return metrics, Gold(gold_N, task_type.find_right(predictions, examples))
    return metrics, None


def tuned_path(folder: Path, task: str, seed: int, model: str = "") -> Path:
    """The file in which a run keeps what a fine-tuning, or one model of an ensemble, has trained."""
    return folder / KEPT / f"{task}-{seed}{model}.safetensors"


def _save(path: Path, learner: Finetuning, base: Base, work: TaskWork) -> None:
    config = base.run.config["finetune"]
    config = {**config, "head": config.get("each", {}).get(work.name, {}).get("head", config["head"])}
    saved.save(path, learner.encoder, _head(learner), base.encoder, config, work.task_type)


def _head(learner: Finetuning) -> Any:
    return learner.objective.heads["task"]


def read_done(path: Path, signature: str) -> dict[tuple[str, int], dict[str, Any]]:
    """{(task, seed): its line} of the fine-tunings that a run has finished; none if their answers are not those."""
    lines = [line for line in read_lines(path) if verify(line) and line.get("owner") == signature]
    if path.is_file() and len(lines) < len(path.read_bytes().splitlines()):
        say(f"{path} has lines that are damaged or from another run; those fine-tuning runs are repeated")
    answers = {name: hashed for line in lines for name, hashed in line.get("gold", {}).items()}
    if lines:
        try:
            if answers.items() <= hash_answers(read_gold(path.parent)).items():
                return {(line["task"], line["seed"]): line for line in lines}
        except UserError:
            pass
        say(f"{path.parent / GOLD} is damaged or from another run; its fine-tuning runs are repeated")
    (path.parent / GOLD).unlink(missing_ok=True)
    return {}


def trained_share(bases: Sequence[Base]) -> dict[str, float]:
    """How many weights a task trains, inserted ones and those of its head included, their share of all weights, and how
    many of them are the head's own; means over the tasks, whose heads differ in the number of classes.

    An ensemble adds its number of models; the other values are those of one model.
    """
    run, encoder, pooler = bases[0][:3]
    models = len(bases) * run.finetune.ensemble
    shaped = copy.deepcopy(encoder)
    run.finetune.method.shape(shaped, 0)
    inside = {id(parameter) for parameter in shaped.parameters()}
    count = sum(parameter.numel() for parameter in shaped.parameters() if parameter.requires_grad)
    types = {name: run.task_type(name) for name in run.tuned_tasks}
    heads = [
        task_type.make_head(run.finetune.of(name), shaped, 0, pooler)
        for name, task_type in types.items()
        if task_type.trained
    ]
    if not heads:
        return {}
    new = [p.numel() for head in heads for p in head.parameters() if id(p) not in inside]
    head = round(sum(new) / len(heads))
    ensemble = {"models": models} if models > 1 else {}
    return {
        "trained_parameters": count + head,
        "trained_share": (count + head) / (encoder.parameter_count() + head),
        "head_parameters": head,
        **ensemble,
    }


def add_seconds(spent: Iterable[float | None]) -> float | None:
    """Their sum; None if one was not recorded, as in a run that an older version began."""
    seconds = list(spent)
    return None if None in seconds else math.fsum(value for value in seconds if value is not None)


class Snapshots(StepCallback):
    """Calls `save(step, tokens)` at evenly spaced steps, or after the steps that reach these numbers of tokens."""

    def __init__(self, points: int | Sequence[int], total: int, save: Callable[[int, int], None]) -> None:
        self.tokens = () if isinstance(points, int) else tuple(points)
        self.at = evaluation_steps(points, total) if isinstance(points, int) else set()
        self.total, self.save = total, save

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        step, tokens = trainer.global_step, int(module.tokens_seen)
        before = tokens - module.last["counts"]["input_tokens"]
        if step < self.total and (step in self.at or any(before < asked <= tokens for asked in self.tokens)):
            self.save(step, tokens)


def count_rounds(points: int | Sequence[int]) -> int:
    """How often the tasks are fine-tuned, the end included."""
    return max(1, points) if isinstance(points, int) else len(points) + 1


def make_snapshots(stage: Stage) -> list[Snapshots]:
    """The callback that saves the stage's weights during pre-training; only for the run itself, and if requested."""

    def save(step: int, tokens: int) -> None:
        place = stage.folder / POINTS / str(step)
        checkpoint.save(stage.encoder, stage.head, place / "model", stage.pair_head, stage.pooler)
        write_sealed(place / POINT, {"step": step, "tokens": tokens})

    points = stage.run.evaluation.task_points
    return [Snapshots(points, stage.steps, save)] if points and not stage.run.stage else []


def tune_points(base: Base, data: Data, profile: ResolvedProfile, folder: Path) -> list[dict[str, Any]]:
    """[{"step", "tokens", "task_runs": [{task, seed, metrics}], "finetune_seconds"}] of the points during pre-training,
    in order.

    Each is fine-tuned like the end, with the same seeds. Its weights are then removed, unless `finetune.keep` is set.
    """
    places = sorted((folder / POINTS).glob(f"*/{POINT}"), key=lambda path: int(path.parent.name))
    return [tune_point(base, data, profile, path) for path in places]


def tune_point(base: Base, data: Data, profile: ResolvedProfile, path: Path) -> dict[str, Any]:
    """Fine-tune the tasks from the checkpoint beside `path`, which then holds their scores. Raises UserError if it is
    damaged.
    """
    if (about := read_sealed(path)) is None:
        raise UserError(f"{path} is damaged", f"remove {path.parent}: the run then lacks this point, or train it again")
    if "task_runs" not in about:
        encoder, weights = copy.deepcopy(base.encoder), path.parent / "model"
        checkpoint.load(encoder, weights)
        memory = base.memory
        if memory is not None:  # rehearsed with the point's own head on tokens; what is forgotten is not measured
            head = copy.deepcopy(memory.head, {id(memory.encoder): encoder})
            checkpoint.load_head(encoder, head, weights)
            memory = replace(memory, encoder=encoder, head=head, before={})
        tuned = finetune([base_of(base.run, encoder, weights, memory)], data, profile, path.parent)
        about |= {key: tuned[key] for key in ("task_runs", "finetune_seconds")}
        write_sealed(path, about)
    if not base.run.finetune.keep:
        for other in path.parent.iterdir():
            if other != path:
                shutil.rmtree(other) if other.is_dir() else other.unlink()
    return about
