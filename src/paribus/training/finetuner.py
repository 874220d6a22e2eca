"""One fine-tuning before its first step: its task, its weights and its steps."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from paribus.core.checksums import digest
from paribus.core.settings import FineTuning
from paribus.data.tokens.prepare import Data
from paribus.finetuning.method import Full
from paribus.models import checkpoint
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import Network, named_generator
from paribus.objectives.objective import Objective
from paribus.tasks.examples import Examples
from paribus.tasks.key_sentences import KINDS, keep_sentences
from paribus.tasks.rows import FRAME, GPT, TaskRows
from paribus.tasks.types.base import Pooler, TaskType
from paribus.training.description import Run
from paribus.training.evaluate import Memory
from paribus.training.joint import JointSteps, Start, joint_path, joint_steps, read_start
from paribus.training.kept_states import KeptNetwork
from paribus.training.learner import Finetuning
from paribus.training.replay import Replay, ReplaySteps
from paribus.training.steps import Steps, TaskSteps


class TaskWork(NamedTuple):
    """A task as a model does it: its task type, the examples and the rows of its sets."""

    name: str
    task_type: TaskType
    examples: Examples
    encoded: dict[str, TaskRows]
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


def base_of(run: Run, encoder: Network, folder: Path, memory: Memory | None = None) -> Base:
    """The model from the folder of its checkpoint, with the pooler or a separate head if requested."""
    if run.finetune.encoder:
        return Base(run, read_with(run, encoder), None, memory)
    if encoder.spec.writes_text:
        return Base(run, encoder, checkpoint.load_written_head(encoder, folder), memory)
    asked = any(run.finetune.of(name).head.pretrained_pooler for name in run.tuned_tasks)
    types = [run.task_type(name) for name in run.tuned_tasks]
    untrained = any(not (each.trained and run.finetune.epochs) for each in types if each.speaks)
    speaker = None
    if any(each.speaks for each in types):
        head = run.objective.compose(encoder, encoder.vocabulary).token_head
        if type(head) is MaskedLMHead:  # tasks start other kinds anew; `check_speakers` refuses those that cannot
            speaker = checkpoint.read_token_head(encoder, head, folder, untrained)
    return Base(run, encoder, checkpoint.load_pooler(encoder, folder) if asked else None, memory, speaker)


def read_with(run: Run, encoder: Network) -> Network:
    """The network that a task's head reads: that of the pre-training, or only its encoder if requested."""
    if not run.finetune.encoder:
        return encoder
    from paribus.models.text_to_text import TextEncoder

    return TextEncoder(cast(Any, encoder))


def begin(run: Run, data: Data, encoder: Network, task: str, seed: int, folder: Path) -> tuple[Finetuning, TaskWork]:
    """A fine-tuning of the run in `folder` before its first step, and its task."""
    run = run.tuned_for(task)
    work = work_of(run, data, task)
    base = base_of(run, encoder, folder / "model")
    learner, _ = finetuner(
        run,
        base.encoder,
        work.encoded["train"],
        work.task_type,
        task_seed(run, work.name, seed),
        base.weights_for(work.task_type),
        start=joint_start(run, work.name, seed, folder),
    )
    return learner, work


def work_of(run: Run, data: Data, name: str) -> TaskWork:
    """A task with its examples, as rows of the length that fits the training examples."""
    examples = run.tasks[name].examples(run.cache)
    encoded, length = encode_sets(run, data, name, examples)
    return TaskWork(name, run.task_type(name), examples, encoded, length)


def encode_sets(run: Run, data: Data, task: str, examples: Examples) -> tuple[dict[str, TaskRows], int]:
    """The rows of each set of a task, of the length that fits the training examples; and that length."""
    task_type, settings = run.task_type(task), run.finetune.of(task)
    fitted = task_type.fit_length(examples["train"], data.tokenizer, data.vocabulary, settings)
    if fitted.truncation in KINDS and run.corpus.sentences is not None:
        room = fitted.length - FRAME
        kept = keep_sentences(examples, fitted.truncation, room, data.tokenizer, run.corpus.sentences, run.root_seed)
        examples = dict(kept)
    encoded = {
        split: task_type.encode(rows, data.tokenizer, data.vocabulary, fitted) for split, rows in examples.items()
    }
    return encoded, fitted.length


def encode_training(run: Run, data: Data, task: str) -> TaskRows:
    """The training rows of a task."""
    train = {"train": run.tasks[task].examples(run.cache)["train"]}
    return encode_sets(run, data, task, train)[0]["train"]


def finetuner(
    run: Run,
    encoder: Network,
    encoded: TaskRows,
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
    network = start_of(run, encoder, seed)
    if start is not None:
        network.load_state_dict(dict(start.encoder), strict=False)  # what shares a weight has no name of its own
    settings.method.shape(network, seed)
    head = task_type.make_head(settings, network, seed, pooler)
    if start is not None and start.head is not None:
        head.load_state_dict(dict(start.head))
    steps = task_steps(run, encoded, task_type, seed)
    if replay is not None and replay.text is not None:
        steps = ReplaySteps(steps, replay.text, run.profile.microbatch)
    objective = Objective({"task": head}) if replay is None else replay.objective(head, network)
    if settings.method.cached:
        network = KeptNetwork(network, settings.head.layers.find(network.depth))
    return _learner(settings, network, objective, steps, settings.optimizer.lr, seed), steps


def joint_tasks(run: Run) -> list[str]:
    """The tasks that a run trains together."""
    chosen: list[str] = run.finetune.joint.choose(list(run.tuned_tasks))
    return chosen


def joint_finetuner(base: Base, encoded: Mapping[str, TaskRows], seed: int) -> tuple[Finetuning, JointSteps]:
    """A learner of all weights on a copy of the encoder, with a new head for each task, and its steps."""
    run, settings = base.run, base.run.finetune
    network = start_of(run, base.encoder, task_seed(run, "joint", seed))
    heads = {
        name: run.task_type(name).make_head(settings.of(name), network, task_seed(run, name, seed), base.pooler)
        for name in encoded
    }
    steps = joint_steps(run, encoded, seed)
    rate = settings.joint.lr or settings.optimizer.lr
    objective = Objective(heads, tasks={name: name for name in heads})
    return _learner(replace(settings, method=Full()), network, objective, steps, rate, steps.seed), steps


def start_of(run: Run, encoder: Network, seed: int) -> Network:
    """A copy of the encoder, whose upper layers have initial weights if not all are transferred, and whose tokens of
    GPT-1's format are drawn anew, since no text of pre-training holds them (GPT-1, Radford et al. 2018, section 3.3).
    """
    network, kept = copy.deepcopy(encoder), run.finetune.transfer_layers
    if kept is not None:
        new = dict(run.model.initial(encoder.vocabulary, run.root_seed).named_parameters())
        for name, parameter in network.named_parameters():
            if network.depth_of(name) > kept:
                parameter.data.copy_(new[name])
    if run.finetune.format == GPT:
        tokens = [network.vocabulary.start, network.vocabulary.delimiter, network.vocabulary.extract]
        drawn = torch.empty_like(network.table_VD[tokens])
        drawn.normal_(0.0, run.model.initializer_range, generator=named_generator(seed, GPT))
        network.table_VD.data[tokens] = drawn
    return network


def joint_start(run: Run, task: str, seed: int, folder: Path) -> Start | None:
    """The weights from the joint training of the seed, if there was one."""
    return read_start(joint_path(folder, seed), task) if run.finetune.joint else None


def _learner(
    settings: FineTuning, encoder: Network, objective: Objective, steps: Steps, lr: float, seed: int
) -> Finetuning:
    """The learner whose rates are the method's shares of `lr`, and those of heads `head_lr` if that is set."""
    method = settings.method

    def rate(name: str) -> float:
        inside = name.removeprefix("encoder.")
        own = (settings.head_lr or lr) / lr
        return own if inside == name else method.rate(encoder, inside) * encoder.rate(inside)

    return Finetuning(
        encoder,
        objective,
        replace(settings.optimizer, lr=lr),
        settings.lr_schedule,
        method=method,
        total_steps=steps.total,
        total_tokens=0,
        clip=settings.clip,
        seed=seed,
        rates=rate,
    )


def task_steps(run: Run, encoded: TaskRows, task_type: TaskType, seed: int) -> TaskSteps:
    settings = run.finetune
    epochs = settings.epochs if task_type.trained else 0
    return TaskSteps(encoded, settings.batch_size, epochs, seed, settings.max_examples)


def task_seed(run: Run, task: str, seed: int, turn: int = 0) -> int:
    """The seed of the head, the order and the dropout of a fine-tuning, the `turn`-th of one model's ensemble."""
    return int(digest([run.root_seed, task, seed, *([turn] if turn else [])], 15), 16)
