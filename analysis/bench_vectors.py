"""How many pairs of words a second skip-gram learns from: ours, and gensim's if it is installed.

A vocabulary of 8,192 words with Zipf's frequencies, vectors of width 100, windows of 5, 5 negatives, no thinning; rows
of 64 words, 16 of them in a step, with sparse gradients and Adagrad. Both on one core, with the draws.
"""

from __future__ import annotations

import statistics
import sys
import time
from importlib.util import find_spec
from typing import Any

from turns import Measure, Row, Side, main

WORDS, WIDTH, LENGTH, ROWS, STEPS, SENTENCES = 8192, 100, 64, 16, 20, 1600


def rows(turns: int = 5) -> list[Row]:
    """Pairs per second, and the ratio to gensim's."""
    kinds = ["ours", *(["gensim"] if find_spec("gensim") else [])]
    sides = {kind: Side("bench_vectors", "pairs", kind) for kind in kinds}
    try:
        found = [{kind: side.turn() for kind, side in sides.items()} for _ in range(turns)]
    finally:
        for side in sides.values():
            side.close()
    rate = statistics.median(turn["ours"] for turn in found)
    table = [Row("vectors: pairs of skip-gram per second", rate, "/s")]
    if "gensim" in kinds:
        ratio = statistics.median(turn["ours"] / turn["gensim"] for turn in found)
        table.append(Row("vectors: pairs of skip-gram per second, ours / gensim", ratio, "x"))
    return table


def draw_text() -> Any:
    """[SENTENCES, LENGTH]: word ids from 5 on."""
    import numpy as np

    share = 1.0 / np.arange(1, WORDS - 4)
    return 5 + np.random.default_rng(0).choice(len(share), (SENTENCES, LENGTH), p=share / share.sum())


def pairs(kind: str) -> Measure:
    """Pairs of a second."""
    return measure_ours() if kind == "ours" else measure_gensim()


def measure_ours() -> Measure:
    from types import SimpleNamespace

    import numpy as np
    import torch
    from torch import nn

    from paribus.core.noise import Noise
    from paribus.data.sequences import Marks, Text, Views
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import as_batch
    from paribus.models.word_vectors import WordVectors
    from paribus.objectives.word_vectors import SkipGram
    from paribus.optim.sparse import Adagrad

    torch.set_num_threads(1)
    ids_NL = draw_text()
    entries: Any = SimpleNamespace(count_V=np.bincount(ids_NL.reshape(-1), minlength=WORDS))
    vocabulary = Vocabulary(WORDS, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4), entries=entries)
    network, spec = WordVectors(WIDTH).build(vocabulary, 0), SkipGram(sample=None)
    objective, collator = spec.build(network, vocabulary, 0), spec.collator
    for module in (*network.modules(), *objective.modules()):
        if isinstance(module, nn.Embedding):
            module.sparse = True
    optimizer = Adagrad(0.1).build([*network.named_parameters(), *objective.named_parameters()])

    def measure() -> float:
        start, learned = time.perf_counter(), 0
        for step in range(STEPS):
            at = np.arange(step * ROWS, (step + 1) * ROWS)
            real_BL = np.ones((ROWS, LENGTH), np.bool_)
            nothing_BL = np.zeros((ROWS, LENGTH), np.int16)
            length_B = np.full(ROWS, LENGTH)
            text = Text(ids_NL[at], length_B, real_BL, real_BL, nothing_BL, nothing_BL.astype(np.int8))
            views = Views(text, Marks(nothing_BL), text, None, Noise.of(0, (0,), at).row_B)
            batch = as_batch(collator.pack(views, vocabulary))
            losses, _ = objective(network, batch)
            (losses["skip_gram"] / batch["counts"]["pairs"]).backward()
            optimizer.step()
            optimizer.zero_grad()
            learned += batch["counts"]["pairs"]
        return learned / (time.perf_counter() - start)

    return measure


def measure_gensim() -> Measure:
    from gensim.models import Word2Vec

    text = [list(map(str, row)) for row in draw_text().tolist()]
    settings: dict[str, Any] = {"vector_size": WIDTH, "window": 5, "negative": 5, "sg": 1, "min_count": 1, "workers": 1}
    model = Word2Vec(sample=0, **settings)
    model.build_vocab(text)
    per_row = 2 * sum(sum(min(width, LENGTH - 1 - at) for at in range(LENGTH)) for width in range(1, 6)) / 5

    def measure() -> float:
        start = time.perf_counter()
        model.train(text, total_examples=len(text), epochs=1)
        return len(text) * per_row / (time.perf_counter() - start)

    return measure


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=5))
