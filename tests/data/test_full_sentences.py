"""Framed rows of whole sentences against a plain re-statement; blocks as fairseq's compiled original."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from fake_store import CLS, PAD, SEP, UNK, FakeStore, examples_of, random_store, store_of, token_blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.data.formats import full_sentences
from paribus.data.formats.full_sentences import DocSentences, FullSentences

FORMS = {"complete": FullSentences, "complete_doc": DocSentences}
DOCUMENTS = st.lists(st.lists(st.integers(1, 14), min_size=1, max_size=6), min_size=1, max_size=7)


def stream(store: FakeStore) -> tuple[list[int], list[int]]:
    """The ids with all separators, and the sizes of the lines."""
    ids: list[int] = []
    sizes: list[int] = []
    for sentence in range(len(store.sentence_start) - 1):
        if sentence and sentence in store.document_start:
            ids, sizes = [*ids, SEP], [*sizes, 1]
        part = store.ids[store.sentence_start[sentence] : store.sentence_start[sentence + 1]].tolist()
        ids, sizes = [*ids, *part, SEP], [*sizes, len(part) + 1]
    return ids, sizes


def expected(store: FakeStore, mode: str, length: int) -> list[list[int]]:
    ids, sizes = stream(store)
    rows: list[list[int]] = []
    for start, end in token_blocks(sizes, mode == "complete_doc", length - 1):
        block = ids[start:end]
        if len(block) > length - 1:
            text = block[:-1]
            rows += [[*text[at : at + length - 2], SEP] for at in range(0, len(text), length - 2)]
        elif set(block) != {SEP}:
            rows.append(block)
    return [[CLS, *row] for row in rows]


def rows_of(store: FakeStore, input_format: Any, length: int) -> list[list[int]]:
    examples = examples_of(store, length, input_format=input_format)
    text = examples.views(0, np.arange(examples.size(0))).text
    assert np.array_equal(text.length_B, examples.lengths(0))
    assert (text.ids_BL[np.arange(text.ids_BL.shape[1]) >= text.length_B[:, None]] == PAD).all()
    return [row[:size].tolist() for row, size in zip(text.ids_BL, text.length_B, strict=True)]


def test_the_frame_of_roberta() -> None:
    """<s> s1 </s> s2 </s> </s> t1 </s>"""
    store = store_of([[2, 1], [3]])
    assert rows_of(store, FullSentences(16), 16) == [[CLS, 5, 6, SEP, 7, SEP, SEP, 8, 9, 10, SEP]]
    assert rows_of(store, DocSentences(16), 16) == [[CLS, 5, 6, SEP, 7, SEP], [CLS, 8, 9, 10, SEP]]


def test_separators_behind_segments_alone() -> None:
    store = store_of([[2, 1], [3]])
    assert rows_of(store, FullSentences(16, "segments"), 16) == [[CLS, 5, 6, 7, SEP, SEP, 8, 9, 10, SEP]]
    assert rows_of(store, DocSentences(16, "segments"), 16) == [[CLS, 5, 6, 7, SEP], [CLS, 8, 9, 10, SEP]]
    with pytest.raises(UserError, match=r"input\.separators=words"):
        FullSentences(16, "words")


@pytest.mark.parametrize("mode", FORMS)
@given(documents=DOCUMENTS, length=st.integers(7, 30))
@settings(max_examples=60, deadline=None)
def test_separators_change_no_text_of_a_row(mode: str, documents: list[list[int]], length: int) -> None:
    store, kind = store_of(documents), FORMS[mode]
    marked, bare = (rows_of(store, kind(length, separators), length) for separators in ("sentences", "segments"))
    assert [[i for i in row if i != SEP] for row in bare] == [[i for i in row if i != SEP] for row in marked]
    ends = {5 + (end - 1) % 995 for end in store.sentence_start[store.document_start][1:].tolist()}
    for row in bare:
        inner = [before for before, after in itertools.pairwise(row[:-1]) if after == SEP]
        assert all(before in {*ends, CLS, SEP} for before in inner)


@pytest.mark.parametrize("mode", FORMS)
@given(documents=DOCUMENTS, length=st.integers(7, 30))
@settings(max_examples=80, deadline=None)
def test_rows_follow_the_blocks(mode: str, documents: list[list[int]], length: int) -> None:
    store = store_of(documents)
    assert rows_of(store, FORMS[mode](length), length) == expected(store, mode, length)


@pytest.mark.parametrize("mode", FORMS)
@given(documents=DOCUMENTS, length=st.integers(7, 30))
@settings(max_examples=40, deadline=None)
def test_no_text_is_lost_and_nothing_is_too_long(mode: str, documents: list[list[int]], length: int) -> None:
    store = store_of(documents)
    rows = rows_of(store, FORMS[mode](length), length)
    assert max(map(len, rows)) <= length
    assert [token for row in rows for token in row if token > SEP] == store.ids.tolist()


@pytest.mark.parametrize("mode", FORMS)
def test_cutting_in_chunks_changes_nothing(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = random_store(600, seed=4)
    whole = rows_of(store, FORMS[mode](24), 24)
    for chunk in (1, 31, 100):
        monkeypatch.setattr(full_sentences, "CHUNK", chunk)
        assert rows_of(store, FORMS[mode](24), 24) == whole


def test_an_empty_document_adds_no_separator() -> None:
    store = store_of([[2], [], [], [3]])
    assert rows_of(store, FullSentences(16), 16) == [[CLS, 5, 6, SEP, SEP, 7, 8, 9, SEP]]


def test_numbers_of_words_and_sentences() -> None:
    store = store_of([[4, 2]])  # words begin at tokens 0, 1, 3, 4
    text = examples_of(store, 16).views(0, [0]).text
    assert text.ids_BL[0, :9].tolist() == [CLS, 5, 6, 7, 8, SEP, 9, 10, SEP]
    assert text.word_BL[0, :9].tolist() == [-1, 0, 1, 1, 2, -1, 3, 3, -1]
    assert text.sentence_BL[0, :9].tolist() == [-1, 0, 0, 0, 0, -1, 1, 1, -1]
    assert text.start_BL[0].tolist() == [True, True, True, False, True, True, True, False, True] + [False] * 7
    assert text.tokens == 6


def test_special_ids_in_the_text_are_never_noise() -> None:
    store = store_of([[30, 30]])
    store.ids[3::2] = UNK
    examples = examples_of(store)
    text = examples.views(0, [0]).text
    assert not text.free_BL[text.ids_BL == UNK].any()
    assert text.tokens == 60
    for epoch in range(20):
        assert (examples.batch(epoch, [0])["target_P"] > SEP).all()


def test_counts_and_kinds_of_a_batch() -> None:
    examples = examples_of(random_store(400), 32)
    arrays = examples.batch(0, np.arange(16))
    counts, width = arrays["counts"], arrays["ids_BL"].shape[1]
    assert width % 8 == 0
    assert counts["input_tokens"] == arrays["length_B"].sum() == examples.lengths(0)[:16].sum()
    assert counts["padding"] == 16 * width - counts["input_tokens"]
    assert counts["predicted"] == counts["spans"] == len(arrays["slot_P"]) == len(arrays["target_P"])
    assert counts["sequences"] == 16
    assert all(type(count) is int for count in counts.values())
    assert (np.diff(arrays["slot_P"]) > 0).all()
    for name in ("ids_BL", "length_B", "slot_P", "target_P", "part_BL"):
        assert arrays[name].dtype == np.int64


SIZES = [3, 4, 2, 1, 5, 3]
GOLDEN = {
    False: [(0, 7), (7, 10), (10, 15), (15, 18)],
    True: [(0, 7), (7, 9), (10, 15), (15, 18)],
}


@pytest.mark.parametrize("documents", GOLDEN)
def test_golden_vector(documents: bool) -> None:
    assert token_blocks(SIZES, documents, 7) == GOLDEN[documents]


def test_a_line_over_the_budget_is_a_block_of_its_own() -> None:
    assert token_blocks([9, 2], False, 7) == [(0, 9), (9, 11)]
    assert token_blocks([2, 9, 2], True, 7) == [(0, 2), (2, 11), (11, 13)]


def test_documents_of_one_token_are_dropped() -> None:
    assert token_blocks([1, 1, 3, 1, 1], True, 7) == [(2, 5)]


def test_nothing_gives_nothing() -> None:
    assert all(token_blocks([], documents, 7) == [] for documents in GOLDEN)


def one_by_one(sizes: list[int], budget: int, documents: bool) -> list[tuple[int, int]]:
    """Lines are taken one at a time, as the rule says it."""
    found, start, size = [], 0, 0
    for line in sizes:
        if documents and line == 1:
            found.append((start, start + size))
            start, size = start + size + 1, 0
        elif size and size + line > budget:
            found.append((start, start + size))
            start, size = start + size, line
        else:
            size += line
    found.append((start, start + size))
    return [(a, b) for a, b in found if b - a > (1 if documents else 0)]


@given(st.lists(st.integers(1, 12), max_size=60), st.integers(1, 25))
@settings(max_examples=200, deadline=None)
def test_blocks_follow_the_rule(sizes: list[int], budget: int) -> None:
    assert token_blocks(sizes, False, budget) == one_by_one(sizes, budget, documents=False)
    assert token_blocks(sizes, True, budget) == one_by_one(sizes, budget, documents=True)
