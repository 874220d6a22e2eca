"""Tasks in words beside corrupted text, as one stream of examples. Numpy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.hashing import digest
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, written_rows
from paribus.corruption.examples import Examples
from paribus.corruption.views.view import Ints
from paribus.data.order import Passes, StepPlan
from paribus.data.text import Arrays, Sequences, Text
from paribus.tasks.written import Written

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.tasks.mixtures.mixture import Mixture

TEXT = "text"  # the name of the corpus among the sources
DRAWN = "drawn_"  # before the name of a source, in the counts of a batch


class Views(NamedTuple):
    """What is read and what is written of rows, and what is counted of them besides."""

    read: Sequences | Text
    written: Sequences
    counts: Mapping[str, int]


class Source(Passes, Protocol):
    """One of several kinds of examples."""

    @property
    def predicted_share(self) -> float: ...

    def views(self, epoch: int, rows: Ints) -> Views: ...


@dataclass(frozen=True, eq=False)
class TextRows:
    """The text of the corpus under the noise of the objective."""

    examples: Examples

    @property
    def predicted_share(self) -> float:
        """See `Examples.predicted_share`."""
        return self.examples.predicted_share

    def size(self, epoch: int) -> int:
        """See `Examples.size`."""
        return self.examples.size(epoch)

    def tokens(self, epoch: int) -> int:
        """See `Examples.tokens`."""
        return self.examples.tokens(epoch)

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """See `Examples.lengths`."""
        return self.examples.lengths(epoch)

    def views(self, epoch: int, rows: Ints) -> Views:
        """See `Examples.views`."""
        views = self.examples.views(epoch, rows)
        raw, noise = int(views.text.length_B.sum()), len(views.marks.noise_P)
        counts = {"raw_tokens": raw, "noise": noise, "spans": views.marks.spans}
        return Views(views.inputs, written_rows(views), counts)


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The training examples of a task; all passes are the same."""

    rows: Written

    @property
    def predicted_share(self) -> float:
        """Tokens written for each token put through the model."""
        return float(self.rows.write.length_N.sum() / self.tokens(0))

    def size(self, epoch: int) -> int:
        """Examples of the task."""
        return len(self.rows.read.length_N)

    def tokens(self, epoch: int) -> int:
        """Tokens that all of them put through the model."""
        return int(self.lengths(epoch).sum(dtype=np.int64))

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """[N]: tokens that each puts through the model."""
        taken_N = self.rows.collator.model_lengths(self.rows.read.length_N, self.rows.write.length_N)
        return taken_N.astype(np.int32)

    def views(self, epoch: int, rows: Ints) -> Views:
        """The rows of these examples."""
        read, write = (ragged.sequences(rows, self.rows.pad, 1) for ragged in (self.rows.read, self.rows.write))
        return Views(read, write, {})


class Drawn(NamedTuple):
    """What a pass of a mixture reads (N rows)."""

    source_N: Ints  # place of the source
    epoch_N: Ints  # pass of that source
    row_N: Ints  # example in that pass
    length_N: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Mixed:
    """Sources of different kinds; pass e takes of each what step e of its own plan holds.

    So every example of a source is read once before any is read again, and what stands in a row is a pure function of
    the seed, the pass and the place in it. Raw tokens, noise and spans are counted of text alone.
    """

    plans: Mapping[str, StepPlan[Source]]  # by name of the source
    collator: EncoderDecoderCollator
    pad: int
    readings: int = 1
    _cached: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cached", lru_cache(maxsize=2)(self._draw))

    def __reduce__(self) -> Any:
        return Mixed, (self.plans, self.collator, self.pad)

    @property
    def predicted_share(self) -> float:
        """Predictions for each token put through the model, by the shares of the sources."""
        taken = [plan.size * plan.examples.tokens(0) / plan.examples.size(0) for plan in self.plans.values()]
        shares = [plan.examples.predicted_share for plan in self.plans.values()]
        return float(np.average(shares, weights=taken))

    def size(self, epoch: int) -> int:
        """Examples of a pass."""
        return sum(plan.size for plan in self.plans.values())

    def tokens(self, epoch: int) -> int:
        """Tokens that a pass puts through the model."""
        return int(self.lengths(epoch).sum(dtype=np.int64))

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """[N]: tokens that each example puts through the model."""
        length_N: NDArray[np.int32] = self._cached(epoch).length_N
        return length_N

    def report(self, epoch: int) -> dict[str, float]:
        """Nothing besides what batches count."""
        return {}

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """Of each source by the counts of a run: examples read, their share of all, passes over the source."""
        return {
            name: {
                "sequences": counts[DRAWN + name],
                "share": counts[DRAWN + name] / max(1, counts["sequences"]),
                "epochs": counts[DRAWN + name] / plan.examples.size(0),
            }
            for name, plan in self.plans.items()
        }

    def batch(self, epoch: int, rows: Any) -> Arrays:
        """The rows as the layout's arrays."""
        drawn, row_B = self._cached(epoch), np.asarray(rows, np.int64)
        source_B = drawn.source_N[row_B]
        pieces: list[tuple[Ints, Views]] = []
        counts = dict.fromkeys(("raw_tokens", "noise", "spans"), 0)
        for place, (name, plan) in enumerate(self.plans.items()):
            counts[DRAWN + name] = int((source_B == place).sum())
            for own in np.unique(drawn.epoch_N[row_B][source_B == place]):
                at_X = np.flatnonzero((source_B == place) & (drawn.epoch_N[row_B] == own))
                views = plan.examples.views(int(own), drawn.row_N[row_B[at_X]])
                pieces.append((at_X, views))
                counts |= {key: counts[key] + count for key, count in views.counts.items()}
        read = _joined([(at_X, views.read) for at_X, views in pieces], len(row_B), self.pad)
        written = _joined([(at_X, views.written) for at_X, views in pieces], len(row_B), self.pad)
        arrays = self.collator.join(read, written, self.pad)
        return {**arrays, "counts": {**counts, **_counts(arrays, int(written.length_B.sum()))}}

    def _draw(self, epoch: int) -> Drawn:
        columns: list[tuple[Ints, Ints, Ints, NDArray[np.int32]]] = []
        for place, plan in enumerate(self.plans.values()):
            for own, row_X in plan.blocks(epoch):
                of_X, in_X = np.full_like(row_X, place), np.full_like(row_X, own)
                columns.append((of_X, in_X, row_X, plan.examples.lengths(own)[row_X]))
        source_N, epoch_N, row_N, length_N = (np.concatenate(column) for column in zip(*columns, strict=True))
        return Drawn(source_N, epoch_N, row_N, length_N)


def _joined(pieces: list[tuple[Ints, Any]], rows: int, pad: int) -> Sequences:
    """Rows of several kinds, each at its place in the batch."""
    length_B = np.zeros(rows, np.int64)
    for at_X, part in pieces:
        length_B[at_X] = part.length_B
    ids_BL = np.full((rows, int(length_B.max())), pad, np.int64)
    for at_X, part in pieces:
        width = int(part.length_B.max())
        ids_BL[at_X, :width] = part.ids_BL[:, :width]
    return Sequences(ids_BL, length_B)


def _counts(arrays: Arrays, written: int) -> dict[str, int]:
    """What a batch holds, as the layouts count it."""
    taken = int(arrays["length_B"].sum())
    decoder = arrays["decoder_ids_BT"].size - written if "decoder_ids_BT" in arrays else 0
    return {
        "sequences": len(arrays["length_B"]),
        "input_tokens": taken,
        "target_tokens": written,
        "padding": arrays["ids_BL"].size - taken + decoder,
        "predicted": written,
    }


def mix(mixture: Mixture, text: Examples, rows: Mapping[str, Written], data: Data, seed: int) -> Mixed:
    """The text of a run and the tasks that the mixture puts beside it, by their training examples.

    Raises UserError if objective or tasks allow no mixture.
    """
    if TEXT in rows:
        raise UserError(f"tasks.{TEXT} has the name of the corpus in a mixture", "rename the task")
    collator = _collator(text)
    sources: dict[str, Source] = {TEXT: TextRows(text)} if mixture.denoising else {}
    sources |= {name: TaskRows(own) for name, own in rows.items()}
    counts = mixture.counts([source.size(0) for source in sources.values()])
    plans = {
        name: StepPlan(source, int(digest(["mixture", seed, name], 15), 16), count)
        for (name, source), count in zip(sources.items(), counts, strict=True)
    }
    return Mixed(plans, collator, data.vocabulary.pad)


def _collator(text: Examples) -> EncoderDecoderCollator:
    """Raise UserError if the objective writes nothing, or tokens at places that tasks do not have."""
    targets, collator = text.corruption.targets, text.collator
    if targets is None or not isinstance(collator, EncoderDecoderCollator):
        raise UserError("a mixture is of texts that are written", "take objective=denoising model=t5_tiny")
    if targets.in_place:
        raise UserError("objective/targets=fragment has places that tasks have not", "take other targets")
    return collator
