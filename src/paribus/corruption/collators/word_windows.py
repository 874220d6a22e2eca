"""Collators of static word vectors: words and those near them, instead of places that a network predicts.

Windows lie within a row. Words that are not kept vanish before windows are laid, so that these reach further; unknown
words and special tokens always vanish. All draws follow from the row's noise key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise, integers
from paribus.corruption.collators.collator import Collator, Places
from paribus.corruption.corruption import Corruption
from paribus.data.sequences import Arrays, Flags, Ints, Views
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.data.tokens.word_counts import Cooccurrences, Draws, keep_bounds, keep_neighbors


class Neighbors(NamedTuple):
    """Pairs of a word and one near it, as flat places in B x L."""

    center_P: Ints
    context_P: Ints
    slot_P: Ints  # 0 to 2 x window - 1: where the context is in the window
    distance_P: Ints  # in words that are kept


@dataclass(frozen=True)
class WordWindows(Collator):
    """What these collators share.

    Args:
        window: the largest distance in words.
        sample: words with a larger share of the text than about this are thinned; None: none are.
        drawn: each word has its own distance, uniform on 1 to `window`; if not, all have `window`.
    """

    window: int = 5
    sample: float | None = 1e-3
    drawn: bool = True
    _made: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def check(self, corruption: Corruption) -> None:
        """Any text will do."""

    def find_places(self, arrays: Arrays) -> Places:
        """None: no place is predicted from those beside it."""
        return Places(np.zeros(0, np.int64), [])

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """kept_share: of the words of the text · pairs_per_token · padding_share: of positions."""
        return {
            "kept_share": counts["kept_words"] / max(counts["raw_tokens"], 1),
            "pairs_per_token": counts["pairs"] / max(counts["raw_tokens"], 1),
            "padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1),
        }

    def find_neighbors(self, views: Views, vocabulary: Vocabulary) -> tuple[Neighbors, int]:
        """(the pairs of these rows, how many words are kept)."""
        text, noise = views.text, self.noise(views)
        bound_V = self.keep("bounds", vocabulary, lambda: keep_bounds(vocabulary, self.sample))
        width = text.ids_BL.shape[1]
        real_BL: Flags = np.arange(width) < text.length_B[:, None]
        kept_BL = real_BL & (noise.bits("kept words", width) < bound_V[text.ids_BL])
        flat_T = np.flatnonzero(kept_BL)
        row_T, most_T = flat_T // width, np.full(len(flat_T), self.window)
        if self.drawn:
            most_T = 1 + integers(noise.bits("window", width).reshape(-1)[flat_T], self.window)
        parts: list[tuple[Ints, ...]] = []
        for distance in range(1, min(self.window, max(len(flat_T) - 1, 0)) + 1):
            same = row_T[distance:] == row_T[:-distance]
            left, right = flat_T[:-distance], flat_T[distance:]
            for center, context, most, slot in (
                (left, right, most_T[:-distance], self.window + distance - 1),
                (right, left, most_T[distance:], self.window - distance),
            ):
                near = same & (most >= distance)
                number = int(np.count_nonzero(near))
                parts.append((center[near], context[near], np.full(number, slot), np.full(number, distance)))
        none = np.zeros(0, np.int64)
        columns = [np.concatenate([none, *column]) for column in zip(*parts, strict=True)] or [none] * 4
        return Neighbors(*columns), len(flat_T)

    def noise(self, views: Views) -> Noise:
        """The noise of these rows."""
        assert views.row_key_B is not None
        return Noise(views.row_key_B)

    def keep(self, name: str, vocabulary: Vocabulary, make: Any) -> Any:
        """What `make` returns, made once for each vocabulary."""
        count_V = vocabulary.count_V
        if self._made.get("counts") is not count_V:
            self._made.clear()
            self._made["counts"] = count_V
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def pack_text(self, views: Views, kept: int, pairs: int, predicted: int) -> Arrays:
        """The arrays that every network reads, and counts."""
        text = views.text
        tokens = int(text.length_B.sum())
        counts = {
            "sequences": len(text.length_B),
            "raw_tokens": text.tokens,
            "input_tokens": tokens,
            "padding": text.ids_BL.size - tokens,
            "predicted": predicted,
            "noise": 0,
            "spans": 0,
            "kept_words": kept,
            "pairs": pairs,
        }
        part_BL = text.part_BL.astype(np.int64)
        return {"ids_BL": text.ids_BL, "length_B": text.length_B, "part_BL": part_BL, "counts": counts}


@dataclass(frozen=True)
class NegativeWindows(WordWindows):
    """Windows with words that are not near: `negatives` for each prediction, drawn by count ** `power`.

    redraw: one that is the target is drawn again, as in fastText; if not, it is skipped, as in word2vec.
    """

    negatives: int = 5
    power: float = 0.75
    redraw: bool = False

    def draw(self, noise: Noise, vocabulary: Vocabulary, row_P: Ints, number_P: Ints, target_P: Ints) -> Ints:
        """int64 [P, K]: the negatives of each prediction; -1 for one that is skipped.

        Args:
            number_P: of the prediction in its row.
        """
        words: Draws = self.keep("draws", vocabulary, lambda: Draws.of(vocabulary, self.power))
        at_PK = number_P[:, None] * self.negatives + np.arange(self.negatives)
        rows_PK = np.repeat(row_P, self.negatives).reshape(at_PK.shape)
        drawn_PK = words(noise.at("negatives", rows_PK, at_PK).reshape(-1)).reshape(at_PK.shape)
        same_PK = drawn_PK == target_P[:, None]
        if not self.redraw:
            return np.where(same_PK, -1, drawn_PK)
        turn = 1
        while same_PK.any():
            again_P = words(noise.at(f"negatives {turn}", rows_PK[same_PK], at_PK[same_PK]))
            drawn_PK[same_PK] = again_P
            same_PK = drawn_PK == target_P[:, None]
            turn += 1
        return drawn_PK


@dataclass(frozen=True)
class PairWindows(NegativeWindows):
    """Each word and each one near it is a prediction.

    center_reads: the center predicts the word near it, as in fastText; if not, the word near it predicts the center, as
    in `word2vec.c`. Over a text both give the same pairs.
    """

    center_reads: bool = False

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """ids_BL, part_BL [B, L], length_B, slot_P (flat into B x L), target_P, negative_PK: int64; counts: ints."""
        pairs, kept = self.find_neighbors(views, vocabulary)
        ids_T, width = views.text.ids_BL.reshape(-1), views.text.ids_BL.shape[1]
        read_P, target_P = pairs.context_P, ids_T[pairs.center_P]
        if self.center_reads:
            read_P, target_P = pairs.center_P, ids_T[pairs.context_P]
        row_P, place_P = np.divmod(pairs.center_P, width)
        number_P = place_P * 2 * self.window + pairs.slot_P
        negative_PK = self.draw(self.noise(views), vocabulary, row_P, number_P, target_P)
        packed = self.pack_text(views, kept, len(read_P), len(read_P))
        return {**packed, "slot_P": read_P, "target_P": target_P, "negative_PK": negative_PK}


@dataclass(frozen=True)
class BagWindows(NegativeWindows):
    """Each word is predicted from all words in its window at once: CBOW. One without a word near it is left out."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """As of pairs; the words read are read_C (flat into B x L), grouped by prediction as bag_C says: 0 to P - 1."""
        pairs, kept = self.find_neighbors(views, vocabulary)
        width = views.text.ids_BL.shape[1]
        center_P, bag_C = np.unique(pairs.center_P, return_inverse=True)
        target_P = views.text.ids_BL.reshape(-1)[center_P]
        row_P, place_P = np.divmod(center_P, width)
        negative_PK = self.draw(self.noise(views), vocabulary, row_P, place_P, target_P)
        packed = self.pack_text(views, kept, len(pairs.center_P), len(center_P))
        bags = {"target_P": target_P, "negative_PK": negative_PK, "read_C": pairs.context_P, "bag_C": bag_C}
        return {**packed, "slot_P": center_P, **bags}


@dataclass(frozen=True)
class CountedWindows(WordWindows):
    """Each word and each one near it with how often the training text has them near each other: GloVe.

    A pair counts as 1 / distance of its occurrence. In one pass over the text, these shares of all occurrences of two
    words sum to their count, so that the sum of `share x f(count) / count x loss` over all pairs is GloVe's loss over
    the nonzero counts. Pairs that the end of a row cuts apart are counted, but read in no row.
    """

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """As of pairs, with near_P (int64, the flat place of the other word), count_P and share_P (float32)."""
        pairs, kept = self.find_neighbors(views, vocabulary)
        ids_T = views.text.ids_BL.reshape(-1)
        table: Cooccurrences = self.keep("counts of pairs", vocabulary, lambda: self._count(vocabulary))
        first_P, second_P = ids_T[pairs.context_P], ids_T[pairs.center_P]
        count_P = table.at(first_P, second_P)
        share_P = np.where(count_P > 0, 1.0 / pairs.distance_P, 0.0)
        packed = self.pack_text(views, kept, len(first_P), len(first_P))
        counts: dict[str, NDArray[np.float32]] = {
            "count_P": np.maximum(count_P, 1e-12).astype(np.float32),
            "share_P": share_P.astype(np.float32),
        }
        return {**packed, "slot_P": pairs.context_P, "target_P": second_P, **counts}

    def _count(self, vocabulary: Vocabulary) -> Cooccurrences:
        return keep_neighbors(vocabulary.text, vocabulary, self.window)
