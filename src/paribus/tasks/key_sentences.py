"""The sentences of a long text that a model with short rows reads in place of all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paribus.core.noise import Noise

if TYPE_CHECKING:
    from paribus.data.corpus.sentences import Splitter
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.tasks.examples import Example

RANDOM, CENTRAL = "random_sentences", "central_sentences"
KINDS: Final = (RANDOM, CENTRAL)


def keep_sentences(
    examples: Mapping[str, Sequence[Example]],
    kind: str,
    room: int,
    tokenizer: Tokenizer,
    splitter: Splitter,
    seed: int,
) -> dict[str, list[Example]]:
    """The examples of each set with `room` tokens of each text: its sentences in the order of a ranking, until the next
    one does not fit, and the beginning of that one. They stand in the order of the text. A text that fits is left as
    it is.

    `random_sentences`: the ranking is drawn by the seed and the text. `central_sentences`: by the cosine of a sentence
    and the mean of all sentences of its text, as tf-idf vectors (after Radev et al. 2004, "Centroid-based
    summarization of multiple documents"); how many texts have a word is counted in `train` alone.
    """
    vectors = _count_words([row.text for row in examples["train"]]) if kind == CENTRAL else None
    kept: dict[str, list[Example]] = {}
    for split, rows in examples.items():
        texts = [[one for line in row.text.split("\n") for one in splitter(line)] for row in rows]
        sentences = [sentence for text in texts for sentence in text]
        encoded, offset_T2 = tokenizer.locate(sentences)
        end_S = np.cumsum(encoded.length_S)
        score_S = None if vectors is None else _find_central(vectors.transform(sentences), [*map(len, texts)])
        kept[split] = []
        first = 0
        for row, text in zip(rows, texts, strict=True):
            of_text = slice(first, first + len(text))
            length_S, first = encoded.length_S[of_text], of_text.stop
            if length_S.sum() <= room:
                kept[split].append(row)
                continue
            rank_S = _draw(row.text, len(text), seed) if score_S is None else -score_S[of_text]
            count_S = _fill(length_S, np.argsort(rank_S, kind="stable"), room)
            parts = []
            for number in np.flatnonzero(count_S):
                at = of_text.start + number
                last_T = end_S[at] - encoded.length_S[at] + count_S[number] - 1
                parts.append(text[number][: offset_T2[last_T, 1]])
            kept[split].append(row._replace(text=" ".join(parts)))
    return kept


def _fill(length_S: Array, ranked: Array, room: int) -> Array:
    """[S]: how many tokens of each sentence are kept."""
    before = np.cumsum(length_S[ranked]) - length_S[ranked]
    count_S = np.zeros_like(length_S)
    count_S[ranked] = np.clip(room - before, 0, length_S[ranked])
    return count_S


def _draw(text: str, sentences: int, seed: int) -> Array:
    """[S]: random numbers that depend on the seed and the text alone."""
    key = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    bits_1S: Array = Noise.of(seed, (), np.array([key], np.uint64)).bits(RANDOM, sentences)
    return bits_1S.ravel()


def _count_words(texts: Sequence[str]) -> Any:
    """What turns sentences into tf-idf vectors of length 1, by how many of these texts have a word."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", dtype=np.float32).fit(texts)


def _find_central(vector_SW: Any, counts: Sequence[int]) -> Array:
    """[S]: the cosine of each sentence and the mean of its text, given how many sentences each text has."""
    score_S = np.zeros(vector_SW.shape[0])
    for start, end in pairwise(np.cumsum([0, *counts]).tolist()):
        if start < end:  # a text may be empty
            mean_W = np.asarray(vector_SW[start:end].mean(0)).ravel()
            score_S[start:end] = vector_SW[start:end] @ mean_W / max(float(np.linalg.norm(mean_W)), 1e-9)
    return score_S
