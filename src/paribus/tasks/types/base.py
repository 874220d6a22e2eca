"""The interface of task types: everything that fine-tuning needs to know about a kind of task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.models.heads.choices import Classifier, LinearClassifier
from paribus.tasks.examples import Example
from paribus.tasks.key_sentences import KINDS
from paribus.tasks.prompts import Fields

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch, Network
    from paribus.models.spec import ModelSpec
    from paribus.tasks.rows import TaskRows

LOSSES = ("label_smoothing", "focal")  # settings of the loss of classes
Pooler = dict[str, "Tensor"]  # the weights of a pre-trained pooler


class ProbeItems(NamedTuple):
    """What a probe learns and answers about a set: I items, such as words or texts, in the order of its rows.

    Attributes:
        label_I: int64 class numbers, or float values.
        kinds: of each item the word or text itself; a control task gives equal kinds equal labels.
        count_N: int64, how many items each row has.
    """

    label_I: Array
    kinds: list[str]
    count_N: Array


def find_unread_by_tokens(settings: FineTuning) -> list[str]:
    """Settings of fine-tuning that do not affect a head on every token: how a text is cut, and what summarizes a row,
    the only difference between linear and classifier.
    """
    kinds = {"head.pooler": Classifier, "head": LinearClassifier}
    unread = [name for name, kind in kinds.items() if isinstance(settings.head, kind)]
    return ["truncation", "format", "head.pooling", *unread]


class TaskType(ABC):
    """A light description that is made with the settings of the task. Methods that need torch import it.

    Attributes:
        metrics: the task's metrics, of `known_metrics`; the first is the main one.
        classes: names of the classes, if there are any.
        example_class: the kind of the examples.
        writes_text: whether the model writes its answers.
        trained: whether fine-tuning trains a model on the task; if not, the language model of pre-training answers.
        speaks: whether the head on tokens of pre-training answers.
        shortens: whether its texts may be cut to their key sentences.
        probed: whether probes can read it off the states of a layer: it then has the methods for probes below.
    """

    known_metrics: ClassVar[tuple[str, ...]]
    example_class: ClassVar[type] = Example
    writes_text: ClassVar[bool] = False
    trained: ClassVar[bool] = True
    speaks: ClassVar[bool] = False
    shortens: ClassVar[bool] = False
    probed: ClassVar[bool] = False
    classes: tuple[str, ...] = ()
    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        for key in ("classes", "metrics"):  # a saved task type has lists
            if key in vars(self):
                object.__setattr__(self, key, tuple(getattr(self, key)))

    def check(self, key: str) -> None:
        """Raise UserError, under the config key of the task, for settings that make no task."""
        unknown = [metric for metric in self.metrics if metric not in self.known_metrics]
        if unknown or not self.metrics:
            raise UserError(
                f"{key}.metrics: {', '.join(unknown)} is unknown" if unknown else f"{key}.metrics is empty",
                f"choose from {', '.join(self.known_metrics)}",
            )

    def check_classes(self, key: str) -> None:
        """Raise UserError if there are fewer than two classes, or one of them twice."""
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise UserError(f"{key}.classes={list(self.classes)} is not valid", "name at least two different classes")

    def config(self) -> dict[str, Any]:
        """The config node from which `build` makes an equal task type."""
        kind = type(self)
        return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **asdict(cast(Any, self))}

    def verbalize(self, fields: Fields, single: bool) -> TaskType:
        """The same task as text, for a text-to-text model; `fields` are the names that precede the texts, and
        `single` says that the model reads and writes one stream.

        Raises UserError if the task has no such form.
        """
        raise UserError(
            f"tasks.{fields.name} has no text-to-text form, but the model writes text", "set model=bert_tiny"
        )

    def fit(self, model: ModelSpec, key: str) -> TaskType:
        """The same task for an encoder. Raises UserError, under the config key of the task, if it cannot do it."""
        return self

    def row_length(self, settings: FineTuning) -> int:
        """Tokens of the longest row."""
        return settings.length

    def check_tokenizer(self, tokenizer: Tokenizer, settings: FineTuning) -> None:  # noqa: B027 (default: nothing)
        """Raise UserError if answers cannot be written with this tokenizer and these settings."""

    def find_unread(self, settings: FineTuning) -> list[str]:
        """Settings of fine-tuning that change nothing in this task, given the others: `head.pooling`, `focal`."""
        return ["target_length", "target_masking", "covers"]

    def check_settings(self, settings: FineTuning, key: str) -> None:
        """Raise UserError, under the config key of the task, for a setting that would do nothing."""
        if settings.truncation in KINDS and not self.shortens:
            cause = f"finetune.truncation={settings.truncation} is for labels of single texts, unlike {key}"
            raise UserError(cause, "set finetune.truncation=head, or leave the task out")
        usual = FineTuning(head=Classifier())
        for name in self.find_unread(settings):
            read = attrgetter(name)
            if read(settings) != read(usual):
                cause = f"finetune.{name} is set, but it does nothing in {key}"
                raise UserError(cause, f"leave finetune.{name} at its default, or leave the task out")

    def check_fit(self, settings: FineTuning, examples: Sequence[Any]) -> None:
        """Raise UserError if the settings use several rows per example and the task type has only one."""
        if settings.head.windows.several:
            raise UserError("finetune/head/windows is for tasks on whole texts", "set finetune/head/windows=none")
        if settings.head.paired:
            raise UserError("finetune/head=san is for tasks on pairs of texts", "set finetune/head=classifier")
        if settings.head.pairs:
            raise UserError("finetune/head=siamese is for tasks on pairs of texts", "set finetune/head=classifier")

    def check_ensemble(self, key: str) -> None:  # noqa: B027 (default: nothing)
        """Raise UserError, under the config key of the task, if the outputs of several models have no mean."""

    @abstractmethod
    def check_examples(self, rows: Sequence[Any], key: str) -> None:
        """Raise UserError for training examples from which nothing can be learned."""

    @abstractmethod
    def count_labels(self, rows: Sequence[Any]) -> dict[str, int]:
        """{label: number of examples}."""

    @abstractmethod
    def encode(
        self, examples: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> TaskRows:
        """Rows for the model; an example may have several. Numpy only.

        Raises UserError if `settings.length` leaves no room for text.
        """

    def fit_length(
        self, train: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> FineTuning:
        """The settings with the length that holds the share `covers` of the training texts, if they set one."""
        return settings

    @abstractmethod
    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """A new head on a model; its initial weights depend on seed, name and shape alone."""

    @abstractmethod
    def infer(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch) -> Sequence[Any] | Array:
        """What the model outputs for each row of a batch, as plain data or arrays."""

    @abstractmethod
    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[Any]) -> Sequence[Any] | Array:
        """A prediction for each example, from the outputs for all of its rows."""

    @abstractmethod
    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> dict[str, float]:
        """{metric: value}, given a prediction for each example."""

    @abstractmethod
    def predict_baselines(self, train: Sequence[Any], validation: Sequence[Any]) -> Mapping[str, Any]:
        """{baseline: predictions for validation} without a neural model."""

    def list_probed(self, rows: TaskRows, examples: Sequence[Any]) -> ProbeItems:
        """The items of a set that a probe answers about; this and the next method belong to types that are `probed`."""
        raise NotImplementedError

    def read_probed(self, state_BLD: Tensor, batch: Batch, summarize: Callable[[Tensor], Tensor]) -> Tensor:
        """[I, D]: what a probe reads of the states of a layer, for the items of a batch; `summarize` gives [B, D]."""
        raise NotImplementedError

    def predict_probed(self, value_I: Array, rows: TaskRows, examples: Sequence[Any]) -> Sequence[Any] | Array:
        """A prediction for each example, as `score` takes it, from a class number or value for each item."""
        return value_I


class Probable(ABC):
    """A task type whose right answers have a probability. An example has one row."""

    @abstractmethod
    def find_gold(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch, outputs: Any) -> Array:
        """float [B]: the probability of the right answer of each row, given what `infer` found."""

    @abstractmethod
    def find_right(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> Array:
        """bool [N]: which predictions are right."""
