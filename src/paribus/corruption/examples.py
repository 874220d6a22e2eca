"""Examples: store x input format x corruption x layout, as a pure function of (epoch, rows)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from paribus.core.build import build
from paribus.core.config import root_seed
from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import Encoder
from paribus.corruption.collators.encoder_decoder import EncoderDecoder
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.bernoulli import Bernoulli
from paribus.corruption.masking.none import NoNoise
from paribus.corruption.masking.prediction import predicted_rate
from paribus.corruption.protocols import Masking
from paribus.corruption.views.replace import Replace
from paribus.corruption.views.unchanged import Unchanged
from paribus.data.formats.segment_pair import SegmentPair
from paribus.data.formats.segments import Index, InputFormat, Store, gather
from paribus.data.order import Passes
from paribus.data.schedule import Static
from paribus.data.text import Arrays, Views

if TYPE_CHECKING:
    from omegaconf import DictConfig

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


def compose_examples(cfg: DictConfig, data: Data, split: str = "train") -> Examples:
    """The examples of a run: `input`, `masking` and the encodings of its `objective`, on one split of its data.

    Raises UserError for a split without an example, and for an objective that input, masking or model do not suit.
    """
    input_format, objective = build(cfg.input), build(cfg.objective)
    check_pairs(getattr(objective, "needs", None), getattr(input_format, "pairs", None))
    corruption = corruption_of(cfg.masking, cfg.objective)
    if corruption.targets is None:
        own = (getattr(objective, name, None) for name in ("shuffling", "attention_mask"))
        corruption = replace(corruption, shuffling=next(own), attention_mask=next(own))
    check_frame(corruption.targets is not None, getattr(input_format, "framed", True))
    attention = getattr(build(cfg.model), "attention", None) if "model" in cfg else None
    check_noise(objective, corruption.masking, attention)
    return _examples(data, split, input_format, corruption, root_seed(cfg), collator_of(cfg, corruption, objective))


def corruption_of(masking: Any, objective: Any) -> Corruption:
    """From config nodes: `objective.view` in place, or `objective.inputs` and `objective.targets`."""
    if "view" in objective:
        return Corruption(build(masking), build(objective.view))
    return Corruption(build(masking), build(objective.inputs), build(objective.targets))


def collator_of(cfg: DictConfig, corruption: Corruption, objective: Any = None) -> Collator:
    """What the model takes; of a model that states no `layout`, an encoder, what the objective reads.

    Where the config has no model of text-to-text kind, as when examples are only shown, an encoder-decoder is assumed.
    """
    model = build(cfg.model) if "model" in cfg else None
    stated: Collator | None = getattr(model, "collator", None) or getattr(objective, "collator", None)
    return stated or (Encoder() if corruption.targets is None else EncoderDecoder())


def check_frame(writes: bool, framed: bool) -> None:
    """Raise UserError where a text-to-text objective gets framed rows, or an encoder gets bare ones."""
    if writes and framed:
        raise UserError("a text-to-text objective reads raw windows, but input frames its rows", "take input=windows")
    if not framed and not writes:
        mend = "take input=full_sentences, or objective=denoising"
        raise UserError("input=windows has no frame for an objective in place", mend)


def check_pairs(needs: str | None, given: str | None) -> None:
    """Raise UserError where an objective that needs pairs (`next`, `order` or `three`) is not given such."""
    if needs is None or needs == given:
        return
    if given is None:
        raise UserError(
            "the objective predicts from pairs, but input gives single texts",
            f"take input=segment_pair or input=sentence_pair with input.pairs={needs}, or objective=mlm",
        )
    raise UserError(f"input.pairs={given}, but the objective predicts {needs}", f"set input.pairs={needs}")


def check_noise(objective: Any, masking: Masking, attention: str | None) -> None:
    """Raise UserError where nothing hides from the model what it predicts, or noise is not what the objective needs."""
    needed, noisy = getattr(objective, "attention", None), getattr(objective, "noisy", True)
    if needed not in (None, attention):
        if needed == "full":
            cause = f"the objective says itself who sees whom, but model.attention={attention}"
            raise UserError(cause, "set model.attention=full, or take objective=clm")
        raise UserError(
            f"the objective predicts each token from its left, but model.attention={attention} shows the token itself",
            f"set model.attention={needed} masking=none, or objective=mlm",
        )
    if noisy and not masking.rate:
        raise UserError("masking=none leaves the objective nothing to predict", "set masking=bernoulli, or another")
    if masking.rate and not noisy:
        raise UserError("the objective predicts all of the text and reads no noise", "set masking=none")
    if getattr(objective, "spans", False) and not getattr(masking, "spans", True):
        raise UserError(
            "the objective predicts spans from their boundaries, but masking gives single tokens",
            "set masking=geometric_span, or objective=mlm",
        )


def evaluation_examples(cfg: DictConfig, data: Data, split: str = "validation") -> Examples:
    """The common test, the same for every arm, one mask for ever under a seed of its own: exact budget and 80/10/10, or
    the `masking`, `inputs` and `targets` of the config's `evaluation`.

    Models that never see noise are asked for every token of the same text.
    Raises UserError for a split without an example.
    """
    own = cfg.evaluation
    if "masking" in own:
        corruption = corruption_of(own.masking, own)
        return _examples(data, split, build(own.input), corruption, int(own.seed), collator_of(cfg, corruption))
    if getattr(objective := build(cfg.objective), "noisy", True):
        return _examples(data, split, build(own.input), _common(own, Replace()), int(own.seed))
    whole = Corruption(NoNoise(Static()), Unchanged())
    return _examples(data, split, build(own.input), whole, int(own.seed), objective.collator)


def probe_examples(cfg: DictConfig, data: Data, pairs: str, split: str = "validation", masked: bool = True) -> Examples:
    """Segment pairs of the common test, the same for every arm of one `input.length`; `masked` as the common test is.

    Raises UserError for a split that allows no such pairs.
    """
    own = cfg.evaluation
    input_format = SegmentPair(int(cfg.input.length), pairs, short_seq_prob=0.0, redraw=Static())
    corruption = _common(own, Replace() if masked else Replace(mask=0.0, random=0.0, keep=1.0))
    return _examples(data, split, input_format, corruption, int(own.seed))


def _common(own: DictConfig, shown: Replace) -> Corruption:
    return Corruption(Bernoulli(own.rate, schedule=Static()), shown)


def _examples(
    data: Data,
    split: str,
    input_format: InputFormat,
    corruption: Corruption,
    seed: int,
    collator: Collator | None = None,
) -> Examples:
    store = data.stores.get(split)
    if store is not None:
        examples = Examples(
            store, input_format, corruption, collator or Encoder(), data.vocabulary, seed, input_format.length
        )
        if examples.size(0):
            return examples
    raise UserError(f"the {split} split of the corpus holds no text", "give a larger corpus")
