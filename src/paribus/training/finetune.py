"""The fine-tuning stage: every task, every fine-tuning seed, from one checkpoint."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from paribus.core.console import say
from paribus.core.errors import UserError, located
from paribus.core.files import write_text
from paribus.core.hashing import digest
from paribus.core.sealed import hash_file, seal, verify
from paribus.core.settings import FineTuning
from paribus.data.tokens.prepare import Data
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.finetuning import saved
from paribus.finetuning.method import Full, Method
from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble
from paribus.models.heads.choices import FirstToken, TaskHead
from paribus.models.heads.loss import loss_of
from paribus.models.network import Network, named_generator
from paribus.objectives.objective import Objective
from paribus.optim.groups import Rates
from paribus.runs.gold import Gold, describe_gold, hash_answers, read_gold, write_gold
from paribus.runs.store import GOLD, TUNING, read_lines
from paribus.runs.tracker import Tracked
from paribus.tasks.baselines import measure_baselines
from paribus.tasks.examples import Examples
from paribus.tasks.rows import FORMATS, GPT, Rows, head_tokens, order
from paribus.tasks.types.base import Pooler, Probable, TaskType
from paribus.training.callbacks import Bar, TaskCurve, TuningCurve, append_line
from paribus.training.description import Run
from paribus.training.evaluate import evaluating, on_device, placed
from paribus.training.forgetting import Memory
from paribus.training.joint import (
    FOLDER,
    JointSteps,
    Start,
    Where,
    check_joint,
    describe_joint,
    is_whole,
    joint_path,
    joint_steps,
    read_start,
    train_joint,
)
from paribus.training.learner import Finetuning
from paribus.training.profile import Profile
from paribus.training.replay import Replay, ReplaySteps, read_text
from paribus.training.steps import StepData, Steps, TaskSteps, task_batch
from paribus.training.trainer import trainer

KEPT = "tuned"
DONE = "task_runs.jsonl"
ROWS = 128  # a forward pass of the evaluation


class Work(NamedTuple):
    """A task as a model does it: its task type, the examples and the rows of its sets."""

    name: str
    task_type: TaskType
    examples: Examples
    encoded: dict[str, Rows]
    length: int = 0  # longest input in tokens


class Base(NamedTuple):
    """A pre-trained model, its run, weights that heads of tasks start from, and what it may forget.

    `speaker`: the weights of its head on tokens, if a task is answered by that.
    """

    run: Run
    encoder: Network
    pooler: Pooler | None
    memory: Memory | None = None
    speaker: Pooler | None = None

    def weights_for(self, task_type: TaskType) -> Pooler | None:
        """The initial weights for the head of a task of this type, if any."""
        return self.speaker if task_type.speaks else self.pooler


class How(NamedTuple):
    """The settings of fine-tunings, the run's folder, and where they report."""

    profile: Profile
    folder: Path
    tracked: Tracked | None


def base_of(run: Run, encoder: Network, folder: Path, memory: Memory | None = None) -> Base:
    """The model from the folder of its checkpoint, with the pooler or a separate head if requested."""
    if run.finetune.encoder:
        return Base(run, read_with(run, encoder), None, memory)
    if encoder.spec.writes_text:
        return Base(run, encoder, checkpoint.load_written_head(encoder, folder), memory)
    asked = any(run.finetune.of(name).head.pretrained_pooler for name in run.tuned_tasks)
    types = [run.task_type(name) for name in run.tuned_tasks]
    untrained = any(not (each.trained and run.finetune.epochs) for each in types if each.speaks)
    speaker = checkpoint.load_speaker(encoder, folder, untrained) if any(each.speaks for each in types) else None
    return Base(run, encoder, checkpoint.load_pooler(encoder, folder) if asked else None, memory, speaker)


def read_with(run: Run, encoder: Network) -> Network:
    """The network that a task's head reads: that of the pre-training, or only its encoder if requested."""
    if not run.finetune.encoder:
        return encoder
    from paribus.models.text_encoder import TextEncoder

    return TextEncoder(cast(Any, encoder))


def finetune(
    bases: Sequence[Base], data: Data, profile: Profile, folder: Path, tracked: Tracked | None = None
) -> dict[str, Any]:
    """{"task_runs": [{task, seed, metrics}], "baselines": {column: {name: value}}, "tuned": {name: value}, "gold":
    what `describe_gold` says, "curves": {file: its hash}}, and `joint` if tasks are trained together first.

    Finished fine-tunings are not repeated. Those of several models, or several of one model, answer together.
    """
    run, how = bases[0].run, How(profile, folder, tracked)
    owner = run.identity.signature
    done = _finished(folder / DONE, owner)
    if run.finetune.joint:
        seeds = [seed for seed in run.finetune.seeds if any((name, seed) not in done for name in run.tuned_tasks)]
        _train_together(bases[0], data, how, seeds)
    baseline: dict[str, dict[str, float]] = {}
    for name, task in run.tuned_tasks.items():
        for metric, values in measure_baselines(task, run.cache).items():
            baseline[f"{name}/{metric}"] = values
        missing = [seed for seed in run.finetune.seeds if (name, seed) not in done]
        work = _work(run, data, name) if missing else Work(name, run.task_type(name), {}, {})
        for seed in missing:
            own = [base._replace(run=base.run.tuned_for(name)) for base in bases]
            metrics, answers = _run(own, work, seed, how)
            line = {"task": name, "seed": seed, "metrics": metrics, "owner": owner}
            done[name, seed] = {**line, "gold": answers}
            lines = [json.dumps(seal(line)) for line in done.values()]
            write_text(folder / DONE, "\n".join(lines) + "\n")
            if not run.finetune.keep:
                shutil.rmtree(folder / KEPT, ignore_errors=True)
    if not run.finetune.keep:
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
    runs = [{key: line[key] for key in ("task", "seed", "metrics")} for line in done.values()]
    tuned = trained_share(bases) if run.tuned_tasks else {}
    parts = {"task_runs": runs, "baselines": baseline, "tuned": tuned, "gold": describe_gold(folder)}
    parts["curves"] = {TUNING: hash_file(folder / TUNING)} if (folder / TUNING).is_file() else {}
    return parts | describe_joint(folder)


def _train_together(base: Base, data: Data, how: How, seeds: Sequence[int]) -> None:
    """The joint training of each fine-tuning seed that is not there yet."""
    missing = [seed for seed in seeds if not is_whole(joint_path(how.folder, seed))]
    if not missing:
        return
    encoded = {name: encode_training(base.run, data, name) for name in joint_tasks(base.run)}
    where = Where(how.profile, base.run.profile, how.folder, how.tracked)
    for seed in missing:
        learner, steps = joint_finetuner(base, encoded, seed)
        train_joint(learner, steps, where, seed)


def joint_tasks(run: Run) -> list[str]:
    """The tasks that a run trains together."""
    found: list[str] = run.finetune.joint.choose(list(run.tuned_tasks))
    return found


def encode_training(run: Run, data: Data, task: str) -> Rows:
    """The training rows of a task."""
    examples, task_type = run.tasks[task].examples(run.cache)["train"], run.task_type(task)
    own = task_type.fit_length(examples, data.tokenizer, data.vocabulary, run.finetune.of(task))
    return task_type.encode(examples, data.tokenizer, data.vocabulary, own)


def joint_finetuner(base: Base, encoded: Mapping[str, Rows], seed: int) -> tuple[Finetuning, JointSteps]:
    """A learner of all weights on a copy of the encoder, with a new head for each task, and its steps."""
    run, settings = base.run, base.run.finetune
    own = start_of(run, base.encoder, _own_seed(run, "joint", seed))
    heads = {
        name: run.task_type(name).make_head(settings.of(name), own, _own_seed(run, name, seed), base.pooler)
        for name in encoded
    }
    steps = joint_steps(run, encoded, seed)
    rate = settings.joint.lr or settings.optimizer.lr
    objective = Objective(heads, tasks={name: name for name in heads})
    return _learner(replace(settings, method=Full()), own, objective, steps, rate, steps.seed), steps


def trained_share(bases: Sequence[Base]) -> dict[str, float]:
    """How many weights a task trains, inserted ones and those of its head included, their share of all weights, and how
    many of them are the head's own; means over the tasks, whose heads differ in the number of classes.

    An ensemble adds its number of models; the other values are those of one model.
    """
    run, encoder, pooler = bases[0][:3]
    models = len(bases) * run.finetune.ensemble
    own = copy.deepcopy(encoder)
    run.finetune.method.shape(own, 0)
    inside = {id(parameter) for parameter in own.parameters()}
    count = sum(parameter.numel() for parameter in own.parameters() if parameter.requires_grad)
    types = {name: run.task_type(name) for name in run.tuned_tasks}
    heads = [
        task_type.make_head(run.finetune.of(name), own, 0, pooler)
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


def _finished(path: Path, signature: str) -> dict[tuple[str, int], dict[str, Any]]:
    """{(task, seed): its line} of the fine-tunings that a run has finished; none if their answers are not those."""
    lines = [line for line in read_lines(path) if verify(line) and line.get("owner") == signature]
    if path.is_file() and len(lines) < len(path.read_bytes().splitlines()):
        say(f"{path} has lines that are damaged or from another run; those fine-tunings are repeated")
    answers = {name: hashed for line in lines for name, hashed in line.get("gold", {}).items()}
    if lines and _holds(path.parent, answers):
        return {(line["task"], line["seed"]): line for line in lines}
    if lines:
        say(f"{path.parent / GOLD} is damaged or from another run; the fine-tunings are repeated")
    (path.parent / GOLD).unlink(missing_ok=True)
    return {}


def _holds(folder: Path, answers: Mapping[str, str]) -> bool:
    """Whether a run's `gold.npz` is whole and has these answers."""
    try:
        return answers.items() <= hash_answers(read_gold(folder)).items()
    except UserError:
        return False


def _work(run: Run, data: Data, name: str) -> Work:
    task, task_type = run.tasks[name], run.task_type(name)
    examples = task.examples(run.cache)
    own = task_type.fit_length(examples["train"], data.tokenizer, data.vocabulary, run.finetune.of(name))
    encoded = {split: task_type.encode(rows, data.tokenizer, data.vocabulary, own) for split, rows in examples.items()}
    return Work(task.name, task_type, examples, encoded, own.length)


def check_finetuning(run: Run, layers: int, has_pooler: bool, tokenizer: Tokenizer) -> None:
    """Raise UserError for settings that do not fit the number of layers, or that need a pooler if there is none."""
    settings = run.finetune
    check_ensemble(run)
    check_joint(run)
    check_each(run)
    check_format(run)
    settings.method.check(layers)
    if settings.method.enters_layers and not run.model.open_layers:
        cause = f"finetune/method={type(settings.method).__name__.lower()} goes inside the layers of a BERT or T5"
        raise UserError(cause, "set finetune/method=full, layerwise_decay or top_k_layers for this checkpoint")
    for own in (settings, *map(settings.of, run.tuned_tasks)):
        own.head.check(layers, own.length)
    loss_of(settings)
    if settings.head_lr is not None and settings.head_lr <= 0:
        raise UserError(f"finetune.head_lr={settings.head_lr} is not positive", "give a rate, or null")
    head_tokens(settings.truncation)
    if settings.covers is not None and not 0 < settings.covers <= 1:
        raise UserError(f"finetune.covers={settings.covers} is not a share", "give one above 0, at most 1, or null")
    if run.tasks and (not settings.seeds or len(set(settings.seeds)) < len(settings.seeds)):
        raise UserError(f"finetune.seeds={settings.seeds} is not valid", "give distinct seeds, such as [0, 1]")
    if run.finetune.encoder:
        check_encoder(run)
    elif run.tasks and run.model.writes_text:
        _check_writing(run)
    for key, value, what in (
        ("epochs", settings.epochs, "passes"),
        ("points", settings.points, "evaluations, or 0 for no learning curve"),
    ):
        if value < 0:
            raise UserError(f"finetune.{key}={value} is negative", f"give a number of {what}")
    for name, task in run.tuned_tasks.items():
        task_type, own = run.task_type(name), settings.of(name)
        task_type.check_settings(own, task.key)
        task_type.check_tokenizer(tokenizer, own)
        if own.head.windows.several or own.head.pairs or own.head.paired:
            task_type.check_fit(own, task.examples(run.cache)["train"])
        if run.members * settings.ensemble > 1:
            task_type.check_ensemble(task.key)
        key = "finetune.length" if task_type.row_length(own) == own.length else "finetune.length+target_length"
        run.model.check_length(task_type.row_length(own), key)
        if not task_type.trained:
            check_scored(run, name, tokenizer)
    if any(settings.of(name).head.pretrained_pooler for name in run.tuned_tasks) and not has_pooler:
        raise UserError(
            "finetune.head.pooler=pretrained, but neither the objective nor the model has a pooler",
            "set finetune.head.pooler=fresh or objective=mlm_nsp",
        )


def check_scored(run: Run, name: str, tokenizer: Tokenizer) -> None:
    """Raise UserError for a task that the language model cannot answer, because of its objective or row length."""
    task = run.tasks[name]
    if run.objective.needed_attention != "left":
        cause = f"{task.key} is scored by a left-to-right language model, but the objective is another"
        raise UserError(cause, "set objective=clm masking=none model.attention=left")
    if run.finetune.joint:
        raise UserError(f"finetune/joint is set, but nothing is trained in {task.key}", "leave the task out")
    with located(task.key):
        for rows in task.examples(run.cache).values():
            run.task_type(name).encode(rows, tokenizer, tokenizer.vocabulary, run.finetune)


def check_each(run: Run) -> None:
    """Raise UserError for settings of a task that the run does not have, and for unknown or odd ones."""
    for task, own in run.finetune.each.items():
        if task not in run.tasks:
            raise UserError(f"finetune.each.{task}, but there is no such task", f"name one of {', '.join(run.tasks)}")
        known = isinstance(own, Mapping) and own.keys() <= {"epochs", "lr", "head"}
        epochs, rate = (own.get("epochs", 1), own.get("lr", 1.0)) if known else (0, 0)
        if not isinstance(epochs, int) or epochs < 1 or not isinstance(rate, int | float) or rate <= 0:
            raise UserError(
                f"finetune.each.{task}={own} is not valid", "give epochs, a whole number, and lr, a positive rate"
            )
        if "head" in own and not isinstance(own["head"], TaskHead):
            mend = f"choose one: +finetune/head@finetune.each.{task}.head=san"
            raise UserError(f"finetune.each.{task}.head={own['head']} is not a head", mend)


def check_format(run: Run) -> None:
    """Raise UserError for an unknown format, and for GPT-1's if the head does not read the last token."""
    settings = run.finetune
    if settings.format not in FORMATS:
        raise UserError(f"finetune.format={settings.format} is unknown", f"use {' or '.join(FORMATS)}")
    if settings.format == GPT and run.model.attention != "left" and type(settings.head.pooling) is FirstToken:
        cause = "finetune.format=gpt reads the last token, but the model summarizes a row by the first"
        raise UserError(cause, "set finetune/head/pooling=sep, or objective=clm masking=none model.attention=left")


def check_transfer(run: Run, encoder: Network) -> None:
    """Raise UserError for a number of layers to transfer that the encoder does not have."""
    kept, depth = run.finetune.transfer_layers, encoder.depth
    if kept is None:
        return
    if not 0 <= kept <= depth:
        cause = f"finetune.transfer_layers={kept}, but the model has {depth} layers"
        raise UserError(cause, f"give 0 (the embeddings alone) to {depth}, or null for all")
    if kept < depth and not any(encoder.depth_of(name) > kept for name, _ in encoder.named_parameters()):
        raise UserError(f"finetune.transfer_layers={kept}, but the layers share weights", "set model.sharing=none")


def check_ensemble(run: Run) -> None:
    """Raise UserError for invalid numbers of models in an ensemble."""
    turns = run.finetune.ensemble
    for key, value in (("members", run.members), ("finetune.ensemble", turns)):
        if value < 1:
            raise UserError(f"{key}={value} is not a number of models", "give a whole number, at least 1")
    if run.finetune.forgetting and turns * run.members > 1:
        raise UserError("finetune.forgetting=true needs a single model", "set members=1 and finetune.ensemble=1")
    if turns > 1 and not run.tasks:
        raise UserError(f"finetune.ensemble={turns}, but there is no task", "give task=, or finetune.ensemble=1")
    if turns > 1 and run.finetune.epochs == 0:
        cause = f"finetune.ensemble={turns} with finetune.epochs=0 is the same model {turns} times"
        raise UserError(cause, "give at least 1 epoch, or set members= instead")


def check_encoder(run: Run) -> None:
    """Raise UserError if there is no encoder to read with, or no task for it, or what needs the whole model."""
    if not run.model.writes_text:
        raise UserError("finetune.encoder=true, but the model is an encoder", "leave finetune.encoder at false")
    if run.model.single:
        raise UserError(
            "finetune.encoder=true, but the model has only one stack", "set model.architecture=encoder_decoder"
        )
    if not run.tuned_tasks:
        raise UserError("finetune.encoder=true, but there is no task for an encoder", "add one: task=[docs_package]")
    if run.finetune.forgetting or run.finetune.replay:
        mend = "leave finetune.forgetting and finetune.replay at their defaults"
        raise UserError("finetune.encoder=true leaves out the decoder, which the text needs", mend)


def _check_writing(run: Run) -> None:
    """Raise UserError if a model that writes has nothing to train."""
    if not run.finetune.method.moves and run.model.tied_head:
        cause = "finetune/method=frozen leaves nothing to train: the head of the model is its word embeddings"
        raise UserError(cause, "set model.head=separate, or set finetune/method=adapters")


def check_untrained(run: Run, encoder: Network) -> None:
    """Raise UserError for a new head with weights that no step would train."""
    words = run.model.writes_text and not run.finetune.encoder
    if run.finetune.epochs or run.finetune.joint or words:
        return
    own = read_with(run, encoder)
    types = {name: run.task_type(name) for name in run.tuned_tasks}
    heads = [each.make_head(run.finetune.of(name), own, 0) for name, each in types.items() if not each.speaks]
    if any(list(head.parameters()) for head in heads):
        mend = "give at least 1, set finetune/head=siamese finetune.head.parts=cosine, or set model=t5_tiny"
        raise UserError("finetune.epochs=0 leaves a new head untrained", mend)


def _run(bases: Sequence[Base], work: Work, seed: int, how: How) -> tuple[dict[str, float], dict[str, str]]:
    """The scores of a fine-tuning, and the hashes of its answers by their names in `gold.npz`."""
    model, head, rehearsed = _tuned(bases, work, seed, how)
    metrics = {} if bases[0].run.finetune.covers is None else {"length": float(work.length)}
    answers: dict[str, Gold] = {}
    with placed(how.profile.device, model, head):
        for split, rows in work.encoded.items():
            if split != "train":
                suffix = "" if split == "validation" else f"_{split}"
                values, gold = judge_answers(model, head, work.task_type, rows, work.examples[split])
                metrics |= {f"{name}{suffix}": value for name, value in values.items()}
                answers |= {f"{work.name}{suffix}/seed{seed}": gold} if gold else {}
        if bases[0].memory and bases[0].run.finetune.forgetting and isinstance(model, Network):
            metrics |= bases[0].memory.ask(model, how.profile.device, rehearsed)
    if answers:
        write_gold(how.folder, read_gold(how.folder) | answers)
    if how.tracked is not None:
        total = _steps(bases[0].run, work.encoded["train"], work.task_type, 0).total
        how.tracked.log({f"{work.name}/seed{seed}/{name}": value for name, value in metrics.items()}, total)
    return metrics, hash_answers(answers)


def _tuned(bases: Sequence[Base], work: Work, seed: int, how: How) -> tuple[Network | Ensemble, Any, Any]:
    """A fine-tuned model, its head and that of a further loss, or an ensemble, of which what is done is kept until all
    are.
    """
    each = [(base, turn) for base in bases for turn in range(base.run.finetune.ensemble)]
    if len(each) == 1:
        learner = _trained(bases[0], work, seed, how)
        if bases[0].run.finetune.keep:
            _save(kept(how.folder, work.name, seed), learner, bases[0], work)
        return learner.encoder, _head(learner), learner.objective.token_head if bases[0].run.finetune.replay else None
    pairs = []
    for number, (base, turn) in enumerate(each):
        path = kept(how.folder, work.name, seed, f"-model{number}")
        if not path.is_file():
            _save(path, _trained(base, work, seed, how, turn, f"/model{number}"), base, work)
        pairs.append(saved.load(path, base.encoder)[:2])
    ensemble = Ensemble(pairs)
    return ensemble, ensemble, None


def _save(path: Path, learner: Finetuning, base: Base, work: Work) -> None:
    config = base.run.config["finetune"]
    config = {**config, "head": config.get("each", {}).get(work.name, {}).get("head", config["head"])}
    saved.save(path, learner.encoder, _head(learner), base.encoder, config, work.task_type)


def _head(learner: Finetuning) -> Any:
    return learner.objective.heads["task"]


def _trained(base: Base, work: Work, seed: int, how: How, turn: int = 0, model: str = "") -> Finetuning:
    """A fine-tuning of a model; of an ensemble it is the one called `model`, without a learning curve."""
    own = _own_seed(base.run, work.name, seed, turn)
    replay, start = _replay(base, work.name), _start(base.run, work.name, seed, how.folder)
    learner, steps = finetuner(
        base.run,
        base.encoder,
        work.encoded["train"],
        work.task_type,
        own,
        base.weights_for(work.task_type),
        replay,
        start,
    )
    name, total = f"{work.name}/seed{seed}{model}", steps.total
    rows, examples = work.encoded["validation"], work.examples["validation"]
    curve = TuningCurve(
        lambda: judge_answers(learner.encoder, _head(learner), work.task_type, rows, examples)[0],
        0 if model else base.run.finetune.points,
        total,
    )
    if total:
        beside = [Bar(f"{base.run.label} fine-tuning {name}", total), TaskCurve(name, total), curve]
        trainer(how.profile, total, beside, how.tracked).fit(learner, StepData(steps, 0, how.profile.workers))
    for line in curve.lines:
        append_line(how.folder / TUNING, {"task": work.name, "seed": seed, **line})
    return learner


def _start(run: Run, task: str, seed: int, folder: Path) -> Start | None:
    """The weights from the joint training of the seed, if there was one."""
    return read_start(joint_path(folder, seed), task) if run.finetune.joint else None


def _replay(base: Base, task: str) -> Replay | None:
    """The further loss of a fine-tuning, if the config sets one."""
    weight, memory = base.run.finetune.replay, base.memory
    if not weight or memory is None:
        return None
    return Replay(read_text(base.run, task), memory.encoder, memory.head, weight)


def kept(folder: Path, task: str, seed: int, model: str = "") -> Path:
    """The file in which a run keeps what a fine-tuning, or one model of an ensemble, has trained."""
    return folder / KEPT / f"{task}-{seed}{model}.safetensors"


def _own_seed(run: Run, task: str, seed: int, turn: int = 0) -> int:
    """Of the head, the order and dropout of a fine-tuning."""
    return int(digest([run.root_seed, task, seed, *([turn] if turn else [])], 15), 16)


def begin(run: Run, data: Data, encoder: Network, task: str, seed: int, folder: Path) -> tuple[Finetuning, Work]:
    """A fine-tuning of the run in `folder` before its first step, and its task."""
    run = run.tuned_for(task)
    work = _work(run, data, task)
    base = base_of(run, encoder, folder / "model")
    own, start = _own_seed(run, work.name, seed), _start(run, work.name, seed, folder)
    given = base.weights_for(work.task_type)
    learner, _ = finetuner(run, base.encoder, work.encoded["train"], work.task_type, own, given, start=start)
    return learner, work


def finetuner(
    run: Run,
    encoder: Network,
    encoded: Rows,
    task_type: TaskType,
    seed: int,
    pooler: Pooler | None = None,
    replay: Replay | None = None,
    start: Start | None = None,
) -> tuple[Finetuning, TaskSteps]:
    """A learner on a copy of the encoder with a new head, whose pooler may be given, and its steps; `start`: the
    weights of a joint training.
    """
    settings = run.finetune
    own = start_of(run, encoder, seed)
    if start is not None:
        own.load_state_dict(dict(start.encoder), strict=False)  # what shares a weight has no name of its own
    settings.method.shape(own, seed)
    head = task_type.make_head(settings, own, seed, pooler)
    if start is not None and start.head is not None:
        head.load_state_dict(dict(start.head))
    steps = _steps(run, encoded, task_type, seed)
    if replay is not None and replay.text is not None:
        steps = ReplaySteps(steps, replay.text, run.profile.microbatch)
    objective = Objective({"task": head}) if replay is None else replay.objective(head, own)
    return _learner(settings, own, objective, steps, settings.optimizer.lr, seed), steps


def start_of(run: Run, encoder: Network, seed: int) -> Network:
    """A copy of the encoder, whose upper layers have initial weights if not all are transferred, and whose tokens of
    GPT-1's format are drawn anew, since no text of pre-training holds them (GPT-1, Radford et al. 2018, section 3.3).
    """
    own, kept = copy.deepcopy(encoder), run.finetune.transfer_layers
    if kept is not None:
        new = dict(run.model.initial(encoder.vocabulary, run.root_seed).named_parameters())
        for name, parameter in own.named_parameters():
            if own.depth_of(name) > kept:
                parameter.data.copy_(new[name])
    if run.finetune.format == GPT:
        tokens = [own.vocabulary.start, own.vocabulary.delimiter, own.vocabulary.extract]
        drawn = torch.empty_like(own.table_VD[tokens])
        own.table_VD.data[tokens] = drawn.normal_(
            0.0, run.model.initializer_range, generator=named_generator(seed, GPT)
        )
    return own


def _learner(
    settings: FineTuning, encoder: Network, objective: Objective, steps: Steps, rate: float, seed: int
) -> Finetuning:
    return Finetuning(
        encoder,
        objective,
        replace(settings.optimizer, lr=rate),
        settings.lr_schedule,
        method=settings.method,
        total_steps=steps.total,
        total_tokens=0,
        clip=settings.clip,
        seed=seed,
        rates=_rates(settings.method, encoder, (settings.head_lr or rate) / rate),
    )


def _rates(method: Method, encoder: Network, head: float) -> Rates:
    """Shares of the optimizer's rate by the learner's names of parameters."""

    def rate(name: str) -> float:
        own = name.removeprefix("encoder.")
        return head if own == name else method.rate(encoder, own)

    return rate


def _steps(run: Run, encoded: Rows, task_type: TaskType, seed: int) -> TaskSteps:
    return TaskSteps(encoded, run.finetune.batch_size, run.finetune.epochs if task_type.trained else 0, seed)


def judge_answers(
    model: Network | Ensemble, head: Any, task_type: TaskType, encoded: Rows, examples: Sequence[Any]
) -> tuple[dict[str, float], Gold | None]:
    """Metrics over all examples, in full precision, and how likely each right answer was if answers have probabilities;
    an ensemble is its own head.
    """
    found: dict[int, Any] = {}
    gold_N = np.zeros(len(encoded.length_N), np.float16)
    with evaluating(model, head):
        batches = order(encoded.length_N, ROWS, 0, 0, shuffle=False)
        for row_B in (part for rows in batches for part in encoded.split(rows)):
            batch = on_device(task_batch(encoded, row_B), model)
            outputs = task_type.infer(model, head, batch)
            found |= zip(row_B.tolist(), outputs, strict=True)
            if isinstance(task_type, Probable):
                gold_N[row_B] = task_type.find_gold(model, head, batch, outputs)
    predictions = task_type.predict([found[row] for row in range(len(found))], encoded, examples)
    metrics = task_type.score(predictions, examples)
    if isinstance(task_type, Probable):
        return metrics, Gold(gold_N, task_type.find_right(predictions, examples))
    return metrics, None
