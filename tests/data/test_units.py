"""Tokenizers whose tokens are given: round trips, unknown units, sizes, and the layout of transformers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.corpus.document import Document
from paribus.data.corpus.sentences import Blingfire
from paribus.data.tokens import store
from paribus.data.tokens.pretrained import Pretrained
from paribus.data.tokens.store import TokenStore
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.data.tokens.units import Bytes, Characters, Words
from paribus.data.tokens.vocabulary import Entries

TEXTS = ["A cat sat. The cat ate.", "An old sailor, naïve as 他, sat.", "A cat! [MASK]"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("units")
    kinds = {"characters": Characters(500), "bytes": Bytes(500), "words": Words(500)}
    return {name: kind.build(TEXTS, folder / name) for name, kind in kinds.items()}


@pytest.mark.parametrize("kind", ["characters", "bytes"])
@pytest.mark.parametrize("text", ["A cat  sat.", "\n\nA naïve 他 cat", " sat ", "[MASK] ate"])
def test_white_space_and_capitals_come_back(kind: str, text: str, built: dict[str, Tokenizer]) -> None:
    ids_T, _ = built[kind].encode([text])[0]
    assert ids_T.min() > 4
    assert built[kind].texts([ids_T.tolist()]) == [text]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30).filter(lambda text: text.isprintable() or not text.isascii()))
def test_bytes_give_every_text_back(built: dict[str, Tokenizer], text: str) -> None:
    tokenizer = built["bytes"]
    try:
        raw = text.encode()
    except UnicodeEncodeError:  # lone surrogates are no characters
        return
    ids_T, _ = tokenizer.encode([text])[0]
    assert (ids_T.astype(int) - 5).tolist() == list(raw)
    assert tokenizer.texts([ids_T.tolist()]) == [text]


def test_the_tokens_of_a_store_are_its_text(built: dict[str, Tokenizer], tmp_path: Path) -> None:
    texts = ["The cat sat. The cat ate.\nA cat!\n\nAn old sailor.", "A cat sat."]
    documents = [Document(f"{at}", text, split="train") for at, text in enumerate(texts)]
    for kind in ("characters", "bytes"):
        store.build(documents, built[kind], Blingfire(), tmp_path / kind)
        found = TokenStore(tmp_path / kind / "train")
        (text,) = built[kind].texts([found.ids.tolist()])
        assert text == "\n\n" + "\n\n".join(each.replace("\n\n", "\n") for each in texts)
        starts = np.split(found.word_start, found.sentence_start[1:-1])
        assert [int(start_T.sum()) for start_T in starts] == [4, 4, 3, 4, 4]  # words and marks; no blank is a word


def test_a_text_of_ones_own_has_blanks_between_its_sentences(built: dict[str, Tokenizer]) -> None:
    found = store.store_text("A cat sat.  The cat ate.", built["characters"], Blingfire())
    assert built["characters"].texts([found.ids.tolist()]) == ["A cat sat. The cat ate."]
    with pytest.raises(UserError, match="holds no token"):
        store.store_text(" ", built["characters"], Blingfire())


def test_characters_are_kept_by_frequency_and_the_rest_is_unknown(tmp_path: Path) -> None:
    tokenizer = Characters(10).build(TEXTS, tmp_path)
    counts = Counter("".join(TEXTS))
    common = sorted(counts.keys() - {" "}, key=lambda c: (-counts[c], c))[:3]
    known = [tokenizer.backend.id_to_token(number) for number in range(5, 10)]
    assert known == [" ", "\n", *common]
    assert tokenizer.encode(["q a"])[0][0].tolist()[:2] == [tokenizer.vocabulary.unk, 5]
    assert tokenizer.count_lost(["qat"]) == (1, 3)


def test_words_are_kept_by_frequency_and_the_rest_is_unknown(tmp_path: Path) -> None:
    tokenizer = Words(8).build(TEXTS, tmp_path)
    assert [tokenizer.backend.id_to_token(number) for number in range(5, 8)] == [".", "cat", ","]
    assert tokenizer.texts([tokenizer.encode(["The cat sat."])[0][0].tolist()]) == ["[UNK] cat [UNK] ."]
    assert Words(500, lowercase=True).build(TEXTS, tmp_path / "small").encode(["THE naive"])[0][0].tolist() != [1, 1]


@pytest.mark.parametrize("kind", ["characters", "bytes", "words"])
def test_a_text_that_gives_less_than_vocab_size_is_no_error(kind: str, built: dict[str, Tokenizer]) -> None:
    vocabulary = built[kind].vocabulary
    assert vocabulary.size < 500
    assert (vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask) == (0, 1, 2, 3, 4)
    assert vocabulary.specials == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(("kind", "least"), [(Characters, 8), (Bytes, 261), (Words, 7)])
def test_impossible_sizes_and_texts_are_refused(kind: Any, least: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"vocab_size={least - 1} is too small for {kind.kind}.*at least {least}"):
        kind(least - 1)
    if kind is not Bytes:
        with pytest.raises(UserError, match=f"the training text has no {kind.kind}"):
            kind(least).build(["", "  "], tmp_path)


def test_the_same_text_gives_the_same_files_and_bytes_ask_for_no_size(tmp_path: Path) -> None:
    for kind in (Characters(40), Words(12), Bytes(500)):
        for turn in ("one", "two"):
            kind.build(TEXTS, tmp_path / turn)
        assert (tmp_path / "one/tokenizer.json").read_bytes() == (tmp_path / "two/tokenizer.json").read_bytes()
    assert Bytes(261).identity() == Bytes(8192).identity()
    assert Characters(40).identity() != replace(Characters(40), vocab_size=41).identity()


@pytest.mark.parametrize("kind", ["characters", "bytes", "words"])
def test_transformers_and_tokenizer_pretrained_read_them(
    kind: str, built: dict[str, Tokenizer], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    tokenizer, folder = built[kind], tmp_path / kind
    tokenizer.save(folder)
    loaded: Any = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.encode(["A cat sat"])[0][0].tolist()
    assert loaded("A cat sat").input_ids == [2, *ids, 3]
    assert loaded.decode(ids) == "A cat sat"
    again = Pretrained(str(folder)).build((), tmp_path / "again")
    assert again.vocabulary == tokenizer.vocabulary == Tokenizer.load(folder).vocabulary
    assert again.vocabulary.spaces == (kind != "words")


def test_a_blank_is_spelled_as_a_blank(built: dict[str, Tokenizer], tmp_path: Path) -> None:
    for kind, at in (("characters", 5), ("bytes", 5 + 32)):
        built[kind].save(tmp_path / kind)
        spellings = Entries(tmp_path / kind, built[kind].vocabulary.size, None).spellings
        assert spellings[at] == " "
        assert "c" in spellings


@pytest.mark.parametrize("kind", ["characters", "bytes", "words"])
def test_a_run_reads_them_with_the_size_of_its_recipe(kind: str, arguments: list[str]) -> None:
    from paribus.training.description import Run

    run = Run.of(compose([*[each for each in arguments if not each.startswith("tokenizer")], f"tokenizer={kind}"]))
    data = run.data()
    assert data.vocabulary.size <= max(512, 261)
    assert data.stores["train"].tokens > 0
