"""What the name of a column says about it: which way is better, in which unit it is read."""

from __future__ import annotations

POINT = 0.01  # one "point" of an accuracy-like metric, whose values lie in [0, 1]
COMMON = ("mlm_", "clm_", "denoising_")  # columns of the held-out evaluation, as against the scores of tasks

_LOWER = ("loss", "perplexity", "ppl", "error", "seconds", "unknown_rate")
# what the common masks stand on
_FAMILIES = ("input", "masking", "objective", "mixture", "corpus", "tokenizer", "evaluation")

_OWN = ("nsp_accuracy", "sop_accuracy", "sentence_accuracy")  # of a model's own head on the common pairs
_PROBED = "_probe_accuracy"  # of a classifier trained on its frozen states
_PAIRED = ("corpus", "tokenizer", "evaluation", "input.length")  # what the common pairs stand on
_MASKS = ("masking", "objective.view")
_WHY = {False: "this loss favors the arm that trained on its masks", True: "they are not asked about the same pairs"}


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
    """Why a column of the held-out evaluation carries no claim where the arms vary in these keys, or None.

    Its loss favors the arm that trained on its mask distribution and input format; when masks are redrawn changes
    neither.

    Accuracies on pairs (NSP, SOP) are another matter: all arms answer about the same segments, whatever text they were
    trained on, so that input and objective may vary, as in ALBERT's table 5. A trained probe has its encoder read them
    without masks, so that masks may vary too; a model's own head reads them under the common masks, so that they may
    not. What the pairs are made of may vary for neither: the text, the tokenizer, the evaluation, and `input.length`,
    to which segments are filled. That what an arm trained on helps it to answer is what such a column is to show; it
    is no fair scale for how good an encoder is.
    """
    if is_task(column):
        return None
    for key in varies:
        dotted = key.replace("/", ".")
        if not dotted.startswith("masking.schedule") and _touches(column, dotted):
            return f"no verdict: arms differ in {key}, and {_WHY[is_pairs(column)]}"
    return None


def is_pairs(column: str) -> bool:
    """Whether the column is an accuracy on the common pairs."""
    return column.endswith((*_OWN, _PROBED))


def _touches(column: str, key: str) -> bool:
    """Whether arms that differ in `key` are not asked the same."""
    if not is_pairs(column):
        return key.split(".")[0] in _FAMILIES
    masks = () if column.endswith(_PROBED) else _MASKS
    return any(f"{key}.".startswith(f"{part}.") for part in (*_PAIRED, *masks))
