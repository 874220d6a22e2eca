"""Task examples in words and corrupted text as one stream of pre-training examples. Numpy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paribus.core.checksums import digest
from paribus.core.errors import UserError
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, written_rows
from paribus.corruption.examples import Examples
from paribus.data.order import Passes, StepPlan
from paribus.data.sequences import Arrays, Ints, Sequences, Text
from paribus.tasks.prompts import TextRows

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.tasks.mixtures import Mixture

TEXT = "text"  # the name of the corpus among the sources
DRAWN = "drawn_"  # before the name of a source, in the counts of a batch


class SourceViews(NamedTuple):
    """What the model reads and writes of some rows, and further counts of them."""

    read: Sequences | Text
    written: Sequences
    counts: Mapping[str, int]


class MixtureSource(Passes, Protocol):
    """One of several kinds of examples."""

    def views(self, epoch: int, rows: Ints) -> SourceViews: ...


@dataclass(frozen=True, eq=False)
class TextSource:
    """The text of the corpus under the noise of the objective."""

    examples: Examples

    def size(self, epoch: int) -> int:
        return self.examples.size(epoch)

    def tokens(self, epoch: int) -> int:
        return self.examples.tokens(epoch)

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        return self.examples.lengths(epoch)

    def views(self, epoch: int, rows: Ints) -> SourceViews:
        views = self.examples.views(epoch, rows)
        raw, noise = int(views.text.length_B.sum()), len(views.marks.noise_P)
        counts = {"raw_tokens": raw, "noise": noise, "spans": views.marks.spans}
        return SourceViews(views.inputs, written_rows(views), counts)


@dataclass(frozen=True, eq=False)
class TaskSource:
    """The training examples of a task; all passes are the same."""

    rows: TextRows

    def size(self, epoch: int) -> int:
        return len(self.rows.read.length_N)

    def tokens(self, epoch: int) -> int:
        return int(self.lengths(epoch).sum(dtype=np.int64))

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        taken_N = self.rows.collator.model_lengths(self.rows.read.length_N, self.rows.write.length_N)
        return taken_N.astype(np.int32)

    def views(self, epoch: int, rows: Ints) -> SourceViews:
        read, write = (ragged.pad(rows, self.rows.pad, 1) for ragged in (self.rows.read, self.rows.write))
        return SourceViews(read, write, {})


class Drawn(NamedTuple):
    """The rows of a pass of a mixture (N rows)."""

    source_N: Ints  # place of the source
    epoch_N: Ints  # pass of that source
    row_N: Ints  # example in that pass
    length_N: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Mixed:
    """Sources of different kinds; pass e takes from each source step e of its own plan.

    So every example of a source is read once before any is read again, and each row is a pure function of the seed, the
    pass and its place. Raw tokens, noise and spans count text only. A batch mixes sources and has one head; see
    `tasks.text_stream` for batches that name their task.
    """

    plans: Mapping[str, StepPlan[MixtureSource]]  # by name of the source
    collator: EncoderDecoderCollator
    pad: int
    readings: int = 1
    _cached: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cached", lru_cache(maxsize=2)(self._draw))

    def __reduce__(self) -> Any:
        return Mixed, (self.plans, self.collator, self.pad)

    def size(self, epoch: int) -> int:
        return sum(plan.size for plan in self.plans.values())

    def tokens(self, epoch: int) -> int:
        """Tokens that the model processes in a pass."""
        return int(self.lengths(epoch).sum(dtype=np.int64))

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        """[N]: tokens that the model processes of each example."""
        length_N: NDArray[np.int32] = self._cached(epoch).length_N
        return length_N

    def report(self, epoch: int) -> dict[str, float]:
        """Nothing that batches do not count."""
        return {}

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """For each source, from the counts of a run: examples read, their share of all, passes over the source."""
        return {
            name: {
                "sequences": counts[DRAWN + name],
                "share": counts[DRAWN + name] / max(1, counts["sequences"]),
                "epochs": counts[DRAWN + name] / plan.examples.size(0),
            }
            for name, plan in self.plans.items()
        }

    def batch(self, epoch: int, rows: ArrayLike) -> Arrays:
        """The rows as the collator's arrays."""
        drawn, row_B = self._cached(epoch), np.asarray(rows, np.int64)
        source_B = drawn.source_N[row_B]
        parts: list[tuple[Ints, SourceViews]] = []
        counts = dict.fromkeys(("raw_tokens", "noise", "spans"), 0)
        for place, (name, plan) in enumerate(self.plans.items()):
            counts[DRAWN + name] = int((source_B == place).sum())
            for turn in np.unique(drawn.epoch_N[row_B][source_B == place]):
                at_X = np.flatnonzero((source_B == place) & (drawn.epoch_N[row_B] == turn))
                views = plan.examples.views(int(turn), drawn.row_N[row_B[at_X]])
                parts.append((at_X, views))
                counts |= {key: counts[key] + count for key, count in views.counts.items()}
        read = _merge([(at_X, views.read) for at_X, views in parts], len(row_B), self.pad)
        written = _merge([(at_X, views.written) for at_X, views in parts], len(row_B), self.pad)
        arrays = self.collator.join(read, written, self.pad)
        taken, predicted = int(arrays["length_B"].sum()), int(written.length_B.sum())
        decoder = arrays["decoder_ids_BT"].size - predicted if "decoder_ids_BT" in arrays else 0
        counts |= {
            "sequences": len(row_B),
            "input_tokens": taken,
            "target_tokens": predicted,
            "padding": arrays["ids_BL"].size - taken + decoder,
            "predicted": predicted,
        }
        return {**arrays, "counts": counts}

    def _draw(self, epoch: int) -> Drawn:
        columns: list[tuple[Ints, Ints, Ints, NDArray[np.int32]]] = []
        for place, plan in enumerate(self.plans.values()):
            for turn, row_X in plan.blocks(epoch):
                of_X, in_X = np.full_like(row_X, place), np.full_like(row_X, turn)
                columns.append((of_X, in_X, row_X, plan.examples.lengths(turn)[row_X]))
        source_N, epoch_N, row_N, length_N = (np.concatenate(column) for column in zip(*columns, strict=True))
        return Drawn(source_N, epoch_N, row_N, length_N)


def _merge(parts: Sequence[tuple[Ints, Sequences | Text]], rows: int, pad: int) -> Sequences:
    """Rows of several sources, each at its place in the batch."""
    length_B = np.zeros(rows, np.int64)
    for at_X, part in parts:
        length_B[at_X] = part.length_B
    ids_BL = np.full((rows, int(length_B.max())), pad, np.int64)
    for at_X, part in parts:
        width = int(part.length_B.max())
        ids_BL[at_X, :width] = part.ids_BL[:, :width]
    return Sequences(ids_BL, length_B)


def mix(mixture: Mixture, text: Examples, rows: Mapping[str, TextRows], data: Data, seed: int) -> Mixed:
    """The text of a run, if the mixture includes it, and the training rows of its tasks.

    Raises UserError if the objective or a task's name allows no mixture.
    """
    if TEXT in rows:
        raise UserError(
            f"in a mixture, the name {TEXT} is reserved for the corpus, but a task has it", "rename the task"
        )
    collator = writing_collator(text)
    sources: dict[str, MixtureSource] = {TEXT: TextSource(text)} if mixture.denoising else {}
    sources |= {name: TaskSource(task_rows) for name, task_rows in rows.items()}
    counts = mixture.counts([source.size(0) for source in sources.values()])
    plans = {
        name: StepPlan(source, int(digest(["mixture", seed, name], 15), 16), count)
        for (name, source), count in zip(sources.items(), counts, strict=True)
    }
    return Mixed(plans, collator, data.vocabulary.pad)


def writing_collator(text: Examples) -> EncoderDecoderCollator:
    """The collator of a mixture. Raises UserError if the objective writes no text or its targets keep places."""
    targets, collator = text.corruption.targets, text.collator
    if targets is None or not isinstance(collator, EncoderDecoderCollator):
        raise UserError("task mixtures need a text-to-text objective", "set objective=denoising model=t5_tiny")
    if targets.in_place:
        raise UserError(
            "objective/targets=fragment keeps places in the text, which tasks do not have", "choose other targets"
        )
    return collator
