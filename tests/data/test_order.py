"""A second order of examples, plugged in by an input format of its own: parallel streams for a model with memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fake_store import FakeVocabulary, random_store
from fake_windows import MASKINGS

from paribus.core.errors import UserError
from paribus.core.settings import Batch
from paribus.corruption.collators.text_to_text import SingleStreamCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.views.tokens import Full, Nothing
from paribus.data.formats.input_format import BareRows
from paribus.data.formats.windows import Windows
from paribus.data.order import Block, Order, StreamMarks, check_limits, compose_order
from paribus.training.steps import PretrainingSteps


@dataclass(frozen=True)
class ParallelStreams(Order[Examples]):
    """`size` contiguous streams of windows, one row of each per step."""

    examples: Examples
    size: int

    @property
    def per_epoch(self) -> int:
        return self.examples.size(0) // self.size

    def blocks(self, step: int) -> list[Block]:
        epoch, at = divmod(step, self.per_epoch)
        return [(epoch, np.arange(self.size) * self.per_epoch + at)]

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        tokens = self.examples.tokens(0) / self.examples.size(0) * self.size
        limits = (max_steps, max_tokens and max_tokens / tokens, max_epochs and max_epochs * self.per_epoch)
        return int(min(limit for limit in limits if limit is not None))

    def split(self, epoch: int, rows: Any, most: int | None) -> Iterator[Any]:
        yield from np.split(rows, range(most, len(rows), most) if most else [])

    def marks(self, epoch: int, rows: Any) -> StreamMarks:
        segments, store = self.examples.index(epoch).segments(rows), self.examples.store
        assert isinstance(segments, BareRows)
        new_document_B = np.isin(segments.start_B, store.sentence_start[store.document_start])
        return StreamMarks((rows % self.per_epoch == 0) | new_document_B)


class StreamWindows(Windows):
    def arrange(self, examples: Any, seed: int, size: int, tokens: int | None) -> Any:
        return ParallelStreams(examples, size)


def order_of(cross: bool, size: int = 4) -> Order[Examples]:
    windows = StreamWindows(16, cross)
    corruption = Corruption(MASKINGS["all"], Nothing(), Full())
    examples = Examples(random_store(3000), windows, corruption, SingleStreamCollator(), FakeVocabulary(), 0, 16)
    return compose_order(examples, windows.arrange, Batch("sequences", size), 16, seed=0)


def test_each_place_of_the_batch_reads_on_from_step_to_step() -> None:
    order = order_of(cross=True)
    steps = PretrainingSteps(order, 5, None)
    windows = order.examples.index(0).segments(np.arange(order.examples.size(0)))
    read = [np.concatenate([steps[step][0]["label_BL"][place][:15] for step in range(5)]) for place in range(4)]
    for place, tokens in enumerate(read):
        start = windows.start_B[order.blocks(0)[0][1][place]]
        assert tokens.tolist() == order.examples.store.ids[start : start + len(tokens)].tolist()


def test_a_batch_says_where_a_stream_begins() -> None:
    order = order_of(cross=False)
    steps, edges = PretrainingSteps(order, 40, 2), order.examples.store.sentence_start
    begins = np.array([np.concatenate([batch["begins_B"] for batch in steps[step]]) for step in range(40)])
    assert begins[0].all()
    next_epoch = order.marks(1, order.blocks(order.examples.size(0) // 4)[0][1])
    assert next_epoch is not None
    assert next_epoch.begins_B.all()
    rows = np.array([order.blocks(step)[0][1] for step in range(1, 20)])
    start = order.examples.index(0).segments(rows.reshape(-1)).start_B.reshape(rows.shape)
    assert np.array_equal(begins[1:20], np.isin(start, edges[order.examples.store.document_start]))


def test_streams_keep_their_places_in_microbatches_and_ranks() -> None:
    order = order_of(cross=True)
    whole = PretrainingSteps(order, 5, None)[3][0]["ids_BL"].tolist()
    assert [row for batch in PretrainingSteps(order, 5, 2)[3] for row in batch["ids_BL"].tolist()] == whole
    ranks = [PretrainingSteps(order, 5, None, (rank, 2))[3][0]["ids_BL"].tolist() for rank in (0, 1)]
    assert [row for rank in ranks for row in rank] == whole


def test_a_budget_is_in_the_steps_of_the_order() -> None:
    order = order_of(cross=True)
    assert order.steps_for(7, None, None) == 7
    assert order.steps_for(None, None, 2) == order.examples.size(0) // 4 * 2
    with pytest.raises(UserError, match="no budget"):
        order.steps_for(None, None, None)
