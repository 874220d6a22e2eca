"""What holds for every choice of the config group `input`, which the tests find by its files."""

from __future__ import annotations

import multiprocessing
import pickle
from dataclasses import replace
from typing import Any

import fake_windows
import numpy as np
import pytest
from fake_store import FakeVocabulary, random_store
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.config_names import choices
from paribus.core.errors import UserError
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.views.replace import Replace
from paribus.data.formats.input_format import InputFormat

CHOICES = choices("input")


def input_format(choice: str) -> Any:
    """The format of a choice at its defaults."""
    found = build(compose(["scale=null", f"input={choice}"]).input)
    assert isinstance(found, InputFormat)
    return found


FORMATS: dict[str, Any] = {choice: input_format(choice) for choice in CHOICES}


def examples_of(choice: str, length: int = 48, sentences: int = 600, seed: int = 0) -> Examples:
    """Examples of an encoder for framed rows, of a text-to-text model for bare ones."""
    made, store = replace(FORMATS[choice], length=length), random_store(sentences, seed=1)
    if made.framed:
        return Examples(
            store, made, Corruption(Bernoulli(0.15), Replace()), EncoderCollator(), FakeVocabulary(), seed, length
        )
    corruption = fake_windows.corruption("random_spans", "unique", "unique")
    return Examples(store, made, corruption, EncoderDecoderCollator(), fake_windows.VOCABULARY, seed, length)


def rows_of(views: Any) -> list[Any]:
    """What is read, hidden and said of each row, without padding."""
    text = views.text
    label_B = [None] * len(text.length_B) if text.label_B is None else text.label_B.tolist()
    read, written = views.inputs, views.targets
    rows = []
    for row, length in enumerate(text.length_B):
        own = [array[row, :length].tolist() for array in (text.ids_BL, text.part_BL, views.marks.span_BL)]
        shown = read.ids_BL[row, : read.length_B[row]].tolist()
        said = None if written is None else written.ids_BL[row, : written.length_B[row]].tolist()
        rows.append((own, shown, said, label_B[row]))
    return rows


@pytest.mark.parametrize("choice", CHOICES)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_a_row_does_not_depend_on_its_company(choice: str, rows: list[int], epoch: int) -> None:
    examples = examples_of(choice)
    together = rows_of(examples.views(epoch, rows))
    for found, row in zip(together, rows, strict=True):
        assert found == rows_of(examples.views(epoch, [row]))[0]


def batches_of(made: list[Examples]) -> list[Any]:
    return [examples.batch(3, np.arange(20)) for examples in made]


def test_another_process_makes_the_same_batches() -> None:
    """As after a resume or in a loader's worker: a fresh interpreter that got nothing but the pickled examples."""
    made = [examples_of(choice, 32) for choice in CHOICES]
    fresh = pickle.loads(pickle.dumps(made))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        elsewhere = pool.apply(batches_of, (fresh,))
    for examples in made:
        examples.batch(7, [1, 2])
    for here, other in zip(batches_of(made), elsewhere, strict=True):
        assert here["counts"] == other["counts"]
        assert all(np.array_equal(here[name], other[name]) for name in here if name != "counts")


@pytest.mark.parametrize("choice", CHOICES)
def test_rows_fit_and_the_counts_are_those_of_the_batch(choice: str) -> None:
    examples = examples_of(choice)
    for epoch in (0, 1):
        size = examples.size(epoch)
        assert size > 20
        arrays = examples.batch(epoch, np.arange(size))
        assert arrays["length_B"].max() <= 48
        assert arrays["length_B"].tolist() == examples.lengths(epoch).tolist()
        assert examples.tokens(epoch) == arrays["counts"]["input_tokens"] == arrays["length_B"].sum()
        assert arrays["counts"]["sequences"] == size
        assert FORMATS[choice].pairs is None or arrays["counts"]["pairs"] == size
        assert all(type(count) is int for count in arrays["counts"].values())


@pytest.mark.parametrize("choice", CHOICES)
def test_the_order_of_training_reads_each_example_of_a_pass_once(choice: str) -> None:
    examples = examples_of(choice)
    order = FORMATS[choice].arrange(examples, 0, 8, None)
    size = order.examples.size(0)
    read = [row for step in range(size // 8) for _, rows in order.blocks(step) for row in rows.tolist()]
    assert len(set(read)) == len(read) == size // 8 * 8


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("length", [2, "long", 64.5])
def test_a_length_without_room_is_refused(choice: str, length: Any) -> None:
    with pytest.raises(UserError, match=rf"input\.length={length}"):
        replace(FORMATS[choice], length=length)
