"""Speed of noise, masking and collation on one core, beside the collator of `transformers` in the same run.

python analysis/bench_masking.py [--json FILE]

Million tokens a second (padding counted, as in every collator), best and median of many repeats.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ceteris.corruption import Corruption
from ceteris.encodings.replace import Replace
from ceteris.examples import Examples
from ceteris.files import write_json
from ceteris.inputs.full_sentences import FullSentences
from ceteris.layouts.encoder import Encoder
from ceteris.masking.bernoulli import Bernoulli
from ceteris.noise import Noise
from ceteris.tokens.sample import Sample
from ceteris.tokens.vocabulary import Vocabulary

LENGTH, SIZE, BATCHES = 128, 30522, (32, 256, 1024)
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = Vocabulary(SIZE, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4))


def made_up(sentences: int = 150_000) -> Sample:
    """Random tokens in sentences of about 22, documents of about 40."""
    random = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(random.geometric(1 / 22, sentences))])
    return Sample(
        random.integers(5, SIZE, starts[-1]).astype(np.uint16),
        (random.random(starts[-1]) < 0.75).astype(np.uint8),
        starts,
        np.append(np.arange(0, sentences, 40), sentences),
    )


def rate(tokens: int, work: Callable[[int], Any], seconds: float = 1.0) -> tuple[float, float]:
    """(median, best) million tokens a second over repeats that fill the time."""
    work(0)
    taken: list[float] = []
    while sum(taken) < seconds or len(taken) < 5:
        start = time.perf_counter()
        work(len(taken))
        taken.append(time.perf_counter() - start)
    return tokens / statistics.median(taken) / 1e6, tokens / min(taken) / 1e6


def collator() -> Any:
    """DataCollatorForLanguageModeling with its fast tokenizer over the same vocabulary."""
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = {name: at for at, name in enumerate([*SPECIALS, *(f"w{n}" for n in range(SIZE - len(SPECIALS)))])}
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIALS}
    backend = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    return DataCollatorForLanguageModeling(PreTrainedTokenizerFast(tokenizer_object=backend, **names))


def measured(examples: Examples, rows: Any, collate: Any) -> dict[str, tuple[float, float]]:
    """Rates of each part on the same rows; the peer gets them as ids, already gathered and framed."""
    text = examples.views(0, rows).text
    tokens, width = text.ids_BL.size, text.ids_BL.shape[1]
    lists = [{"input_ids": ids[:length].tolist()} for ids, length in zip(text.ids_BL, text.length_B, strict=True)]

    def noise(epoch: int) -> Noise:
        return Noise.of(0, (0, epoch), rows)

    return {
        "hash": rate(tokens, lambda epoch: noise(epoch).bits("masking", width)),
        "exact budget, 80/10/10": rate(tokens, lambda epoch: examples.corruption(text, noise(epoch), VOCABULARY)),
        "whole collation": rate(tokens, lambda epoch: examples.batch(epoch, rows)),
        "transformers collator": rate(tokens, lambda epoch: collate(lists)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the rates to this file")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    corruption = Corruption(Bernoulli(0.15), Replace())
    store, collate = made_up(), collator()
    examples = Examples(store, FullSentences(LENGTH), corruption, Encoder(), VOCABULARY, 0, LENGTH)
    start = time.perf_counter()
    size = examples.size(0)
    index = store.tokens / (time.perf_counter() - start) / 1e6
    print(f"index of full_sentences: {index:.0f} million tokens a second ({store.tokens / 1e6:.1f} million tokens)")
    print(
        f"{'million tokens a second: median (best)':<40}" + "".join(f"{f'{batch} x {LENGTH}':>18}" for batch in BATCHES)
    )
    order = np.random.default_rng(1).permutation(size)
    table = {batch: measured(examples, order[:batch], collate) for batch in BATCHES}
    for name in table[BATCHES[0]]:
        print(f"{name:<40}" + "".join("{:>10.1f} ({:5.1f})".format(*table[batch][name]) for batch in BATCHES))
    ratios = {batch: row["whole collation"][0] / row["transformers collator"][0] for batch, row in table.items()}
    print(f"{'whole collation / transformers':<40}" + "".join(f"{ratio:>17.1f}x" for ratio in ratios.values()))
    if arguments.json:
        write_json(
            arguments.json,
            {
                "index": index,
                "rates": {str(b): row for b, row in table.items()},
                "ratio": {str(b): r for b, r in ratios.items()},
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
