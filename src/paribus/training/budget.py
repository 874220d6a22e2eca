"""What an arm will cost, from its config and data alone. No torch here."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.corruption.examples import Examples, Stream
from paribus.data.order import Order, compose_order
from paribus.data.tokens.prepare import Data
from paribus.objectives.spec import Statistics
from paribus.tasks.mixed_stream import mix, writing_collator
from paribus.tasks.prompts import TextRows
from paribus.training.description import Run
from paribus.training.streams import training_examples

SAMPLED: Final = 8192  # rows: the share of masked tokens is then known to 0.3%
CHUNK: Final = 512


def plan_of(run: Run, data: Data) -> tuple[Order[Stream], int]:
    """(which examples each step reads, the number of steps that the budget buys).

    Raises UserError if the text gives no example, if an input exceeds the model's positions, and if the objective
    writes but the model only reads.
    """
    run.model.check_length(run.input.length, "input.length")
    if run.objective.writes_text and not run.model.writes_text:
        raise UserError("the objective writes text, but the model is an encoder", "set model=t5_tiny or objective=mlm")
    text = training_examples(run, data)
    examples: Stream = (
        text if run.mixture is None else mix(run.mixture, text, _mixed_rows(run, data, text), data, run.root_seed)
    )
    plan = compose_order(
        examples, run.input.arrange, run.batch, run.input.length, run.root_seed, run.profile.microbatch
    )
    limits = run.trainer
    return plan, plan.steps_for(limits.max_steps, _find_token_limit(run, plan.examples, data), limits.max_epochs)


def _find_token_limit(run: Run, examples: Stream, data: Data) -> int | None:
    """The tokens that the budgets of tokens, predictions and floating-point operations buy, the smallest of them."""
    limits = run.trainer
    found = [] if limits.max_tokens is None else [float(limits.max_tokens)]
    if limits.max_predictions is not None:
        found.append(limits.max_predictions / measure_share(examples))
    if limits.max_flops is not None:
        tokens, rows = examples.tokens(0), examples.size(0) * examples.readings
        each = train_flops(run, data.vocabulary.size, tokens, tokens * measure_share(examples), rows) / tokens
        found.append(limits.max_flops / each)
    return math.ceil(min(found)) if found else None


def measure_share(examples: Stream) -> float:
    """Predictions for each token that the model reads, of the first `SAMPLED` rows of the first pass."""
    counts = Counter[str]()
    most = min(SAMPLED, examples.size(0))
    for at in range(0, most, CHUNK):
        counts.update(examples.batch(0, np.arange(at, min(at + CHUNK, most)))["counts"])
    return (counts["predicted"] + counts["moved"]) / counts["input_tokens"]


def _mixed_rows(run: Run, data: Data, text: Examples) -> dict[str, TextRows]:
    """The training examples of the tasks that the run's mixture reads, as long as the rows of text.

    Raises UserError if they do not fit.
    """
    assert run.mixture is not None
    writing_collator(text)  # before a task is encoded that the model cannot write
    settings = FineTuning(length=run.input.length, target_length=run.mixture.target_length)
    rows = {}
    for name in run.mixture.choose(list(run.tasks)):
        task_type = run.task_type(name)
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
    stages = {own.last_stage: _planned(own) for own in run.chain}
    whole = {
        key: sum(stage[key] for stage in stages.values()) * run.members
        for key in ("tokens", "predictions", "sequences", "steps", "flops")
    }
    return {**whole, "epochs": stages[run.last_stage]["epochs"], "stages": stages}


def _planned(run: Run) -> dict[str, Any]:
    """The same of one pre-training of one member."""
    data = run.data()
    plan, steps = plan_of(run, data)
    tokens = sequences = 0
    for step in range(steps):
        for epoch, rows in plan.blocks(step):
            tokens += int(plan.examples.lengths(epoch)[rows].sum())
            sequences += len(rows) * plan.examples.readings
    predictions = tokens * measure_share(plan.examples) if steps else 0.0
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
