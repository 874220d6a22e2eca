"""Speed of span corruption on one core, beside the collator of the flax example of `transformers`, written anew here.

Million raw tokens a second, median and best of many repeats: T5's random spans at 15 %, mean length 3, with unique
sentinels in inputs and targets of 128 tokens read.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from bench_masking import made_up, print_table, rate
from turns import Row, main

from paribus.core.noise import Noise
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.infilling import Infilling
from paribus.corruption.masking.random_spans import RandomSpans
from paribus.corruption.masking.single_tokens import Iid
from paribus.corruption.masking.whole_row import Permute
from paribus.corruption.views.replace import MaskTokens
from paribus.corruption.views.sentinels import SharedSentinel, UniqueSentinel
from paribus.corruption.views.tokens import Drop, Full, Permuted
from paribus.data.formats.input_format import gather
from paribus.data.formats.windows import Windows
from paribus.data.tokens.vocabulary import Vocabulary

LENGTH, SIZE, SENTINELS, BATCHES = 128, 32100, 100, (32, 256, 1024)
SPECIALS = (0, 1, 2, 3, 4, *range(SIZE - SENTINELS, SIZE))
VOCABULARY = Vocabulary(SIZE, 0, 1, 2, 3, 4, SPECIALS, SENTINELS, SIZE - 1)
UNIQUE = (UniqueSentinel(), UniqueSentinel("text"))
ROWS = {
    "span_3_15_u_u": Corruption(RandomSpans(0.15, 3), *UNIQUE),
    "span_3_50_s_s": Corruption(RandomSpans(0.5, 3), SharedSentinel(), SharedSentinel("text")),
    "iid_15_u_u": Corruption(Iid(0.15), *UNIQUE),
    "iid_15_d_d": Corruption(Iid(0.15), Drop(), Drop("text")),
    "iid_15_r10s90_f": Corruption(Iid(0.15), MaskTokens(0.9, 0.1), Full()),
    "all_permute": Corruption(Permute(), Permuted(), Full()),
    "infilling_3_30_s_f": Corruption(Infilling(0.3), SharedSentinel(symbol="mask"), Full()),
}


PEER = "flax example: mask and both encodings"


class Peer:
    """What `run_t5_mlm_flax.py` does, in numpy: the mask row by row, then both encodings over the whole batch."""

    def __init__(self, density: float = 0.15, mean: float = 3.0) -> None:
        self.density, self.mean, self.random = density, mean, np.random.default_rng(0)

    def __call__(self, ids_BL: Any) -> dict[str, Any]:
        """The batch of one step from raw windows of equal length."""
        mask_BL = np.stack([self.mask(ids_BL.shape[1]) for _ in ids_BL])
        written_BT = self.encoded(ids_BL, ~mask_BL)
        start_B1 = np.full((len(ids_BL), 1), VOCABULARY.pad)
        return {
            "input_ids": self.encoded(ids_BL, mask_BL),
            "labels": written_BT,
            "decoder_input_ids": np.concatenate([start_B1, written_BT[:, :-1]], axis=1),
        }

    def mask(self, length: int) -> Any:
        """bool [L]: random spans of one row."""
        noise = min(max(round(length * self.density), 1), length - 1)
        spans = max(round(noise / self.mean), 1)
        sizes = np.stack([self.segments(length - noise, spans), self.segments(noise, spans)], axis=1).reshape(-1)
        start_L = np.zeros(length, np.int8)
        start_L[np.cumsum(sizes)[:-1]] = 1
        return np.cumsum(start_L) % 2 == 1

    def segments(self, items: int, parts: int) -> Any:
        """Sizes of a random segmentation."""
        first = np.arange(items - 1) < parts - 1
        self.random.shuffle(first)
        return np.bincount(np.cumsum(np.concatenate([[False], first])), minlength=parts)

    def encoded(self, ids_BL: Any, hidden_BL: Any) -> Any:
        """Sentinels for hidden runs, the rest of the run removed, an end behind each row."""
        start_BL = hidden_BL.astype(np.int64) - np.roll(hidden_BL, 1, axis=-1) * hidden_BL
        start_BL[:, 0] = hidden_BL[:, 0]
        sentinel_BL = np.where(start_BL != 0, SIZE - np.cumsum(start_BL, axis=-1), 0)
        sentinel_BL -= hidden_BL & (start_BL == 0)
        full_BL = np.where(sentinel_BL != 0, sentinel_BL, ids_BL)
        kept_BL = full_BL[full_BL >= 0].reshape(len(ids_BL), -1)
        return np.concatenate([kept_BL, np.full((len(ids_BL), 1), VOCABULARY.sep)], axis=-1)


def measured(store: Any, batch: int, seconds: float) -> dict[str, tuple[float, float]]:
    """Rates of the parts and of the whole on the same rows."""
    made = Examples(store, Windows(LENGTH), ROWS["span_3_15_u_u"], EncoderDecoderCollator(), VOCABULARY, 0, LENGTH)
    rows = np.random.default_rng(1).permutation(10_000)[:batch]
    text = made.views(0, rows).text
    tokens, masking, peer = batch * made.raw, made.corruption.masking, Peer()

    def noise(epoch: int) -> Noise:
        return Noise.of(0, (0, epoch), rows)

    pieces = made._pass(0)[1].segments(rows)
    found = {
        "windows from the store": rate(tokens, lambda _: gather(store, pieces, batch, VOCABULARY), seconds),
        "mask": rate(tokens, lambda epoch: masking(text, noise(epoch)), seconds),
        "mask and both encodings": rate(tokens, lambda e: made.corruption(text, noise(e), VOCABULARY), seconds),
        PEER: rate(tokens, lambda _: peer(text.ids_BL), seconds),
    }
    for name, corruption in ROWS.items():
        other = replace(made, corruption=corruption)
        other.size(0)
        raw = int(other.views(0, rows).text.length_B.sum())
        whole = rate(raw, lambda epoch, other=other: other.batch(epoch, rows), seconds)  # type: ignore[misc]
        found[f"{name}: whole collation"] = whole
    return found


def rows(seconds: float = 0.5) -> list[Row]:
    """The whole table on the screen, and the row that has a target."""
    store = made_up()
    table = {batch: measured(store, batch, seconds) for batch in BATCHES}
    print_table(table, "million raw tokens a second: median (best)")
    own, peer = (table[256][name][0] for name in ("span_3_15_u_u: whole collation", PEER))
    return [
        Row(f"collation, one core, 256 x {LENGTH}: T5's spans", own, "Mtok/s", 60.0),
        Row("collation: T5's spans / flax example without its reading", own / peer, "x"),
    ]


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, seconds=0.5))
