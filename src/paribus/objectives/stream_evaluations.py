"""One trained language model, read in several ways: in segments without memory or with it, or in a window that slides
by one token (Transformer-XL, arXiv 1901.02860, section 3 and tables 6, 8 and 9).
"""

from __future__ import annotations

import statistics
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from paribus.core.errors import UserError
from paribus.corruption.examples import Examples
from paribus.data.sequences import Ints
from paribus.models.heads.head import TokenHead, name_places
from paribus.models.memory_encoder import MemoryEncoder
from paribus.models.network import Batch, Network
from paribus.objectives.evaluation import Evaluation, TargetSet, evaluating, on_device
from paribus.objectives.objective import Objective

WINDOWS: Final = 64  # rows of a batch
MOST_SLID: Final = 10_000_000  # tokens that a window may slide over
TIMED: Final = 5  # how often a speed is measured; the median counts
GAIN: Final = 0.01  # share of the loss that a longer context has to save (arXiv 1901.02860, section 4.3)


@dataclass(frozen=True)
class Reading:
    """A trained network and its head on tokens, which read a stream of T tokens and predict all but the first."""

    network: Network
    head: TokenHead
    pad: int

    def segments(self, ids_T: Ints, length: int, memory: int) -> Tensor:
        """float32 [T - 1]: the loss at each target, in segments of `length` tokens with this memory; 0 for none.

        A network without a memory of its own is only asked without.
        """
        state, losses = None, []
        with self._remembering(memory):
            for at in range(0, len(ids_T) - 1, length):
                segment_L = ids_T[at : min(at + length, len(ids_T) - 1)]
                batch = self._batch([segment_L], begins=at == 0) if memory else self._batch([segment_L])
                target_P = torch.from_numpy(ids_T[at + 1 : at + 1 + len(segment_L)])
                loss_P, state = self._losses(batch, np.arange(len(segment_L)), target_P, state)
                losses.append(loss_P)
        return torch.cat(losses)

    def window(self, ids_T: Ints, length: int, first: int = 1) -> Tensor:
        """float32 [T - first]: the loss at each target from `first` on, each predicted from the last `length` tokens
        before it; the first targets of a text have fewer.
        """
        losses = []
        for at in range(first, len(ids_T), WINDOWS):
            ends = range(at, min(at + WINDOWS, len(ids_T)))
            rows = [ids_T[max(0, end - length) : end] for end in ends]
            width = max(map(len, rows))
            slot_P = np.array([number * width + len(row) - 1 for number, row in enumerate(rows)])
            target_P = torch.from_numpy(ids_T[ends.start : ends.stop])
            losses.append(self._losses(self._batch(rows), slot_P, target_P)[0])
        return torch.cat(losses)

    def rates(self, ids_T: Ints, length: int, memory: int) -> tuple[float, float]:
        """Predicted tokens per second, in segments with this memory and in a window that slides by one, each in batches
        of `WINDOWS` rows of `length` tokens, the medians of turns.
        """
        rows = [ids_T[:length]] * WINDOWS
        target_N = torch.from_numpy(np.tile(ids_T[1 : length + 1], WINDOWS))
        last_P = np.arange(WINDOWS) * length + length - 1
        begin, go_on, alone = self._batch(rows, begins=True), self._batch(rows, begins=False), self._batch(rows)
        with self._remembering(memory):
            state = None
            for _ in range(-(-memory // length)):  # until the memory is full
                state = self._losses(begin if state is None else go_on, last_P, target_N[last_P], state)[1]
            every_N = np.arange(WINDOWS * length)
            seconds = time_turns(
                lambda: self._losses(go_on, every_N, target_N, state),
                lambda: self._losses(alone, last_P, target_N[last_P]),
            )
        return WINDOWS * length / seconds[0], WINDOWS / seconds[1]

    def _remembering(self, memory: int) -> AbstractContextManager[None]:
        return self.network.remembering(memory) if isinstance(self.network, MemoryEncoder) else nullcontext()

    def _batch(self, rows: Sequence[Ints], begins: bool | None = None) -> Batch:
        """Rows of tokens, padded on the right; `begins`: whether all begin a stream, None without memory."""
        length_B = np.array([len(row) for row in rows])
        ids_BL = np.full((len(rows), int(length_B.max())), self.pad)
        for number, row in enumerate(rows):
            ids_BL[number, : len(row)] = row
        ids = torch.from_numpy(ids_BL)
        full = bool((length_B == ids_BL.shape[1]).all())
        batch: Batch = {"ids_BL": ids, "part_BL": torch.zeros_like(ids), "length_B": torch.from_numpy(length_B)}
        if begins is not None:
            batch["begins_B"] = torch.full((len(rows),), begins)
        return on_device({**batch, "full": full}, self.network)

    def _losses(self, batch: Batch, slot_P: Ints, target_P: Tensor, state: object = None) -> tuple[Tensor, object]:
        """(the loss at each of these places, what the network leaves)."""
        device = batch["ids_BL"].device
        asked = {**batch, "slot_P": torch.from_numpy(slot_P).to(device), "target_P": target_P.to(device)}
        outputs = self.network(name_places([self.head], asked), state=state)
        logits_PV = self.head.logits(outputs, asked).float()
        return cross_entropy(logits_PV, asked["target_P"], reduction="none").cpu(), outputs.state


def time_turns(*calls: Callable[[], object]) -> list[float]:
    """Seconds of each call, the medians of `TIMED` turns, after one that is not counted."""
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(TIMED + 1):
        for call, spent in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if turn:
                spent.append(time.perf_counter() - start)
    return [statistics.median(spent) for spent in seconds]


class StreamEvaluation(Evaluation):
    """What a language model is asked about the first tokens of the held-out stream.

    Args:
        examples: of the held-out evaluation, whose input format is `Streams`.
        most: predictions at most; None for all of the split.
        head: the name of its head on tokens.
        memory: with which the model is trained; 0 for none.
    """

    def __init__(self, examples: Examples, most: int | None, head: str, memory: int) -> None:
        first = int(np.asarray(examples.store.sentence_start)[0])
        end = None if most is None else first + most + 1
        self.ids_T = np.asarray(examples.store.ids[first:end]).astype(np.int64)
        self.length, self.pad, self.head, self.memory = examples.length, examples.vocabulary.pad, head, memory

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        head = objective.named_heads[self.head]
        assert isinstance(head, TokenHead)
        with evaluating(network, head):
            values = dict(self.answers(Reading(network, head, self.pad)))
        return {name: float(values[name]) for name in self.metrics}

    @abstractmethod
    def answers(self, reading: Reading) -> Iterator[tuple[str, float]]:
        """(metric, value) of the network in evaluation mode."""

    def target_sets(self) -> Mapping[str, TargetSet]:
        what = "the first tokens of the stream but one"
        return {name: TargetSet(what, len(self.ids_T) - 1) for name in self.metrics if name.endswith("_loss")}


class Protocols(StreamEvaluation):
    """The mean loss in segments without memory, in segments with it, and in a window that slides by one, on the same
    tokens, with the query positions that are computed for each predicted token and the measured speeds.

    A model that is trained without memory is read with one as long as its rows.
    """

    metrics = (
        "segments_loss",
        "memory_loss",
        "window_loss",
        "window_queries",
        "memory_speed",
        "window_speed",
        "memory_speedup",
    )

    def answers(self, reading: Reading) -> Iterator[tuple[str, float]]:
        memory = self.memory or self.length
        yield "segments_loss", float(reading.segments(self.ids_T, self.length, 0).mean())
        yield "memory_loss", float(reading.segments(self.ids_T, self.length, memory).mean())
        yield "window_loss", float(reading.window(self.ids_T, self.length).mean())
        yield "window_queries", float(self.length)
        fast, slow = reading.rates(self.ids_T, self.length, memory)
        yield "memory_speed", fast
        yield "window_speed", slow
        yield "memory_speedup", fast / slow


class AttentionLengths(StreamEvaluation):
    """The loss at attention lengths that are multiples of that of the training, each model as it is read: with memory
    if it is trained with one, in a window that slides by one if not.

    `init_loss` is that at the length of the training, `best_loss` the lowest, `best_attention` the shortest length that
    gives it (Transformer-XL, table 6: "PPL init", "PPL best", "Attn Len").
    """

    metrics = ("init_loss", "best_loss", "best_attention")

    def __init__(self, examples: Examples, most: int | None, head: str, memory: int, times: Sequence[int]) -> None:
        super().__init__(examples, most, head, memory)
        self.times = times

    def answers(self, reading: Reading) -> Iterator[tuple[str, float]]:
        trained = self.length + self.memory
        losses = {times * trained: self._read(reading, times * trained) for times in self.times}
        best = min(losses, key=lambda keys: (losses[keys], keys))
        yield "init_loss", losses[trained]
        yield "best_loss", losses[best]
        yield "best_attention", float(best)

    def _read(self, reading: Reading, keys: int) -> float:
        if self.memory:
            return float(reading.segments(self.ids_T, self.length, keys - self.length).mean())
        return float(reading.window(self.ids_T, keys).mean())


class Fragmentation(StreamEvaluation):
    """The mean loss in the quarters of a segment, first to last, read as the model is trained: without memory, tokens
    at the beginning of a segment are predicted from little. The loss of a last, shorter segment does not count.

    Raises UserError for segments without quarters, and for a text without a whole segment.
    """

    metrics = tuple(f"quarter{number}_loss" for number in (1, 2, 3, 4))

    def __init__(self, examples: Examples, most: int | None, head: str, memory: int) -> None:
        super().__init__(examples, most, head, memory)
        if self.length < len(self.metrics):
            cause = f"objective.quarters=true, but segments of {self.length} tokens have no quarters"
            raise UserError(cause, f"set input.length={len(self.metrics)} or more, or objective.quarters=false")
        if len(self.ids_T) <= self.length:
            cause = f"objective.quarters=true, but {len(self.ids_T)} held-out tokens hold no segment of {self.length}"
            raise UserError(cause, "give more text, lower input.length, or set objective.quarters=false")

    def answers(self, reading: Reading) -> Iterator[tuple[str, float]]:
        loss_N = reading.segments(self.ids_T, self.length, self.memory)
        whole = len(loss_N) // self.length * self.length
        by_quarter = loss_N[:whole].view(-1, self.length).mean(0).tensor_split(4)
        yield from zip(self.metrics, (float(part.mean()) for part in by_quarter), strict=True)


class EffectiveContext(StreamEvaluation):
    """The longest context that still helps: doubling the context up to it saves at least 1% of the loss, on the hardest
    tenth, half, or all of the tokens (after Transformer-XL, section 4.3).

    The paper compares with the best model of a group at the shorter context; here each model is compared with itself,
    as in Khandelwal et al. (arXiv 1805.04623). All models are read in windows that slide by one.
    """

    shares: Final = {"context_hardest": 0.1, "context_harder": 0.5, "context_all": 1.0}
    metrics = tuple(shares)

    def __init__(self, examples: Examples, most: int | None, head: str, memory: int, lengths: Sequence[int]) -> None:
        super().__init__(examples, most, head, memory)
        self.lengths = lengths
        if len(self.ids_T) <= lengths[-1] + 1:
            cause = f"a context of {lengths[-1]} tokens is asked for on {len(self.ids_T) - 1} tokens"
            raise UserError(cause, "raise objective.slid_tokens, or lower objective.contexts")

    def answers(self, reading: Reading) -> Iterator[tuple[str, float]]:
        losses = {length: reading.window(self.ids_T, length, first=self.lengths[-1]) for length in self.lengths}
        for name, share in self.shares.items():
            yield name, float(find_context(losses, share))


def find_context(loss_N: Mapping[int, Tensor], share: float) -> int:
    """The longest of the context lengths, ascending, that saves `GAIN` of the loss at the one before, as each step up
    to it does; the tokens are the `share` that is hardest at the shorter context.
    """
    lengths = list(loss_N)
    context = lengths[0]
    for shorter, longer in pairwise(lengths):
        hardest = loss_N[shorter].topk(max(1, round(share * len(loss_N[shorter])))).indices
        before, after = (float(loss_N[length][hardest].mean()) for length in (shorter, longer))
        if before - after < GAIN * before:
            break
        context = longer
    return context
