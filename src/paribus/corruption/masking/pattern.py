"""The base class of noise patterns, and the checks and budgets that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.core.settings import within
from paribus.data.mask_schedule import Dynamic, MaskSchedule
from paribus.data.sequences import Ints, Marks, Text

WHOLE = 1e-6  # a ratio of rates this near to a whole number is one


class NoiseCounts(NamedTuple):
    """Noise of one row; whole numbers if the pattern is `fixed`, means otherwise."""

    noise: float  # tokens
    spans: float


@dataclass(frozen=True)
class NoisePattern(ABC):
    """Decides which tokens of a row are noise. A pattern overrides what differs from these defaults.

    rate: share of the tokens that is noise. predict: share that is predicted; None predicts all noise. schedule: when
    the noise is drawn again.
    Raises UserError for a rate outside (0, 1), and for a `predict` that is neither below the rate nor a multiple of it.
    """

    rate: float = field(metadata=within(0, 1))
    predict: float | None = field(default=None, kw_only=True)
    schedule: MaskSchedule = field(default_factory=Dynamic, kw_only=True)
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, object]] = {"predict": None}
    fixed: ClassVar[bool] = False  # all rows of one length have equal counts
    spans: ClassVar[bool] = True  # noise comes in spans, not only as single tokens
    single_span: ClassVar[bool] = False  # the noise of a row is one span
    whole_row: ClassVar[bool] = False  # all tokens are noise
    inserts: ClassVar[bool] = False  # puts blanks (spans of no tokens) between the tokens
    rounds_up: ClassVar[bool] = False  # the budget is rounded up, so that every row has noise

    def __post_init__(self) -> None:
        shares = {"rate": self.rate} | ({} if self.predict is None else {"predict": self.predict})
        for key, share in shares.items():
            if not isinstance(share, int | float) or not 0 < share < 1:
                raise UserError(
                    f"masking.{key}={share} is out of range",
                    "give a share between 0 and 1, both excluded, such as 0.15",
                )
        ratio = 0 if self.predict is None else self.predict / self.rate
        if ratio > 1 and abs(ratio - round(ratio)) > WHOLE:
            raise UserError(
                f"masking.predict={self.predict} is not a multiple of masking.rate={self.rate}",
                "give a whole multiple (each row is then read that many times), or at most the rate",
            )

    @abstractmethod
    def __call__(self, text: Text, noise: Noise) -> Marks:
        """The marks of each row, drawn from the row's noise alone."""

    @property
    def by_words(self) -> bool:
        """Whether the pattern needs to know where words start."""
        return False

    @property
    def reorders(self) -> bool:
        """Whether the text is read in a different order."""
        return False

    @property
    def row_name(self) -> str:
        """The name in T5's tables, such as iid_15."""
        return f"{type(self).__name__.lower()}_{100 * self.rate:g}"

    def counts(self, raw: int) -> NoiseCounts:
        """Noise and spans of a row of `raw` tokens; by default those of independent single tokens."""
        return NoiseCounts(self.rate * raw, self.rate * (1 - self.rate) * (raw - 1) + self.rate)

    def check(self, length: int) -> None:
        """Raise UserError if a full row of `length` tokens rounds to no noise or no prediction."""
        for key, share in (("rate", None if self.rounds_up else self.rate), ("predict", self.predict)):
            if share is not None and round(share * length) < 1:
                raise UserError(
                    f"masking.{key}={share} of input.length={length} tokens rounds to no prediction",
                    f"raise masking.{key} to at least {1 / length:.3g}",
                )


def check_share(name: str, share: object) -> None:
    """Raise UserError for a share outside [0, 1]."""
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise UserError(f"{name}={share} is out of range", "give a share from 0 to 1")


def check_at_least_one(key: str, value: object, what: str = "a whole number") -> None:
    """Raise UserError for a setting that is not a whole number of at least 1."""
    if not isinstance(value, int) or value < 1:
        raise UserError(f"masking.{key}={value} is out of range", f"give {what}, at least 1")


def check_cap(cap: int | None) -> None:
    """Raise UserError for a limit on predictions below 1."""
    if cap is not None and (not isinstance(cap, int) or cap < 1):
        raise UserError(f"masking.max_predictions={cap} is out of range", "give a whole number, at least 1, or null")


def check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise UserError for a value that is not one of the choices."""
    if value not in choices:
        raise UserError(f"masking.{key}={value} is unknown", f"choose {' or '.join(choices)}")


def bert_budget(text: Text, rate: float, cap: int | None = None) -> Ints:
    """int64 [B]: min(cap, max(1, round(rate * length))), never more than the free tokens.

    The length counts special tokens, and halves round to even.   BERT (arXiv 1810.04805), `create_pretraining_data.py`
    """
    wanted_B: Ints = np.maximum(1, np.rint(rate * text.length_B)).astype(np.int64)
    if cap is not None:
        wanted_B = np.minimum(wanted_B, cap)
    possible_B: Ints = np.minimum(wanted_B, np.count_nonzero(text.free_BL, axis=1))
    return possible_B


def spanbert_budget(free_B: Ints, rate: float) -> Ints:
    """int64 [B]: ceil(rate * free tokens).   SpanBERT (arXiv 1907.10529), `masking.py`"""
    budget_B: Ints = np.ceil(rate * free_B).astype(np.int64)
    return budget_B
