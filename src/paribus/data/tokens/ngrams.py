"""Character n-grams of words, and the buckets that they are hashed to, as in `dictionary.cc` of fastText."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

FIRST: Final = 2166136261
PRIME: Final = 16777619
WORD: Final = (1 << 32) - 1


def hash_text(text: str) -> int:
    """FNV-1a in 32 bits over UTF-8, with each byte extended by its sign, which fastText does by accident."""
    value = FIRST
    for byte in text.encode():
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * PRIME) & WORD
    return value


def cut_ngrams(word: str, smallest: int, largest: int) -> Iterator[str]:
    """The n-grams of the word between < and >, but neither mark alone."""
    marked = f"<{word}>"
    for start in range(len(marked)):
        for size in range(smallest, min(largest, len(marked) - start) + 1):
            if size > 1 or 0 < start < len(marked) - 1:
                yield marked[start : start + size]
