"""What the parts of a corruption must be able to do."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from paribus.core.noise import Noise
from paribus.data.schedule import Schedule
from paribus.data.text import Marks, Sequences, Text, Views


class Masking(Protocol):
    """Which tokens are noise.

    A masking whose rows all have equal counts says so by `fixed(raw) -> (noise tokens, spans)`; one with a name in T5's
    tables has `row`, such as span_3_15; `expected(raw)` gives the counts on average where they vary. One that reorders
    what is read, or puts blanks between, has `reorders` or `inserts` True; `single`: the noise of a row is one span;
    `whole`: all of it is noise.
    """

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
    """One view of (text, marks); None where the noise is predicted in place.

    Those of text-to-text objectives give `Sequences` and have a `letter`, as in T5's names, and `length(raw, noise,
    spans)`, the tokens of such a row.
    """

    semantics: ClassVar[int]

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Any) -> Text | Sequences | None: ...


class Shuffling(Protocol):
    """Tokens beside the noise are read in another order."""

    semantics: ClassVar[int]

    def __call__(self, views: Views, noise: Noise) -> Views: ...

    def rate(self, masked: float) -> float: ...  # expected share of the tokens that is out of order


class AttentionMask(Protocol):
    """What is read, with `rank_BL`: a place sees those of a rank not above its own."""

    semantics: ClassVar[int]

    def __call__(self, views: Views, noise: Noise) -> Views: ...
