"""What memory costs in training, and what it saves in evaluation.

A step of a left-to-right encoder of two layers of width 128 with a head on 2,048 words, in fp32, on all cores: segments
of 64 tokens with a memory of 64, against rows of 193 without, whose queries see as many keys (97) and which together
have as many tokens. In evaluation the same weights read segments with memory, or a window that slides by one token.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from turns import Measure, Row, Side, main

LENGTHS = (32, 64, 128)
WORDS, SEGMENT, MEMORY, ALONE, TOKENS, STEPS = 2048, 64, 64, 193, 2316, 4


def rows(turns: int = 5) -> list[Row]:
    """The cost of a step per token, and the measured saving as a share of the counted one."""
    sides = {kind: Side("bench_memory", "step", kind) for kind in ("memory", "alone")}
    try:
        found = [{kind: side.turn() for kind, side in sides.items()} for _ in range(turns)]
    finally:
        for side in sides.values():
            side.close()
    ratio = statistics.median(turn["memory"] / turn["alone"] for turn in found)
    table = [Row("memory: a step with memory / of as many keys without, per token", ratio, "x", most=1.2)]
    for length in LENGTHS:
        side = Side("bench_memory", "saving", length)
        try:
            measured = statistics.median(side.turn() for _ in range(3))
        finally:
            side.close()
        note = f"measured {measured:.1f}, counted {length}"
        name = f"memory: speed against a sliding window of {length}, measured / counted"
        table.append(Row(name, measured / length, "x", least=0.5, note=note))
    return table


def make_parts(memory: int) -> tuple[Any, Any]:
    """A network and its objective."""
    from paribus.corruption.views.replace import Unchanged
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.memory import MemoryBert
    from paribus.objectives.stream_lm import StreamLM

    vocabulary = Vocabulary(size=WORDS, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
    settings: Any = {"dropout": 0.0, "attention_dropout": 0.0, "attention": "left", "positions": 1024}
    network = MemoryBert(2, 128, 2, 512, memory=memory, **settings).build(vocabulary, 1)
    return network, StreamLM(Unchanged()).build(network, vocabulary, 1)


def step(kind: str) -> Measure:
    """Seconds of a token in a step, forward and backward."""
    import torch

    length = SEGMENT if kind == "memory" else ALONE
    network, objective = make_parts(MEMORY if kind == "memory" else 0)
    ids_BL = torch.randint(5, WORDS, (TOKENS // length, length), generator=torch.Generator().manual_seed(0))
    batch = {
        "ids_BL": ids_BL,
        "part_BL": torch.zeros_like(ids_BL),
        "length_B": torch.full((len(ids_BL),), length),
        "begins_B": torch.zeros(len(ids_BL), dtype=torch.bool),
        "slot_P": torch.arange(ids_BL.numel()),
        "target_P": ids_BL.flatten(),
        "full": True,
    }
    state = None

    def measure() -> float:
        nonlocal state
        spent = []
        for _ in range(STEPS + 2):
            start = time.perf_counter()
            losses, state = objective(network, batch, state)
            losses["clm"].backward()
            spent.append(time.perf_counter() - start)
            for parameter in (*network.parameters(), *objective.parameters()):
                parameter.grad = None
        return statistics.median(spent[2:]) / ids_BL.numel()

    return measure


def saving(length: str) -> Measure:
    """How many times as many tokens a second are predicted with memory as in a window that slides."""
    import numpy as np

    from paribus.objectives.evaluation import evaluating
    from paribus.objectives.stream_evaluations import Reading

    network, objective = make_parts(int(length))
    reading = Reading(network, objective.token_head, pad=0)
    ids_T = np.random.default_rng(0).integers(5, WORDS, int(length) + 1)

    def measure() -> float:
        with evaluating(network, objective):
            fast, slow = reading.rates(ids_T, int(length), int(length))
        return fast / slow

    return measure


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=5))
