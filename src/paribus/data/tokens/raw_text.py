"""How many characters and words of the text each token of a split stands for, as arrays beside its token store.

A token stands for the text from the end of the token before it to its own end, so that all tokens together stand for
all of the text: white space that a tokenizer drops counts with the token after it. Between two sentences of a paragraph
there is a blank, a new line before a paragraph, and a blank line before a document. Words are what white space bounds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paribus.core.files import whole_folder, write_json
from paribus.data.corpus.document import Document
from paribus.data.corpus.sentences import Splitter
from paribus.data.tokens.store import parts
from paribus.data.tokens.tokenizer import Tokenizer, readable

SEMANTICS = 1  # raised when the same text and tokenizer give other counts
META, FILES = "meta.json", ("characters", "words")


@dataclass(frozen=True)
class RawText:
    """The counts of one split, T tokens."""

    folder: Path

    @cached_property
    def characters_T(self) -> NDArray[np.uint32]:
        """The characters that each token stands for, white space included."""
        return self._read("characters")

    @cached_property
    def words_T(self) -> NDArray[np.uint32]:
        """The words that begin in the text of each token."""
        return self._read("words")

    @property
    def hidden(self) -> float:
        """The share of the characters, white space aside, that tokens do not give back: they are part of an unknown
        token, or the tokenizer reads other ones, such as small letters for capitals.
        """
        return float(json.loads((self.folder / META).read_text(encoding="utf-8"))["hidden"])

    def _read(self, name: str) -> NDArray[np.uint32]:
        return np.fromfile(self.folder / f"{name}.bin", np.uint32)


def build(documents: Iterable[Document], tokenizer: Tokenizer, splitter: Splitter, folder: Path) -> None:
    """Write the counts of documents of one split, in the order of their store; completely or not at all."""
    hidden = visible = 0
    with whole_folder(folder) as work:
        files = {name: (work / f"{name}.bin").open("wb") for name in FILES}
        for part in parts(documents, splitter, spaces=True):
            spaced = [readable(sentence) for sentence in part.sentences]
            read = spaced if tokenizer.vocabulary.spaces else [sentence.lstrip() for sentence in spaced]
            begins = list(accumulate(map(len, spaced), initial=0))
            skipped = [begin + len(long) - len(short) for begin, long, short in zip(begins, spaced, read, strict=False)]
            batch, offset_T2 = tokenizer.locate(read)
            if not len(batch.ids_T):
                continue
            end_T = np.maximum.accumulate(offset_T2[:, 1] + np.repeat(skipped, batch.length_S))
            end_T[np.cumsum(batch.length_S)[batch.length_S > 0] - 1] = np.array(begins[1:])[batch.length_S > 0]
            end_T[-1] = begins[-1]  # sentences without tokens count with the tokens beside them
            character_T = np.diff(end_T, prepend=0)
            text = "".join(spaced)
            blank_C = np.fromiter(map(str.isspace, text), np.bool_, len(text))
            begin_C = ~blank_C & np.append(True, blank_C[:-1])
            word_T = np.diff(np.append(0, np.cumsum(begin_C))[end_T], prepend=0)
            for file, count_T in zip(files.values(), (character_T, word_T), strict=True):
                file.write(count_T.astype(np.uint32).tobytes())
            unknown_T = batch.ids_T == tokenizer.vocabulary.unk
            hidden += int(character_T[unknown_T].sum()) + _count_changed(tokenizer, read)
            visible += int(np.count_nonzero(~blank_C))
        for file in files.values():
            file.close()
        write_json(work / META, {"hidden": min(1.0, hidden / max(1, visible))})


def _count_changed(tokenizer: Tokenizer, sentences: list[str]) -> int:
    """Characters, white space aside, that the normalizer drops or replaces."""
    normalizer = tokenizer.backend.normalizer
    if normalizer is None:
        return 0
    before, after = Counter[str](), Counter[str]()
    for sentence in sentences:
        before.update(sentence)
        after.update(normalizer.normalize_str(sentence))
    return sum(count for character, count in (before - after).items() if not character.isspace())
