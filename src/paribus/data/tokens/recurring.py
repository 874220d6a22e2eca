"""Which tokens of a text occur in another sentence of their document too (ERNIE 2, arXiv 1907.12412, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from paribus.data.formats.segments import Store
from paribus.data.text import Array


@dataclass(frozen=True)
class Recurring:
    """A store whose `annotated` is 1 at tokens that recur, and 0 elsewhere."""

    store: Store

    @property
    def ids(self) -> Array:
        return self.store.ids

    @property
    def word_start(self) -> Array:
        return self.store.word_start

    @property
    def sentence_start(self) -> Array:
        return self.store.sentence_start

    @property
    def document_start(self) -> Array:
        return self.store.document_start

    @cached_property
    def annotated(self) -> Any:
        """uint8 [T], of which only the places that are read are found."""
        return _Flags(self.store)


class _Flags:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.edge_D = np.asarray(store.sentence_start)[np.asarray(store.document_start)]

    def __getitem__(self, at_P: Array) -> Array:
        """uint8 [P] of these tokens of the store."""
        document_P = np.searchsorted(self.edge_D, at_P, side="right") - 1
        found_P = np.zeros(len(at_P), np.uint8)
        for document in np.unique(document_P):
            first, last = self.edge_D[document : document + 2].tolist()
            own_P = document_P == document
            found_P[own_P] = self._recur(first, last)[at_P[own_P] - first]
        return found_P

    def _recur(self, first: int, last: int) -> Array:
        """bool: of the tokens of a document."""
        sentence_T = np.searchsorted(self.store.sentence_start, np.arange(first, last), side="right")
        sentence_T -= sentence_T[0]
        _, kind_T = np.unique(np.asarray(self.store.ids[first:last]), return_inverse=True)
        pairs = np.unique(kind_T * (sentence_T[-1] + 1) + sentence_T)
        often_T: Array = np.bincount(pairs // (sentence_T[-1] + 1))[kind_T] > 1
        return often_T
