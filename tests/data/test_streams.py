"""Streams: each row of a step goes on where its row of the step before ended."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from paribus.core.errors import UserError
from paribus.corruption.collators.stream import StreamCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples, evaluation_batches, marked_batch
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.streams import Streams
from paribus.data.mask_schedule import Static
from paribus.data.tokens.vocabulary import Vocabulary

VOCABULARY = Vocabulary(size=40, pad=30, unk=31, cls=32, sep=33, mask=34, specials=(30, 31, 32, 33, 34))


class Numbers:
    """A text of the tokens 0, 1, 2 ..., in one document."""

    annotated = None

    def __init__(self, tokens: int) -> None:
        self.ids, self.word_start = np.arange(tokens), np.ones(tokens, np.uint8)
        self.sentence_start, self.document_start = np.array([0, tokens]), np.array([0, 1])


def examples_of(tokens: int, length: int, late: bool = False) -> Examples:
    corruption = Corruption(NoNoise(schedule=Static()), Unchanged())
    store: Any = Numbers(tokens)
    return Examples(store, Streams(length), corruption, StreamCollator(late), VOCABULARY, 0, length)


def steps_of(examples: Examples, size: int, steps: int) -> list[dict[str, Any]]:
    order = examples.input.arrange(examples, 0, size, None)
    blocks = itertools.chain.from_iterable(order.blocks(step) for step in range(steps))
    return [marked_batch(order, epoch, rows) for epoch, rows in blocks]


def test_streams_lie_side_by_side_as_in_the_authors_code() -> None:
    first, second, again = steps_of(examples_of(23, 3), 3, 3)
    assert first["ids_BL"].tolist() == [[0, 1, 2], [7, 8, 9], [14, 15, 16]]
    assert first["target_P"].reshape(3, 3).tolist() == [[1, 2, 3], [8, 9, 10], [15, 16, 17]]
    assert second["ids_BL"][:, 0].tolist() == [3, 10, 17]
    assert [step["begins_B"].tolist() for step in (first, second, again)] == [[True] * 3, [False] * 3, [True] * 3]
    assert again["ids_BL"].tolist() == first["ids_BL"].tolist()


def test_a_pass_predicts_all_tokens_but_the_first_of_each_stream() -> None:
    examples = examples_of(23, 4)
    order = examples.input.arrange(examples, 0, 3, None)
    passed = steps_of(examples, 3, order.steps_for(None, None, 1.0))
    assert [step["ids_BL"].shape for step in passed] == [(3, 4), (3, 2)]
    predicted = sorted(np.concatenate([step["target_P"] for step in passed]).tolist())
    assert predicted == sorted({*range(21)} - {0, 7, 14})
    assert order.examples.tokens(0) == 18
    assert order.examples.report(0) == {"never_predicted": 5.0}  # three that begin streams, and two at the end
    assert [order.steps_for(None, tokens, None) for tokens in (1, 12, 13, 18, 19, 36)] == [1, 1, 2, 2, 3, 4]


def test_the_evaluation_is_one_stream() -> None:
    read = [arrays["ids_BL"][0].tolist() for arrays in evaluation_batches(examples_of(8, 3), 100)]
    assert read == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(list(evaluation_batches(examples_of(8, 3), 2))) == 2


def test_half_of_the_loss_is_that_of_the_later_half() -> None:
    (step,) = steps_of(examples_of(11, 5, late=True), 2, 1)
    assert step["target_P"].tolist() == [3, 4, 8, 9]  # rows of four and their targets 1 to 4 and 6 to 9
    counts = step["counts"]
    assert (counts["predicted"], counts["input_tokens"]) == (4, 8)


def test_microbatches_keep_the_places_of_rows() -> None:
    examples = examples_of(40, 3)
    order = examples.input.arrange(examples, 0, 4, None)
    ((epoch, rows),) = order.blocks(1)
    parts = [marked_batch(order, epoch, part)["ids_BL"][:, 0].tolist() for part in order.split(epoch, rows, 2)]
    assert parts == [[3, 13], [23, 33]]


def test_text_that_is_too_short_for_a_batch_is_refused() -> None:
    with pytest.raises(UserError, match=r"a text of 5 tokens is too short for 3 streams.*batch.size=2 or less"):
        steps_of(examples_of(5, 3), 3, 1)
    with pytest.raises(UserError, match=r"fewer than two tokens.*: give more text"):  # no other batch mends that
        steps_of(examples_of(1, 3), 1, 1)
