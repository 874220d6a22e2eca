"""What fine-tuning refuses, before any compute."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.core.errors import UserError, located
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.models.heads.choices import FirstToken, TaskHead
from paribus.models.heads.head import loss_of
from paribus.models.network import Network
from paribus.tasks.rows import FORMATS, GPT, head_tokens
from paribus.training.description import Run
from paribus.training.finetuner import read_with
from paribus.training.joint.train import check_joint


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
    for name in run.tuned_tasks:
        _check_task(run, name, tokenizer)
    if any(settings.of(name).head.pretrained_pooler for name in run.tuned_tasks) and not has_pooler:
        raise UserError(
            "finetune.head.pooler=pretrained, but neither the objective nor the model has a pooler",
            "set finetune.head.pooler=fresh or objective=mlm_nsp",
        )


def _check_task(run: Run, name: str, tokenizer: Tokenizer) -> None:
    task, task_type, own = run.tasks[name], run.task_type(name), run.finetune.of(name)
    task_type.check_settings(own, task.key)
    task_type.check_tokenizer(tokenizer, own)
    if own.head.windows.several or own.head.pairs or own.head.paired:
        task_type.check_fit(own, task.examples(run.cache)["train"])
    if run.members * own.ensemble > 1:
        task_type.check_ensemble(task.key)
    length = task_type.row_length(own)
    run.model.check_length(length, "finetune.length" if length == own.length else "finetune.length+target_length")
    if not task_type.trained:
        check_scored(run, name, tokenizer)


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
