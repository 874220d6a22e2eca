"""T5 training speed beside the `transformers` Trainer with T5ForConditionalGeneration: T5-mini, length 128, batch 32.

Both train the same model in bf16 without dropout with AdamW on the same rows: 15 % noise in spans of 3, 128 tokens read
and 29 written. Ours makes them as it trains (step plan, noise, spans, learner, Lightning); the Trainer gets them ready
made.
"""

from __future__ import annotations

import sys
from typing import Any

from bench_training import STEPS, WARM, lightning, peak, store, trained
from turns import Measure, Row, Side, main, take_turns

LENGTH, BATCH, WRITTEN = 128, 32, 29
SENTINELS, SPECIALS = 100, 5
SIZES = (8192 + SENTINELS, 32000 + SENTINELS)


def mini() -> Any:
    from paribus.models.t5 import T5

    return T5(4, 256, 4, 64, 1024, dropout=0.0)


def parts(size: int) -> tuple[Any, Any, Any]:
    """(examples, network, objective); all rows are full: the text is longer than what the steps read."""
    from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
    from paribus.corruption.corruption import Corruption
    from paribus.corruption.examples import Examples
    from paribus.corruption.masking.random_spans import RandomSpans
    from paribus.corruption.views.sentinels import UniqueSentinel
    from paribus.data.formats.windows import Windows
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.objectives.denoising import Denoising

    read, written = UniqueSentinel("noise"), UniqueSentinel("text")
    specials = (*range(SPECIALS), *range(size - SENTINELS, size))
    vocabulary = Vocabulary(size, 0, 1, 2, 3, 4, specials, sentinels=SENTINELS, first_sentinel=size - 1)
    text = store(size - SENTINELS, 2 * BATCH * (STEPS + WARM), LENGTH)
    corruption = Corruption(RandomSpans(0.15, 3.0), read, written)
    examples = Examples(text, Windows(LENGTH), corruption, EncoderDecoderCollator(), vocabulary, 0, LENGTH)
    network = mini().build(vocabulary, 0)
    return examples, network, Denoising(read, written).compose(network, vocabulary)


def ours(size: str) -> Measure:
    """Our input tokens a second."""
    return lightning(*parts(int(size)), BATCH, None)


def peer(size: str) -> Measure:
    """The Trainer's input tokens a second."""
    from transformers import T5Config, T5ForConditionalGeneration, default_data_collator

    examples, _, _ = parts(int(size))
    settings = {k: v for k, v in mini().config(examples.vocabulary).items() if k != "attn_implementation"}
    batch = examples.batch(0, range(BATCH * (STEPS + WARM)))
    rows: list[Any] = [
        {"input_ids": read, "labels": written} for read, written in zip(batch["ids_BL"], batch["label_BT"], strict=True)
    ]
    model = T5ForConditionalGeneration(T5Config(**settings))
    return trained(model, rows, default_data_collator, True, BATCH, BATCH * LENGTH)


def flops(size: int) -> float:
    """Of a training step, for each token read."""
    written = WRITTEN / LENGTH
    return float(3 * (mini().forward_flops(1, LENGTH, written, 1 / LENGTH) + written * 2 * mini().hidden * size))


def rows(turns: int = 3) -> list[Row]:
    """Ours beside the Trainer and beside the machine, for both vocabularies."""
    found = []
    for size in SIZES:
        speed = take_turns({name: Side("bench_t5", name, size) for name in ("ours", "peer")}, turns)
        note = f"{speed['ours']:,.0f} tokens/s"
        found.append(Row(f"T5-mini, V {size}: ours / Trainer bf16", speed["ours"] / speed["peer"], "x", 2.0, note=note))
        share = flops(size) * speed["ours"] / peak(None)
        found.append(Row(f"T5-mini, V {size}: share of the matrix peak", share, ""))
    return found


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=3))
