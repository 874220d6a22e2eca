"""The sentences of a corpus in random order."""

from __future__ import annotations

from pathlib import Path

from paribus.data.corpus.sentences import Blingfire
from paribus.data.corpus.shuffled import ShuffledSentences
from paribus.data.corpus.text import Text


def write(folder: Path, name: str, sentences: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(sentences))


def test_sentences_keep_their_split_and_lose_their_order(tmp_path: Path) -> None:
    train = [f"The number {number} is written here." for number in range(50)]
    held_out = [f"Held out is number {number}." for number in range(9)]
    write(tmp_path / "text", "train.txt", train)
    write(tmp_path / "text", "validation.txt", held_out)
    corpus = ShuffledSentences(Text(str(tmp_path / "text"), sentences=Blingfire()))
    documents = {document.split: document.text.split("\n") for document in corpus.documents(tmp_path / "cache")}
    assert sorted(documents["train"]) == sorted(train)
    assert sorted(documents["validation"]) == sorted(held_out)
    assert documents["train"] != train
    again = {document.split: document.text.split("\n") for document in corpus.documents(tmp_path / "cache")}
    assert again == documents
