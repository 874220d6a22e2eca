"""Examples: store x input format x corruption x collator, as a pure function of (epoch, rows).

And statistics of their noise, measured on real batches and not taken from the config.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.collators.collator import Collator
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.prediction import predicted_rate
from paribus.data.formats.input_format import Index, InputFormat, Store, gather
from paribus.data.order import Order, Passes
from paribus.data.sequences import Array, Arrays, Views
from paribus.data.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data


SAMPLED: Final = 1000  # sentences that are searched for word starts
SEMANTICS: Final = 1  # raised when the frame of rows, a collator or the held-out evaluation changes
ROWS: Final = 256  # rows of a batch that is measured
EVALUATED: Final = 64  # rows of a batch that a network is evaluated on


class Stream(Passes, Protocol):
    """What pre-training reads: `Examples`, or a mixture of them and tasks."""

    @property
    def collator(self) -> Collator: ...

    @property
    def readings(self) -> int: ...

    def report(self, epoch: int) -> dict[str, float]: ...

    def batch(self, epoch: int, rows: ArrayLike) -> Arrays: ...

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[str, float]]: ...


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one split; an example's id is its number in the corpus' order.

    The content of a row depends only on (seed, keys of the epoch, row): not on other rows, the process or earlier
    calls.
    Raises UserError if `length` leaves nothing to predict, or if masking by words gets text without word starts.
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
            # of the first sentences: does any have a second word?
            sentence_start = np.asarray(self.store.sentence_start[: SAMPLED + 1])
            start_T = np.array(self.store.word_start[: sentence_start[-1]], np.bool_)
            inner_T = np.ones(len(start_T), np.bool_)
            inner_T[sentence_start[:-1][np.diff(sentence_start) > 0]] = False
            if inner_T.any() and not start_T[inner_T].any():
                raise UserError(
                    "this masking works on words, but the tokenizer does not report where words start",
                    "use masking=bernoulli or masking=subword_span, or another tokenizer",
                )

    @cached_property
    def raw(self) -> int:
        """Tokens of the rows that the input format cuts: more than `length` if the model reads less than the text."""
        return self.collator.raw_length(self.length, self.corruption)

    def size(self, epoch: int) -> int:
        """Examples in that pass."""
        return self._total(epoch)[0]

    def tokens(self, epoch: int) -> int:
        """Tokens that the pass puts through the model."""
        return self._total(epoch)[1]

    def report(self, epoch: int) -> dict[str, float]:
        """Statistics of that pass's sampling, such as the share of labels."""
        return self.index(epoch).report

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """There is one source."""
        return {}

    def index(self, epoch: int) -> Index:
        """The rows of that pass, as runs of store tokens."""
        return self._pass(epoch)[1]

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """int32 [N]: tokens each example puts through the model, specials included, padding excluded."""
        read_N = self.collator.read_lengths(self.index(epoch).length_N, self.corruption)
        return read_N * np.int32(self.readings)

    @property
    def thinned(self) -> bool:
        """Whether only part of the noise is predicted."""
        masking = self.corruption.masking
        return predicted_rate(masking.rate, masking.predict) < masking.rate

    @property
    def readings(self) -> int:
        """Rows that each example gives a batch."""
        return self.corruption.readings

    def views(self, epoch: int, rows: ArrayLike) -> Views:
        """The original, the noise and what is read and written of these rows, each row once per reading."""
        rows_B = np.asarray(rows, np.int64)
        input_key, index = self._pass(epoch)
        text = gather(self.store, index.segments(rows_B), len(rows_B), self.vocabulary)
        noise = Noise.of(self.seed, (input_key, self.corruption.masking.schedule(epoch)), rows_B)
        return self.corruption(text, noise, self.vocabulary)

    def batch(self, epoch: int, rows: ArrayLike) -> Arrays:
        """The rows as the collator's arrays."""
        return self.collator.pack(self.views(epoch, rows), self.vocabulary)

    def _pass(self, epoch: int) -> tuple[int, Index]:
        """The input format's key of the epoch and its index; two are kept, since a step may cross an epoch's end."""
        key = self.input.redraw(epoch)
        if key not in self._index:
            while len(self._index) > 1:
                self._index.pop(next(iter(self._index)))
            self._index[key] = self.input.index(self.store, self.raw, lambda ids: Noise.of(self.seed, (key,), ids))
        return key, self._index[key]

    def _total(self, epoch: int) -> tuple[int, int]:
        """(examples, tokens) of the pass, cached for every key."""
        key = self.input.redraw(epoch)
        if key not in self._totals:
            length_N = self.lengths(epoch)
            self._totals[key] = len(length_N), int(length_N.sum(dtype=np.int64))
        return self._totals[key]


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
        vocabulary = data.vocabulary
        if corruption.inputs.needs_counts:
            _ = vocabulary.count_V  # counted here, and not by every worker
        examples = Examples(
            store, input_format, corruption, collator or EncoderCollator(), vocabulary, seed, input_format.length
        )
        if examples.size(0):
            return examples
    raise UserError(f"the {split} split of the corpus holds no text", "give a larger corpus")


Streamed = TypeVar("Streamed", bound=Stream)


def marked_batch(order: Order[Streamed], epoch: int, rows: Array) -> Arrays:
    """The arrays of these rows, with the marks of their order."""
    marks = order.marks(epoch, rows)
    return {**order.examples.batch(epoch, rows), **({} if marks is None else marks._asdict())}


def evaluation_batches(examples: Examples, most: int) -> Iterator[Arrays]:
    """The arrays of at most `most` examples, as a network is evaluated on them: the first ones, row after row and with
    marks, if the input format's order has them continue each other; else spread over the pass (`spread_batches`).
    """
    order = examples.input.arrange(examples, examples.seed, 1, None)
    blocks = order.evaluation()
    if blocks is None:
        yield from spread_batches(examples, most)
        return
    for epoch, rows in islice(blocks, most):
        yield marked_batch(order, epoch, rows)


def spread_batches(examples: Examples, most: int) -> Iterator[Arrays]:
    """The arrays of at most `most` examples, evenly spaced over a pass, in batches of similar length."""
    size = examples.size(0)
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
    rows = rows[np.argsort(examples.lengths(0)[rows], kind="stable")]
    for at in range(0, len(rows), EVALUATED):
        yield examples.batch(0, rows[at : at + EVALUATED])


@dataclass
class Measured:
    """Counts of batches of one collator, added up."""

    collator: Collator
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, arrays: Arrays, vocabulary: Vocabulary) -> None:
        """Count a packed batch."""
        self.counts.update(arrays["counts"])
        self.counts.update(self.collator.count_shown(arrays, vocabulary))

    def rates(self) -> dict[str, float]:
        """The collator's rates from the counts so far."""
        return self.collator.rates(self.counts)


def measure(examples: Stream, vocabulary: Vocabulary, most: int = 4096, epoch: int = 0) -> dict[str, float]:
    """`Measured.rates` of at most `most` examples, evenly spaced over one pass, and statistics of its sampling."""
    size, total = examples.size(epoch), Measured(examples.collator)
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
    for at in range(0, len(rows), ROWS):
        total.add(examples.batch(epoch, rows[at : at + ROWS]), vocabulary)
    return {**total.rates(), **examples.report(epoch)}
