"""Tagging: first pieces, rows of long sentences, spans, the CRF against brute force."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paribus.core.errors import UserError
from paribus.data.tokens.trained import BPE, Unigram, WordPiece
from paribus.models.heads.tokens import CRFHead
from paribus.tasks.examples import TaggedExample
from paribus.tasks.metrics import find_spans, score_spans
from paribus.tasks.tables.table import TagTable
from paribus.tasks.types.tagging import NO_TAG, Tagging, find_first_tokens
from paribus.training.steps import task_batch

BIO = ("O", "B-a", "I-a", "B-b", "I-b")
VOCABULARY: Any = SimpleNamespace(pad=0, cls=2, sep=3)
SETTINGS: Any = SimpleNamespace(length=5)


class Segments:
    """Two letters a token, numbered; the space before a word belongs to its first token, as in byte-level BPE."""

    def locate(self, texts: list[str]) -> tuple[Any, np.ndarray[Any, Any]]:
        rows = [[match.span() for match in re.finditer(r" ?[^ ]{1,2}", text)] for text in texts]
        lengths = np.array([len(row) for row in rows])
        ids = np.arange(10, 10 + lengths.sum())
        return SimpleNamespace(ids_T=ids, length_S=lengths), np.array([span for row in rows for span in row])


TOKENIZER: Any = Segments()


def test_spans_by_hand() -> None:
    assert find_spans(["B-a", "I-a", "O", "B-b"]) == [("a", 0, 2), ("b", 3, 4)]
    assert find_spans(["I-a", "I-a", "I-b", "B-b"]) == [("a", 0, 2), ("b", 2, 3), ("b", 3, 4)]
    assert find_spans(["O", "I-b", "B-a", "B-a"]) == [("b", 1, 2), ("a", 2, 3), ("a", 3, 4)]
    assert find_spans([]) == []


def test_spans_of_every_short_sentence_are_conlleval_s() -> None:
    """conlleval's rule for pairs of tags: what ends a chunk, what starts one."""

    def starts(before: str, tag: str) -> bool:
        return tag != "O" and (tag[0] == "B" or before == "O" or before[2:] != tag[2:])

    def ends(before: str, tag: str) -> bool:
        return before != "O" and (tag == "O" or tag[0] == "B" or before[2:] != tag[2:])

    for size in range(1, 6):
        for tags in itertools.product(BIO, repeat=size):
            padded = ["O", *tags, "O"]
            begin = [at for at in range(size) if starts(padded[at], tags[at])]
            end = [at for at in range(1, size + 1) if ends(padded[at], padded[at + 1])]
            assert find_spans(tags) == [(tags[b][2:], b, e) for b, e in zip(begin, end, strict=True)]


def test_span_scores() -> None:
    given = [["B-a", "I-a", "O"], ["B-b", "O", "B-a"]]
    found = [["B-a", "O", "O"], ["B-b", "O", "B-a"]]
    assert score_spans(found, given) == {"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3}
    assert score_spans([["O"]], [["O"]]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_first_pieces_whichever_side_the_space_is_on() -> None:
    words = ["ab", "cde", "f"]
    assert find_first_tokens(words, np.array([2, 5, 6, 8])).tolist() == [0, 1, -1, 2]
    assert find_first_tokens(words, np.array([1, 2, 3, 5, 6, 7, 8])).tolist() == [0, -1, -1, 1, -1, -1, 2]


def test_rows_and_predictions_of_a_sentence_that_is_too_long() -> None:
    task_type = Tagging(BIO, ("f1", "accuracy"))
    examples = [TaggedExample(["abc", "de", "fghij", "k"], [1, 2, 0, 3]), TaggedExample(["x"], [4])]
    rows = task_type.encode(examples, TOKENIZER, VOCABULARY, SETTINGS)
    assert rows.length_N.tolist() == [5, 5, 3, 3]  # 7 pieces in rows of 3
    assert rows.label_N.tolist() == [0, 0, 0, 1]
    assert [tag for tag in rows.tag_T.tolist() if tag != NO_TAG] == [1, 2, 0, 3, 4]
    batch = task_batch(rows, np.arange(4))
    assert batch["counts"]["words"] == 5
    assert batch["tag_BL"].shape == batch["ids_BL"].shape
    answers = [np.where(row >= 0, row, 0) for row in batch["tag_BL"].numpy()]
    found = task_type.predict(answers, rows, examples)
    assert found == [[1, 2, 0, 3], [4]]
    assert task_type.score(found, examples) == {"f1": 1.0, "accuracy": 1.0}
    assert task_type.score([[0, 2, 0, 3], [4]], examples) == {"f1": 2 / 3, "accuracy": 0.8}


WITHOUT_TOKEN = ("\u200b", "\ufe0f", "\ufeff", "\u200d", "\u00ad", "\u200f", "\x07", "\u0301", "\u00a0", "\u3000")


@pytest.mark.parametrize(("kind", "size"), [(WordPiece, 80), (BPE, 300), (Unigram, 80)])
def test_words_without_a_token_cost_an_oracle_nothing(kind: Any, size: int, tmp_path: Path) -> None:
    """The gold tag of each token is given as the answer, in sentences with words that a tokenizer may drop."""
    tokenizer = kind(vocab_size=size).build([" ".join(f"{n} Anna Lee ran to Oslo" for n in range(400))] * 2, tmp_path)
    classes = ("B-a", "B-b", "I-a", "I-b", "O")  # the first one is not O
    task_type = Tagging(classes, ("f1", "accuracy"))
    draw = np.random.default_rng(0)
    for length in (64, 5):
        for _ in range(60):
            words = [*draw.choice(["Anna", "ran", *WITHOUT_TOKEN], 6).tolist(), "Oslo"]
            examples = [TaggedExample(words, [*draw.integers(0, 5, 6).tolist(), 0])]
            rows = task_type.encode(examples, tokenizer, tokenizer.vocabulary, SimpleNamespace(length=length))
            answers = [
                np.maximum(rows.tag_T[start : start + count], 0)
                for start, count in zip(rows.start_N, rows.length_N, strict=True)
            ]
            found = task_type.predict(answers, rows, examples)
            assert task_type.score(found, examples) == {"f1": 1.0, "accuracy": 1.0}, words


def crf(classes: int = 3, width: int = 4) -> CRFHead:
    torch.manual_seed(0)
    head = CRFHead(width, classes, 0.0)
    for parameter in (head.follow_CC, head.begin_C, head.end_C):
        torch.nn.init.normal_(parameter)
    return head.eval()


def test_the_crf_is_its_definition_over_all_paths() -> None:
    """Words are at some places of the row; rows have 4, 1 and 2 of them."""
    head, outputs = crf(), SimpleNamespace(hidden_BLD=torch.randn(3, 7, 4))
    tag_BL = torch.full((3, 7), NO_TAG)
    tag_BL[0, [1, 2, 4, 5]] = torch.tensor([2, 0, 1, 1])
    tag_BL[1, 3] = 2
    tag_BL[2, [1, 5]] = torch.tensor([1, 0])
    batch: Any = {"tag_BL": tag_BL}
    score_BLC = head.logits(outputs, batch)  # type: ignore[arg-type]
    expected = 0.0
    answer_BL = head.answer(outputs, batch)  # type: ignore[arg-type]
    for row in range(3):
        places = (tag_BL[row] >= 0).nonzero()[:, 0].tolist()

        def value(path: Any, row: int = row, places: list[int] = places) -> torch.Tensor:
            total = head.begin_C[path[0]] + head.end_C[path[-1]]
            total = total + sum(score_BLC[row, place, tag] for place, tag in zip(places, path, strict=True))
            return total + sum(head.follow_CC[a, b] for a, b in itertools.pairwise(path))

        paths = list(itertools.product(range(3), repeat=len(places)))
        values = torch.stack([value(path) for path in paths])
        expected += float((values.logsumexp(0) - value(tag_BL[row, places].tolist())).detach())
        assert tuple(answer_BL[row, places].tolist()) == paths[int(values.argmax())]
    assert float(head(outputs, batch)) == pytest.approx(expected, abs=1e-4)  # type: ignore[arg-type]


def test_rows_without_a_word_cost_a_crf_nothing() -> None:
    head, outputs = crf(), SimpleNamespace(hidden_BLD=torch.randn(1, 3, 4))
    batch: Any = {"tag_BL": torch.full((1, 3), NO_TAG)}
    assert float(head(outputs, batch)) == 0.0  # type: ignore[arg-type]
    assert head.answer(outputs, batch).tolist() == [[0, 0, 0]]  # type: ignore[arg-type]


def write(folder: Path, split: str, words: list[Any], tags: list[Any]) -> None:
    pq.write_table(pa.table({"words": words, "tags": tags}), folder / f"{split}.parquet")


def task(folder: Path, **changes: Any) -> TagTable:
    settings: dict[str, Any] = {"columns": {"words": "words", "tags": "tags"}, "classes": ["O", "B-a", "I-a"]}
    return TagTable("toy", **{**settings, **changes}, path=str(folder))


def test_conll_files_are_read_as_tables_are(tmp_path: Path) -> None:
    for kind in ("parquet", "conll"):
        (tmp_path / kind).mkdir()
    sentences = [(["New", "York", "is"], ["B-a", "I-a", "O"]), (["Big\u2028"], ["O"])]
    for split in ("train", "validation"):
        write(tmp_path / "parquet", split, [w for w, _ in sentences], [t for _, t in sentences])
        lines = ["-DOCSTART-\tO", ""]
        for words, tags in sentences:
            lines += [*(f"{w}\tNN\t{t}" for w, t in zip(words, tags, strict=True)), ""]
        (tmp_path / "conll" / f"{split}.conll").write_text("\n".join(lines), encoding="utf-8-sig")
    first, second = (task(tmp_path / kind) for kind in ("parquet", "conll"))
    assert first.examples(tmp_path / "c")["train"] == [
        TaggedExample(["New", "York", "is"], [1, 2, 0]),
        TaggedExample(["Big\u2028"], [0]),
    ]
    assert first.data_hash(tmp_path / "c") == second.data_hash(tmp_path / "c")
    assert first.summary(tmp_path / "c")["labels"]["train"] == {"O": 2, "B-a": 1, "I-a": 1}


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        ([["a", "b"]], [[0]], "row 0 of train has 2 words and 1 tags"),
        ([["a"], ["b"]], [[0], [7]], "row 1 of train has the tag 7: add it to the tags"),
        ([["a", " "]], [[0, 1]], "row 0 of train has no text in column 'words'"),
        ([["a"], []], [[1], []], "row 1 of train has no list of words"),
        ([["a", "b"]], [[0, 0]], "all training words have the same tag"),
    ],
)
def test_bad_rows(tmp_path: Path, words: list[Any], tags: list[Any], message: str) -> None:
    write(tmp_path, "train", words, tags)
    write(tmp_path, "validation", [["a"]], [[0]])
    with pytest.raises(UserError, match=message):
        task(tmp_path).examples(tmp_path / "cache")


def test_spans_need_bio_tags(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="spans need the tags O, B-kind and I-kind"):
        task(tmp_path, classes=["NOUN", "VERB"])
    task(tmp_path, classes=["NOUN", "VERB"], metrics=["accuracy"])
