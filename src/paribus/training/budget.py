"""The planned cost of an arm, from its config and data only, without torch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import numpy as np

from paribus.core.checksums import digest
from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples, Stream, open_examples
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.mask_schedule import Static
from paribus.data.order import Arrange, Order, Read, compose_order
from paribus.data.tokens.prepare import Data
from paribus.objectives.spec import Statistics
from paribus.objectives.text_tasks import MLM, TASKS
from paribus.tasks.mixed_stream import mix, writing_collator
from paribus.tasks.prompts import TextRows
from paribus.tasks.text_stream import TaskTurns, TextTasks
from paribus.training.description import Run
from paribus.training.streams import check_fits, training_examples

SAMPLED: Final = 8192  # rows: the share of masked tokens is then known to 0.3%
CHUNK: Final = 512


def plan_of(run: Run, data: Data) -> tuple[Order[Stream], int]:
    """(which examples each step reads, the number of steps that the budget allows).

    Raises UserError if the text gives no example, if an input exceeds the model's positions, and if the objective
    writes but the model only reads.
    """
    check_fits(run)
    text = training_examples(run, data)
    plan: Any
    if run.mixture is not None:
        rows = encode_mixed_tasks(run, data, text)
        plan = order_examples(run, mix(run.mixture, text, rows, data, run.root_seed), run.root_seed)
    elif run.objective.text_tasks:
        plan = take_turns(run, data, text)
    else:
        plan = order_examples(run, text, run.root_seed)
    limits = run.trainer
    return plan, plan.steps_for(limits.max_steps, find_token_limit(run, plan.examples, data), limits.max_epochs)


def find_token_limit(run: Run, examples: Stream, data: Data) -> int | None:
    """The smallest number of tokens that the budgets of tokens, predictions and floating-point operations allow."""
    limits = run.trainer
    allowed = [] if limits.max_tokens is None else [float(limits.max_tokens)]
    if limits.max_predictions is not None:
        if (tasks := run.objective.text_tasks) and MLM not in tasks:
            cause = "trainer.max_predictions is set, but no step predicts"
            raise UserError(cause, f"set objective.tasks.{MLM}=1, or another budget")
        allowed.append(limits.max_predictions / measure_share(examples))
    if limits.max_flops is not None:
        tokens, rows = examples.tokens(0), examples.size(0) * examples.readings
        per_token = train_flops(run, data.vocabulary.size, tokens, tokens * measure_share(examples), rows) / tokens
        allowed.append(limits.max_flops / per_token)
    return math.ceil(min(allowed)) if allowed else None


def measure_share(examples: Stream) -> float:
    """Predictions for each token that the model reads, of the first `SAMPLED` rows of the first pass; of several tasks
    on the text the masked LM alone predicts, in its part of the steps.
    """
    if isinstance(examples, TextTasks):
        part = examples.counts[0] / sum(examples.counts)
        return part * measure_share(examples.each[0]) if examples.names[0] == MLM else 0.0
    counts = Counter[str]()
    most = min(SAMPLED, examples.size(0))
    for at in range(0, most, CHUNK):
        counts.update(examples.batch(0, np.arange(at, min(at + CHUNK, most)))["counts"])
    return (counts["predicted"] + counts["moved"]) / counts["input_tokens"]


def order_examples(run: Run, examples: Read, seed: int, arrange: Arrange[Read] | None = None) -> Order[Read]:
    """The order of examples, in steps of the run's batch; `arrange`: of the run's input format, if none is given."""
    arrange = arrange or run.input.arrange
    return compose_order(examples, arrange, run.batch, run.input.length, seed, run.profile.microbatch)


def take_turns(run: Run, data: Data, text: Examples) -> TaskTurns:
    """The steps of an objective with several tasks on the text: the masked LM reads `text`, the others no noise.

    Raises UserError for tasks that the text or the tokenizer does not allow.
    """
    steps = run.objective.text_tasks
    (upper, _), (lower, _) = data.tokenizer.encode(["Name", "name"])
    if "capitalization" in steps and not np.array_equal(upper, lower):
        cause = "objective.tasks.capitalization asks for capital letters, which the tokenizer shows"
        raise UserError(cause, "set objective.tasks.capitalization=0 or tokenizer.lowercase=true")
    plain = Corruption(NoNoise(schedule=Static()), Unchanged())
    examples: list[Examples] = []
    plans = []
    for name in steps:
        if name == MLM:
            read, seed = text, run.root_seed
        else:
            task = TASKS[name]
            read = open_examples(data, "train", task.format(run.input), plain, run.root_seed, task.collator)
            read = replace(read, store=task.store(read.store))
            seed = int(digest(["text task", run.root_seed, name], 15), 16)
        examples.append(read)
        plans.append(order_examples(run, read, seed, read.input.arrange))
    return TaskTurns(TextTasks(list(steps), examples, list(steps.values())), plans, run.root_seed)


def encode_mixed_tasks(run: Run, data: Data, text: Examples) -> dict[str, TextRows]:
    """The training examples of the tasks that the run's mixture reads, as long as the rows of text.

    Raises UserError if they do not fit.
    """
    assert run.mixture is not None
    writing_collator(text)  # before a task is encoded that the model cannot write
    settings = FineTuning(length=run.input.length, target_length=run.mixture.target_length)
    rows = {}
    for name in run.mixture.choose(list(run.tasks)):
        task_type = run.tasks[name].type_for(run.model)
        task_type.check_tokenizer(data.tokenizer, settings)
        examples = run.tasks[name].examples(run.cache)["train"]
        encoded = task_type.encode(examples, data.tokenizer, data.vocabulary, settings)
        if not isinstance(encoded, TextRows):
            raise UserError("task mixtures need a text-to-text objective", "set objective=denoising model=t5_tiny")
        rows[name] = encoded
    return rows


def planned(run: Run) -> dict[str, Any]:
    """{"tokens", "predictions", "sequences", "steps", "epochs", "flops"} that the pre-trainings of an arm will use.

    They are sums over all members and all stages; epochs are those of the last stage of each. `stages` holds the same
    of each stage of one member.
    """
    stages = {stage.last_stage: plan_stage(stage) for stage in run.chain}
    sums = {
        key: sum(stage[key] for stage in stages.values()) * run.members
        for key in ("tokens", "predictions", "sequences", "steps", "flops")
    }
    return {**sums, "epochs": stages[run.last_stage]["epochs"], "stages": stages}


def plan_stage(run: Run) -> dict[str, Any]:
    """The same of one pre-training of one member. Predictions are counted one by one if there are few."""
    data = run.data()
    plan, steps = plan_of(run, data)
    tokens = sequences = 0
    for step in range(steps):
        for epoch, rows in plan.blocks(step):
            tokens += int(plan.examples.lengths(epoch)[rows].sum())
            sequences += len(rows) * plan.examples.readings
    predictions: float
    if sequences > SAMPLED:
        predictions = tokens * measure_share(plan.examples)
    else:
        counts = Counter[str]()
        for step in range(steps):
            for epoch, rows in plan.blocks(step):
                counts.update(plan.examples.batch(epoch, rows)["counts"])
        predictions = counts["predicted"] + counts["moved"]
    return {
        "tokens": tokens,
        "predictions": predictions,
        "sequences": sequences,
        "steps": steps,
        "flops": train_flops(run, data.vocabulary.size, tokens, predictions, sequences),
        "epochs": sequences / plan.examples.readings / plan.examples.size(0),
    }


def train_flops(run: Run, vocabulary: int, tokens: float, predicted: float, rows: float = 0.0) -> float:
    """Floating-point operations of training on `tokens` in `rows` rows of at most `input.length`, with `predicted`
    positions.
    """
    counts = {"input_tokens": tokens, "predicted": predicted, "sequences": rows}
    return run.objective.flops(Statistics(counts, run.input.length, vocabulary), run.model)
