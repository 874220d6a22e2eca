"""Objectives that train static word vectors: skip-gram, CBOW, fastText, GloVe and Bengio's language model.

They read rows without [CLS] and [SEP] (`input=windows`) and no noise (`masking=none`), and need a table of vectors
(`model=word_vectors`). Their examples are pure functions of seed, pass and row, as all examples are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import HeldOut, within
from paribus.corruption.collators.stream import StreamCollator
from paribus.corruption.collators.word_windows import (
    BagWindows,
    CountedWindows,
    NegativeWindows,
    PairWindows,
    WordWindows,
)
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.streams import Streams
from paribus.data.formats.windows import Windows
from paribus.data.mask_schedule import Dynamic, Static
from paribus.data.tokens.word_counts import count_neighbors, find_words
from paribus.objectives.spec import HeldOutText, ObjectiveSpec, RunSettings, Statistics

if TYPE_CHECKING:
    from paribus.corruption.masking.pattern import NoisePattern
    from paribus.data.tokens.prepare import Data
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec
    from paribus.objectives.evaluation import Evaluation
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class NearWords(ObjectiveSpec):
    """What objectives on words in windows share.

    Args:
        window: the largest distance, in words that are kept.
    """

    window: int = field(default=5, metadata=within(1, 1000))
    semantics: ClassVar[int] = 1
    predicts_noise: ClassVar[bool] = False
    framed: ClassVar[bool] = False
    needs_static: ClassVar[bool] = True

    @property
    @abstractmethod
    def collator(self) -> WordWindows:
        """The windows."""

    @property
    @abstractmethod
    def loss_name(self) -> str:
        """The name of the head, which its metric carries."""

    @abstractmethod
    def head(self, network: Network) -> Head:
        """The head, before initial weights are drawn."""

    def corruption(self, masking: NoisePattern) -> Corruption:
        """None of the text is noise; what is drawn about it is drawn anew in every pass."""
        return Corruption(masking if masking.rate else NoNoise(schedule=Dynamic()), Unchanged())

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.objectives.objective import Objective

        self.check_words(vocabulary)
        return Objective({self.loss_name: self.head(network)})

    def check_words(self, vocabulary: Vocabulary) -> None:
        """Raise UserError for a vocabulary without counts, or without two words."""
        if int(find_words(vocabulary).sum()) < 2:
            raise UserError("the training text has fewer than two known words", "give more text")

    def held_out(self, settings: HeldOut) -> HeldOutText:
        corruption = Corruption(NoNoise(schedule=Static()), Unchanged())
        return HeldOutText(Windows(settings.input.length), corruption, self.collator, "words near each other")

    def evaluations(self, run: RunSettings, data: Data) -> Sequence[Evaluation]:
        """The loss on held-out text, under fixed draws."""
        from paribus.corruption.examples import open_examples
        from paribus.objectives.near_words import HeadLoss

        text, settings = self.held_out(run.evaluation), run.evaluation
        given = (text.input, text.corruption, settings.seed, text.collator)
        examples = open_examples(data, "validation", *given)
        return (HeadLoss(examples, settings.examples, self.loss_name, text.targets),)


@dataclass(frozen=True)
class NegativeSampling(NearWords):
    """Objectives with negative samples.

    Args:
        negatives: words that are drawn for each prediction.
        sample: words with a larger share of the text than about this are thinned; null: none are.
        power: negatives are drawn by count ** power.
    """

    negatives: int = field(default=5, metadata=within(1, 10**4))
    sample: float | None = field(default=1e-3, metadata=within(0, 1))
    power: float = field(default=0.75, metadata=within(0, 10))

    def __post_init__(self) -> None:
        if self.sample is not None and not self.sample > 0:
            raise UserError(f"objective.sample={self.sample} keeps no word", "give a share such as 1e-3, or null")

    def check_words(self, vocabulary: Vocabulary) -> None:
        """Also for more negatives than there are other words."""
        super().check_words(vocabulary)
        words = int(find_words(vocabulary).sum())
        if self.negatives >= words:
            cause = f"objective.negatives={self.negatives}, but the vocabulary has {words} words"
            raise UserError(cause, "set objective.negatives=5, or raise tokenizer.vocab_size")

    def settings(self) -> tuple[int, float | None, bool, int, float]:
        """The first arguments of the collators."""
        return self.window, self.sample, True, self.negatives, self.power

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        return statistics.predicted * 2.0 * (1 + self.negatives) * model.hidden


@dataclass(frozen=True)
class SkipGram(NegativeSampling):
    """Each word predicts those near it (Mikolov et al., arXiv 1301.3781, section 3.2; negative samples: arXiv
    1310.4546, section 2.2). As in `word2vec.c` the word near predicts the center; over a text that is the same.
    """

    semantics: ClassVar[int] = 1
    loss_name: ClassVar[str] = "skip_gram"

    @property
    def collator(self) -> NegativeWindows:
        return PairWindows(*self.settings())

    def head(self, network: Network) -> Head:
        from paribus.models.heads.word_vectors import NegativeSamples

        return NegativeSamples(network)


@dataclass(frozen=True)
class FastText(SkipGram):
    """The same as `fasttext.cc` has it: the center predicts the word near it, negatives are drawn by count ** 0.5 and
    drawn again if they are the target, and more words are thinned. With `model=subword_vectors` it is fastText (arXiv
    1607.04606).
    """

    sample: float | None = field(default=1e-4, metadata=within(0, 1))
    power: float = field(default=0.5, metadata=within(0, 10))
    semantics: ClassVar[int] = 1
    loss_name: ClassVar[str] = "fasttext"

    @property
    def collator(self) -> NegativeWindows:
        return PairWindows(*self.settings(), redraw=True, center_reads=True)


@dataclass(frozen=True)
class Cbow(NegativeSampling):
    """The words near a word predict it together (arXiv 1301.3781, section 3.1).

    Args:
        undivided: each of them gets the whole gradient of their mean, as in `word2vec.c`; if not, its share.
    """

    undivided: bool = True
    semantics: ClassVar[int] = 1
    loss_name: ClassVar[str] = "cbow"

    @property
    def collator(self) -> NegativeWindows:
        return BagWindows(*self.settings())

    def head(self, network: Network) -> Head:
        from paribus.models.heads.word_vectors import BagOfWords

        return BagOfWords(network, self.undivided)


@dataclass(frozen=True)
class Glove(NearWords):
    """The logarithms of how often words stand near each other in the training text (Pennington et al. 2014), as sums of
    1 / distance within a document. The vectors that the training leaves are the sums of both tables.

    One pass over the text is one over the counts: see `CountedWindows`.

    Args:
        x_max: counts above it weigh no more.
        power: of count / x_max, the weight of smaller ones.
    """

    window: int = field(default=15, metadata=within(1, 1000))
    x_max: float = field(default=100.0, metadata=within(1e-6, 10**9))
    power: float = field(default=0.75, metadata=within(0, 10))
    semantics: ClassVar[int] = 1
    loss_name: ClassVar[str] = "glove"

    @property
    def collator(self) -> WordWindows:
        return CountedWindows(self.window, None, False)

    def check_words(self, vocabulary: Vocabulary) -> None:
        """Also for a text without two words near each other."""
        super().check_words(vocabulary)
        count_neighbors(vocabulary.text, vocabulary, 1)

    def head(self, network: Network) -> Head:
        from paribus.models.heads.word_vectors import GloVe

        return GloVe(network, self.x_max, self.power)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.objectives.near_words import GloveObjective

        self.check_words(vocabulary)
        return GloveObjective({self.loss_name: self.head(network)})

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        return statistics.predicted * 2.0 * model.hidden


@dataclass(frozen=True)
class NeuralLM(ObjectiveSpec):
    """Predict each word of the text from the `order` - 1 before it in its row (Bengio et al. 2003). The held-out
    evaluation asks what `objective=stream_lm` is asked.

    Args:
        order: n of the n-gram.
        hidden: width of the hidden layer.
        direct: whether the vectors also reach the output directly (W in the paper).
    """

    order: int = field(default=5, metadata=within(2, 1000))
    hidden: int = field(default=100, metadata=within(1, 10**6))
    direct: bool = True
    semantics: ClassVar[int] = 1
    predicts_noise: ClassVar[bool] = False
    predicts_text: ClassVar[bool] = True
    framed: ClassVar[bool] = False
    needs_static: ClassVar[bool] = True

    @property
    def collator(self) -> StreamCollator:
        return StreamCollator()

    def corruption(self, masking: NoisePattern) -> Corruption:
        return Corruption(masking, Unchanged())

    def held_out(self, settings: HeldOut) -> HeldOutText:
        corruption = Corruption(NoNoise(schedule=Static()), Unchanged())
        targets = "every token of the stream but its first"
        return HeldOutText(Streams(settings.input.length), corruption, StreamCollator(), targets)

    def compose(self, network: Network, vocabulary: Vocabulary) -> Objective:
        from paribus.models.heads.word_vectors import NeuralLM as Head
        from paribus.objectives.objective import Objective

        return Objective({"clm": Head(network, self.order - 1, self.hidden, self.direct)})

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        read = (self.order - 1) * model.hidden
        outputs = statistics.vocabulary * (self.hidden + read * self.direct)
        return statistics.predicted * 2.0 * (read * self.hidden + outputs)
