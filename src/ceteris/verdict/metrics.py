"""What the name of a column says about it: which way is better, in which unit it is read."""

from __future__ import annotations

POINT = 0.01  # one "point" of an accuracy-like metric, whose values lie in [0, 1]
COMMON = ("mlm_", "clm_")  # columns of the common evaluation objective, as against the scores of tasks

_LOWER = ("loss", "perplexity", "ppl", "error", "seconds")
_FAMILIES = ("input", "masking", "objective", "corpus", "tokenizer", "evaluation")  # what the common masks stand on


def metric(column: str) -> str:
    """The metric of a column: `accuracy` of `sst2/accuracy`."""
    return column.rsplit("/", 1)[-1]


def lower_is_better(column: str) -> bool:
    return metric(column).endswith(_LOWER)


def in_points(column: str) -> bool:
    """Whether the column is accuracy-like: printed times 100, its margins given in points."""
    return not lower_is_better(column)


def is_task(column: str) -> bool:
    return "/" in column


def incomparable(column: str, varies: tuple[str, ...]) -> str | None:
    """Why a column of the common evaluation carries no claim where the arms vary in these keys, or None.

    That loss favours the arm that trained on its mask distribution and input format; when masks are redrawn changes
    neither.
    """
    if is_task(column):
        return None
    for key in varies:
        dotted = key.replace("/", ".")
        if dotted.split(".")[0] in _FAMILIES and not dotted.startswith("masking.schedule"):
            return f"no verdict: arms differ in {key}, and this loss favours the arm that trained on its masks"
    return None
