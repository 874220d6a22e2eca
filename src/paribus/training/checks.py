"""What a run refuses, before anything is trained.

`check_run` reads the settings alone, before text is read or a network is built. `check_stage` needs the network of a
stage and its tokenizer, and `check_chain` the networks of successive stages. All raise UserError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from paribus.core.errors import UserError, located
from paribus.core.processes import check_ranks
from paribus.core.settings import LONGER, FineTuning
from paribus.core.stages import FIRST
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.finetuning.method import Frozen, Full
from paribus.models import checkpoint
from paribus.models.heads.choices import Classifier, FirstToken, Layers, TaskHead, TextCNN
from paribus.models.heads.head import TokenHead, loss_of
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import Network
from paribus.objectives.mlm import MaskedLM
from paribus.tasks.key_sentences import KINDS
from paribus.tasks.rows import FORMATS, GPT, head_tokens
from paribus.tasks.types.scored import MaskedScored
from paribus.training.description import Run
from paribus.training.finetuner import read_with
from paribus.training.profile import ResolvedProfile
from paribus.training.replay import ROWS, TASK, read_text
from paribus.training.steps import task_batch
from paribus.training.streams import check_examples, check_fits

if TYPE_CHECKING:
    from paribus.training.stage import Stage


def check_run(run: Run, profile: ResolvedProfile) -> None:
    """The settings of a run, stage by stage, and of its fine-tuning."""
    check_processes(run, profile)
    for stage in run.chain:
        check_whole_batches(stage, profile)
        check_fits(stage)
        check_examples(stage)
        if not 0.0 < stage.trainer.layer_decay <= 1.0:
            cause = f"trainer.layer_decay={stage.trainer.layer_decay} is out of range"
            raise UserError(cause, "give a share above 0, at most 1 for none")
        if stage.evaluation.probe_examples < 0:
            cause = f"evaluation.probe_examples={stage.evaluation.probe_examples} is out of range"
            raise UserError(cause, "give a number of pairs, or 0 for no probes")
        check_longer(stage)
        if stage.objective.continues and not (stage.before and isinstance(stage.before.objective, MaskedLM)):
            further = "+objective@stages.second.objective=electra"
            mend = f"set objective=mlm, and objective=electra in a further stage: {further}"
            raise UserError("objective.joint=false, but no stage before it trains the generator as a masked LM", mend)
    check_finetuning(run)
    check_points(run, profile)


def check_longer(run: Run) -> None:
    """Rows of the evaluation that are longer than those of the training, by a factor that columns know."""
    lengths = run.evaluation.lengths
    if lengths != sorted(set(lengths) & set(LONGER)):
        known = ", ".join(map(str, LONGER))
        raise UserError(f"evaluation.lengths={lengths} is not valid", f"give some of {known} once, in order, as [2]")
    for times in lengths:
        run.model.check_length(times * run.evaluation.input.length, f"{times} times evaluation.input.length")


def check_processes(run: Run, profile: ResolvedProfile) -> None:
    """Whether the run can be trained on as many processes as its profile sets."""
    ranks = profile.ranks
    if ranks < 1:
        raise UserError(f"profile.ranks={ranks} is below 1", "give a number of processes")
    if ranks == 1:
        return
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    check_ranks(ranks, torch.cuda.device_count() if profile.accelerator == "gpu" else 0)
    multirun = HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN
    if run.trial is not None or multirun:
        cause = f"profile.ranks={ranks} does not work inside a Hydra multirun"
        raise UserError(cause, "start each run by itself, or the sweep by paribus run")
    if profile.sharded and profile.compile:
        mend = "set profile.compile=false or trainer=ddp"
        raise UserError("profile.compile=true does not work with profile.strategy=fsdp", mend)
    if profile.sharded and not run.optimizer.shards:
        name = type(run.optimizer).__name__.lower()
        cause = f"optimizer={name} with profile.strategy=fsdp needs whole matrices"
        raise UserError(cause, "set optimizer=adamw, or trainer=ddp")
    if profile.sharded and any(stage.objective.computes_weights for stage in run.chain):
        raise UserError("objective.tie computes weights, which cannot be cut into shards", "set trainer=ddp")
    if run.trainer.noise_every is not None:
        cause = f"trainer.noise_every does not work with profile.ranks={ranks}"
        raise UserError(cause, "measure it with profile.ranks=1")


def check_whole_batches(run: Run, profile: ResolvedProfile) -> None:
    """Batches of a model whose states depend on all rows of their batch."""
    if not run.model.shape.whole_batches:
        return
    for key, rows in (("batch.size", run.batch.size), ("finetune.batch_size", run.finetune.batch_size)):
        if rows < 2:
            cause = f"{key}={rows}, but the norms of the model take statistics over the rows of a batch"
            raise UserError(cause, "give at least 2 rows, or another norm: +model/change@model.changes.norm=rms_norm")
    if profile.ranks > 1:
        cause = f"profile.ranks={profile.ranks} would cut the batches over which the norms of the model take statistics"
        raise UserError(cause, "set profile.ranks=1")
    if profile.microbatch is not None and profile.microbatch < run.batch.size:
        cause = f"profile.microbatch={profile.microbatch} would cut the batches over which the norms take statistics"
        raise UserError(cause, "set profile.microbatch=null")


def check_finetuning(run: Run) -> None:
    """The settings of fine-tuning: which models answer, with which heads, on which tasks."""
    settings = run.finetune
    check_ensemble(run)
    check_joint(run)
    check_probe(run)
    check_cached(run)
    check_each(run)
    if settings.format not in FORMATS:
        raise UserError(f"finetune.format={settings.format} is unknown", f"use {' or '.join(FORMATS)}")
    if settings.format == GPT and run.model.attention != "left" and type(settings.head.pooling) is FirstToken:
        cause = "finetune.format=gpt reads the last token, but the model summarizes a row by the first"
        raise UserError(cause, "set finetune/head/pooling=sep, or objective=clm masking=none model.attention=left")
    if settings.method.enters_layers and not run.model.open_layers:
        cause = f"finetune/method={type(settings.method).__name__.lower()} goes inside the layers of a BERT or T5"
        raise UserError(cause, "set finetune/method=full, layerwise_decay or top_k_layers for this checkpoint")
    if reads_in_order(run) and not run.model.memory:
        cause = "finetune/head/windows=memory, but the model has no memory"
        raise UserError(cause, "set model=transformer_xl_tiny, or finetune/head/windows=mean")
    loss_of(settings)
    if settings.head_lr is not None and settings.head_lr <= 0:
        raise UserError(f"finetune.head_lr={settings.head_lr} is not positive", "give a rate, or null")
    head_tokens(settings.truncation)
    if settings.truncation in KINDS and run.corpus.sentences is None:
        cause = f"finetune.truncation={settings.truncation}, but the corpus does not say where sentences end"
        raise UserError(cause, "set corpus/sentences=blingfire")
    if settings.covers is not None and not 0 < settings.covers <= 1:
        raise UserError(f"finetune.covers={settings.covers} is not a share", "give one above 0, at most 1, or null")
    if run.tasks and (not settings.seeds or len(set(settings.seeds)) < len(settings.seeds)):
        raise UserError(f"finetune.seeds={settings.seeds} is not valid", "give distinct seeds, such as [0, 1]")
    if settings.epochs < 0:
        raise UserError(f"finetune.epochs={settings.epochs} is negative", "give a number of passes")
    if settings.points < 0:
        mend = "give a number of evaluations, or 0 for no learning curve"
        raise UserError(f"finetune.points={settings.points} is negative", mend)
    if settings.encoder:
        check_encoder(run)
    elif run.tasks and run.model.writes_text and not settings.method.moves and run.model.tied_head:
        cause = "finetune/method=frozen leaves nothing to train: the head of the model is its word embeddings"
        raise UserError(cause, "set model.head=separate, or set finetune/method=adapters")


def reads_in_order(run: Run) -> bool:
    """Whether a task is read in windows, each of which remembers those before it."""
    return any(one.head.windows.in_order for one in (run.finetune, *map(run.finetune.of, run.tuned_tasks)))


def check_ensemble(run: Run) -> None:
    """Numbers of models that answer together."""
    turns = run.finetune.ensemble
    for key, value in (("members", run.members), ("finetune.ensemble", turns)):
        if value < 1:
            raise UserError(f"{key}={value} is not a number of models", "give a whole number, at least 1")
    if run.finetune.forgetting and turns * run.members > 1:
        raise UserError("finetune.forgetting=true needs a single model", "set members=1 and finetune.ensemble=1")
    if run.finetune.costs and turns * run.members > 1:
        raise UserError("finetune.costs=true needs a single model", "set members=1 and finetune.ensemble=1")
    if turns > 1 and not run.tasks:
        raise UserError(f"finetune.ensemble={turns}, but there is no task", "give task=, or finetune.ensemble=1")
    if turns > 1 and run.finetune.epochs == 0:
        cause = f"finetune.ensemble={turns} with finetune.epochs=0 is the same model {turns} times"
        raise UserError(cause, "give at least 1 epoch, or set members= instead")


def check_joint(run: Run) -> None:
    """A joint training that cannot be done, or that would do nothing."""
    joint = run.finetune.joint
    if not joint:
        return
    chosen = joint.choose(list(run.tuned_tasks))
    if run.model.writes_text and not run.finetune.encoder:
        mend = "set mixture=proportional, or finetune/joint=none"
        raise UserError("finetune/joint gives each task a head, but the model writes its answers as text", mend)
    if written := next((name for name in chosen if run.task_type(name).writes_text), None):
        mend = "leave the task out of finetune.joint.tasks, or set finetune/joint=none"
        raise UserError(f"finetune/joint gives each task a head, but the answers of {written} are text", mend)
    if reserved := next((name for name in chosen if hasattr(nn.ModuleDict, name)), None):
        raise UserError(f"finetune/joint cannot train a task named {reserved}", f"rename it, for example my_{reserved}")
    if run.members * run.finetune.ensemble > 1:
        raise UserError("finetune/joint does not work with an ensemble", "set members=1 finetune.ensemble=1")
    if run.finetune.costs:
        raise UserError("finetune.costs=true does not count a joint training", "set finetune/joint=none")
    others = [name for name in run.tuned_tasks if name not in chosen]
    if others and not run.finetune.epochs:
        cause = f"finetune.epochs=0 leaves the head of {others[0]} untrained"
        raise UserError(cause, f"give at least 1, or add it: finetune.joint.tasks=[{','.join([*chosen, others[0]])}]")


def check_probe(run: Run) -> None:
    """Probes of a model that something moves, of tasks that they cannot read, and settings that they do not use."""
    settings, usual = run.finetune, FineTuning(head=Classifier())
    if not settings.probe:
        return
    if not isinstance(settings.method, Full | Frozen):
        cause = "finetune/probe reads a frozen model, but finetune/method trains it"
        raise UserError(cause, "set finetune/method=frozen, or finetune/probe=none")
    unused = ("joint", "transfer_layers", "format", "label_smoothing", "focal", "head_lr", "points", "forgetting")
    for name in (*unused, "costs", "replay", "ensemble"):
        if getattr(settings, name) != getattr(usual, name):
            mend = f"leave finetune.{name} at its default, or set finetune/probe=none"
            raise UserError(f"finetune.{name} is set, but finetune/probe trains nothing of the model", mend)
    if run.members > 1:
        raise UserError(f"members={run.members}, but finetune/probe reads a single model", "set members=1")
    if not run.tasks:
        raise UserError("finetune/probe is set, but there is no task", "give task=[docs_parameters]")
    for name in run.tuned_tasks:
        head, task_type = settings.of(name).head, run.task_type(name)
        plain = Classifier(pooling=head.pooling, windows=head.windows, dropout=head.dropout)
        if head != plain or isinstance(head.pooling, TextCNN):
            cause = "finetune/probe replaces the head, but finetune/head is set"
            raise UserError(cause, "set finetune/head=classifier finetune/head/layers=last finetune/head/pooling=own")
        if not task_type.probed:
            cause = f"tasks.{name} cannot be probed: its answers are not classes, values or tags of an encoder"
            raise UserError(cause, "leave the task out, or set finetune/probe=none")


def check_cached(run: Run) -> None:
    """States that are computed once, where something changes them or an answer is written."""
    settings, usual = run.finetune, FineTuning()
    if not settings.method.cached or settings.probe:
        return
    for name in ("joint", "transfer_layers", "format", "forgetting", "costs", "replay", "ensemble", "keep"):
        if getattr(settings, name) != getattr(usual, name):
            cause = f"finetune.method.cached=true does not work with finetune.{name}"
            raise UserError(cause, f"set finetune.method.cached=false, or leave finetune.{name} at its default")
    if run.members > 1:
        raise UserError(f"finetune.method.cached=true, but members={run.members}", "set members=1")
    if run.model.writes_text and not settings.encoder:
        cause = "finetune.method.cached=true is for heads on an encoder, but the model writes its answers"
        raise UserError(cause, "set finetune.method.cached=false")


def check_each(run: Run) -> None:
    """Settings of a single task: of one that the run does not have, unknown or odd ones."""
    for task, settings in run.finetune.each.items():
        if task not in run.tasks:
            raise UserError(f"finetune.each.{task}, but there is no such task", f"name one of {', '.join(run.tasks)}")
        known = isinstance(settings, Mapping) and settings.keys() <= {"epochs", "lr", "head"}
        epochs, rate = (settings.get("epochs", 1), settings.get("lr", 1.0)) if known else (0, 0)
        if not isinstance(epochs, int) or epochs < 1 or not isinstance(rate, int | float) or rate <= 0:
            mend = "give epochs, a whole number, and lr, a positive rate"
            raise UserError(f"finetune.each.{task}={settings} is not valid", mend)
        if "head" in settings and not isinstance(settings["head"], TaskHead):
            mend = f"choose one: +finetune/head@finetune.each.{task}.head=san"
            raise UserError(f"finetune.each.{task}.head={settings['head']} is not a head", mend)


def check_encoder(run: Run) -> None:
    """Reading with the encoder of a text-to-text model: it must have one, a task for it, and not need the decoder."""
    if not run.model.writes_text:
        raise UserError("finetune.encoder=true, but the model is an encoder", "leave finetune.encoder at false")
    if run.model.single:
        mend = "set model.architecture=encoder_decoder"
        raise UserError("finetune.encoder=true, but the model has only one stack", mend)
    if not run.tuned_tasks:
        raise UserError("finetune.encoder=true, but there is no task for an encoder", "add one: task=[docs_package]")
    if run.finetune.forgetting or run.finetune.replay:
        mend = "leave finetune.forgetting and finetune.replay at their defaults"
        raise UserError("finetune.encoder=true leaves out the decoder, which the text needs", mend)


def check_points(run: Run, profile: ResolvedProfile) -> None:
    """Fine-tunings during pre-training: how often, and whether the run can be fine-tuned on the way."""
    points = run.evaluation.task_points
    listed = [points] if isinstance(points, int) else points
    numbers = isinstance(listed, Sequence) and all(isinstance(one, int) and one >= 0 for one in listed)
    if not numbers or isinstance(points, str | bool):
        mend = "give how often tasks are fine-tuned, or a list of numbers of tokens"
        raise UserError(f"evaluation.task_points={points} is not valid", mend)
    if not points:
        return
    if not run.tasks:
        raise UserError(f"evaluation.task_points={points}, but there is no task", "give task=, or leave it at 0")
    for key, several in (("members", run.members > 1), ("finetune.ensemble", run.finetune.ensemble > 1)):
        if several:
            raise UserError(f"evaluation.task_points={points}, but {key} makes an ensemble", f"set {key}=1")
    if run.finetune.encoder:
        cause = f"evaluation.task_points={points} does not work with finetune.encoder=true"
        raise UserError(cause, "leave task_points at 0")
    if profile.sharded:
        raise UserError(f"evaluation.task_points={points}, but the weights are in shards", "set trainer=ddp")
    if any(stage.objective.computes_weights for stage in run.chain):
        cause = f"evaluation.task_points={points}, but objective.tie computes weights that are saved at the end alone"
        raise UserError(cause, "set objective.tie=embeddings, or leave task_points at 0")


def check_stage(stage: Stage) -> None:
    """A stage whose network is built. Only the last stage of a run is fine-tuned."""
    run = stage.run
    check_kept(stage)
    check_depths(stage)
    check_memory(stage)
    if not run.stage:
        # a stage of the run trains a pooler, or the model came with one, or came without any weights
        paired = [one for one in run.chain if one.objective.needed_pairs]
        trained = any(stage.steps if one is run else one.trainer.max_steps != 0 for one in paired)
        pooler = stage.pooler is not None or trained or bool(paired and not run.model.lacks_pooler(stage.encoder))
        check_tasks(run, stage.encoder.depth, pooler, stage.data.tokenizer)
        check_speakers(run, stage.objective.token_head)
        check_replay(run, stage.objective.token_head)
        check_method(run, stage.encoder)
        check_layers(run, stage)
        check_heads(run, stage.encoder)
        check_transfer(run, stage.encoder)
    names = [name for evaluation in stage.evaluations for name in evaluation.metrics]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        cause = f"two evaluations of the objective measure {twice[0]}"
        raise UserError(cause, "give one of them another name in the objective's `evaluations`")
    if stage.further and run.members > 1:
        singles = ", ".join(name for evaluation in stage.further for name in evaluation.metrics)
        cause = f"members={run.members}, but only a single model can be asked for {singles}"
        raise UserError(cause, "set members=1, or leave out what asks for it: evaluation.* and objective.* of this run")


def check_depths(stage: Stage) -> None:
    """Settings of pre-training that treat layers differently, for networks that do not say what is in them."""
    run = stage.run
    if run.trainer.layer_decay < 1.0:
        stage.encoder.require_depths("trainer.layer_decay", "set trainer.layer_decay=1")
    if run.optimizer.asks_layers:
        for network in (stage.encoder, *stage.objective.modules()):
            if isinstance(network, Network):
                network.require_depths(f"optimizer ({type(run.optimizer).__name__})", "set optimizer=adamw")


def check_memory(stage: Stage) -> None:
    """A memory needs rows that go on where others ended, on a stream that is longer than it."""
    run, plan = stage.run, stage.plan
    if not run.model.memory or not stage.steps:
        return
    epoch, rows = plan.blocks(0)[0]
    if plan.marks(epoch, rows) is None:
        cause = f"model.memory={run.model.memory}, but the rows of this input do not continue each other"
        raise UserError(cause, "set input=streams, or model.memory=0")
    stream = plan.examples.tokens(epoch) // len(rows)
    if run.model.memory >= stream:
        cause = f"model.memory={run.model.memory} is longer than each of the {len(rows)} streams, {stream:,} tokens"
        raise UserError(cause, "lower model.memory or batch.size, or give more text")


def check_kept(stage: Stage) -> None:
    """Weights of a network or objective that its checkpoint would not hold."""
    checkpoint.name_tensors(stage.encoder, stage.head, stage.pair_head, stage.pooler)
    objective = stage.objective
    parts = [stage.encoder, objective.token_head, objective.pair_head, *objective.further_parts.values()]
    kept = {id(weight) for part in parts if part is not None for weight in part.state_dict(keep_vars=True).values()}
    lost = [name for name, weight in objective.state_dict(keep_vars=True).items() if id(weight) not in kept]
    if lost:
        cause = f"a checkpoint of {type(objective).__name__} would lose its weight {lost[0]}"
        raise UserError(cause, "put it into a head or another module of the objective, under a name of its own")


def check_tasks(run: Run, layers: int, has_pooler: bool, tokenizer: Tokenizer) -> None:
    """Method, heads and tasks, for a network of so many layers.

    Args:
        has_pooler: whether the network has a pooler, which a head may ask for.
        tokenizer: of the run; a task must be able to write its rows with it.
    """
    settings = run.finetune
    settings.method.check(layers)
    for one in (settings, *map(settings.of, run.tuned_tasks)):
        one.head.check(layers, one.length)
    for name in run.tuned_tasks:
        task, task_type, tuning = run.tasks[name], run.task_type(name), settings.of(name)
        task_type.check_settings(tuning, task.key)
        task_type.check_tokenizer(tokenizer, tuning)
        if tuning.head.windows.several or tuning.head.pairs or tuning.head.paired or tuning.truncation in KINDS:
            task_type.check_fit(tuning, task.examples(run.cache)["train"])
        if run.members * tuning.ensemble > 1:
            task_type.check_ensemble(task.key)
        length = task_type.row_length(tuning)
        key = "finetune.length" if length == tuning.length else "finetune.length+target_length"
        run.model.check_length(length, key)
        if not task_type.trained:
            check_scored(run, name, tokenizer)
    if any(settings.of(name).head.pretrained_pooler for name in run.tuned_tasks) and not has_pooler:
        cause = "finetune.head.pooler=pretrained, but neither the objective nor the model has a pooler"
        raise UserError(cause, "set finetune.head.pooler=fresh or objective=mlm_nsp")


def check_scored(run: Run, name: str, tokenizer: Tokenizer) -> None:
    """A task that is answered without training, by how likely a language model finds its texts."""
    task = run.tasks[name]
    if run.objective.needed_attention != "left" and not isinstance(run.task_type(name), MaskedScored):
        cause = f"{task.key} is scored by a left-to-right language model, but the objective is another"
        raise UserError(cause, "set objective=clm masking=none model.attention=left")
    if run.finetune.joint:
        raise UserError(f"finetune/joint is set, but nothing is trained in {task.key}", "leave the task out")
    with located(task.key):
        for rows in task.examples(run.cache).values():
            run.task_type(name).encode(rows, tokenizer, tokenizer.vocabulary, run.finetune)


def check_speakers(run: Run, head: TokenHead | None) -> None:
    """Tasks that the pre-trained head on tokens answers without training, if it is of another kind than theirs."""
    if run.model.writes_text or run.finetune.encoder:
        return
    for name in run.tuned_tasks:
        task_type = run.task_type(name)
        answers = task_type.speaks and not (task_type.trained and run.finetune.of(name).epochs)
        if answers and type(head) is not MaskedLMHead:
            found = "none" if head is None else f"a {type(head).__name__}"
            cause = f"tasks.{name} is answered by a {MaskedLMHead.__name__}, but the objective trains {found}"
            raise UserError(cause, "set objective=clm masking=none model.attention=left, or leave the task out")


def check_replay(run: Run, head: TokenHead | None) -> None:
    """The further loss on text while fine-tuning: settings that do nothing, or that name no text."""
    weight, text = run.finetune.replay, run.finetune.replay_text
    if weight < 0.0:
        raise UserError(f"finetune.replay={weight} is negative", "give the weight of the loss, or 0 for none")
    known = [ROWS, TASK, *(stage.last_stage for stage in run.chain)]
    if text not in known:
        raise UserError(f"finetune.replay_text={text} is not a text of the run", f"use {', '.join(known)}")
    if not weight and text != FIRST:
        raise UserError(f"finetune.replay_text={text}, but finetune.replay=0", "give the weight of the loss")
    if not weight:
        return
    if not run.finetune.epochs:
        raise UserError(f"finetune.replay={weight}, but finetune.epochs=0", "give at least 1 epoch, or no replay")
    if run.tuned_tasks and not any(run.task_type(name).trained for name in run.tuned_tasks):
        raise UserError(f"finetune.replay={weight}, but no task is fine-tuned", "add a task, or set finetune.replay=0")
    if head is None:
        raise UserError("finetune.replay needs a head on tokens, which the objective lacks", "set objective=mlm")
    if text == ROWS and run.objective.needed_attention != "left":
        raise UserError("finetune.replay_text=rows is for a left-to-right model", "set finetune.replay_text=task")
    for name in run.tasks:
        read_text(run, name)


def check_method(run: Run, encoder: Network) -> None:
    """A method or an optimizer of fine-tuning that would do nothing, since the network does not say what its layers
    hold.
    """
    if run.tuned_tasks and not run.finetune.probe:
        network, optimizer = read_with(run, encoder), run.finetune.optimizer
        run.finetune.method.check_network(network)
        if optimizer.asks_layers:
            setting = f"finetune.optimizer ({type(optimizer).__name__})"
            network.require_depths(setting, "set optimizer@finetune.optimizer=adamw")


def check_layers(run: Run, stage: Stage) -> None:
    """Heads and probes on layers of a network that does not give their states, gives others, or does not have them."""
    network = read_with(run, stage.encoder)
    if run.finetune.probe:
        run.finetune.probe.choose(network.depth)
        network.require_layers("set finetune/probe=none")
    elif run.finetune.method.cached:
        network.require_layers("set finetune.method.cached=false")
    elif any(isinstance(run.finetune.of(name).head.layers, Layers) for name in run.tuned_tasks):
        network.require_layers("set finetune/head/layers=last")
    else:
        return
    name = next((name for name in run.tuned_tasks if run.task_type(name).trained), None)
    if name is None:
        return
    tokenizer, examples = stage.data.tokenizer, run.tasks[name].examples(run.cache)["train"][:1]
    rows = run.task_type(name).encode(examples, tokenizer, tokenizer.vocabulary, run.finetune.of(name))
    training = network.training
    network.eval()
    with torch.no_grad():  # in inference mode, tables that a network makes once could not be trained with
        network.states(task_batch(rows, np.arange(1)))
    network.train(training)


def check_heads(run: Run, encoder: Network) -> None:
    """A new head with weights that no step would train, and windows for a network that does not read them in order."""
    network = read_with(run, encoder)
    if reads_in_order(run) and not network.reads_in_order:
        cause = f"finetune/head/windows=memory, but {type(network).__name__} does not read windows in order"
        raise UserError(cause, "give it `reads_in_order`, or set finetune/head/windows=mean")
    answers_in_words = run.model.writes_text and not run.finetune.encoder
    if run.finetune.epochs or run.finetune.joint or run.finetune.probe or answers_in_words:
        return
    types = {name: run.task_type(name) for name in run.tuned_tasks}
    heads = [each.make_head(run.finetune.of(name), network, 0) for name, each in types.items() if not each.speaks]
    if any(list(head.parameters()) for head in heads):
        mend = "give at least 1, set finetune/head=siamese finetune.head.parts=cosine, or set model=t5_tiny"
        raise UserError("finetune.epochs=0 leaves a new head untrained", mend)


def check_transfer(run: Run, encoder: Network) -> None:
    """A number of layers to transfer that the encoder does not have."""
    kept, depth = run.finetune.transfer_layers, encoder.depth
    if kept is None:
        return
    if not 0 <= kept <= depth:
        cause = f"finetune.transfer_layers={kept}, but the model has {depth} layers"
        raise UserError(cause, f"give 0 (the embeddings alone) to {depth}, or null for all")
    encoder.require_depths("finetune.transfer_layers", "set finetune.transfer_layers=null")
    if kept < depth and not any(encoder.depth_of(name) > kept for name, _ in encoder.named_parameters()):
        raise UserError(f"finetune.transfer_layers={kept}, but the layers share weights", "set model.sharing=none")


def check_chain(stages: Sequence[Stage]) -> None:
    """Stages that cannot take the weights, or the optimizer, of the one before."""
    if stages[0].run.trainer.keep_optimizer:
        mend = "set it of a later stage: +stages.NAME.trainer.keep_optimizer=true"
        raise UserError("trainer.keep_optimizer=true, but no stage is before the first", mend)
    for before, stage in pairwise(stages):
        name = stage.run.last_stage
        if stage.run.trainer.keep_optimizer:
            key = f"stages.{name}.trainer.keep_optimizer=true"
            if not before.steps:
                raise UserError(f"{key}, but the stage before takes no step", "give it steps, or set it to false")
            if stage.profile.sharded:
                raise UserError(f"{key}, but the weights are in shards", "set trainer=ddp")
            optimizer, earlier = (cast(Any, one.run.optimizer) for one in (stage, before))
            if type(optimizer) is not type(earlier) or replace(optimizer, lr=earlier.lr) != earlier:
                cause = f"{key}, but the optimizers differ in more than lr"
                raise UserError(cause, "set it to false, or change lr alone")
        if stage.run.starts_from_vectors:
            given, wanted = before.encoder.width, stage.encoder.table_VD.shape[1]
            if given != wanted:
                cause = f"the word vectors are {given} wide, but the embeddings of stages.{name}.model are {wanted}"
                raise UserError(cause, f"set model.hidden={wanted}, or +stages.{name}.model.embedding={given}")
            continue
        if _shapes(stage.encoder) != _shapes(before.encoder):
            cause = f"stages.{name}.model has another shape than that of the stage before"
            raise UserError(cause, "give all stages the same size")
        head, earlier_head = stage.head, before.head
        if type(head) is type(earlier_head) is MaskedLMHead and _shapes(head) != _shapes(earlier_head):
            cause = f"stages.{name}.model has another head on tokens than the stage before"
            raise UserError(cause, "give all stages the same model.changes")
        parts, others = stage.objective.further_parts, before.objective.further_parts
        for part in (part for part in parts if part in others):
            if _shapes(parts[part]) != _shapes(others[part]):
                cause = f"stages.{name}.objective has another shape of '{part}' than the stage before"
                raise UserError(cause, "give both stages the same size")


def _shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in module.named_parameters()}
