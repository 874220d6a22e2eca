"""What an arm will cost, from its config and data alone. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paribus.core.build import build
from paribus.core.errors import UserError
from paribus.corruption.examples import Stream, compose_examples
from paribus.data.annotators.annotator import annotator_of
from paribus.data.order import StepPlan, compose_plan
from paribus.data.tokens.prepare import Data, prepare
from paribus.data.tokens.sample import sampled
from paribus.tasks.mixtures.mixed import mixed
from paribus.training.members import members

BACKWARD = 2.0  # a backward pass costs two forward passes


def data_of(cfg: Any) -> Data:
    """The prepared data of an arm; `trainer.train_tokens` keeps a part of the training documents."""
    cache = Path(cfg.paths.cache).expanduser()
    data = prepare(cfg.corpus, cfg.tokenizer, cache, annotator_of(cfg.masking))
    if cfg.trainer.train_tokens is not None:
        data.stores["train"] = sampled(data.stores["train"], int(cfg.trainer.train_tokens))
    return data


def plan_of(cfg: Any, data: Data) -> tuple[StepPlan[Stream], int]:
    """(which examples each step reads, the number of steps that the budget buys).

    Raises UserError where the text gives no example, where an input exceeds the model's positions, and where the
    objective writes but the model only reads.
    """
    model = build(cfg.model)
    model.check_length(cfg.input.length, "input.length")
    if getattr(build(cfg.objective), "writes", False) and not hasattr(model, "collator"):
        raise UserError(
            "the objective writes text, but the model is an encoder", "take model=t5_tiny, or objective=mlm"
        )
    plan = compose_plan(mixed(cfg, data, compose_examples(cfg, data)), cfg)
    limits = cfg.trainer
    return plan, plan.steps_for(limits.max_steps, limits.max_tokens, limits.max_epochs)


def planned(cfg: Any) -> dict[str, Any]:
    """{"tokens", "sequences", "steps", "epochs", "flops"} that the pre-training of an arm is going to use, that of all
    its members; epochs are those of each.
    """
    data = data_of(cfg)
    plan, steps = plan_of(cfg, data)
    tokens = sequences = 0
    share = plan.examples.predicted_share
    for step in range(steps):
        for epoch, rows in plan.blocks(step):
            tokens += int(plan.examples.lengths(epoch)[rows].sum())
            sequences += len(rows) * plan.examples.readings
    one = {
        "tokens": tokens,
        "sequences": sequences,
        "steps": steps,
        "flops": train_flops(cfg, data.vocabulary.size, tokens, tokens * share, cfg.input.length, sequences),
    }
    epochs = sequences / plan.examples.readings / plan.examples.size(0)
    return {**{key: value * members(cfg) for key, value in one.items()}, "epochs": epochs}


def train_flops(cfg: Any, vocabulary: int, tokens: float, predicted: float, length: float, rows: float = 0.0) -> float:
    """Floating-point operations of training on `tokens` in `rows` rows of at most `length`, with `predicted`
    positions.
    """
    model, objective = build(cfg.model), build(cfg.objective)
    head = objective.head_flops(predicted, model.hidden, model.table_width, vocabulary)
    return (1.0 + BACKWARD) * float(model.forward_flops(tokens, length, predicted, rows) + head)
