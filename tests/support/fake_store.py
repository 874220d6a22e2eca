"""A token store in memory, and a vocabulary to go with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.views.replace import Replace
from paribus.data.formats.full_sentences import FullSentences, line_blocks

PAD, UNK, CLS, SEP, MASK = range(5)


@dataclass(frozen=True)
class FakeVocabulary:
    size: int = 1000
    pad: int = PAD
    unk: int = UNK
    cls: int = CLS
    sep: int = SEP
    mask: int = MASK
    specials: tuple[int, ...] = (PAD, UNK, CLS, SEP, MASK)
    sentinels: int = 0
    first_sentinel: int = -1
    spaces: bool = False
    count_V: Any = None
    text: Any = None


@dataclass(frozen=True)
class FakeStore:
    ids: Any
    word_start: Any
    sentence_start: Any
    document_start: Any
    annotated: Any = None


def store_of(documents: list[list[int]]) -> FakeStore:
    """A store from sentence lengths; token t has the id 5 + t modulo 995, and every third token goes on a word."""
    lengths = [length for document in documents for length in document]
    total = sum(lengths)
    return FakeStore(
        (5 + np.arange(total) % 995).astype(np.uint16),
        (np.arange(total) % 3 != 2).astype(np.uint8),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64),
    )


def random_store(sentences: int, seed: int = 0, mean: int = 15) -> FakeStore:
    """Sentences of geometric length in documents of about ten."""
    random = np.random.default_rng(seed)
    lengths = random.geometric(1 / mean, sentences).tolist()
    return store_of([lengths[at : at + 10] for at in range(0, sentences, 10)])


def examples_of(store: Any, length: int = 64, seed: int = 0, masking: Any = None, input_format: Any = None) -> Examples:
    """Examples with single-token masks at 15 % and 80/10/10, unless told otherwise."""
    corruption = Corruption(masking or Bernoulli(0.15), Replace())
    return Examples(
        store, input_format or FullSentences(length), corruption, EncoderCollator(), FakeVocabulary(), seed, length
    )


def token_blocks(sizes: list[int], documents: bool, budget: int) -> list[tuple[int, int]]:
    """(start, end) in tokens of the blocks of lines of these sizes; with `documents` a line of one token is blank."""
    size_L = np.asarray(sizes, np.int64)
    edge_L = np.concatenate([[0], np.cumsum(size_L)])
    return [(int(a), int(b)) for a, b in edge_L[line_blocks(size_L, budget, size_L == 1 if documents else None)]]
