"""The trivial baseline of a pre-training: the best model that knows only frequencies and kinds of positions.

It knows how frequent each token is, and the kind of each place beside the one that it predicts: start or inside of a
word, sentinel, mask, separator and so on. The text of a decoder is predicted from the kind of the token before and the
number of words before, and which sentinel comes next is given away. A masked token is predicted from the kinds of both
neighbors. A token that is shown in the place itself, the original or a random one, is used too, unless it is always the
original (`shows_answers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.corruption.collators.collator import Places
from paribus.data.sequences import Arrays

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary

FEW: Final = 50.0  # occurrences of a token for which what holds for all tokens counts
BACKOFF: Final = 500.0  # occurrences for which the frequency in all of the text counts
START, INSIDE, SENTINEL, OTHER, ROLES = range(5)  # kinds of tokens; from the last on special ones by role

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]


class Kinds(NamedTuple):
    """kind_V: of each id; merged_V: the id that counts for it, since all sentinels are one."""

    kind_V: Ints
    merged_V: Ints

    @property
    def size(self) -> int:
        return int(self.kind_V.max()) + 1

    def is_word(self, ids_P: Ints) -> NDArray[np.bool_]:
        """Whether each token is an ordinary one."""
        is_word_P: NDArray[np.bool_] = self.kind_V[ids_P] <= INSIDE
        return is_word_P

    def contexts(self, places: Places) -> Ints:
        """[P]: the kinds of the places beside, as one number."""
        context_P = np.zeros(len(places.target_P), np.int64)
        for ids_P in places.near_KP:
            context_P = context_P * self.size + self.kind_V[ids_P]
        return context_P


def find_kinds(vocabulary: Vocabulary, ids_T: Ints, starts_T: NDArray[Any]) -> Kinds:
    """Kinds of ids: an ordinary one starts words if most of its occurrences in the text do."""
    count_V = np.bincount(ids_T, minlength=vocabulary.size)
    starts_V = np.bincount(ids_T, weights=starts_T, minlength=vocabulary.size)
    kind_V, merged_V = np.where(2 * starts_V >= count_V, START, INSIDE), np.arange(vocabulary.size)
    kind_V[list(vocabulary.specials)] = OTHER
    for role, special in enumerate((vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask)):
        if special >= 0:
            kind_V[special] = ROLES + role
    if vocabulary.sentinels:
        ids = slice(vocabulary.first_sentinel + 1 - vocabulary.sentinels, vocabulary.first_sentinel + 1)
        kind_V[ids], merged_V[ids] = SENTINEL, vocabulary.first_sentinel
    return Kinds(kind_V, merged_V)


class Trivial:
    """The trivial model, fitted to packed batches of the training split.

    C: contexts, the kinds of the places beside. K: kinds. N: numbers of words that a decoder writes before a place.

    Args:
        count_V: how often the training text has each id.
        drawn_V: how likely each id is as the random token that is shown in the place of another.
        batches: each with its predicted places.
    """

    def __init__(self, kinds: Kinds, count_V: Ints, drawn_V: Floats, batches: Sequence[tuple[Arrays, Places]]) -> None:
        self.kinds, self.drawn_V = kinds, drawn_V
        places = join([places for _, places in batches])
        self.kept = 0.0  # the share of original tokens among those that are shown in a predicted place
        if places.shown_P is not None:
            kept_P = (places.shown_P == places.target_P)[kinds.is_word(places.shown_P)]
            if len(kept_P):
                self.kept = min(float(kept_P.mean()), 1.0 - 0.5 / len(kept_P))  # of few it is not all
        self.kind_NCK = self._count_kinds(places)
        self.token_CV = self._count_tokens(join([find_text(kinds, *batch) for batch in batches]), count_V + 1.0)

    def _count_kinds(self, places: Places) -> Floats:
        """[N, C, K]: the kind of a place given those beside and the words before; unseen ones as after any number."""
        size, word_P = self.kinds.size, count_words(self.kinds, places)
        shape = int(word_P.max(initial=0)) + 1, size ** len(places.near_KP), size
        at_P = (word_P * shape[1] + self.kinds.contexts(places)) * size + self.kinds.kind_V[places.target_P]
        count_NCK = np.bincount(at_P, minlength=shape[0] * shape[1] * size).reshape(shape)
        seen_K = np.bincount(self.kinds.kind_V, minlength=size) > 0
        any_K = (count_NCK.sum((0, 1)) + 0.5 * seen_K) / (len(at_P) + 0.5 * seen_K.sum())
        any_CK = count_NCK.sum(0) + any_K
        count_NCK = count_NCK + any_CK / any_CK.sum(-1, keepdims=True)
        share_NCK: Floats = count_NCK / count_NCK.sum(-1, keepdims=True)
        return share_NCK

    def _count_tokens(self, places: Places, frequency_V: Floats) -> Floats:
        """[C, V]: the token given its kind and those beside."""
        size, rows = len(frequency_V), self.kinds.size ** len(places.near_KP)
        member_KV = self.kinds.kind_V == np.arange(self.kinds.size)[:, None]
        merged_V = np.bincount(self.kinds.merged_V, weights=frequency_V, minlength=size)
        at_P = self.kinds.contexts(places) * size + self.kinds.merged_V[places.target_P]
        count_CV = np.bincount(at_P, minlength=rows * size).reshape(rows, size)
        within_V = merged_V / (member_KV @ merged_V)[self.kinds.kind_V]
        total_CK = count_CV @ member_KV.T + BACKOFF
        share_CV: Floats = (count_CV + BACKOFF * within_V) / total_CK[:, self.kinds.kind_V]
        return share_CV

    def losses(self, places: Places) -> Floats:
        """[P]: cross-entropy in nats."""
        target_P = self.kinds.merged_V[places.target_P]
        chance_P = self._find_chances(places, target_P)
        if (shown_P := places.shown_P) is not None:
            original_P = self.kept * self._find_chances(places, shown_P)
            random_P = (1.0 - self.kept) * self.drawn_V[shown_P]
            total_P = np.maximum(original_P + random_P, 1e-12)
            original_P = np.where(self.kinds.is_word(shown_P), original_P / total_P, 0.0)
            chance_P = original_P * (shown_P == target_P) + (1.0 - original_P) * chance_P
        return -np.log(chance_P)

    def _find_chances(self, places: Places, id_P: Ints) -> Floats:
        """[P]: the probabilities of these ids at the positions, given the tokens beside and before."""
        word_P = np.minimum(count_words(self.kinds, places), len(self.kind_NCK) - 1)
        context_P = self.kinds.contexts(places)
        chance_P: Floats = self.kind_NCK[word_P, context_P, self.kinds.kind_V[id_P]] * self.token_CV[context_P, id_P]
        return chance_P


class TrivialReader(Trivial):
    """The trivial model of a text in which the generator of an objective has replaced tokens.

    It knows how often each token replaced another between places of these kinds, and takes a replacement for a random
    token.

    Args:
        batches: with the places about which is asked; what is shown there is read.
        tells: whether it tells replaced tokens from originals. If not, it says what the original was.
    """

    def __init__(self, kinds: Kinds, count_V: Ints, batches: Sequence[tuple[Arrays, Places]], *, tells: bool) -> None:
        super().__init__(kinds, count_V, np.zeros(len(count_V)), batches)
        self.tells = tells
        places = join([places for _, places in batches])
        size, rows = len(count_V), kinds.size ** len(places.near_KP)
        at_P = kinds.contexts(places) * size + _shown(places)
        count_CV = np.bincount(at_P, minlength=rows * size).reshape(rows, size)
        replaced_P = _shown(places) != places.target_P
        replaced_CV = np.bincount(at_P, weights=replaced_P, minlength=rows * size).reshape(rows, size)
        any_1 = (replaced_P.sum() + 0.5) / (len(replaced_P) + 1.0)
        any_V = (replaced_CV.sum(0) + FEW * any_1) / (count_CV.sum(0) + FEW)
        # [C, V]: how likely a token is a replacement given those beside
        self.replaced_CV: Floats = (replaced_CV + FEW * any_V) / (count_CV + FEW)

    def losses(self, places: Places) -> Floats:
        """[P]: cross-entropy in nats."""
        shown_P = _shown(places)
        replaced_P = self.replaced_CV[self.kinds.contexts(places), shown_P]
        original_P = shown_P == places.target_P
        chance_P = np.ones(len(shown_P)) if self.tells else self._find_chances(places, places.target_P)
        return -np.log(np.where(original_P, 1.0 - replaced_P, replaced_P * chance_P))


def _shown(places: Places) -> Ints:
    assert places.shown_P is not None
    return places.shown_P


def count_words(kinds: Kinds, places: Places) -> Ints:
    """[P]: ordinary tokens that a decoder writes before each place of its row; 0 without a decoder."""
    if places.row_P is None:
        return np.zeros(len(places.target_P), np.int64)
    word_P = kinds.is_word(places.target_P).astype(np.int64)
    before_P = np.cumsum(word_P) - word_P
    starts_P = np.flatnonzero(np.diff(places.row_P, prepend=-1))
    words_P: Ints = before_P - np.repeat(before_P[starts_P], np.diff(starts_P, append=len(before_P)))
    return words_P


def find_text(kinds: Kinds, arrays: Arrays, places: Places) -> Places:
    """The places in which tokens are counted: all of the text that a masked LM reads, or what a decoder writes."""
    if places.row_P is not None or places.shown_P is None:
        return places
    read = arrays["ids_BL"].reshape(-1)
    text = read.copy()
    text[arrays["slot_P"]] = places.target_P
    at_P = np.flatnonzero(kinds.is_word(text))
    return Places(text[at_P], [read[at_P - 1], read[np.minimum(at_P + 1, len(read) - 1)]])


def shows_answers(parts: Sequence[Places]) -> bool:
    """Whether the answer is shown in every predicted place.

    The text is then read as it is, by a network that does not see the place that it predicts. A trivial model must not
    see it either: it would have no loss, and no network could be better.
    """
    return all(part.shown_P is not None and bool((part.shown_P == part.target_P).all()) for part in parts)


def join(parts: Sequence[Places]) -> Places:
    """The places of all batches as one."""
    near_KP = [np.concatenate(ids) for ids in zip(*(part.near_KP for part in parts), strict=True)]
    shown = [part.shown_P for part in parts if part.shown_P is not None]
    rows, first = [], 0
    for part in parts:
        if part.row_P is not None and len(part.row_P):
            rows.append(part.row_P + first)
            first += int(part.row_P[-1]) + 1
    shown_P, row_P = (np.concatenate(ids) if ids else None for ids in (shown, rows))
    return Places(np.concatenate([part.target_P for part in parts]), near_KP, shown_P, row_P)
