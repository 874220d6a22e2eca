"""Special tokens by role, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Vocabulary:
    """Size and special tokens of a tokenizer; all that the data side of training needs of it."""

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    specials: tuple[int, ...]  # ascending; never noised, never drawn as a random token
