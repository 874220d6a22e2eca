"""Special tokens by role, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Vocabulary:
    """Size and special tokens of a tokenizer: everything that the data side of training needs."""

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    specials: tuple[int, ...]  # ascending; never noised, never drawn as a random token
    sentinels: int = 0  # T5's <extra_id_k>, whose ids descend
    first_sentinel: int = -1  # id of <extra_id_0>
    start: int = -1  # with the next two what frames a text as in GPT-1; -1: the vocabulary lacks it
    delimiter: int = -1
    extract: int = -1
    count_V: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)  # tokens of the training text
