"""The text that the targets of a left-to-right evaluation stand for: its loss per character and per word.

A loss per token says nothing if the tokens differ. The same loss, spread over the characters of the text, can be
compared: the bits that a model needs for each of them. Characters and words are counted in the raw text, white space
included. A tokenizer that reads small letters for capitals, or an unknown word, asks for less than the text; the share
of characters that are hidden so is part of the name of what is asked, and from 0.1% on such arms share no column with
others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.checksums import digest, read_sealed
from paribus.core.console import say
from paribus.core.files import write_sealed
from paribus.corruption.examples import Examples, evaluation_batches
from paribus.data.sequences import Array
from paribus.data.tokens.store import MemoryStore, sample_store
from paribus.objectives.character_models import count_ngram_bits, count_xz_bits
from paribus.objectives.target_set import TargetSet

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.data.tokens.tokenizer import Tokenizer

PER_TEXT: Final = ("bits_per_character", "perplexity_per_word")
NOTICED: Final = 0.001  # a share of hidden characters that makes the text another one
TRAINED: Final = 10_000_000  # characters, at most, that baselines learn from
ASKED: Final = 1_000_000  # and are asked for
SEMANTICS: Final = 1  # raised when the same text gives other baselines
KINDS: Final = {"wordpiece": "WordPieces", "bpe": "byte pairs", "unigram": "unigram pieces"}


@dataclass(frozen=True, eq=False)
class PredictedText:
    """The raw text of the tokens that are predicted.

    Args:
        place_P: the token of the validation store that each target is.
        data: whose text has been counted.
    """

    place_P: NDArray[np.int64] = field(repr=False)
    data: Data

    @cached_property
    def characters(self) -> int:
        """The characters that the targets stand for."""
        assert self.data.raw is not None
        return int(self.data.raw.characters_T[self.place_P].sum())

    @cached_property
    def words(self) -> int:
        """The words between white space that begin in them."""
        assert self.data.raw is not None
        return int(self.data.raw.words_T[self.place_P].sum())

    @property
    def hidden(self) -> float:
        """The share of the characters of the held-out text that the tokens do not give back."""
        assert self.data.raw is not None
        return self.data.raw.hidden

    def measure(self, nats: float) -> dict[str, float]:
        """{"bits_per_character", "perplexity_per_word"} of a text whose tokens cost so many nats together."""
        bits = nats / math.log(2) / self.characters
        return dict(zip(PER_TEXT, (bits, math.exp(min(700.0, nats / max(1, self.words)))), strict=True))

    def target_sets(self) -> dict[str, TargetSet]:
        """What is asked, and how much of it."""
        what = "the raw text"
        if self.hidden >= NOTICED:
            what += f", of which {100 * self.hidden:.1f}% is unknown words or letters in another form"
        counts = dict(zip(PER_TEXT, (self.characters, self.words), strict=True))
        return {name: TargetSet(what, count) for name, count in counts.items()}

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        """{"bits_per_character": {"n-gram of characters": value, "xz": value}, "perplexity_per_word": likewise}.

        They learn from the training text and are asked for the text of the targets, both as the tokens give it back,
        and at most for the first million characters of it. Their bits are spread over the characters of the raw text.
        The values are kept beside the counts of the text.
        """
        assert self.data.raw is not None
        read = (self.data.stores["train"].ids, self.place_P)
        key = digest([SEMANTICS, *(hashlib.sha256(np.ascontiguousarray(each).data).hexdigest() for each in read)])
        path = self.data.raw.folder.parent / f"{self.data.raw.folder.name}-{key}.json"
        kept = read_sealed(path, path.stem)
        if kept is None:
            say("measuring n-grams of characters and xz on the held-out text, once")
            kept = {"values": self._measure_baselines()}
            write_sealed(path, kept, path.stem)
        values: dict[str, dict[str, float]] = kept["values"]
        return values

    def _measure_baselines(self) -> dict[str, dict[str, float]]:
        assert self.data.raw is not None
        rate = float(self.data.raw.characters_T.mean())  # characters of a token
        learned = sample_store(self.data.stores["train"], max(1, int(TRAINED / rate)))
        train = decode(learned.ids, learned.sentence_start[1:-1], self.data.tokenizer)
        place_P = np.unique(self.place_P)[: max(1, int(ASKED / rate))]
        gaps = np.flatnonzero(np.diff(place_P) > 1) + 1  # between the rows of an evaluation
        text = replace(self, place_P=place_P)
        held_out = decode(self.data.stores["validation"].ids[place_P], gaps, self.data.tokenizer)
        bits = {"n-gram of characters": count_ngram_bits(train, held_out), "xz": count_xz_bits(train, held_out)}
        measured = {name: text.measure(each * math.log(2)) for name, each in bits.items()}
        return {metric: {name: values[metric] for name, values in measured.items()} for metric in PER_TEXT}


def decode(ids_T: Array, edges: Array, tokenizer: Tokenizer) -> str:
    """The text of tokens, as these give it back, cut at `edges` for speed; an unknown token is U+FFFD."""
    parts = tokenizer.texts([part.tolist() for part in np.split(np.asarray(ids_T), np.asarray(edges))])
    unknown = str(tokenizer.backend.id_to_token(tokenizer.vocabulary.unk))
    return ("" if tokenizer.vocabulary.spaces else " ").join(parts).replace(unknown, "\ufffd")


def find_predicted_text(examples: Examples, most: int, data: Data) -> PredictedText:
    """What the targets of at most `most` examples stand for; the text of `data` has been counted."""
    return PredictedText(find_target_places(examples, most), data)


def find_target_places(examples: Examples, most: int) -> NDArray[np.int64]:
    """[P]: the token of the store that each target of an evaluation is.

    The examples are packed once more from a store whose tokens are their own numbers, so that any collator may choose
    and move the targets. Special tokens stay what they are in framed rows, where none of them is a target.
    """
    store, vocabulary = examples.store, examples.vocabulary
    ids_T = np.asarray(store.ids).astype(np.int64)
    number_T = np.arange(len(ids_T)) + vocabulary.size
    if examples.input.framed:
        special_T = np.isin(ids_T, vocabulary.specials)
        number_T[special_T] = ids_T[special_T]
    numbered = MemoryStore(number_T, store.word_start, store.sentence_start, store.document_start, store.annotated)
    coded = replace(examples, store=numbered, vocabulary=replace(vocabulary, size=vocabulary.size + len(ids_T)))
    targets = [arrays["target_P"] for arrays in evaluation_batches(coded, most)]
    return np.concatenate(targets) - vocabulary.size


def name_tokens(data: Data) -> str:
    """What the tokens of a text are, such as "8,192 WordPieces"."""
    name = data.tokenizer.name
    given = name if name in ("characters", "bytes", "words") else f"tokens of {name}"
    return f"{data.vocabulary.size:,} {KINDS.get(name, given)}"
