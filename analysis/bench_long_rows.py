"""What attention costs as rows get longer: all pairs, windows and blocks, beside `transformers`' own.

A step forward and backward of one layer of width 128 with two heads and a small feed-forward layer, on one row in fp32
on all cores. A window is 128 tokens on each side; blocks have 64 tokens, three in the window and three random ones.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from turns import HERE, Measure, Row, Side, main

LENGTHS = (512, 1024, 2048, 4096, 8192)
KINDS = {
    "all pairs": "all pairs",
    "window": "a window",
    "longformer": "a window and [CLS]",
    "blocks": "blocks",
    "sdpa": "transformers, SDPA",
    "their_longformer": "transformers, Longformer",
    "their_bigbird": "transformers, BigBird",
}
WIDTH, HEADS, WORDS, SIDE, SIZE, STEPS = 128, 2, 100, 128, 64, 3


def rows(turns: int = 3) -> list[Row]:
    """Seconds and bytes at every length, growth from 4,096 to 8,192 tokens, and ratios at 4,096."""
    sides = {kind: Side("bench_long_rows", "cost", kind, root=HERE.parent) for kind in KINDS}
    found: dict[tuple[str, int, str], list[float]] = {}
    try:
        for _ in range(turns):
            for length in LENGTHS:
                for what in ("seconds", "bytes"):
                    for kind, side in sides.items():
                        found.setdefault((kind, length, what), []).append(side.turn())
    finally:
        for side in sides.values():
            side.close()
    median = {key: statistics.median(values) for key, values in found.items()}
    table = []
    for what, unit, scale in (("seconds", "ms", 1e3), ("bytes", "MB", 1e-6)):
        for length in LENGTHS:
            said = (f"{kind} {scale * median[kind, length, what]:,.0f}" for kind in KINDS)
            print(f"    {length} tokens, {unit}: {', '.join(said)}", flush=True)
        for kind in ("all pairs", "window", "longformer", "blocks", "their_longformer", "their_bigbird"):
            growth = median[kind, 8192, what] / median[kind, 4096, what]
            most = 2.3 if kind in ("window", "longformer", "blocks") else None
            table.append(Row(f"long rows: {KINDS[kind]}, {what} at 8,192 / at 4,096 tokens", growth, "x", most=most))
        for kind, other in (
            ("window", "all pairs"), ("window", "sdpa"), ("blocks", "all pairs"), ("blocks", "sdpa"),
            ("longformer", "their_longformer"), ("blocks", "their_bigbird"),
        ):  # fmt: skip
            ratio = median[other, 4096, what] / median[kind, 4096, what]
            least = 1.0 if what == "seconds" and other != "sdpa" else None
            table.append(Row(f"long rows: {KINDS[other]} / {KINDS[kind]}, {what}, 4,096", ratio, "x", least=least))
    return table


def cost(kind: str) -> Measure:
    """The seconds of a step at the next length, and in the next turn the bytes that it needs beyond the model."""
    import torch

    torch.manual_seed(0)
    step = make_step(kind)
    order = cycle([(length, what) for length in LENGTHS for what in ("seconds", "bytes")])

    def measure() -> float:
        length, what = next(order)
        if kind == "their_bigbird" and length < 1024:  # it would have too few blocks to draw from
            return float("nan")
        if what == "bytes":
            gc.collect()
            return most_memory(lambda: step(length))
        step(length)
        taken = []
        for _ in range(STEPS):
            start = time.perf_counter()
            step(length)
            taken.append(time.perf_counter() - start)
        return statistics.median(taken)

    return measure


def most_memory(work: Callable[[], None]) -> float:
    """Bytes of resident memory that the work adds at its peak."""
    ctypes.CDLL(None).malloc_trim(0)  # else what an earlier step freed is used again, and not counted
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    work()
    return max(resident("VmHWM") - before, 1.0)


def resident(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def make_step(kind: str) -> Callable[[int], None]:
    """A step forward and backward on one row of a length."""
    import torch

    model = make_theirs(kind) if kind in ("sdpa", "their_longformer", "their_bigbird") else make_ours(kind)
    state = torch.randint(5, WORDS, (1, max(LENGTHS)))
    seer = torch.zeros_like(state)
    seer[:, 0] = 1

    def step(length: int) -> None:
        ids_BL = state[:, :length]
        if kind == "their_longformer":
            states = model(input_ids=ids_BL, global_attention_mask=seer[:, :length]).last_hidden_state
        elif kind in ("sdpa", "their_bigbird"):
            states = model(input_ids=ids_BL).last_hidden_state
        else:
            batch = {"ids_BL": ids_BL, "part_BL": torch.zeros_like(ids_BL), "length_B": torch.tensor([length])}
            states = model({**batch, "full": True}).hidden_BLD
        states.sum().backward()
        model.zero_grad()

    return step


def make_ours(kind: str) -> Any:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.bert import Bert
    from paribus.models.changes.blocks import Blocks
    from paribus.models.changes.longformer import Longformer
    from paribus.models.changes.window import Window

    changes = {"window": Window(SIDE), "longformer": Longformer(SIDE), "blocks": Blocks(size=SIZE)}
    spec = Bert(
        1, WIDTH, HEADS, WIDTH, positions=max(LENGTHS), dropout=0.0, attention_dropout=0.0,
        changes={"seen": changes[kind]} if kind in changes else {},
    )  # fmt: skip
    return spec.build(Vocabulary(size=WORDS, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4)), 0)


def make_theirs(kind: str) -> Any:
    from transformers import BertConfig, BertModel, BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

    further: dict[str, Any] = {"block_size": SIZE, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    shape: dict[str, Any] = {
        "vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": HEADS,
        "intermediate_size": WIDTH, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
        "pad_token_id": 0, "max_position_embeddings": max(LENGTHS) + 1,
    }  # fmt: skip
    if kind == "sdpa":
        return BertModel(BertConfig(**shape | {"attn_implementation": "sdpa"}), add_pooling_layer=False)
    if kind == "their_longformer":
        return LongformerModel(LongformerConfig(**shape, attention_window=2 * SIDE), add_pooling_layer=False)
    return BigBirdModel(BigBirdConfig(**shape, **further), add_pooling_layer=False)


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=3))
