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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.checksums import digest, read_sealed
from paribus.core.console import say
from paribus.core.files import write_sealed
from paribus.corruption.examples import Examples, evaluation_batches
from paribus.data.tokens.store import MemoryStore, TokenStore, sample_store
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


@dataclass(frozen=True)
class PredictedText:
    """The raw text of the tokens that are predicted.

    Attributes:
        characters: that the predicted tokens stand for.
        words: likewise, between white space.
        data: the text that they are from.
    """

    characters: int
    words: int
    data: Data

    @property
    def hidden(self) -> float:
        """The share of the characters of the held-out text that the tokens do not give back."""
        assert self.data.raw is not None
        return self.data.raw.hidden

    @property
    def tokens(self) -> str:
        """What the tokens are, such as "8,192 WordPieces"."""
        name, size = self.data.tokenizer.name, self.data.vocabulary.size
        given = name if name in ("characters", "bytes", "words") else f"tokens of {name}"
        return f"{size:,} {KINDS.get(name, given)}"

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

        They read the text as the tokens give it back, and their bits are spread over the characters of the raw text.
        The values are kept beside the counts of the text.
        """
        assert self.data.raw is not None
        train = self.data.stores["train"]
        key = digest([SEMANTICS, hashlib.sha256(np.ascontiguousarray(train.ids).data).hexdigest()])
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
        stores, raw = self.data.stores, self.data.raw
        rate = float(raw.characters_T.mean())  # characters of a token
        train = decode(sample_store(stores["train"], max(1, int(TRAINED / rate))), self.data.tokenizer)
        held_out = stores["validation"]
        numbered = MemoryStore(
            np.arange(held_out.tokens), held_out.word_start, held_out.sentence_start, held_out.document_start
        )
        sample = sample_store(numbered, max(1, int(ASKED / rate)))
        assert isinstance(sample, MemoryStore)
        asked = decode(replace(sample, ids=held_out.ids[sample.ids]), self.data.tokenizer)
        text = replace(
            self, characters=int(raw.characters_T[sample.ids].sum()), words=int(raw.words_T[sample.ids].sum())
        )
        bits = {"n-gram of characters": count_ngram_bits(train, asked), "xz": count_xz_bits(train, asked)}
        measured = {name: text.measure(each * math.log(2)) for name, each in bits.items()}
        return {metric: {name: values[metric] for name, values in measured.items()} for metric in PER_TEXT}


def decode(store: TokenStore | MemoryStore, tokenizer: Tokenizer) -> str:
    """The text of a store as its tokens give it back; an unknown token is U+FFFD."""
    edges = np.asarray(store.sentence_start)[1:-1]
    sentences = tokenizer.texts([ids_T.tolist() for ids_T in np.split(np.asarray(store.ids), edges)])
    unknown = str(tokenizer.backend.id_to_token(tokenizer.vocabulary.unk))
    return ("" if tokenizer.vocabulary.spaces else " ").join(sentences).replace(unknown, "\ufffd")


def find_predicted_text(examples: Examples, most: int, data: Data) -> PredictedText:
    """What the targets of at most `most` examples stand for; the text of `data` has been counted."""
    assert data.raw is not None
    place_P = find_target_places(examples, most)
    characters_T, words_T = data.raw.characters_T, data.raw.words_T
    return PredictedText(int(characters_T[place_P].sum()), int(words_T[place_P].sum()), data)


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
