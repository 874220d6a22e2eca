"""XLNet's rows against the loop of its `data_utils.py`, and how they go on from each other."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_store import CLS, SEP, FakeStore, FakeVocabulary, examples_of, random_store

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.data.formats.input_format import gather
from paribus.data.formats.xlnet_pair import XLNetPair
from paribus.data.order import Order, compose_order

LENGTH = 32


def numbered_store(sentences: int = 300, seed: int = 0) -> FakeStore:
    """Every token has an id of its own."""
    store = random_store(sentences, seed=seed, mean=6)
    return FakeStore(5 + np.arange(len(store.ids)), store.word_start, store.sentence_start, store.document_start)


def split_a_and_b(sent_ids: Any, begin: int, room: int, label: bool, cut: Any, place: Any) -> tuple[Any, Any, int]:
    """`_split_a_and_b`: the places of A and B; `cut` and `place` draw in place of its random numbers."""
    end, cuts, length = begin + 1, [], len(sent_ids)
    while end < length:
        if sent_ids[end] != sent_ids[end - 1]:
            if end - begin >= room:
                break
            cuts.append(end)
        end += 1
    if not cuts or label:
        a_end = cuts[cut(len(cuts))] if cuts else end
        wanted = max(1, room - (a_end - begin))
        b_begin = place(length - wanted)
        b_end = b_begin + wanted
        while b_begin > 0 and sent_ids[b_begin - 1] == sent_ids[b_begin]:
            b_begin -= 1
        while b_end < length and sent_ids[b_end - 1] == sent_ids[b_end]:
            b_end += 1
        label = True
    else:
        a_end = b_begin = cuts[cut(len(cuts))]
        b_end = end
    while a_end - begin + b_end - b_begin > room:
        if a_end - begin > b_end - b_begin:
            a_end -= 1
        else:
            b_end -= 1
    return range(begin, a_end), range(b_begin, b_end), int(label)


def draw_below(noise: Noise, name: str, n: int) -> int:
    return int(integers(noise.bits(name, 1)[:, 0], n)[0])


def test_rows_are_those_of_the_published_loop() -> None:
    store, made = numbered_store(), XLNetPair(LENGTH)
    index = made.index(store, LENGTH, lambda ids: Noise.of(0, (0,), ids))
    steps, reused, room = index.steps, LENGTH // 2, LENGTH - LENGTH // 2 - 3
    assert len(index.length_N) == 2 * steps
    text = gather(store, index.segments(np.arange(2 * steps)), 2 * steps, FakeVocabulary(size=10**6))  # type: ignore[arg-type]
    sent_ids = np.repeat(np.arange(len(store.sentence_start) - 1), np.diff(store.sentence_start))
    assert set(text.length_B) == {LENGTH}
    for row in range(2 * steps):
        backwards = row >= steps
        ids, sents = (store.ids[::-1], sent_ids[::-1]) if backwards else (store.ids, sent_ids)
        noise = Noise.of(0, (0,), np.array([row]))
        label = bool(noise.bits("label", 1)[0, 0] < 2**31)
        draws = [
            lambda n, name=name, noise=noise: int(integers(noise.bits(name, 1)[:, 0], n)[0])
            for name in ("cut", "place")
        ]
        begin = (row % steps) * reused
        a, b, label_of_row = split_a_and_b(sents.tolist(), begin + reused, room, label, *draws)
        published = [*ids[begin : begin + reused], *ids[list(a)], SEP, *ids[list(b)], SEP, CLS]
        segments = [0] * (reused + len(a) + 1) + [1] * (len(b) + 1)
        read = np.argsort(text.read_at_BL[row])
        assert text.ids_BL[row, read].tolist() == published
        assert text.part_BL[row, read].tolist()[:-1] == segments
        assert text.label_B is not None
        assert text.label_B[row] == label_of_row
    assert text.reversed_B is not None
    assert text.reversed_B.tolist() == [False] * steps + [True] * steps
    assert 0.4 < index.report["label_rate"] < 0.7


def order_of(size: int, **settings: Any) -> Order[Any]:
    made = examples_of(numbered_store(), LENGTH, input_format=XLNetPair(LENGTH, **settings))
    examples: Any = replace(made, vocabulary=FakeVocabulary(size=10**6))  # type: ignore[arg-type]
    return examples.input.arrange(examples, 0, size, None)


@pytest.mark.parametrize("both", [True, False])
def test_the_text_of_a_row_goes_on_from_that_of_the_step_before(both: bool) -> None:
    order = order_of(6, reversed_rows=both)
    before: Any = None
    for step in range(5):
        ((epoch, rows),) = order.blocks(step)
        text = order.examples.views(epoch, rows).text
        read_BL = np.take_along_axis(text.ids_BL, np.argsort(text.read_at_BL, axis=1), axis=1)[:, : LENGTH // 2]
        assert text.reversed_B.tolist() == [False] * (3 if both else 6) + [True] * (3 if both else 0)
        marks = order.marks(epoch, rows)
        assert marks is not None
        assert marks.begins_B.all() == (step == 0)
        sign_B1 = np.where(text.reversed_B, -1, 1)[:, None]
        assert (np.diff(read_BL, axis=1) == sign_B1).all()
        if before is not None:
            assert np.array_equal(read_BL[:, :1], before[:, -1:] + sign_B1)
        before = read_BL
    assert order.evaluation() is None


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"length": 33}, "odd, but input=xlnet_pair has two halves"),
        ({"length": 8}, "input.length=8 is not valid"),
        ({"length": 32, "reuse_len": 30}, "leaves no room for two segments"),
    ],
)
def test_rows_without_two_halves_are_refused(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(UserError, match=cause):
        XLNetPair(**settings)


def test_batches_that_cannot_be_streams_are_refused() -> None:
    with pytest.raises(UserError, match=r"batch\.size=5 is odd, but half of the rows are read backwards"):
        order_of(5)
    with pytest.raises(UserError, match="too short for 300 streams"):
        order_of(600).examples.index(0)
    examples: Any = examples_of(numbered_store(), LENGTH, input_format=XLNetPair(LENGTH))
    with pytest.raises(UserError, match=r"set batch\.by=sequences"):
        compose_order(examples, examples.input.arrange, SimpleNamespace(by="tokens", size=4), LENGTH, 0)  # type: ignore[arg-type]
