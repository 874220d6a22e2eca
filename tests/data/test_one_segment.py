"""Rows of one segment against a plain re-statement, and spans that cross sentences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from fake_store import CLS, PAD, SEP, FakeStore, examples_of, random_store, store_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.config import compose
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.data.formats import one_segment
from paribus.data.formats.full_sentences import DocSentences
from paribus.data.formats.one_segment import OneSegment
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load

DOCUMENTS = st.lists(st.lists(st.integers(1, 14), min_size=1, max_size=6), min_size=1, max_size=7)


def expected(store: FakeStore, budget: int) -> list[list[int]]:
    rows: list[list[int]] = []
    for first, last in pairwise(store.document_start.tolist()):
        row: list[int] = []
        for start, end in pairwise(store.sentence_start[first : last + 1].tolist()):
            sentence = store.ids[start:end].tolist()
            if row and len(row) + len(sentence) > budget:
                rows, row = [*rows, row], []
            row += sentence
            while len(row) > budget:
                rows, row = [*rows, row[:budget]], row[budget:]
            if len(sentence) > budget:
                rows, row = [*rows, row], []
        rows += [row] if row else []
    return [[CLS, *row, SEP] for row in rows]


def rows_of(store: FakeStore, length: int) -> list[list[int]]:
    examples = examples_of(store, length, input_format=OneSegment(length))
    text = examples.views(0, np.arange(examples.size(0))).text
    assert np.array_equal(text.length_B, examples.lengths(0))
    assert (text.ids_BL[np.arange(text.ids_BL.shape[1]) >= text.length_B[:, None]] == PAD).all()
    return [row[:size].tolist() for row, size in zip(text.ids_BL, text.length_B, strict=True)]


def test_the_frame_of_spanbert() -> None:
    """[CLS] s1 s2 [SEP], and a new row for a new document."""
    assert rows_of(store_of([[2, 1], [3]]), 16) == [[CLS, 5, 6, 7, SEP], [CLS, 8, 9, 10, SEP]]


@given(documents=DOCUMENTS, length=st.integers(7, 30))
@settings(max_examples=80, deadline=None)
def test_rows_are_whole_sentences_of_one_document(documents: list[list[int]], length: int) -> None:
    store = store_of(documents)
    assert rows_of(store, length) == expected(store, length - 2)


@given(documents=DOCUMENTS, length=st.integers(7, 30), chunk=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_no_text_is_lost_and_chunks_change_nothing(documents: list[list[int]], length: int, chunk: int) -> None:
    store = store_of(documents)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(one_segment, "CHUNK", chunk)
        rows = rows_of(store, length)
    assert rows == rows_of(store, length)
    assert max(map(len, rows)) <= length
    assert [token for row in rows for token in row if token > SEP] == store.ids.tolist()


def touching(input_format: Any) -> float:
    """The share of noise tokens whose span touches a special token, so that the boundary objective has no term."""
    examples = examples_of(random_store(2000), 128, masking=GeometricSpan(0.15), input_format=input_format)
    views = examples.views(0, np.arange(examples.size(0)))
    special_BL = views.text.ids_BL <= SEP
    lost = total = 0
    for noise_L, special_L in zip(views.marks.span_BL > 0, special_BL, strict=True):
        edges = np.flatnonzero(np.diff(np.r_[0, noise_L.astype(int), 0]))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            total += end - start
            lost += (end - start) * bool(special_L[start - 1] or special_L[min(end, len(special_L) - 1)])
    return lost / total


def test_spans_cross_sentences() -> None:
    assert touching(OneSegment(128)) < 0.1 < 0.2 < touching(DocSentences(128))


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_spanbert_table7_reads_one_segment(scale: str) -> None:
    sweep = load("spanbert_table7")
    for arm in ("one_segment", "one_segment_sbo"):
        assert compose(arm_overrides(sweep, scale, arm)).input["_target_"].endswith("OneSegment")


@pytest.mark.parametrize("name", ["spanbert_table6", "spanbert_table7"])
def test_spanbert_s_random_tokens_are_as_frequent_as_in_the_text(name: str) -> None:
    sweep = load(name)
    for arm in sweep.arms:
        view = compose(arm_overrides(sweep, "cpu", arm)).objective.view
        assert (view.draw, view.unit) == ("unigram", "span"), arm
