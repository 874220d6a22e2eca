"""T5 training speed beside the `transformers` Trainer with T5ForConditionalGeneration: T5-mini, length 128, batch 32.

    python analysis/bench_t5.py [steps=30] [turns=3] [threads=2] [profile=0]

Both train the same model in bf16 without dropout with AdamW on the same rows: 15 % noise in spans of 3, 128 tokens read
and 29 written. Ours makes them as it trains (step plan, noise, spans, learner, Lightning); the Trainer gets them ready
made. They take turns, so that a noisy machine treats them alike; the figures are medians over turns. `profile=1` prints
what our steps spend their time on instead.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import torch
from bench_training import BATCH, LENGTH, WARM, staged, store, trained

from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.random_spans import RandomSpans
from paribus.corruption.views.sentinels import UniqueSentinel
from paribus.data.formats.windows import Windows
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.t5 import T5
from paribus.objectives.denoising import Denoising
from paribus.training.trainer import Profile, matrix_peak

PRECISION = "bf16-mixed"
MINI = T5(4, 256, 4, 64, 1024, dropout=0.0)
READ, WRITTEN = UniqueSentinel("noise"), UniqueSentinel("text")
SENTINELS, SPECIALS = 100, 5


def vocabulary_of(size: int) -> Vocabulary:
    specials = (*range(SPECIALS), *range(size - SENTINELS, size))
    return Vocabulary(size, 0, 1, 2, 3, 4, specials, sentinels=SENTINELS, first_sentinel=size - 1)


def examples_of(vocabulary: Vocabulary, steps: int) -> Examples:
    """Rows that are all full: the text is longer than what the steps read."""
    text = store(vocabulary.size - SENTINELS, 2 * BATCH * (steps + WARM))
    corruption = Corruption(RandomSpans(0.15, 3.0), READ, WRITTEN)
    return Examples(text, Windows(LENGTH), corruption, EncoderDecoderCollator(), vocabulary, 0, LENGTH)


def ours(vocabulary: Vocabulary, threads: int, steps: int) -> float:
    """Input tokens a second, median over steps."""
    model = MINI.build(vocabulary, 0)
    objective = Denoising(READ, WRITTEN).compose(model, model.vocabulary)
    return staged(examples_of(vocabulary, steps), model, objective, PRECISION, threads, steps)


def peer(vocabulary: Vocabulary, steps: int) -> float:
    """The Trainer's input tokens a second, median over steps."""
    from transformers import T5Config, T5ForConditionalGeneration, default_data_collator

    settings = {key: value for key, value in MINI.config(vocabulary).items() if key != "attn_implementation"}
    batch = examples_of(vocabulary, steps).batch(0, range(BATCH * (steps + WARM)))
    rows: list[Any] = [
        {"input_ids": read, "labels": written} for read, written in zip(batch["ids_BL"], batch["label_BT"], strict=True)
    ]
    return trained(T5ForConditionalGeneration(T5Config(**settings)), rows, default_data_collator, True, steps)


def profiled(vocabulary: Vocabulary, threads: int, steps: int) -> None:
    """Print the operators in which our steps spend their time."""
    with torch.profiler.profile() as profile:
        ours(vocabulary, threads, steps)
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=15, max_name_column_width=45))


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    steps, rounds, threads, profile = (
        int(given.get(key, usual)) for key, usual in (("steps", 30), ("turns", 3), ("threads", 2), ("profile", 0))
    )
    torch.set_num_threads(threads)
    print(f"T5-mini, length {LENGTH}, batch {BATCH}, {threads} threads, no dropout, {rounds} turns of {steps} steps")
    for size in (8192 + SENTINELS, 32000 + SENTINELS):
        vocabulary = vocabulary_of(size)
        print(f"  vocabulary {size}")
        if profile:
            profiled(vocabulary, threads, steps)
            continue
        turns = [(ours(vocabulary, threads, steps), peer(vocabulary, steps)) for _ in range(rounds)]
        mine, theirs = (statistics.median(column) for column in zip(*turns, strict=True))
        share = flops(size) * mine / matrix_peak(Profile("cpu", PRECISION, threads, 0, None, False))
        print(f"  ours / Trainer bf16 {mine / theirs:.2f}, {share:.0%} of the bf16 matrix peak")


def flops(size: int) -> float:
    """Of a training step, for each token read."""
    written = 29 / LENGTH
    return 3 * (MINI.forward_flops(1, LENGTH, written, 1 / LENGTH) + written * 2 * MINI.hidden * size)


if __name__ == "__main__":
    main()
