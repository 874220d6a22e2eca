"""Examples: store x input format x corruption x layout, as a pure function of (epoch, rows)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import Encoder
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.prediction import predicted_rate
from paribus.data.formats.segments import Index, InputFormat, Store, gather
from paribus.data.order import Passes
from paribus.data.text import Arrays, Views

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.data.tokens.vocabulary import Vocabulary


class Collator(Protocol):
    """Views as the arrays of one kind of architecture, and what follows from it for lengths and rates."""

    semantics: ClassVar[int]

    def pack(self, views: Views, vocabulary: Any) -> Arrays: ...

    def raw_length(self, budget: int, corruption: Corruption) -> int: ...  # of the rows that the input format cuts

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]: ...

    def predicted_share(self, raw: int, corruption: Corruption) -> float: ...  # of the tokens read

    def check(self, corruption: Corruption) -> None:
        """Raise UserError for a corruption that this kind of architecture cannot be trained on."""

    def shown(self, arrays: Arrays, vocabulary: Any) -> dict[str, int]: ...  # counts of how noise is shown

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]: ...  # what noise came out


class Stream(Passes, Protocol):
    """What pre-training reads: `Examples`, or these and others mixed."""

    @property
    def collator(self) -> Collator: ...

    @property
    def predicted_share(self) -> float: ...

    @property
    def readings(self) -> int: ...

    def report(self, epoch: int) -> dict[str, float]: ...

    def batch(self, epoch: int, rows: Any) -> Arrays: ...


SAMPLED: Final = 1000  # sentences in which word starts are looked for
SEMANTICS: Final = 1  # raised when the frame of rows, the layout or the common evaluation changes


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one split; an example's id is its number in the corpus' order.

    What a row holds depends on (seed, keys of the epoch, row) alone: not on the rows beside it, nor on the process, nor
    on earlier calls.
    Raises UserError where `length` leaves nothing to predict.
    """

    store: Store
    input: InputFormat
    corruption: Corruption
    collator: Collator
    vocabulary: Vocabulary
    seed: int
    length: int  # tokens the model reads, specials included
    _index: dict[int, Index] = field(default_factory=dict, init=False, repr=False, compare=False)
    _totals: dict[int, tuple[int, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.collator.check(self.corruption)
        self.corruption.masking.check(self.raw)
        self.corruption.check(self.raw, self.vocabulary)
        if self.corruption.masking.by_words:
            _check_words(self.store)

    @cached_property
    def raw(self) -> int:
        """Tokens of the rows that the input format cuts: more than `length` where less than the text is read."""
        return self.collator.raw_length(self.length, self.corruption)

    def size(self, epoch: int) -> int:
        """Examples in that pass."""
        return self._total(epoch)[0]

    def tokens(self, epoch: int) -> int:
        """Tokens that the pass puts through the model."""
        return self._total(epoch)[1]

    def report(self, epoch: int) -> dict[str, float]:
        """What the sampling of that pass gave, such as the share of labels."""
        return self._pass(epoch)[1].report

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """int32 [N]: tokens each example puts through the model, specials included, padding excluded."""
        read_N = self.collator.read_lengths(self._pass(epoch)[1].length_N, self.corruption)
        return read_N * np.int32(self.readings)

    @property
    def thinned(self) -> bool:
        """Whether only a part of the noise is predicted."""
        masking = self.corruption.masking
        return predicted_rate(masking.rate, masking.predict) < masking.rate

    @property
    def predicted_share(self) -> float:
        """Predictions for each token read, as the settings say."""
        return self.collator.predicted_share(self.raw, self.corruption)

    @property
    def readings(self) -> int:
        """Rows that each example gives a batch."""
        return self.corruption.readings

    def views(self, epoch: int, rows: Any) -> Views:
        """The original, the marks and what is read and written of these rows, each as often as it is read."""
        rows_B = np.asarray(rows, np.int64)
        input_key, index = self._pass(epoch)
        text = gather(self.store, index.segments(rows_B), len(rows_B), self.vocabulary)
        noise = Noise.of(self.seed, (input_key, self.corruption.masking.schedule(epoch)), rows_B)
        return self.corruption(text, noise, self.vocabulary)

    def batch(self, epoch: int, rows: Any) -> Arrays:
        """The rows as the layout's arrays."""
        return self.collator.pack(self.views(epoch, rows), self.vocabulary)

    def _pass(self, epoch: int) -> tuple[int, Index]:
        """The input's key of the epoch and its index; two are kept, since a step may cross the end of an epoch."""
        key = self.input.redraw(epoch)
        if key not in self._index:
            while len(self._index) > 1:
                self._index.pop(next(iter(self._index)))
            self._index[key] = self.input.index(self.store, self.raw, lambda ids: Noise.of(self.seed, (key,), ids))
        return key, self._index[key]

    def _total(self, epoch: int) -> tuple[int, int]:
        """(examples, tokens) of the pass, remembered for every key."""
        key = self.input.redraw(epoch)
        if key not in self._totals:
            length_N = self.lengths(epoch)
            self._totals[key] = len(length_N), int(length_N.sum(dtype=np.int64))
        return self._totals[key]


def _check_words(store: Store) -> None:
    """Raise UserError where no sentence of the store's beginning has a second word."""
    sentence_start = np.asarray(store.sentence_start[: SAMPLED + 1])
    start_T = np.array(store.word_start[: sentence_start[-1]], np.bool_)
    inner_T = np.ones(len(start_T), np.bool_)
    inner_T[sentence_start[:-1][np.diff(sentence_start) > 0]] = False
    if inner_T.any() and not start_T[inner_T].any():
        raise UserError(
            "masking by words, but the tokenizer tells no word starts: each sentence is a single word",
            "use masking=bernoulli or masking=subword_span, or another tokenizer",
        )


def open_examples(
    data: Data,
    split: str,
    input_format: InputFormat,
    corruption: Corruption,
    seed: int,
    collator: Collator | None = None,
) -> Examples:
    """The examples of one split; without a collator those of an encoder.

    Raises UserError for a split without an example.
    """
    store = data.stores.get(split)
    if store is not None:
        examples = Examples(
            store, input_format, corruption, collator or Encoder(), data.vocabulary, seed, input_format.length
        )
        if examples.size(0):
            return examples
    raise UserError(f"the {split} split of the corpus holds no text", "give a larger corpus")
