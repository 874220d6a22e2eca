"""Raw windows, a vocabulary with sentinels, and what to read back from what was written."""

from __future__ import annotations

from typing import Any

import numpy as np
from fake_store import FakeVocabulary

from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.infilling import Infilling
from paribus.corruption.masking.one_span import Fragment, Prefix
from paribus.corruption.masking.random_spans import RandomSpans
from paribus.corruption.masking.single_tokens import Deletion, Iid
from paribus.corruption.masking.whole_row import Everything, Permute, Rotation, SentencePermutation
from paribus.corruption.views.replace import MaskTokens
from paribus.corruption.views.sentinels import SharedSentinel, UniqueSentinel
from paribus.corruption.views.tokens import Drop, Full, Nothing, Permuted
from paribus.corruption.views.tokens import Fragment as FragmentTargets
from paribus.data.sequences import Marks, Text

SENTINELS = 100
TEXT = 900  # ids of text: 5 .. 904
SPECIALS = (0, 1, 2, 3, 4, *range(1000 - SENTINELS, 1000))
VOCABULARY: Any = FakeVocabulary(1000, specials=SPECIALS, sentinels=SENTINELS, first_sentinel=999)

MASKINGS: dict[str, Any] = {
    "random_spans": RandomSpans(0.15, 3),
    "random_spans_50": RandomSpans(0.5, 2),
    "iid": Iid(0.15),
    "prefix": Prefix(),
    "permute": Permute(),
    "all": Everything(),
    "infilling": Infilling(0.3, 3.5),
    "infilling_exact": Infilling(0.3, 3.5, exact=True, unit="token"),
    "infilling_sentences": Infilling(0.3, permute_sentences=1.0),
    "deletion": Deletion(0.15),
    "sentence_permutation": SentencePermutation(),
    "rotation": Rotation(),
    "fragment": Fragment(),
}
INPUTS: dict[str, Any] = {
    "unique": UniqueSentinel(),
    "shared": SharedSentinel(),
    "shared_mask": SharedSentinel(symbol="mask"),
    "drop": Drop(),
    "mask": MaskTokens(),
    "mask_random": MaskTokens(0.9, 0.1),
    "mask_80_10_10": MaskTokens(0.8, 0.1, 0.1, symbol="mask"),
    "permuted": Permuted(),
    "nothing": Nothing(),
}
TARGETS: dict[str, Any] = {
    "unique": UniqueSentinel("text"),
    "shared": SharedSentinel("text"),
    "drop": Drop("text"),
    "full": Full(),
    "fragment": FragmentTargets(),
}


def windows(lengths: list[int], seed: int = 0) -> Text:
    """Bare rows of text in words of one to three tokens and sentences of about twelve."""
    random = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths))
    real = np.arange(shape[1]) < np.array(lengths)[:, None]
    ids = np.where(real, random.integers(5, 5 + TEXT - 10, shape), VOCABULARY.pad)
    start = (random.random(shape) < 0.6) & real
    start[:, 0] = True
    sentence = np.cumsum(random.random(shape) < 1 / 12, axis=1).astype(np.int16)
    sentence[~real] = -1
    return Text(ids, np.array(lengths), real, start, sentence, np.zeros(shape, np.int8))


def tokens(rows: Any, row: int) -> list[int]:
    """A row without padding."""
    found: list[int] = rows.ids_BL[row, : rows.length_B[row]].tolist()
    return found


def golden() -> tuple[Text, Marks]:
    """Tokens 10..15 with noise at 0, 1 and 4."""
    text = windows([6])
    text.ids_BL[:] = np.arange(10, 16)
    return text, Marks(np.array([[1, 1, 0, 0, 2, 0]], np.int16))


def corruption(masking: str, inputs: str, targets: str) -> Corruption:
    return Corruption(MASKINGS[masking], INPUTS[inputs], TARGETS[targets])
