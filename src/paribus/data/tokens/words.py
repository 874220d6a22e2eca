"""Finds where words start, from the characters that each token covers and never from how a token looks.

A word is what white space, punctuation marks and Han characters bound: letters and digits stay together, and so do a
character and its marks (as in UAX #29). A punctuation mark or a Han character is a word by itself, as in BERT's basic
tokenizer. The words of a pre-tokenizer are not used: GPT-2's ends a word at a combining mark and at a digit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

HAN_RANGES = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
HAN = re.compile(f"[{HAN_RANGES}]")
SEMANTICS = 2  # raised when another character starts a word; 1: where the pre-tokenizer said so
SYMBOLS = "$+<=>^`|~"  # of ASCII; with the Unicode categories P* these are the punctuation marks
STRIPPED = ("LATIN ", "GREEK ")  # scripts whose accents a tokenizer may drop: the word stays readable
_UNKNOWN, _SPACE, _LETTER, _ALONE, _MARK = range(5)  # a mark stays with the character before it
_kind_C = np.zeros(0x110000, np.uint8)  # of each code point that was seen

Offsets = Sequence[tuple[int, int]]


def find_word_starts(sentences: Sequence[str], offsets: Sequence[Offsets]) -> NDArray[np.uint8]:
    """uint8 [T] over the tokens of all sentences: 1 if the first visible character of a token starts a word.

    A token of only white space starts the word that follows it. A token inside a character (bytes) starts none.

    Args:
        offsets: of each sentence, the characters that each token covers (first, end).
    """
    text, length_S = "".join(sentences), _count(sentences)
    tokens_S, total = _count(offsets), len(text)
    if not int(tokens_S.sum()):
        return np.zeros(0, np.uint8)
    base_S = np.cumsum(length_S) - length_S  # where each sentence begins in the text
    base_T = np.repeat(base_S, tokens_S)
    span_T2 = np.fromiter(chain.from_iterable(chain.from_iterable(offsets)), np.int64).reshape(-1, 2) + base_T[:, None]
    begin_T, end_T = span_T2.T

    kind_C = _classify(text)
    place_C = np.arange(total)
    opened_C = np.zeros(total + 2, np.int64)  # how many words start before a character
    opened_C[1:-1] = np.cumsum(_find_openings(kind_C, place_C, base_S[length_S > 0]))
    opened_C[-1] = opened_C[-2]
    visible_C = np.append(np.where(kind_C == _SPACE, total, place_C), total)
    next_C = np.minimum.accumulate(visible_C[::-1])[::-1]  # the next character that is not white space

    at_T = next_C[begin_T]
    blank_T = at_T >= end_T
    first_T = np.zeros(len(at_T), np.bool_)
    first_T[(np.cumsum(tokens_S) - tokens_S)[tokens_S > 0]] = True
    done_T = np.maximum(np.maximum.accumulate(np.append(0, end_T[:-1])), base_T)  # how far the tokens before reach
    # a normalizer may have removed the character that a word starts with, such as a mark
    start_T = blank_T | first_T | ((at_T >= done_T) & (opened_C[at_T + 1] > opened_C[done_T]))
    start_T[1:] &= ~blank_T[:-1] | first_T[1:]
    starts_T: NDArray[np.uint8] = start_T.astype(np.uint8)
    return starts_T


def _count(parts: Iterable[Sequence[object]]) -> NDArray[np.int64]:
    return np.fromiter(map(len, parts), np.int64)


def _find_openings(
    kind_C: NDArray[np.uint8], place_C: NDArray[np.int64], base_S: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """bool [C]: a word starts at the character. base_S: where sentences begin."""
    border_C = np.zeros(len(kind_C), np.bool_)  # nothing of a word is before the character
    border_C[base_S] = True
    border_C[1:] |= kind_C[:-1] == _SPACE
    carrier_C = np.maximum.accumulate(np.where((kind_C != _MARK) | border_C, place_C, 0))  # of a mark, what it is on
    carried_C = np.where(kind_C[carrier_C] == _MARK, _LETTER, kind_C[carrier_C])  # one after a space is its own letter
    after_C = np.append(_SPACE, carried_C[:-1]) != _LETTER
    opens_C = border_C | (kind_C == _ALONE) | ((kind_C == _LETTER) & after_C)
    visible_C: NDArray[np.bool_] = opens_C & (kind_C != _SPACE)
    return visible_C


def _classify(text: str) -> NDArray[np.uint8]:
    code_C = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kind_C = _kind_C[code_C]
    if not kind_C.all():
        for code in np.unique(code_C[kind_C == _UNKNOWN]).tolist():
            _kind_C[code] = _find_kind(chr(code))
        kind_C = _kind_C[code_C]
    return kind_C


def _find_kind(character: str) -> int:
    if character.isspace() or character == "▁":
        return _SPACE
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf":
        return _MARK
    return _ALONE if HAN.match(character) or character in SYMBOLS or category[0] == "P" else _LETTER


def count_letters(text: str) -> tuple[int, int]:
    """(letters and the marks that belong to them, these marks alone).

    Accents on Latin and Greek letters do not count. In other scripts marks are vowels (Hindi, Arabic, Hebrew), or make
    another letter (Cyrillic).
    """
    if text.isascii():
        return sum(map(str.isalpha, text)), 0
    letters = marks = 0
    carrier = False  # whether the letter before keeps its marks
    for character in unicodedata.normalize("NFD", text):
        kind = _find_category(character)
        if kind == "M":
            marks += carrier
        else:
            letters += kind in "LS"
            carrier = kind == "L"
    return letters + marks, marks


@lru_cache(maxsize=1 << 16)
def _find_category(character: str) -> str:
    """L: a letter, S: one of a script whose accents may be stripped, M: a mark, and - for the rest."""
    category = unicodedata.category(character)[0]
    if category == "L" and unicodedata.name(character, "").startswith(STRIPPED):
        return "S"
    return category if category in "LM" else "-"
