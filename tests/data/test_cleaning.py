"""C4's cleaning rules one by one, counted, and the same held-out text whatever the rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.corpus.cleaning import BadWords, Deduplicate, DropLines, DropPages, Filtered, KeepLines, ShortPages
from paribus.data.corpus.document import Corpus, Document
from paribus.data.corpus.sentences import Blingfire
from paribus.data.corpus.splits import fingerprint
from paribus.data.tokens.prepare import data_fingerprint
from paribus.training.description import Run

PAGES = [
    "A line that ends.\nmenu | home\nIs this kept? Yes!\nHe said “so”",
    "Please enable JavaScript to go on.\nThis stays.",
    "Lorem Ipsum dolor sit amet.",
    "if (x) { return; }.",
    "A page with a darn word.",
    "A darning needle is no bad word.",
    "One came first. Two came then. Three came last. Four is new.",
    "Zero is new. One came first. Two came then. Three came last.\nFive is new.",
]


class Pages(Corpus):
    """Pages in memory; the last one is held out."""

    semantics = 1
    validation = 0.5
    sentences = Blingfire()

    def __init__(self, pages: list[str]) -> None:
        self.pages = pages

    def documents(self, cache: Path) -> Iterator[Document]:
        for number, page in enumerate(self.pages):
            yield Document(str(number), page, "train")
        yield Document("held out", "menu | home", "validation")

    def source(self) -> Any:
        return self.pages


def rules(words: Path) -> dict[str, Any]:
    return {
        "end_punctuation": KeepLines(),
        "bad_words": BadWords(str(words)),
        "javascript": DropLines(["javascript"]),
        "lorem_ipsum": DropPages("lorem ipsum"),
        "curly_brace": DropPages("{"),
        "deduplicate": Deduplicate(),
    }


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("darn\nvery bad phrase\n\n")
    return path


def test_each_rule_does_what_the_paper_says_and_is_counted(words: Path, tmp_path: Path) -> None:
    corpus = Filtered(Pages(PAGES), rules(words))
    for _ in range(2):
        found = [document.text for document in corpus.documents(tmp_path)]
        assert found == [
            "A line that ends.\nIs this kept? Yes!\nHe said “so”",
            "This stays.",
            "A darning needle is no bad word.",
            "One came first. Two came then. Three came last. Four is new.",
            "Zero is new.\nFive is new.",
            "menu | home",
        ]
        counts = {name: count for name, count in corpus.counts.items() if count and not name.endswith("characters")}
        assert counts == {
            "end_punctuation_lines": 1,
            "bad_words_documents": 1,
            "javascript_lines": 1,
            "lorem_ipsum_documents": 1,
            "curly_brace_documents": 1,
        }
        assert corpus.counts["deduplicate_characters"] == len(" One came first. Two came then. Three came last.")


RULES = {
    "long_words": ("Too longggggg a word here.\nThis one stays as it is.", "This one stays as it is.", "lines"),
    "citations": ("It was said[1] so[citation needed].\nHistory[edit]", "It was said so.\nHistory", "characters"),
    "end_punctuation": ("This line goes on ...\nThis one ends here.", "This one ends here.", "lines"),
    "short_lines": ("Only four words here.\nThis line has five words.", "This line has five words.", "lines"),
    "lorem_ipsum": ("Lorem IPSUM dolor sit amet.", "", "documents"),
    "javascript": ("Please enable JavaScript now.\nThis stays.", "This stays.", "lines"),
    "curly_brace": ("if (x) { return; }.", "", "documents"),
    "policies": ("This site uses Cookies a lot.\nThis stays.", "This stays.", "lines"),
    "bad_words": ("A page with a darn word.", "", "documents"),
    "deduplicate": ("One is. Two is. Three is. One is. Two is. Three is.", "One is. Two is. Three is.", "characters"),
    "short_pages": ("One sentence. And two.", "", "documents"),
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_of_c4_by_itself_and_counted(name: str, words: Path, tmp_path: Path) -> None:
    given = ["corpus.of.path=any", f"corpus.rules.bad_words.path={words}", "corpus.rules.long_words.most=8"]
    made = Run.of(compose(["scale=null", "corpus=filtered", "corpus/rules=c4", "corpus@corpus.of=text", *given])).corpus
    page, left, counted = RULES[name]
    corpus = Filtered(Pages([page]), {name: made.rules[name]})
    assert list(made.rules) == list(RULES)
    found = [document.text for document in corpus.documents(tmp_path) if document.split == "train"]
    assert found == ([left] if left else [])
    assert corpus.counts[f"{name}_{counted}"] > 0


def test_three_sentences_make_a_page(tmp_path: Path) -> None:
    kept = "One is here. And two is.\nThree are enough."
    assert ShortPages().begin()(kept) == kept
    assert ShortPages().begin()("One is here. And two is.") == ""


def test_the_counts_are_in_the_fingerprint_and_without_rules_the_text_is_the_same(words: Path, tmp_path: Path) -> None:
    plain, none = Pages(PAGES), Filtered(Pages(PAGES))
    cleaned = Filtered(Pages(PAGES), rules(words))
    assert fingerprint(plain, tmp_path) == fingerprint(none, tmp_path)
    found = fingerprint(cleaned, tmp_path)
    assert found.dropped["javascript_lines"] == 1
    assert found == fingerprint(cleaned, tmp_path)
    assert found.documents == {"train": 5, "validation": 1}
    words.write_text("needle\n")
    assert fingerprint(cleaned, tmp_path).documents["train"] == 5
    assert fingerprint(cleaned, tmp_path).text != found.text


def test_from_config_to_the_record(text_folder: Path, cache: Path) -> None:
    given = ["scale=null", "tokenizer.vocab_size=150"]
    kept = ["corpus=filtered", "corpus@corpus.of=text", f"corpus.of.path={text_folder}"]
    plain = Run.of(compose([*given, "corpus=text", f"corpus.path={text_folder}"]))
    bare, cleaned = (Run.of(compose([*given, *kept, f"corpus/rules={choice}"])) for choice in ("none", "c4"))
    names = [data_fingerprint(cfg.corpus, cfg.tokenizer, cache) for cfg in (plain, bare, cleaned)]
    assert names[0] == names[1]
    assert names[2]["dropped"]["lorem_ipsum_documents"] == 0
    assert cleaned.corpus.sentences == Blingfire()


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        BadWords(str(tmp_path / "none.txt")).begin()
    with pytest.raises(UserError, match=r"corpus\.splits: valid"):
        Filtered(Pages([]), splits=["valid"])
