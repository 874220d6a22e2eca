"""The head of a task as config choices: what it reads from a network, and what it computes from that.

`finetune/head` is the head itself. Groups below it choose what is between head and network: `finetune/head/layers`
(which states), `finetune/head/pooling` (what summarizes a row), `finetune/head/windows` (how a long text is read).
Torch is imported when a head is built. Initial weights depend on seed, name and shape alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.heads.layer_numbers import number_layers

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.models.heads.head import Head, RowLoss
    from paribus.models.network import Network

STD = 0.02  # of a head's initial weights
COMBINATIONS = ("concat", "mean", "max", "weighted")
POOLINGS = ("cls", "mean", "max", "sep", "cls_sep")
WINDOWS = ("max", "mean", "attention", "transformer")
PARTS = ("u", "v", "difference", "product")
COSINE = "cosine"


@dataclass(frozen=True)
class LastLayer:
    """The states after the last layer."""

    def check(self, depth: int) -> None:
        """Raise UserError for layers that a network of this depth does not have."""

    def find(self, depth: int) -> list[int]:
        """The layers that are read, as numbers from 0 to `depth`, sorted."""
        return [depth]

    def width(self, network: Network) -> int:
        """Of the states that the head reads."""
        return network.width

    def wrap(self, head: Head, network: Network) -> Head:
        """The head, on these states."""
        return head


@dataclass(frozen=True)
class Layers(LastLayer):
    """The states after the layers `read` (see `number_layers`), side by side (`concat`), averaged, reduced to their
    largest values, or summed with learned weights.   Sun et al. (arXiv 1905.05583), section 5.3.2

    `penalty` times the sum of the squared weights is added to the loss (ELMo's lambda).
    """

    read: int | str | Sequence[int] = field(metadata=within(-1000, 1000))
    combine: str = "concat"
    penalty: float = field(default=0.0, metadata=within(0, 10**6))
    unset_values: ClassVar[Mapping[str, Any]] = {"penalty": 0.0}

    def __post_init__(self) -> None:
        if self.combine not in COMBINATIONS:
            raise UserError(f"finetune.head.layers.combine={self.combine} is unknown", f"use {', '.join(COMBINATIONS)}")
        if self.penalty and self.combine != "weighted":
            cause = f"finetune.head.layers.penalty={self.penalty}, but combine={self.combine} learns no weights"
            raise UserError(cause, "set finetune/head/layers=weighted, or leave the penalty at 0")

    def check(self, depth: int) -> None:
        if len(self._number(depth)) == 1 and self.combine == "weighted":
            cause = "finetune/head/layers=weighted learns the weight of one layer, which changes nothing"
            raise UserError(
                cause, "give several, such as finetune.head.layers.read=all, or set finetune/head/layers=last"
            )

    def find(self, depth: int) -> list[int]:
        return sorted(self._number(depth))

    def _number(self, depth: int) -> list[int]:
        return number_layers(self.read, depth, "finetune.head.layers.read")

    def width(self, network: Network) -> int:
        return network.width * (len(self._number(network.depth)) if self.combine == "concat" else 1)

    def wrap(self, head: Head, network: Network) -> Head:
        from paribus.models.heads.wrappers import OnLayers

        network.require_layers("set finetune/head/layers=last")
        return OnLayers(self._number(network.depth), self.combine, self.penalty, head)


@dataclass(frozen=True)
class FirstToken:
    """What the model itself summarizes a row by: the state of [CLS] (of the last token if it reads left to right),
    unless its checkpoint says that it was trained with another pooling.
    """

    @property
    def reads_first(self) -> bool:
        """Whether nothing but [CLS] is read."""
        return type(self) is FirstToken

    def width(self, states: int) -> int:
        """Of the summary of states of this width."""
        return states

    def wrap(self, head: Head, trained: str, states: int, seed: int) -> Head:
        """The head, on these summaries; `trained`: the pooling that the model was trained with."""
        return head if trained == "cls" else Pooled(trained).wrap(head, trained, states, seed)


@dataclass(frozen=True)
class Pooled(FirstToken):
    """The mean of a row's states, their largest values, the first of them ([CLS]), the last ([SEP]) or these two
    side by side summarize it.
    """

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in POOLINGS:
            raise UserError(f"finetune.head.pooling.kind={self.kind} is unknown", f"use {', '.join(POOLINGS)}")

    @property
    def reads_first(self) -> bool:
        return self.kind == "cls"

    def width(self, states: int) -> int:
        return 2 * states if self.kind == "cls_sep" else states

    def wrap(self, head: Head, trained: str, states: int, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnPooled

        return OnPooled(self.kind, head)


@dataclass(frozen=True)
class TextCNN(FirstToken):
    """The largest values of new convolutions over a row's states summarize it (arXiv 1408.5882)."""

    def width(self, states: int) -> int:
        from paribus.models.heads.wrappers import OnTextCNN

        return OnTextCNN.width

    def wrap(self, head: Head, trained: str, states: int, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnTextCNN
        from paribus.models.network import initialize

        wrapped = OnTextCNN(states, head)
        initialize(wrapped.filters, seed, STD)
        return wrapped


@dataclass(frozen=True)
class OneRow:
    """A text is one row; the rest is cut off."""

    several: ClassVar[bool] = False  # whether an example has several rows
    in_order: ClassVar[bool] = False  # whether these are read one after the other, by a network that remembers

    def check(self, length: int) -> None:
        """Raise UserError for settings that do not fit rows of this length."""

    def wrap(self, head: Head, width: int, seed: int) -> Head:
        """The head, on summaries of this width of whole texts."""
        return head


@dataclass(frozen=True)
class Windows(OneRow):
    """A long text is read in windows of `finetune.length` tokens that begin `stride` apart (None: half a window).

    The summaries of at most `most` windows per text are reduced to their largest values or their mean, summed by
    learned attention, or averaged after one transformer layer.   Sun et al. (arXiv 1905.05583), section 5.3.1
    """

    kind: str
    stride: int | None = None
    most: int = 16
    several: ClassVar[bool] = True

    def check(self, length: int) -> None:
        room = length - 2
        if self.kind not in WINDOWS:
            raise UserError(f"finetune.head.windows.kind={self.kind} is unknown", f"use {', '.join(WINDOWS)}")
        if self.stride is not None and not 1 <= self.stride <= room:
            raise UserError(
                f"finetune.head.windows.stride={self.stride} does not fit windows of {room} tokens",
                f"give a number from 1 to {room}",
            )
        if self.most < 1:
            raise UserError(f"finetune.head.windows.most={self.most} is below 1", "give a whole number")

    def wrap(self, head: Head, width: int, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnWindows
        from paribus.models.network import initialize

        wrapped = OnWindows(self.kind, width, self.most, head)
        initialize(wrapped, seed, STD)
        return wrapped


@dataclass(frozen=True)
class MemoryWindows(OneRow):
    """A long text is read in at most `most` windows, in order, by a network with memory; the last one, which remembers
    those before it, summarizes the text.   XLNet (arXiv 1906.08237), section 2.4
    """

    most: int = field(default=16, metadata=within(1, 10**6))
    several: ClassVar[bool] = True
    in_order: ClassVar[bool] = True

    def wrap(self, head: Head, width: int, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnLastRow

        return OnLastRow(head)


@dataclass(frozen=True)
class Options(OneRow):
    """A row for each option of an example, whose scores are compared; a task type sets this."""

    def wrap(self, head: Head, width: int, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnOptions

        return OnOptions(head)


@dataclass(frozen=True)
class BothOrders(OneRow):
    """A pair in both orders, whose summaries are added (GPT-1, section 3.3); a task type sets this."""

    def wrap(self, head: Head, width: int, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnSum

        return OnSum(head)


class RowAnswer(NamedTuple):
    """What a task asks of a head about each example.

    Attributes:
        outputs: how many numbers the head gives.
        loss: of these numbers.
        span: least and most of the labels if they are values.
        pooler: weights of the pre-training's pooler, for a head that reads them.
    """

    outputs: int
    loss: RowLoss
    span: tuple[float, float] | None = None
    pooler: Mapping[str, Tensor] | None = None


@dataclass(frozen=True)
class TaskHead(ABC):
    """What all heads share: which states they read, what summarizes a row, how a long text is read, and dropout before
    the classifier.
    """

    layers: LastLayer = field(default_factory=LastLayer)
    pooling: FirstToken = field(default_factory=FirstToken)
    windows: OneRow = field(default_factory=OneRow)
    dropout: float = field(default=0.1, metadata=within(0, 1))
    pairs: ClassVar[bool] = False  # whether the texts of a pair are read apart
    paired: ClassVar[bool] = False  # whether it needs the two texts of a pair in one row

    @property
    def by_cosine(self) -> bool:
        """Whether the answer is the cosine of two texts."""
        return False

    @property
    def pretrained_pooler(self) -> bool:
        """Whether the pooler of the pre-training is read."""
        return False

    def check(self, depth: int, length: int) -> None:
        """Raise UserError for settings that do not fit a network of this depth, or inputs of this length."""
        self.layers.check(depth)
        self.windows.check(length)

    @abstractmethod
    def for_rows(self, network: Network, answer: RowAnswer, seed: int) -> Head:
        """A new head that answers so about each example."""

    def for_tokens(self, network: Network, make: Callable[[int], Head], seed: int) -> Head:
        """A new head that reads every token, made for states of a width."""
        from paribus.models.network import initialize

        head = make(self.layers.width(network))
        initialize(head, seed, STD)
        return self._on_states(head, network, seed)

    def _on_rows(self, head: Head, network: Network, seed: int) -> Head:
        """The head, with initial weights that do not depend on what is below, on the summaries of rows."""
        from paribus.models.network import initialize

        states = self.layers.width(network)
        whole = self.windows.wrap(head, self.pooling.width(states), seed)
        initialize(head, seed, STD)
        pooled = self.pooling.wrap(whole, self._default_pooling(network), states, seed)
        return self._on_states(pooled, network, seed)

    def _default_pooling(self, network: Network) -> str:
        """What summarizes a row if no pooling is chosen."""
        return network.spec.pooling

    def _on_states(self, head: Head, network: Network, seed: int) -> Head:
        """The head, on the states of the chosen layers."""
        return self.layers.wrap(head, network)


@dataclass(frozen=True)
class Classifier(TaskHead):
    """A pooler and a linear classifier on the summary of a row (BERT, arXiv 1810.04805, section 4.1).

    `pooler`: `fresh`, or `pretrained`, which takes the weights of the objective's head on pairs or of the checkpoint's
    pooler, as BERT does; it reads [CLS].
    """

    pooler: str = "fresh"

    def __post_init__(self) -> None:
        if self.pooler not in ("fresh", "pretrained"):
            raise UserError(f"finetune.head.pooler={self.pooler} is unknown", "use fresh or pretrained")
        if self.pretrained_pooler and (isinstance(self.layers, Layers) or not self.pooling.reads_first):
            raise UserError(
                "finetune.head.pooler=pretrained reads [CLS] of the last layer",
                "set finetune/head/layers=last finetune/head/pooling=own",
            )

    @property
    def pretrained_pooler(self) -> bool:
        return self.pooler == "pretrained"

    def _default_pooling(self, network: Network) -> str:
        return "cls" if self.pretrained_pooler else super()._default_pooling(network)

    def for_rows(self, network: Network, answer: RowAnswer, seed: int) -> Head:
        from paribus.models.heads.rows import ClassificationHead

        width = self.pooling.width(self.layers.width(network))
        classifier = ClassificationHead(width, answer.outputs, self.dropout, answer.loss)
        head = self._on_rows(classifier, network, seed)
        if answer.pooler is not None:
            classifier.pooler.load_state_dict(answer.pooler)
        return head


@dataclass(frozen=True)
class LinearClassifier(TaskHead):
    """A linear layer on the summary of a row, without a pooler (GPT-1, Radford et al. 2018, section 3.2)."""

    def for_rows(self, network: Network, answer: RowAnswer, seed: int) -> Head:
        from paribus.models.heads.rows import LinearHead

        width = self.pooling.width(self.layers.width(network))
        return self._on_rows(LinearHead(width, answer.outputs, self.dropout, answer.loss), network, seed)


@dataclass(frozen=True)
class BiLSTM(Classifier):
    """A classifier on a new BiLSTM over the states (BERT, arXiv 1810.04805, section 5.1).

    Unless a pooling is chosen, its last states summarize a row.
    """

    def _default_pooling(self, network: Network) -> str:
        return "cls"

    def _on_states(self, head: Head, network: Network, seed: int) -> Head:
        from paribus.models.heads.wrappers import OnBiLSTM
        from paribus.models.network import initialize

        below = OnBiLSTM(self.layers.width(network), head)
        initialize(below.lstm, seed, below.std)
        return super()._on_states(below, network, seed)


@dataclass(frozen=True)
class Siamese(TaskHead):
    """The two texts of a pair are read separately (Sentence-BERT, arXiv 1908.10084, section 3).

    `parts`: what a linear classifier reads of the embeddings u and v: [u, v, difference, product]; or `cosine`, which
    is then the answer itself.
    """

    parts: str | Sequence[str] = ("u", "v", "difference")
    pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.by_cosine and (not self.names or not set(self.names) <= set(PARTS)):
            raise UserError(
                f"finetune.head.parts={self.parts} is unknown", f"use {COSINE}, or a list of {', '.join(PARTS)}"
            )

    @property
    def by_cosine(self) -> bool:
        return self.parts == COSINE

    def check(self, depth: int, length: int) -> None:
        super().check(depth, length)
        if self.windows.several:
            raise UserError("finetune/head=siamese reads no windows", "set finetune/head/windows=none")

    @property
    def names(self) -> tuple[str, ...]:
        """What the classifier reads."""
        return (self.parts,) if isinstance(self.parts, str) else tuple(self.parts)

    def for_rows(self, network: Network, answer: RowAnswer, seed: int) -> Head:
        from paribus.models.heads.rows import Cosine, LinearHead, OnPairs
        from paribus.models.network import initialize

        states = self.layers.width(network)
        head: Head
        if self.by_cosine:
            head = Cosine(*(answer.span or (0.0, 1.0)))
        else:
            head = LinearHead(self.pooling.width(states) * len(self.names), answer.outputs, 0.0, answer.loss)
            initialize(head, seed, STD)
            head = OnPairs(self.names, answer.span is not None, head)
        pooled = self.pooling.wrap(head, self._default_pooling(network), states, seed)
        return self._on_states(pooled, network, seed)


@dataclass(frozen=True)
class StochasticAnswer(TaskHead):
    """Several turns over the first text of a pair refine an answer about the second (MT-DNN, arXiv 1901.11504, section
    3).

    Raises UserError for fewer than one turn, and for a share of dropped turns outside [0, 1).
    """

    turns: int = 5
    drop: float = 0.1
    paired: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise UserError(f"finetune.head.turns={self.turns} is below 1", "give a whole number")
        if not 0 <= self.drop < 1:
            raise UserError(f"finetune.head.drop={self.drop} is out of range", "give a share from 0 to below 1")

    def for_rows(self, network: Network, answer: RowAnswer, seed: int) -> Head:
        from paribus.models.heads.rows import AnswerHead
        from paribus.models.network import initialize

        width = self.layers.width(network)
        head = AnswerHead(width, answer.outputs, self.turns, self.drop, self.dropout, answer.loss)
        initialize(head, seed, lambda name: head.std if name.startswith("gru.") else STD)
        return self._on_states(head, network, seed)
