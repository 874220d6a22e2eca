"""How many tokens of a row become noise, and the settings that every masking shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.data.text import Text

WHOLE = 1e-6  # a ratio of rates this near to a whole number is one


def check_rates(rate: Any, predict: Any) -> None:
    """Raise UserError for shares outside (0, 1), or a rate of prediction that no number of readings reaches."""
    for key, share in (("rate", rate), ("predict", predict)):
        if (key == "rate" or share is not None) and (not isinstance(share, int | float) or not 0 < share < 1):
            raise UserError(f"masking.{key}={share}", "give a share between 0 and 1, both excluded, such as 0.15")
    if predict is not None and predict > rate and abs(predict / rate - round(predict / rate)) > WHOLE:
        raise UserError(
            f"masking.predict={predict} is no multiple of masking.rate={rate}",
            "give a whole multiple (each row is then read so many times), or at most the rate",
        )


def check_cap(cap: Any) -> None:
    """Raise UserError for a bound on predictions below 1."""
    if cap is not None and (not isinstance(cap, int) or cap < 1):
        raise UserError(f"masking.max_predictions={cap}", "give a whole number, at least 1, or null")


def check_choice(key: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise UserError for a value that is none of the choices."""
    if value not in choices:
        raise UserError(f"masking.{key}={value}", f"choose {' or '.join(choices)}")


def check_rounding(rate: float | None, predict: float | None, length: int) -> None:
    """Raise UserError where a full row of `length` tokens rounds to no noise or no prediction; None is not asked."""
    for key, share in (("rate", rate), ("predict", predict)):
        if share is not None and round(share * length) < 1:
            raise UserError(
                f"masking.{key}={share} of input.length={length} tokens rounds to no prediction",
                f"raise masking.{key} to at least {1 / length:.3g}",
            )


def bert_budget(text: Text, rate: float, cap: int | None = None) -> NDArray[np.int64]:
    """int64 [B]: min(cap, max(1, round(rate * length))), specials counted in the length and halves rounded to even.

    Never more than are free.   BERT (arXiv 1810.04805), `create_pretraining_data.py`
    """
    wanted_B: NDArray[np.int64] = np.maximum(1, np.rint(rate * text.length_B)).astype(np.int64)
    if cap is not None:
        wanted_B = np.minimum(wanted_B, cap)
    possible_B: NDArray[np.int64] = np.minimum(wanted_B, np.count_nonzero(text.free_BL, axis=1))
    return possible_B


def spanbert_budget(free_B: NDArray[np.int64], rate: float) -> NDArray[np.int64]:
    """int64 [B]: ceil(rate * free tokens).   SpanBERT (arXiv 1907.10529), `masking.py`"""
    budget_B: NDArray[np.int64] = np.ceil(rate * free_B).astype(np.int64)
    return budget_B
