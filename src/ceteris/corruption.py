"""A corruption is masking x view read x view written, a row of T5's table of objectives (arXiv 1910.10683, table 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ceteris.masking.prediction import marked, readings
from ceteris.noise import Noise
from ceteris.text import Marks, Text, Views


class Schedule(Protocol):
    """When noise is redrawn: the key of an epoch."""

    def __call__(self, epoch: int) -> int: ...


class Masking(Protocol):
    """Which tokens are noise."""

    semantics: ClassVar[int]

    @property
    def rate(self) -> float: ...  # of the tokens that are noise

    @property
    def predict(self) -> float | None: ...  # of the tokens that are predicted; None: all noise

    @property
    def by_words(self) -> bool: ...  # whether the text must tell where words start

    @property
    def schedule(self) -> Schedule: ...

    def __call__(self, text: Text, noise: Noise) -> Marks: ...

    def check(self, length: int) -> None:
        """Raise UserError where rows of `length` tokens would hold no prediction."""


class Encoding(Protocol):
    """One view of (text, marks); None where the noise is predicted in place."""

    semantics: ClassVar[int]

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Any) -> Text | None: ...


class Disorder(Protocol):
    """Tokens beside the noise are read in another order."""

    semantics: ClassVar[int]

    def __call__(self, views: Views, noise: Noise) -> Views: ...

    def rate(self, masked: float) -> float: ...  # expected share of the tokens that is out of order


@dataclass(frozen=True)
class Corruption:
    """Masking, then the two views, then `disorder` in what is read; `targets` None predicts in place."""

    masking: Masking
    inputs: Encoding
    targets: Encoding | None = None
    disorder: Disorder | None = None

    @property
    def readings(self) -> int:
        """How often each row is read: the views hold that many rows of it in turn."""
        return readings(self.masking.rate, self.masking.predict)

    @property
    def moved_rate(self) -> float:
        """The expected share of the tokens that is predicted out of order, beside the noise."""
        return 0.0 if self.disorder is None else self.disorder.rate(self.masking.rate)

    def __call__(self, text: Text, noise: Noise, vocabulary: Any) -> Views:
        text, noise, marks = marked(self.masking, text, noise)
        read = self.inputs(text, marks, noise, vocabulary)
        written = self.targets(text, marks, noise, vocabulary) if self.targets else None
        views = Views(text, marks, text if read is None else read, written)
        return views if self.disorder is None else self.disorder(views, noise)
