"""Examples: store x input format x corruption x layout, as a pure function of (epoch, rows)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ceteris.corruption import Corruption
from ceteris.encodings.replace import Replace
from ceteris.errors import UserError
from ceteris.inputs.pieces import Index, InputFormat, Store, gather
from ceteris.layouts.encoder import Encoder
from ceteris.masking.bernoulli import Bernoulli
from ceteris.masking.schedule import Static
from ceteris.noise import Noise
from ceteris.text import Array, Arrays, Views

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ceteris.tokens.prepare import Data
    from ceteris.tokens.vocabulary import Vocabulary


class Layout(Protocol):
    """Views as the arrays of one kind of architecture."""

    semantics: int

    def pack(self, views: Views, vocabulary: Any) -> Arrays: ...


@dataclass(frozen=True)
class Examples:
    """The examples of one split; an example's id is its number in the corpus' order.

    What a row holds depends on (seed, epoch's keys, row) alone: not on the rows beside it, the process or earlier calls.
    Raises UserError where `length` leaves nothing to predict.
    """

    store: Store
    input: InputFormat
    corruption: Corruption
    layout: Layout
    vocabulary: Vocabulary
    seed: int
    length: int  # tokens the model reads, specials included
    _index: dict[int, Index] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.corruption.masking.check(self.length)

    def size(self, epoch: int) -> int:
        """Examples in that pass."""
        return len(self.lengths(epoch))

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """int32 [N]: tokens each example puts through the model, specials included, padding excluded."""
        return self._pass(epoch)[1].length_N

    def views(self, epoch: int, rows: Any) -> Views:
        """The original, the marks and what is read and written of these rows."""
        rows_B = np.asarray(rows, np.int64)
        input_key, index = self._pass(epoch)
        text = gather(self.store, index.pieces(rows_B), len(rows_B), self.vocabulary)
        noise = Noise.of(self.seed, (input_key, self.corruption.masking.schedule(epoch)), rows_B)
        return self.corruption(text, noise, self.vocabulary)

    def batch(self, epoch: int, rows: Any) -> Arrays:
        """The rows as the layout's arrays."""
        return self.layout.pack(self.views(epoch, rows), self.vocabulary)

    def _pass(self, epoch: int) -> tuple[int, Index]:
        """The input's key of the epoch and its index; the last index is kept."""
        key = self.input.redraw(epoch)
        if key not in self._index:
            self._index.clear()
            self._index[key] = self.input.index(self.store, self.length, lambda ids: Noise.of(self.seed, (key,), ids))
        return key, self._index[key]


@dataclass(frozen=True)
class FirstDocuments:
    """The leading documents of a store: as few as hold `tokens` tokens, or all of them."""

    store: Store
    tokens: int

    @property
    def document_start(self) -> Array:
        starts = self.store.document_start
        edge_D = self.store.sentence_start[starts]
        return starts[: int(np.searchsorted(edge_D, min(self.tokens, int(edge_D[-1])))) + 1]

    @property
    def sentence_start(self) -> Array:
        return self.store.sentence_start[: int(self.document_start[-1]) + 1]

    @property
    def ids(self) -> Array:
        return self.store.ids

    @property
    def word_start(self) -> Array:
        return self.store.word_start


def compose_examples(cfg: DictConfig, data: Data, split: str = "train") -> Examples:
    """The examples of a run: `input`, `masking` and `objective.encoding` of its config, on one split of its data.

    `trainer.train_tokens` keeps only the first documents of the training split.
    Raises UserError for a split without an example.
    """
    from hydra.utils import instantiate

    store, limit = data.stores[split], cfg.trainer.train_tokens
    corruption = Corruption(instantiate(cfg.masking), instantiate(cfg.objective.encoding))
    if split == "train" and limit is not None:
        store = FirstDocuments(store, int(limit))
    return _some(
        Examples(store, instantiate(cfg.input), corruption, Encoder(), data.vocabulary, int(cfg.seed), cfg.input.length),
        split,
    )


def evaluation_examples(cfg: DictConfig, data: Data, split: str = "validation") -> Examples:
    """The common test, the same for every arm: exact budget, 80/10/10, one mask for ever under the evaluation's own seed.

    Raises UserError for a split without an example.
    """
    from hydra.utils import instantiate

    own = cfg.evaluation
    corruption = Corruption(Bernoulli(own.rate, schedule=Static()), Replace())
    form: InputFormat = instantiate(own.input)
    return _some(Examples(data.stores[split], form, corruption, Encoder(), data.vocabulary, own.seed, form.length), split)


def _some(examples: Examples, split: str) -> Examples:
    if not examples.size(0):
        raise UserError(f"the {split} split holds no example", "give a larger corpus or another share of validation")
    return examples


@dataclass
class Realised:
    """What noise came out, not what was asked for: add the counts of batches, read the rates."""

    totals: dict[str, int] = field(default_factory=dict)

    def add(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self.totals[name] = self.totals.get(name, 0) + count

    def rates(self) -> dict[str, float]:
        """Shares of what was added: of text tokens that are noise (masking_rate), of all tokens read that are predicted
        (predicted_share), of noise shown as mask, random token or itself, of positions that are padding; tokens a span.
        """
        counts = self.totals
        noise = max(counts.get("predicted", 0), 1)
        return {
            "masking_rate": counts["predicted"] / max(counts["raw_tokens"], 1),
            "predicted_share": counts["predicted"] / max(counts["input_tokens"], 1),
            "mask": counts["masked"] / noise,
            "random": counts["randomised"] / noise,
            "keep": counts["kept"] / noise,
            "padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1),
            "mean_span_length": counts["predicted"] / max(counts["spans"], 1),
        }
