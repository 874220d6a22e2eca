"""The token store and its cache: contents, independence of batches and threads, killed builds, bad input."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stories import story

from paribus.core.checksums import SUMS
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.corpus.document import Document
from paribus.data.corpus.sentences import Blingfire, Lines
from paribus.data.tokens import store
from paribus.data.tokens.prepare import data_fingerprint, prepare, spread
from paribus.data.tokens.store import TokenStore, build, cut
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.data.tokens.trained import BPE, Unigram, WordPiece
from paribus.training.description import Run

ARRAYS = ("ids", "word_start", "sentence_start", "document_start")


def corpus(number: int = 30) -> Iterator[Document]:
    for at in range(number):
        text = f"{story(2 * at, 7)}\n{story(2 * at + 1, 4)}"
        yield Document(str(at), text, "validation" if at % 5 == 4 else "train")


@pytest.fixture(scope="module", params=[WordPiece, BPE, Unigram])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    size = 330 if request.param is BPE else 100
    built: Tokenizer = request.param(size).build([d.text for d in corpus()], tmp_path_factory.mktemp("tokenizer"))
    return built


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_store_holds_each_sentence_encoded_by_itself(tokenizer: Tokenizer, tmp_path: Path) -> None:
    build(corpus(), tokenizer, Blingfire(), tmp_path / "s")
    for split in ("train", "validation"):
        found, sentence = TokenStore(tmp_path / "s" / split), 0
        documents = [document for document in corpus() if document.split == split]
        assert found.documents == len(documents)
        for number, document in enumerate(documents):
            assert found.document_start[number] == sentence
            for text in (s for line in document.text.split("\n") for s in Blingfire()(line)):
                ids, starts = tokenizer.encode([text])[0]
                piece = slice(found.sentence_start[sentence], found.sentence_start[sentence + 1])
                assert found.ids[piece].tolist() == ids.tolist()
                assert found.word_start[piece].tolist() == starts.tolist()
                sentence += 1
        assert found.sentences == sentence == found.document_start[-1]
        assert found.tokens == len(found.ids) == len(found.word_start) == found.sentence_start[-1]
        assert all(found.word_start[found.sentence_start[:-1]])


def test_types_are_as_small_as_the_vocabulary_allows(tokenizer: Tokenizer, tmp_path: Path) -> None:
    build(corpus(5), tokenizer, Blingfire(), tmp_path / "small")
    large = Tokenizer(tokenizer.backend, tokenizer.vocabulary.__class__(1 << 17, 0, 1, 2, 3, 4, (0,)), "large")
    build(corpus(5), large, Blingfire(), tmp_path / "large")
    small, big = (TokenStore(tmp_path / name / "train") for name in ("small", "large"))
    assert (small.ids.dtype, big.ids.dtype) == (np.uint16, np.uint32)
    assert (small.ids == big.ids).all()
    assert (small.word_start.dtype, small.sentence_start.dtype, small.document_start.dtype) == ("u1", "i8", "i8")


def test_batches_change_nothing(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 300, 5_000, 10**9):
        monkeypatch.setattr(store, "BATCH", size)
        build(corpus(), tokenizer, Blingfire(), tmp_path / str(size))
    assert len({str(contents(tmp_path / str(size))) for size in (1, 300, 5_000, 10**9)}) == 1


BUILD = """
import os, sys
from pathlib import Path
from paribus.data.corpus.sentences import Blingfire
from paribus.data.tokens.store import build
from paribus.data.tokens.tokenizer import Tokenizer
from test_store import corpus
build(corpus(), Tokenizer.load(Path(sys.argv[1])), Blingfire(), Path(sys.argv[2]))
"""


def environment(**more: str) -> dict[str, str]:
    """What a script needs to import this file."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]), **more}


def test_threads_change_nothing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer")
    settings: list[dict[str, str]] = [{"TOKENIZERS_PARALLELISM": "false"}, {"RAYON_NUM_THREADS": "3"}]
    for number, more in enumerate(settings):
        command = [sys.executable, "-c", BUILD, str(tmp_path / "tokenizer"), str(tmp_path / str(number))]
        subprocess.run(command, check=True, env=environment(**more))
    assert contents(tmp_path / "0") == contents(tmp_path / "1")


def test_empty_sentences_and_documents_are_dropped(tmp_path: Path) -> None:
    tokenizer = WordPiece(120).build([d.text for d in corpus()], tmp_path / "tokenizer")
    texts = ["\u200b", "old sailor\n\u200b\nred river", "\ufffd\n\u200b", "one house"]
    build([Document(str(n), text, "train") for n, text in enumerate(texts)], tokenizer, Lines(), tmp_path / "s")
    found = TokenStore(tmp_path / "s" / "train")
    assert found.document_start.tolist() == [0, 2, 3]
    assert (np.diff(found.sentence_start) > 0).all()


def test_later_parts_go_on_with_their_document(tokenizer: Tokenizer, tmp_path: Path) -> None:
    whole = [Document("a", "old sailor\nred river\none house", "train"), Document("b", "one road", "train")]
    parts = [
        Document("a", "old sailor\nred river", "train"), Document("a", "one house", "train", 1), whole[1],
    ]  # fmt: skip
    build(whole, tokenizer, Lines(), tmp_path / "whole")
    build(parts, tokenizer, Lines(), tmp_path / "parts")
    assert TokenStore(tmp_path / "whole" / "train").document_start.tolist() == [0, 3, 4]
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")


def test_a_store_without_tokens_is_readable(tokenizer: Tokenizer, tmp_path: Path) -> None:
    build([], tokenizer, Lines(), tmp_path / "none")
    assert [path.name for path in (tmp_path / "none").iterdir()] == [SUMS]


def test_a_giant_sentence_is_cut_at_spaces_and_loses_nothing() -> None:
    text = " ".join(["word"] * 60_000)
    pieces = cut(text)
    assert max(map(len, pieces)) <= store.LONGEST
    assert " ".join(pieces) == text
    assert "".join(cut("x" * 250_001)) == "x" * 250_001
    assert cut("short one") == ["short one"]


def test_a_store_pickles_as_its_path(tokenizer: Tokenizer, tmp_path: Path) -> None:
    build(corpus(), tokenizer, Blingfire(), tmp_path / "s")
    found = TokenStore(tmp_path / "s" / "train")
    assert len(found.ids) > 1000
    packed = pickle.dumps(found)
    assert len(packed) < 500
    assert (pickle.loads(packed).ids == found.ids).all()
    with pytest.raises(ValueError, match="read-only"):
        found.ids[0] = 1


def test_a_cut_file_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    build(corpus(), tokenizer, Blingfire(), tmp_path / "s")
    path = tmp_path / "s" / "train" / "ids.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(UserError, match=r"ids\.bin does not match the size"):
        _ = TokenStore(tmp_path / "s" / "train").ids


KILLED = """
import sys, time
from pathlib import Path
from paribus.core.checksums import SUMS
from paribus.data.corpus.document import Document
from paribus.data.corpus.sentences import Blingfire
from paribus.data.tokens import store
from paribus.data.tokens.tokenizer import Tokenizer
from test_store import corpus

def slow():
    for number, document in enumerate(corpus(10**6)):
        if number == 100:
            print("running", flush=True)
            time.sleep(60)
        yield document

store.BATCH = 2000
store.build(slow(), Tokenizer.load(Path(sys.argv[1])), Blingfire(), Path(sys.argv[2]))
"""


def test_a_killed_build_leaves_nothing_that_is_taken_for_whole(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer")
    folder = tmp_path / "stores" / "name"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "tokenizer"), str(folder)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    left = [path.name for path in folder.parent.iterdir()]
    assert left
    assert all(name.startswith(".") for name in left)
    build(corpus(), tokenizer, Blingfire(), folder)
    build(corpus(), tokenizer, Blingfire(), tmp_path / "other")
    assert contents(folder) == contents(tmp_path / "other")


def test_a_failed_build_leaves_nothing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    def broken() -> Iterator[Document]:
        yield from corpus(3)
        raise UserError("file.txt is broken", "mend it")

    with pytest.raises(UserError, match="broken"):
        build(broken(), tokenizer, Blingfire(), tmp_path / "stores" / "name")
    assert list((tmp_path / "stores").iterdir()) == []


def config(folder: Path, *overrides: str) -> Run:
    return Run.of(compose(["corpus=text", f"corpus.path={folder}", "tokenizer.vocab_size=150", *overrides]))


def test_prepare_makes_stores_and_a_plain_fingerprint(text_folder: Path, tmp_path: Path) -> None:
    cfg = config(text_folder)
    data = prepare(cfg.corpus, cfg.tokenizer, tmp_path)
    assert set(data.stores) == {"train", "validation"}
    assert data.vocabulary.size == 150 == data.tokenizer.vocabulary.size
    assert data.fingerprint["tokens"] == {split: found.tokens for split, found in data.stores.items()}
    assert data.count_V.tolist() == np.bincount(data.stores["train"].ids, minlength=150).tolist()
    known = data_fingerprint(cfg.corpus, cfg.tokenizer, tmp_path)
    assert {**known, "tokens": data.fingerprint["tokens"]} == data.fingerprint
    assert str(tmp_path) not in str(known)
    assert str(text_folder) not in str(known)


def test_the_fingerprint_is_that_of_the_text_and_the_tokenizer(text_folder: Path, tmp_path: Path) -> None:
    def known(folder: Path, *overrides: str) -> dict[str, Any]:
        cfg = config(folder, *overrides)
        return data_fingerprint(cfg.corpus, cfg.tokenizer, tmp_path / "cache")

    copy = tmp_path / "copy"
    copy.mkdir()
    for path in text_folder.iterdir():
        (copy / path.name).write_text(path.read_text())
    assert known(copy) == known(text_folder)
    assert known(copy, "tokenizer.vocab_size=140")["tokenizer"] != known(copy)["tokenizer"]
    assert known(copy, "tokenizer=unigram", "tokenizer.vocab_size=100")["tokenizer"] != known(copy)["tokenizer"]
    before = known(copy)
    with (copy / "train.txt").open("a") as file:
        file.write("\nOne more old sailor.\n")
    assert known(copy)["text"] != before["text"]


SECOND = """
import json, sys, time
from pathlib import Path
from paribus.core.config import compose
from paribus.data.tokens.prepare import prepare
from paribus.training.description import Run
cfg = Run.of(compose(sys.argv[2:]))
start = time.perf_counter()
data = prepare(cfg.corpus, cfg.tokenizer, Path(sys.argv[1]))
data.vocabulary, data.stores["train"].ids
took = time.perf_counter() - start
heavy = [name for name in ("torch", "transformers", "datasets", "pyarrow", "tokenizers") if name in sys.modules]
print(json.dumps([took, heavy]))
"""


def test_a_second_prepare_is_fast_and_light(text_folder: Path, tmp_path: Path) -> None:
    import json

    overrides = ["corpus=text", f"corpus.path={text_folder}", "tokenizer.vocab_size=150"]
    command = [sys.executable, "-c", SECOND, str(tmp_path), *overrides]
    cfg = config(text_folder)
    prepare(cfg.corpus, cfg.tokenizer, tmp_path)
    took = []
    for _ in range(3):
        seconds, heavy = json.loads(subprocess.run(command, check=True, capture_output=True, env=environment()).stdout)
        took.append(seconds)
        assert heavy == []
        if seconds < 0.1:
            break
        time.sleep(0.5)
    assert min(took) < 0.1


def test_pretrained_keeps_its_vocabulary_whatever_the_text(text_folder: Path, tmp_path: Path) -> None:
    made = WordPiece(130).build([d.text for d in corpus()], tmp_path / "made")
    cfg = config(text_folder, "tokenizer=pretrained", f"tokenizer.name={tmp_path / 'made'}")
    data = prepare(cfg.corpus, cfg.tokenizer, tmp_path / "cache")
    assert data.vocabulary == made.vocabulary


def test_bad_input_names_the_key(text_folder: Path, tmp_path: Path) -> None:
    cfg = config(text_folder, "tokenizer.vocab_size=30000")
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=30000 is larger than the text can give"):
        prepare(cfg.corpus, cfg.tokenizer, tmp_path)
    (tmp_path / "one.txt").write_text("indivisible")
    cfg = config(tmp_path / "one.txt")
    with pytest.raises(UserError, match="no validation document"):
        prepare(cfg.corpus, cfg.tokenizer, tmp_path)


def test_training_text_is_spread_and_bounded() -> None:
    paragraphs = [f"{number:03d}" + "x" * 97 for number in range(100)]
    chosen = list(spread(iter(paragraphs), 2_000, 10_000))
    numbers = [int(paragraph[:3]) for paragraph in chosen]
    assert 15 <= len(chosen) <= 20
    assert max(np.diff([0, *numbers, 100])) <= 13
    assert list(spread(iter(paragraphs), 10_000, 10_000)) == paragraphs
    assert list(spread(iter(["y" * 500]), 100, 500)) == ["y" * 100]
