"""Splits by document and the fingerprint of the text."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.errors import UserError
from paribus.data.corpus import splits as module
from paribus.data.corpus.document import Document
from paribus.data.corpus.splits import fingerprint, split_documents
from paribus.data.corpus.text import Text


def documents(count: int, first: int = 0) -> list[Document]:
    return [Document(f"d#{at}", f"Text number {at}.") for at in range(first, first + count)]


def test_the_share_is_held() -> None:
    found = Counter(one.split for one in split_documents(documents(20_000), 0.05))
    assert found["validation"] / found.total() == pytest.approx(0.05, abs=0.006)


def test_adding_documents_moves_no_other() -> None:
    before = {one.text: one.split for one in split_documents(documents(400), 0.05)}
    more = [*documents(300, first=1000), *documents(400), *documents(500, first=2000)]
    renamed = [one._replace(id=f"d#{at}") for at, one in enumerate(more)]
    after = {one.text: one.split for one in split_documents(renamed, 0.05)}
    assert before.items() <= after.items()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.floats(0.01, 0.99), st.integers(0, 10_000))
def test_few_documents_fill_both_splits_and_none_is_lost(count: int, validation: float, first: int) -> None:
    given_ones = documents(count, first)
    found = list(split_documents(given_ones, validation))
    assert [one._replace(split=None) for one in found] == given_ones
    assert {one.split for one in found} == {"train", "validation"}


def test_named_splits_stay() -> None:
    named = [Document("a", "One.", "test"), Document("b", "Two.", "train"), Document("c", "Three.", "validation")]
    assert list(split_documents(named)) == named


def test_a_lone_document_is_cut_once_between_sentences() -> None:
    text = " ".join(f"This is sentence {at}." for at in range(200))
    other, first, last = split_documents([Document("d", text), Document("t", "Other.", "test")], 0.1)
    assert (other.split, first.split, last.split) == ("test", "train", "validation")
    assert f"{first.text} {last.text}" == text
    assert first.text.endswith(".")
    assert last.text.startswith("This")
    assert len(last.text) / len(text) == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("held", range(200, 400, 10))  # the head may end inside a document
def test_parts_of_a_document_share_its_split(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(module, "HELD", held)
    parts = [Document(f"d{at}", f"Part {part} of {at}.", None, part) for at in range(300) for part in range(3)]
    found = list(split_documents(parts, 0.3))
    by_document: dict[str, set[str | None]] = {}
    for one in found:
        by_document.setdefault(one.id, set()).add(one.split)
    assert all(len(each) == 1 for each in by_document.values())
    assert Counter(one.split for one in found)["validation"] / len(found) == pytest.approx(0.3, abs=0.1)


def corpus(folder: Path, texts: list[str]) -> Text:
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("\n\n".join(texts))
    return Text(str(folder))


def test_the_fingerprint_names_the_text_not_the_place(tmp_path: Path) -> None:
    texts = [f"Document {at} of some length." for at in range(30)]
    first = fingerprint(corpus(tmp_path / "one", texts), tmp_path / "cache")
    assert fingerprint(corpus(tmp_path / "two", texts), tmp_path / "cache") == first
    assert sum(first.documents.values()) == 30
    assert sum(first.characters.values()) == sum(map(len, texts))
    shuffled = random.Random(0).sample(texts, 30)
    assert fingerprint(corpus(tmp_path / "three", shuffled), tmp_path / "cache").text != first.text


def test_an_edit_changes_the_fingerprint_even_at_equal_size_and_time(tmp_path: Path) -> None:
    texts = [f"Document {at}." for at in range(9)]
    before = fingerprint(corpus(tmp_path / "text", texts), tmp_path / "cache")
    file = tmp_path / "text" / "a.txt"
    time = file.stat().st_mtime_ns
    file.write_text(file.read_text().replace("Document 3", "Document X"))
    os.utime(file, ns=(time, time))
    assert fingerprint(Text(str(tmp_path / "text")), tmp_path / "cache").text != before.text


def test_a_known_fingerprint_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = corpus(tmp_path / "text", ["One.", "Two."])
    first = fingerprint(text, tmp_path / "cache")
    monkeypatch.setattr(Text, "documents", lambda *_: pytest.fail("the text was read again"))
    assert fingerprint(text, tmp_path / "cache") == first


def test_an_empty_corpus(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no text: give files with text"):
        fingerprint(corpus(tmp_path, ["", " "]), tmp_path / "cache")
