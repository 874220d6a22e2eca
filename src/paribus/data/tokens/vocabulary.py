"""Special tokens by role, as plain data; spellings and counts of the entries if they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError

COUNTED = 1 << 22  # tokens counted at a time
NO_TEXT = "\ufffd"  # what bytes that are not UTF-8 are decoded to


@dataclass(frozen=True, eq=False)
class Entries:
    """What a vocabulary's entries are and how often they occur, read when first asked for.

    Args:
        folder: of the saved tokenizer.
        size: entries.
        store: the token store of the training text.
    """

    folder: Path
    size: int
    store: Any

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """See `Vocabulary.spellings`."""
        from paribus.data.tokens.tokenizer import Tokenizer

        tokenizer = Tokenizer.load(self.folder)
        backend = tokenizer.backend
        inner = getattr(backend.model, "continuing_subword_prefix", None) or ""
        tokens = [backend.id_to_token(number) or "" for number in range(self.size)]
        texts = backend.decode_batch([[number] for number in range(self.size)], skip_special_tokens=False)
        decoded = [token if NO_TEXT in text else text for token, text in zip(tokens, texts, strict=True)]
        mark = "" if tokenizer.vocabulary.spaces else " "
        return tuple(text.removeprefix(inner).removeprefix(mark) for text in decoded)

    @cached_property
    def count_V(self) -> NDArray[np.int64]:
        """See `Vocabulary.count_V`."""
        ids_T = self.store.ids
        parts = (ids_T[at : at + COUNTED] for at in range(0, len(ids_T), COUNTED))
        count_V: NDArray[np.int64] = sum(
            (np.bincount(part, minlength=self.size) for part in parts), np.zeros(self.size, np.int64)
        )
        return count_V

    def __deepcopy__(self, memo: object) -> Entries:  # a copy of a network reads the same text
        return self

    def __getstate__(self) -> dict[str, Any]:  # the workers of a loader may need counts, and no spellings
        return {name: value for name, value in vars(self).items() if name != "spellings"}


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
    spaces: bool = False  # white space is text: its sentences begin with a blank or a new line
    entries: Entries | None = field(default=None, compare=False, repr=False)  # that of prepared data has them

    @property
    def spellings(self) -> tuple[str, ...]:
        """The text of each entry, without marks of where words start or continue; special tokens have their names, and
        bytes that are no text stay as the tokenizer writes them.

        Raises UserError for a vocabulary without a text.
        """
        return self._asked.spellings

    @property
    def count_V(self) -> NDArray[np.int64]:
        """int64 [V]: how often the training text has each entry. Raises UserError for a vocabulary without a text."""
        return self._asked.count_V

    @property
    def text(self) -> Any:
        """The token store of the training text. Raises UserError for a vocabulary without a text."""
        return self._asked.store

    @property
    def _asked(self) -> Entries:
        if self.entries is None:
            raise UserError("this vocabulary has no spellings and counts", "take the vocabulary of prepared data")
        return self.entries
