"""Finds where words start, from what the tokenizer reports and never from how a token looks.

A word is what BERT's basic tokenizer calls one: it is between white space, and a punctuation mark or a Han
character is a word by itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

HAN_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
HAN = re.compile(f"[{HAN_RANGES}]")
SYMBOLS = "$+<=>^`|~"  # of ASCII; with the Unicode categories P* these are the punctuation marks
_SPACE, _LETTER, _ALONE = range(3)


def from_word_ids(
    encodings: Sequence[Encoding], length_S: NDArray[np.int64], blank_T: NDArray[np.bool_]
) -> NDArray[np.uint8]:
    """uint8 [T] over all sentences: 1 if the number of the pre-tokenizer's word changes or a sentence starts.

    blank_T: the token is white space alone; it starts the word that follows it.
    """
    words = chain.from_iterable(encoding.word_ids for encoding in encodings)
    word_T = np.fromiter(words, np.int64, int(length_S.sum()))
    start_T = np.ones(len(word_T), np.uint8)
    start_T[1:] = (word_T[1:] != word_T[:-1]) & ~blank_T[:-1]
    first_S = np.cumsum(length_S) - length_S
    start_T[first_S[length_S > 0]] = 1
    return start_T


def from_offsets(text: str, offsets: Sequence[tuple[int, int]]) -> NDArray[np.uint8]:
    """uint8 [T] of one sentence: 1 if the first visible character of a token starts a word of the text.

    A token of only white space starts the word that follows it. A token inside a character (bytes) starts none.
    """
    kinds = [_classify(character) for character in text]
    starts, done, opened = [], 0, False
    for begin, end in offsets:
        at = begin
        while at < end and kinds[at] == _SPACE:
            at += 1
        blank = at == end
        starts_word = blank or (at >= done and (at == 0 or kinds[at] == _ALONE or kinds[at - 1] != _LETTER))
        starts.append(not opened and starts_word)
        opened, done = blank and (opened or starts[-1]), max(done, end)
    return np.array(starts, np.uint8)


@lru_cache(maxsize=1 << 16)
def _classify(character: str) -> int:
    if character.isspace() or character == "▁":
        return _SPACE
    alone = HAN.match(character) or character in SYMBOLS or unicodedata.category(character)[0] == "P"
    return _ALONE if alone else _LETTER


def separates_words(backend: Tokenizer, text: str, parts: int) -> bool:
    """Whether the pre-tokenizer makes exactly `parts` words of a text, so that its word ids can be trusted."""
    ids: list[Any] = backend.encode(text, add_special_tokens=False).word_ids
    return None not in ids and len(set(ids)) == parts
