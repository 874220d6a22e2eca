"""What follows from a column's name: which way is better, how it is printed, and which arms it can compare.

A metric is registered in one place, by a module of this package; `common.py` has those of every table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from paribus.core.registry import Registry

POINT = 0.01  # one "point" of an accuracy-like metric, whose values lie in [0, 1]
MEAN = "mean"  # a column: the mean of a sweep's other task columns in points, seed by seed
LAYER = re.compile(r"_l\d+(?=_|$)")  # in the name of a metric: the layer that it is about
LOSS = "loss"  # what a search minimizes if it names no objective
MASKS = ("input", "masking", "objective", "mixture", "corpus", "tokenizer", "evaluation")
FAVORS = "this loss favors the arm that trained on its masks"


class Measurements(Protocol):
    """The numbers of a run's record, by name."""

    @property
    def metrics(self) -> Mapping[str, float | None]: ...

    @property
    def budget(self) -> Mapping[str, float]: ...

    @property
    def speed(self) -> Mapping[str, float]: ...

    @property
    def further(self) -> Mapping[str, Any]: ...


Read = Callable[[Measurements], float | None]


@dataclass(frozen=True)
class Metric:
    """A kind of column: those whose metric (`accuracy` of `sst2/accuracy`) ends with `name`; the longest name counts.

    Args:
        points: print values times 100; margins of claims are given in points.
        fixed: config keys that arms may not differ in if the column is to carry a claim, unless a task measures it.
        reason: why not, for the reader.
        pairs: an accuracy on the held-out pairs of segments.
        held_out: measured on held-out text even if a task is named, so that the model from scratch has none.
        read: how the column is read from a record that does not hold it among its metrics.
        foreign: of runs of another framework, which have neither a model from scratch nor our held-out text.
        held_out_loss: the loss of the held-out evaluation, in nats, such as `mlm_loss`. `mlm_perplexity` and
            `mlm_accuracy` are columns with it. Lower is better, and what favors an arm is fixed if nothing else is.
        whole: a column has this name, not only its end, as if `read` or `held_out_loss` is given.
        cost: what a run cost, which does not depend on what it learned: a run on its plateau counts.
        timed: a measured time or speed, which is another one when the run is repeated.

    Raises ValueError for a held-out loss whose name does not end with `_loss`.
    """

    name: str
    lower_is_better: bool = False
    points: bool = False
    decimals: int = 3
    fixed: tuple[str, ...] = ()
    reason: str = ""
    pairs: bool = False
    held_out: bool = False
    read: Read | None = None
    rank: int = 0
    foreign: bool = False
    held_out_loss: bool = False
    whole: bool = False
    cost: bool = False
    timed: bool = False

    def __post_init__(self) -> None:
        if not self.held_out_loss:
            return
        if not self.name.endswith(f"_{LOSS}"):
            raise ValueError(f"the held-out loss {self.name!r} has to end with _{LOSS}")
        object.__setattr__(self, "lower_is_better", True)
        if not self.fixed:
            object.__setattr__(self, "fixed", MASKS)
            object.__setattr__(self, "reason", FAVORS)


METRICS: Registry[Metric] = Registry("paribus.verdict.metrics")
_DECLARED: ContextVar[Mapping[str, Metric]] = ContextVar("declared")  # {column: what was declared of it}


@contextmanager
def declare(columns: Mapping[str, Metric]) -> Iterator[None]:
    """Within the block, these columns are what is declared of them, whatever follows from their names."""
    token = _DECLARED.set(columns)
    try:
        yield
    finally:
        _DECLARED.reset(token)


def find_metric(column: str) -> Metric:
    """The kind of a column. The layer that a probe reads and a task's further split follow the name of its metric, as
    in `perplexity_l3_test`.
    """
    if declared := _DECLARED.get({}).get(column):
        return declared
    name = LAYER.sub("", metric(column))
    kind = _longest(name)
    return kind if kind.name or "_" not in name else _longest(name.rpartition("_")[0])


def _longest(name: str) -> Metric:
    return max((kind for kind in METRICS.all() if name.endswith(kind.name)), key=lambda kind: len(kind.name))


def held_out_columns() -> dict[str, str]:
    """{column of the held-out evaluation: the loss that it belongs to}: `mlm_loss` for itself, `mlm_perplexity` and
    `mlm_accuracy`, then those of the other registered losses.
    """
    losses = [kind.name for kind in METRICS.all() if kind.held_out_loss]
    return {f"{name.removesuffix(LOSS)}{kind}": name for name in losses for kind in (LOSS, "perplexity", "accuracy")}


def held_out_loss(values: Mapping[str, float | None]) -> float | None:
    """The loss of the held-out evaluation among a run's metrics, whatever its head is."""
    return next((values[name] for name in held_out_columns().values() if name in values), None)


def whole_columns() -> list[str]:
    """The registered names that are those of columns, beside the ones of the held-out evaluation."""
    return [kind.name for kind in METRICS.all() if kind.whole or kind.read]


def metric(column: str) -> str:
    """The metric of a column: `accuracy` of `sst2/accuracy`."""
    return column.rsplit("/", 1)[-1]


def lower_is_better(column: str) -> bool:
    """Whether a smaller value is better, as of a loss."""
    return find_metric(column).lower_is_better


def in_points(column: str) -> bool:
    """Whether the column is printed times 100 and has its margins in points."""
    return find_metric(column).points


def write_value(column: str, value: float) -> str:
    """A value as tables print it: 5.123 for a loss in nats, 81.2 for an accuracy in points."""
    kind = find_metric(column)
    return f"{value / POINT if kind.points else value:.{kind.decimals}f}"


def is_task(column: str) -> bool:
    """Whether the column is the score of a task."""
    return "/" in column


def is_averaged(column: str) -> bool:
    """Whether the mean over tasks includes the column; those of single layers are not scores of a task."""
    single = LAYER.search(metric(column)) is not None and column not in _DECLARED.get({})
    return is_task(column) and in_points(column) and not lower_is_better(column) and not single


def is_score(column: str) -> bool:
    """Whether the column is the score of a task, or the mean of several, of runs that have a model from scratch."""
    kind = find_metric(column)
    return not kind.foreign and ((is_task(column) and not kind.held_out) or column == MEAN)


def is_pairs(column: str) -> bool:
    """Whether the column is an accuracy on the held-out pairs."""
    return find_metric(column).pairs


def is_controlled(column: str) -> bool:
    """Whether a verdict on the column asks what the arms gain over the model from scratch."""
    return is_score(column) or is_pairs(column)


def find_incomparable(column: str, varies: tuple[str, ...]) -> str | None:
    """Why a column of the held-out evaluation carries no claim if the arms vary in these keys, or None.

    The time at which masks are redrawn (`masking.schedule`) never counts: it changes neither masks nor inputs. The text
    of a later stage counts for its own held-out loss, not for what it makes the model forget. A key that holds whole
    stages may change all of that loss.
    """
    if is_score(column):
        return None
    kind = find_metric(column)
    for key in varies:
        dotted = key.replace("/", ".")
        if stage := re.fullmatch(r"stages(\.[^.]+(\.(.+))?)?", dotted):
            dotted = stage[3] or "corpus"
            if kind.held_out and dotted.startswith("corpus"):
                continue
        if not dotted.startswith("masking.schedule") and any(f"{dotted}.".startswith(f"{one}.") for one in kind.fixed):
            return f"no verdict: arms differ in {key}, and {kind.reason}"
    return None


def find_carrying(columns: Iterable[str], varies: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that can carry a claim if the arms vary in these keys."""
    return tuple(column for column in columns if find_incomparable(column, varies) is None)
