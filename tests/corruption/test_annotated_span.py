"""Annotated spans: from characters to whole words in three families of tokenizers, and the draws played one by one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_annotator
import numpy as np
import pytest
from fake_text import ROWS, Rows, made_up, noise, text_of, words_of
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import story

from paribus.core.config import compose
from paribus.core.errors import Unavailable, UserError
from paribus.core.noise import Noise
from paribus.corruption.masking.annotated_span import AnnotatedSpan
from paribus.data.annotators import Function, SpacyEntities, SpacyNounChunks
from paribus.data.sequences import Text
from paribus.data.tokens.annotation import codes
from paribus.data.tokens.store import sample_store
from paribus.data.tokens.tokenizer import Tokenizer
from paribus.data.tokens.trained import BPE, Trained, Unigram, WordPiece
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.streams import training_examples


@pytest.fixture(autouse=True)
def _declared(trust: Callable[..., None]) -> None:
    trust("fake_annotator", "no_such_module")


CAPITALS = Function("fake_annotator:capitals")
RATES = st.floats(0.05, 0.8)
OVERRIDES = [
    "masking=annotated_span",
    "masking/annotator=function",
    "masking.annotator.call='fake_annotator:capitals'",
]


def annotated(text: Text, share: float = 0.4, seed: int = 0) -> Text:
    """The text with spans of one to three words at random places."""
    random, code_BL = np.random.default_rng(seed), np.zeros(text.ids_BL.shape, np.uint8)
    for row in range(len(code_BL)):
        words, at = words_of(text, row), 0
        while at < len(words):
            size = int(random.integers(1, 4))
            if random.random() < share:
                columns = [column for word in words[at : at + size] for column in word]
                code_BL[row, columns] = 2
                code_BL[row, columns[0]] = 1
            at += size
    return replace(text, annotated_BL=code_BL)


def units_of(text: Text, row: int) -> list[list[int]]:
    """The columns of each annotated span of a row; a special token parts one."""
    assert text.annotated_BL is not None
    spans: list[list[int]] = []
    for column in np.flatnonzero(text.free_BL[row]).tolist():
        code = text.annotated_BL[row, column]
        goes_on = code == 2 and text.free_BL[row, column - 1] and text.annotated_BL[row, column - 1]
        if code and not goes_on:
            spans.append([])
        if code:
            spans[-1].append(column)
    return spans


def played(text: Text, row: int, masking: AnnotatedSpan, drawn: Noise) -> set[int]:
    """The rule as a plain loop over the same draws: the columns that are noise."""
    words, spans = words_of(text, row), units_of(text, row)
    bits_L = drawn.bits("masking", text.ids_BL.shape[1])[row]
    waiting = sorted(words, key=lambda word: bits_L[word[0]] >> 10)
    order = sorted(spans, key=lambda span: drawn.at("annotated span", [row], [span[0]])[0])
    free = int(text.free_BL[row].sum())
    budget, found = math.ceil(masking.rate * free), list[int]()
    for nth, span in enumerate(order):
        bits = drawn.at("words between spans", [row], [nth])[0]
        ahead = int((np.rint((1 - (1 - masking.share) ** np.arange(1, 400)) * 2**32) <= bits).sum())
        for unit in (*waiting[:ahead], span):
            found += [column for column in unit if column not in found]
        waiting = waiting[ahead:]
    for word in waiting:
        found += [column for column in word if column not in found]
    return set(found[:budget])


@given(ROWS, RATES, st.floats(0.1, 1), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=120, deadline=None)
def test_marks_are_those_of_the_plain_loop(rows: Rows, rate: float, share: float, dense: float, seed: int) -> None:
    text, drawn = annotated(text_of(rows), dense, seed), noise(len(rows), seed)
    masking = AnnotatedSpan(rate, CAPITALS, share)
    span_BL = masking(text, drawn).span_BL
    assert not span_BL[~text.free_BL].any()
    for row, span_L in enumerate(span_BL):
        assert set(np.flatnonzero(span_L).tolist()) == played(text, row, masking, drawn)
        assert (span_L > 0).sum() == math.ceil(rate * int(text.free_BL[row].sum()))


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_the_share_is_that_of_the_draws(share: float) -> None:
    """Long rows with a span of two words in every ten: few draws meet what is noise already."""
    text = text_of([[[1] * 1500]] * 300)
    code_BL = np.zeros(text.ids_BL.shape, np.uint8)
    code_BL[:, 1:1500:10] = 1
    code_BL[:, 2:1500:10] = 2
    masking = AnnotatedSpan(0.01, CAPITALS, share)
    span_BL = masking(replace(text, annotated_BL=code_BL), noise(300)).span_BL
    spans = np.count_nonzero((span_BL[:, 1:1491:10] > 0) & (span_BL[:, 2:1492:10] > 0))
    words = 10 * np.count_nonzero(span_BL[:, 3:1493:10] > 0)  # one word of ten stands there
    assert abs(spans / (spans + words) - share) < 0.03


def test_with_share_1_only_spans_are_noise_while_there_are_any() -> None:
    text = annotated(made_up(60), 0.9)
    assert text.annotated_BL is not None
    span_BL = AnnotatedSpan(0.2, CAPITALS, 1.0)(text, noise(60)).span_BL
    assert not (span_BL[text.annotated_BL == 0] > 0).any()
    none = replace(text, annotated_BL=np.zeros_like(text.annotated_BL))
    assert (AnnotatedSpan(0.2, CAPITALS, 1.0)(none, noise(60)).span_BL > 0).sum() == (span_BL > 0).sum()


KINDS: dict[str, tuple[type[Trained], int]] = {
    "wordpiece": (WordPiece, 150),
    "bpe": (BPE, 330),
    "unigram": (Unigram, 120),
}
SENTENCES = [
    "The sailor met Captain Old Red River near the house.",
    "Winter (Quiet Morning) crossed Garden-Road, because it rained.",
    "nobody walked again.",
    "Émile Zola wrote to Anna's Sister.",
]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    kind, size = KINDS[request.param]
    return kind(size).build([story(n) for n in range(40)] + SENTENCES * 3, tmp_path_factory.mktemp(request.param))


def test_spans_of_characters_are_whole_words_of_tokens_in_three_families(tokenizer: Tokenizer) -> None:
    batch, offset_T2 = tokenizer.locate(SENTENCES)
    assert np.array_equal(batch.ids_T, tokenizer.flat(SENTENCES).ids_T)
    code_T = codes(SENTENCES, [fake_annotator.capitals(sentence) for sentence in SENTENCES], batch, offset_T2)
    edges = np.append(0, np.cumsum(batch.length_S))
    for sentence, first, last in zip(SENTENCES, edges[:-1], edges[1:], strict=True):
        found, code = list[str](), code_T[first:last]
        for start in np.flatnonzero(code == 1):
            stop = next((at for at in range(start + 1, len(code)) if code[at] != 2), len(code))
            begin, end = offset_T2[first + start][0], offset_T2[first + stop - 1][1]
            found.append(sentence[begin:end].strip())
        assert found == [sentence[begin:end] for begin, end in fake_annotator.capitals(sentence)]
    assert (batch.word_start_T[code_T == 1] == 1).all()


def test_of_spans_that_share_a_word_the_first_and_longest_counts(tokenizer: Tokenizer) -> None:
    sentence = "one old river house."
    batch, offset_T2 = tokenizer.locate([sentence])
    given_spans = [(4, 7), (4, 13), (9, 19), (14, 19)]  # the second wins, the third cuts into it, the last fits
    code_T = codes([sentence], [given_spans], batch, offset_T2)
    starts = [offset_T2[at][0] for at in np.flatnonzero(code_T == 1)]
    assert [len(sentence[start:].strip()) for start in starts] == [len("old river house."), len("house.")]


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A corpus with names in it."""
    folder = tmp_path / "named"
    folder.mkdir()
    for split, first in (("train", 0), ("validation", 200)):
        texts = [re.sub(r"\b(captain|sister) (\w)", lambda m: m[0].title(), story(first + n)) for n in range(40)]
        (folder / f"{split}.txt").write_text("\n\n".join(texts) + "\n")
    return folder


@pytest.fixture
def given_overrides(arguments: list[str], named: Path) -> list[str]:
    return [*(text for text in arguments if not text.startswith("corpus.path=")), f"corpus.path={named}", *OVERRIDES]


def batches(overrides: list[str]) -> list[Any]:
    cfg = compose(overrides)
    examples = training_examples(Run.of(cfg), Run.of(cfg).data())
    return [examples.views(epoch, np.arange(8)).marks.span_BL.tolist() for epoch in (0, 1)]


def test_a_run_masks_what_the_annotator_finds(given_overrides: list[str]) -> None:
    cfg = compose([*given_overrides, "masking.share=1.0", "masking.rate=0.05", "trainer.train_tokens=null"])
    data = Run.of(cfg).data()
    views = training_examples(Run.of(cfg), data).views(0, np.arange(100))
    assert views.text.annotated_BL is not None
    noisy = views.marks.span_BL > 0
    has = (views.text.annotated_BL > 0).sum(axis=1) > noisy.sum(axis=1)
    assert has.any()
    assert not (noisy & (views.text.annotated_BL == 0))[has].any()
    folder = run(cfg)
    record = json.loads((folder / "result.json").read_text())
    assert record["status"] == "done"
    assert record["data"]["spans"] == ["function", "fake_annotator:capitals", "1", 1]


def test_spans_follow_a_sample_of_the_text(given_overrides: list[str]) -> None:
    cfg = compose([*given_overrides, "trainer.train_tokens=null"])
    store = Run.of(cfg).data().stores["train"]
    small = sample_store(store, 3000)
    assert small.annotated is not None
    whole = "".join(map(str, store.annotated))
    for document in range(small.documents):
        first, last = small.sentence_start[small.document_start[[document, document + 1]]]
        assert "".join(map(str, small.annotated[first:last])) in whole
    assert store.annotated.sum() > 100


def test_a_run_is_named_by_what_its_annotator_is(given_overrides: list[str]) -> None:
    one = Run.of(compose(given_overrides)).identity
    other = Run.of(compose([*given_overrides, "masking.annotator.version='2'"])).identity
    assert one.signature != other.signature
    assert one.data["spans"] != other.data["spans"]
    plain = [text for text in given_overrides if not text.startswith("masking")]
    assert "spans" not in Run.of(compose(plain)).identity.data


REFUSED = {
    "finds no span in the training text": "fake_annotator:nothing",
    "gives the span": "fake_annotator:beyond",
    "cannot be imported": "no_such_module:find",
    "write module:function": "find",
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_annotators_are_one_line_and_status_2(
    message: str, given_overrides: list[str], refused_run: Callable[..., str]
) -> None:
    assert message in refused_run(*given_overrides, f"masking.annotator.call='{REFUSED[message]}'")


def test_bad_settings_are_named() -> None:
    for share in (0, 1.5, "all"):
        with pytest.raises(UserError, match=rf"masking\.share={share}"):
            AnnotatedSpan(0.15, CAPITALS, share)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="the text is not annotated"):
        AnnotatedSpan(0.15, CAPITALS)(made_up(2), noise(2))


@pytest.mark.parametrize("kind", [SpacyEntities, SpacyNounChunks])
def test_spacy_is_asked_for_by_name_and_missed_with_a_reason(kind: type[SpacyEntities]) -> None:
    with pytest.raises(Unavailable, match=r"spaCy is not installed|the spaCy model no_such_model is not here"):
        kind("no_such_model").require()


def test_spacy_finds_entities_but_no_numbers(tmp_path: Path) -> None:
    """A pipeline of rules, kept in a folder: no model is needed."""
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Captain Red"}, {"label": "DATE", "pattern": "Monday"}])
    pipeline.to_disk(tmp_path / "rules")
    entities = SpacyEntities(str(tmp_path / "rules"))
    assert list(entities.spans(["On Monday Captain Red slept.", "nobody"])) == [[(10, 21)], []]
    assert str(tmp_path) not in json.dumps(entities.identity())


def test_spacy_finds_noun_phrases_if_the_pipeline_parses(tmp_path: Path) -> None:
    """Rules give the parts of speech and the dependencies that a model would."""
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    rules = pipeline.add_pipe("attribute_ruler")
    for word, kind, role in (("sea", "NOUN", "nsubj"), ("rose", "VERB", "ROOT"), ("ship", "NOUN", "dobj")):
        rules.add([[{"LOWER": word}]], {"POS": kind, "DEP": role})
    pipeline.to_disk(tmp_path / "parsed")
    found = SpacyNounChunks(str(tmp_path / "parsed"))
    assert list(found.spans(["Sea rose ship", "rose"])) == [[(0, 3), (9, 13)], []]
    spacy.blank("en").to_disk(tmp_path / "plain")
    with pytest.raises(UserError, match="has no parser"):
        list(SpacyNounChunks(str(tmp_path / "plain")).spans(["the sea"]))


def test_an_arm_is_asked_under_its_own_annotated_noise(given_overrides: list[str]) -> None:
    folder = run(compose([*given_overrides, "evaluation.own_points=2", "trainer.max_steps=2"]))
    own = json.loads((folder / "result.json").read_text())["own"]
    assert own["loss"] > 0
    assert own["floor"] > 0
